#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "base/time_units.h"
#include "persist/rdb/rdb_file.h"
#include "persist/rdb/rdb_file_parser.h"
#include "persist/rdb/rdb_header.h"
#include "persist/rdb/rdb_modules.h"
#include "persist/rdb/rdb_primitives.h"
#include "persist/rdb/rdb_values.h"
#include "server/function_libraries.h"
#include "server/server.h"
#include "store/value/hash.h"

namespace latchkey::persist {

namespace {

using store::Entry;
using store::KeyRef;
using store::Keyspace;

// The fields before a key's type, which apply to that key alone.
struct KeyAttributes {
  int64_t deadline_ms = Keyspace::kNoDeadline;
  std::optional<uint64_t> idle_seconds;
  std::optional<uint8_t> frequency;
};

// While it exists, no event tells of keys that are added or replaced.
class UnobservedKeys {
 public:
  explicit UnobservedKeys(store::Environment& environment)
      : environment_(environment), observer_(std::exchange(environment.key_observer, nullptr)) {}
  ~UnobservedKeys() { environment_.key_observer = observer_; }
  UnobservedKeys(const UnobservedKeys&) = delete;
  UnobservedKeys& operator=(const UnobservedKeys&) = delete;

 private:
  store::Environment& environment_;
  store::KeyObserver* observer_;
};

class DatasetReader final : private RdbFileHandler {
 public:
  DatasetReader(ByteSource& source, server::Server& server, const ReadOptions& options)
      : reader_(source), server_(server), options_(options), db_(&database(0)) {}

  Keyspace& database(int index) {
    return options_.databases.empty() ? server_.database(index)
                                      : *options_.databases[static_cast<size_t>(index)];
  }

  ReadReport read() {
    if (options_.verify_checksum) reader_.source().enable_checksum();
    report_.ok = read_all();
    if (!report_.ok) explain();
    if (report_.ok) log_done();
    return std::move(report_);
  }

 private:
  // RdbFileHandler
  bool database_selected(uint64_t index) override;
  void deadline_read(int64_t deadline_ms) override {
    // Deadlines before the epoch are in the past anyway.
    attributes_.deadline_ms = std::max<int64_t>(deadline_ms, 0);
  }
  void idle_time_read(uint64_t seconds) override { attributes_.idle_seconds = seconds; }
  void frequency_read(uint8_t frequency) override { attributes_.frequency = frequency; }
  bool key_begins(uint8_t type) override;
  void aux_field_read(std::string_view name, std::string_view value) override;
  void slot_import_read(server::SlotImport import) override {
    report_.slots.imports.push_back(std::move(import));
  }
  bool function_library_read(std::string_view code) override;
  bool pre_release_functions_begin() override {
    return refuse("Pre-release function format not supported.");
  }
  bool module_aux_begins(uint64_t module) override;
  bool unknown_opcode_read(uint8_t opcode) override {
    return reader_.fail("Unknown RDB opcode " + std::to_string(opcode));
  }
  bool checksum_read(uint64_t stored, uint64_t computed) override;

  bool read_all();
  bool refuse_type(uint8_t type);
  bool keep(std::string_view key, LoadedValue& value);
  void note_aux(const std::string& name, const std::string& value);
  void note_empty(std::string_view key);
  void log_done();
  void explain();
  // Records a reason why the file, even if intact, cannot be used here. Always false.
  bool refuse(std::string reason) {
    report_.errors.push_back(std::move(reason));
    refused_ = true;
    return false;
  }

