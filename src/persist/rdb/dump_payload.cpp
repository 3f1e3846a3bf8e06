#include "persist/rdb/dump_payload.h"

#include <climits>
#include <cstring>

#include "base/digest/crc64.h"
#include "server/server.h"

namespace latchkey::persist {

namespace {

constexpr size_t kVersionSize = sizeof(uint16_t);
constexpr size_t kChecksumSize = sizeof(uint64_t);
constexpr size_t kFooterSize = kVersionSize + kChecksumSize;

template <typename T>
T load(std::string_view bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace

void write_dump(ByteSink& sink, const store::Entry& entry, bool compress, int version,
                bool with_links) {
  sink.enable_checksum();
  RdbWriter writer(sink, compress, version);
  if (!with_links) writer.leave_out_links();
  const RdbType type = rdb_type_of(entry, version);
  writer.type(type);
  write_value(writer, entry);
  write_dump_footer(sink, writer, type == RdbType::kStreamListpacks4 ? kNewestRdbVersion : version);
}

std::string make_dump(const store::Entry& entry, bool compress, int version) {
  std::string dump;
  StringSink sink(dump);
  write_dump(sink, entry, compress, version);
  return dump;
}

void write_dump_footer(ByteSink& sink, RdbWriter& writer, int version) {
  const auto written = static_cast<uint16_t>(version);
  writer.raw(&written, sizeof written);
  const uint64_t checksum = sink.checksum();
  writer.raw(&checksum, sizeof checksum);
  sink.flush();
}

std::string_view dump_body(std::string_view dump) {
  return dump.substr(0, dump.size() - kFooterSize);
}

int newest_dump_version(const server::Server& server) {
  if (server.settings().rdb_version_check_relaxed) return INT_MAX;
  return server.edition().newest_rdb_version(kNewestRdbVersion);
}

bool is_intact_dump(std::string_view dump, bool skip_checksum, int newest) {
  if (dump.size() < kFooterSize) return false;
  const size_t footer = dump.size() - kFooterSize;
  const int version = load<uint16_t>(dump, footer);
  if (version > newest && version != kValkeyRdbVersion) return false;
  const auto told = load<uint64_t>(dump, footer + kVersionSize);
  return skip_checksum || told == 0 ||
         told == base::crc64(0, dump.substr(0, footer + kVersionSize));
}

base::Result<> read_dump(std::string_view dump, store::Environment& environment, std::string& room,
                         LoadedValue* loaded) {
  MemorySource source(dump_body(dump));
  RdbReader reader(source);
  reader.set_version(load<uint16_t>(dump, dump.size() - kFooterSize));
  uint8_t type;
  ReadResult result = ReadResult::kFailed;
  if (reader.byte(&type)) {
    result =
        is_rdb_type(type) ? read_value(reader, type, environment, loaded) : ReadResult::kFailed;
  }
  if (result != ReadResult::kDone) return base::fail(reader.error());
  if (loaded->value == nullptr && !loaded->blob) {
    room = loaded->text;
    loaded->text = room;
  }
  return {};
}

}  // namespace latchkey::persist
