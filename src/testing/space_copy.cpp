#include "testing/space_copy.h"

#include <string>
#include <string_view>

#include "base/log.h"
#include "locks/lock_watch.h"
#include "persist/rdb/byte_stream.h"
#include "persist/rdb/rdb_file.h"
#include "server/function_libraries.h"
#include "server/server.h"
#include "server/tasks.h"
#include "store/value/hash.h"
#include "store/value/stream.h"
#include "store/value/view.h"
#include "testing/clock_control.h"

namespace latchkey::testing {

namespace {

// Silences the log while it exists: reading a dataset logs which server has written it and when,
// which has no meaning here.
class QuietLog {
 public:
  explicit QuietLog(base::Logger& log) : log_(log), level_(log.level()) {
    if (level_ < base::LogLevel::kWarning) log_.set_level(base::LogLevel::kWarning);
  }
  ~QuietLog() { log_.set_level(level_); }
  QuietLog(const QuietLog&) = delete;
  QuietLog& operator=(const QuietLog&) = delete;

 private:
  base::Logger& log_;
  base::LogLevel level_;
};

// The name of the type of the value, if the release does not have that type; else empty.
std::string_view unsupported_type(const store::Entry& entry, const server::Edition& edition) {
  switch (entry.type()) {
    case store::Type::kVectorSet:
      return edition.has({8, 0}) ? std::string_view() : "vector sets";
    case store::Type::kJson:
      return edition.has({8, 0}) ? std::string_view() : "JSON documents";
    case store::Type::kTimeSeries:
      return edition.has({8, 0}) ? std::string_view() : "time series";
    case store::Type::kBloomFilter:
    case store::Type::kCuckooFilter:
    case store::Type::kCountMinSketch:
    case store::Type::kTopK:
    case store::Type::kTDigest:
      return edition.has({8, 0}) ? std::string_view() : "probabilistic values";
    case store::Type::kArray:
      return edition.has({8, 8}) ? std::string_view() : "arrays";
    case store::Type::kHash:
      if (edition.has({7, 4}, {9, 0})) return {};
      return store::View<store::Hash>(entry)->first_deadline_ms() == store::Hash::kNoDeadline
                 ? std::string_view()
                 : "fields with deadlines";
    case store::Type::kStream:
      if (edition.has({8, 6})) return {};
      return store::View<store::Stream>(entry)->producers() == nullptr ? std::string_view()
                                                                       : "streams with IDMP";
    default:
      return {};
  }
}

// Fails when the release that `to` stands for cannot have that dataset.
base::Result<> check_edition(server::Server& from, const server::Server& to) {
  const server::Edition& edition = to.edition();
  if (!edition.emulates() || edition == from.edition()) return {};
  std::string_view unknown;
  if (!edition.has({7, 0}) && from.functions() != nullptr)
    from.functions()->for_each_code([&](std::string_view) { unknown = "functions"; });
  for (const auto& database : from.databases()) {
    database->for_each([&](const store::Entry& entry) {
      if (unknown.empty()) unknown = unsupported_type(entry, edition);
    });
  }
  if (unknown.empty()) return {};
  return base::fail("There are no " + std::string(unknown) + " in " + edition.text());
}

}  // namespace

base::Result<> copy_dataset(server::Server& from, server::Server& to) {
  // Something in the middle, a script or a dataset that is loaded, is not to be seen half done.
  if (from.tasks().any() || from.layer<ClockControl>().is_moving())
    return base::fail("The server to copy from is in the middle of something");
  if (base::Result<> checked = check_edition(from, to); !checked) return checked;
  to.data_clock().restore(from.data_clock().state());
  to.data_clock_moved();
  // It watches from now on, by that clock.
  to.layer<locks::LockWatch>().reset();

  std::string bytes;
  persist::StringSink sink(bytes);
  persist::WriteOptions writing = persist::write_options(from);
  writing.compress = false;
  writing.checksum = false;
  writing.version = to.edition().rdb_version();
  persist::write_dataset(sink, from, writing);

  const QuietLog quiet(to.log());
  persist::MemorySource source(bytes);
  persist::ReadOptions reading = persist::read_options(to);
  reading.verify_checksum = false;
  // Keys past their deadline expire in the copy as they do in the original.
  reading.drop_expired = false;
  const persist::ReadReport report = persist::read_dataset(source, to, reading);
  if (report.ok) return {};
  return base::fail(report.errors.empty() ? "The dataset cannot be read" : report.errors.back());
}

}  // namespace latchkey::testing