  RdbReader reader_;
  server::Server& server_;
  const ReadOptions& options_;
  Keyspace* db_;
  ReadReport report_;
  KeyAttributes attributes_;
  std::string key_;
  bool refused_ = false;
};

base::Result<> read_header(RdbReader& reader, server::Server& server) {
  const int newest = server.edition().newest_rdb_version(kNewestRdbVersion);
  return read_rdb_header(reader, newest, server.settings().rdb_version_check_relaxed);
}

bool DatasetReader::read_all() {
  if (const base::Result<> header = read_header(reader_, server_); !header)
    return header.error().empty() ? false : refuse(header.error());
  return RdbFileParser(reader_, *this).parse();
}

bool DatasetReader::database_selected(uint64_t index) {
  if (index >= static_cast<uint64_t>(server_.database_count())) {
    return refuse(
        "FATAL: Data file was created with a Redis server configured to handle more than " +
        std::to_string(server_.database_count()) + " databases. Exiting");
  }
  db_ = &database(static_cast<int>(index));
  return true;
}

bool DatasetReader::function_library_read(std::string_view code) {
  if (options_.functions != nullptr) {
    options_.functions->emplace_back(code);
    return true;
  }
  if (server_.functions() == nullptr) return refuse("There is no engine for the file's functions");
  const base::Result<> loaded = server_.functions()->load(code, options_.replace_existing);
  return loaded ? true : refuse("Failed creating the library: " + loaded.error());
}

bool DatasetReader::module_aux_begins(uint64_t module) {
  return refuse("The RDB file contains AUX module data I can't load: no matching module '" +
                module_name(module) + "'");
}

// --- Keys ---------------------------------------------------------------------------------------

bool DatasetReader::key_begins(uint8_t type) {
  std::string_view key;
  if (!is_rdb_type(type)) return refuse_type(type);
  if (!reader_.string(&key)) return false;
  key_ = key;
  LoadedValue value;
  const ReadResult result = read_value(reader_, type, server_.environment(), &value);
  if (result == ReadResult::kFailed) return false;
  const store::ValueLimits& limits = server_.environment().limits;
  if (limits.hash_rdb_load_min_template_entries != 0 && value.type == store::Type::kHash &&
      value.value != nullptr) {
    static_cast<store::Hash&>(*value.value)
        .share_names_if_within(limits.hash_rdb_load_min_template_entries,
                               limits.hash_rdb_load_max_template_entries);
  }
  if (result == ReadResult::kEmpty) {
    note_empty(key_);
  } else if (options_.drop_expired && attributes_.deadline_ms >= 0 &&
             attributes_.deadline_ms < server_.now_ms()) {
    ++report_.keys_expired;
    if (options_.key_dropped) options_.key_dropped(db_->index(), key_);
  } else if (!keep(key_, value)) {
    return false;
  }
  attributes_ = {};
  if (options_.after_key)
    options_.after_key(report_.keys_loaded + report_.keys_expired + report_.empty_keys_skipped);
  return true;
}

// A file of a version that was only tried (rdb-version-check relaxed) is not damaged.
bool DatasetReader::refuse_type(uint8_t type) {
  const int version = reader_.version();
  if (version > kValkeyRdbVersion)
    return refuse("Unknown type or opcode when loading DB. Unrecoverable error, aborting now.");
  if (version > kNewestRdbVersion && version < kValkeyRdbVersion) {
    return refuse("Can't handle foreign type or opcode " + std::to_string(type) +
                  " in RDB with version " + std::to_string(version));
  }
  return reader_.fail("Unknown RDB encoding type " + std::to_string(type));
}

bool DatasetReader::keep(std::string_view key, LoadedValue& value) {
  KeyRef ref = db_->find(key, Keyspace::kPeek | Keyspace::kEvenExpired);
  if (ref && !options_.replace_existing) {
    report_.is_damaged = true;
    return refuse("RDB has duplicated key '" + std::string(key) + "' in DB " +
                  std::to_string(db_->index()));
  }
  {
    const UnobservedKeys unobserved(server_.environment());
    put_value(*db_, ref, value, attributes_.deadline_ms);
  }
  const store::Environment& environment = server_.environment();
  if (attributes_.idle_seconds && !environment.use_lfu)
    db_->set_access(ref, idle_access(environment, *attributes_.idle_seconds));
  if (attributes_.frequency && environment.use_lfu)
    db_->set_access(ref, frequency_access(environment, *attributes_.frequency));
  ++report_.keys_loaded;
  return true;
}

void DatasetReader::note_empty(std::string_view key) {
  constexpr uint64_t kMaxNamed = 10;
  if (report_.empty_keys_skipped++ < kMaxNamed)
    server_.log().notice("rdbLoadObject skipping empty key: " + std::string(key));
}

// --- What is told of the file -------------------------------------------------------------------

void DatasetReader::aux_field_read(std::string_view name, std::string_view value) {
  auto& [field, text] = report_.aux.emplace_back(name, value);
  note_aux(field, text);
  if (field == kSlotMovesField) report_.slots.moves = text;
}

void DatasetReader::note_aux(const std::string& name, const std::string& value) {
  base::Logger& log = server_.log();
  if (name.starts_with('%')) {
    log.notice("RDB '" + name + "': " + value);
  } else if (name == "redis-ver") {
    log.notice("Loading RDB produced by version " + value);
  } else if (name == "valkey-ver") {
    log.notice("Loading RDB produced by Valkey version " + value);
  } else if (name == "ctime") {
    const int64_t age =
        server_.now_ms() / base::kMsPerSecond - std::strtoll(value.c_str(), nullptr, 10);
    log.logf(base::LogLevel::kNotice, "RDB age %" PRId64 " seconds", std::max<int64_t>(age, 0));
  } else if (name == "used-mem") {
    const auto bytes = static_cast<double>(std::strtoll(value.c_str(), nullptr, 10));
    log.logf(base::LogLevel::kNotice, "RDB memory usage when created %.2f Mb",
             bytes / (1024 * 1024));
  } else if (name == "aof-base" && value == "1") {
    log.notice("RDB is base AOF");
  }
}

bool DatasetReader::checksum_read(uint64_t stored, uint64_t computed) {
  if (!options_.verify_checksum) return true;
  if (stored == 0) {
    server_.log().notice("RDB file was saved with checksum disabled: no check performed.");
    return true;
  }
  if (stored == computed) return true;
  char text[160];
  std::snprintf(text, sizeof text,
                "Wrong RDB checksum expected: (%" PRIx64 ") but got (%" PRIx64 "). Aborting now.",
                stored, computed);
  report_.errors.emplace_back(text);
  return reader_.fail("RDB CRC error");
}

void DatasetReader::log_done() {
  std::string line = "Done loading RDB, keys loaded: " + std::to_string(report_.keys_loaded) +
                     ", keys expired: " + std::to_string(report_.keys_expired);
  if (report_.empty_keys_skipped > 0)
    line += ", empty keys skipped: " + std::to_string(report_.empty_keys_skipped);
  server_.log().notice(line + ".");
}

void DatasetReader::explain() {
  if (refused_) return;
  report_.is_damaged = reader_.source().error() != ByteSource::Error::kFailed &&
                       reader_.source().error() != ByteSource::Error::kStopped;
  if (!reader_.source().ok())
    report_.errors.emplace_back("Short read or OOM loading DB. Unrecoverable error, aborting now.");
  report_.errors.push_back("Internal error in RDB reading offset " +
                           std::to_string(reader_.source().offset()) + " -> " + reader_.error());
}

}  // namespace

const std::string* ReadReport::find_aux(std::string_view name) const {
  const auto found =
      std::find_if(aux.begin(), aux.end(), [&](const auto& field) { return field.first == name; });
  return found == aux.end() ? nullptr : &found->second;
}

ReadOptions read_options(server::Server& server) {
  ReadOptions options;
  options.verify_checksum =
      server.settings().rdbchecksum && !server.debug_settings().skip_checksums;
  options.drop_expired = !server.is_replica();
  return options;
}

base::Result<> check_rdb_version(ByteSource& source, server::Server& server) {
  RdbReader reader(source);
  return read_header(reader, server);
}

ReadReport read_dataset(ByteSource& source, server::Server& server, const ReadOptions& options) {
  return DatasetReader(source, server, options).read();
}

}  // namespace latchkey::persist
