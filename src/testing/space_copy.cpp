#include "testing/space_copy.h"

#include "base/log.h"
#include "persist/byte_stream.h"
#include "persist/rdb_file.h"
#include "server/server.h"
#include "server/tasks.h"
#include "testing/clock_control.h"

namespace latchkey::testing {

namespace {

// Reading a dataset logs who has written it and when, which says nothing here.
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

}  // namespace

bool copy_dataset(server::Server& from, server::Server& to, std::string* error) {
  // Something in the middle, a script or a dataset that is loaded, is not to be seen half done.
  if (from.tasks().any() || from.clock_control().is_moving()) {
    *error = "The server to copy from is in the middle of something";
    return false;
  }
  to.data_clock().restore(from.data_clock().state());
  to.data_clock_moved();

  std::string bytes;
  persist::StringSink sink(bytes);
  persist::WriteOptions writing = persist::write_options(from);
  writing.compress = false;
  writing.checksum = false;
  persist::write_dataset(sink, from, writing);

  const QuietLog quiet(to.log());
  persist::MemorySource source(bytes);
  persist::ReadOptions reading = persist::read_options(to);
  reading.verify_checksum = false;
  // What is past its deadline goes in the copy as it does in the original: by itself.
  reading.drop_expired = false;
  const persist::ReadReport report = persist::read_dataset(source, to, reading);
  if (report.ok) return true;
  *error = report.errors.empty() ? "The dataset cannot be read" : report.errors.back();
  return false;
}

}  // namespace latchkey::testing
