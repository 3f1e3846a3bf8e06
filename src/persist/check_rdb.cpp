#include "persist/check_rdb.h"

#include <fcntl.h>

#include <chrono>
#include <cstdint>
#include <cstdio>

#include "base/clock.h"
#include "base/file.h"
#include "persist/rdb/byte_stream.h"
#include "persist/rdb/rdb_array.h"
#include "persist/rdb/rdb_header.h"
#include "persist/rdb/rdb_modules.h"
#include "persist/rdb/rdb_primitives.h"
#include "persist/rdb/rdb_values.h"
#include "persist/rdb/rdb_vector_set.h"
#include "persist/rdb_slot_import.h"
#include "server/config/command_line.h"
#include "server/observe/progress.h"
#include "store/value/hash.h"

namespace latchkey::persist {

namespace {

class Checker {
 public:
  Checker(ByteSource& source, int64_t now_ms, const CheckOutput& output)
      : reader_(source), now_ms_(now_ms), output_(output) {
    source.enable_checksum();
  }

  bool check() {
    const bool is_intact = check_all();
    if (is_intact) {
      info("\\o/ RDB looks OK! \\o/");
    } else {
      show_error();
    }
    show_figures();
    return is_intact;
  }

 private:
  bool check_all();
  bool check_opcode(uint8_t opcode, bool* is_end);
  bool check_key(uint8_t type);
  bool check_value(uint8_t type);
  bool check_sum();
  bool check_aux();
  bool check_deadline(RdbOpcode opcode);
  bool check_slot_import();
  bool check_module_aux();
  bool select_database();

  void info(std::string_view text) {
    output_("[offset " + std::to_string(reader_.source().offset()) + "] " + std::string(text));
  }
  void show_error();
  void show_figures();

  RdbReader reader_;
  int64_t now_ms_;
  const CheckOutput& output_;
  store::Environment environment_;

  // The current step, for the error report.
  std::string_view doing_ = "start";
  std::string key_;
  bool has_key_ = false;
  int type_ = 0;  // -1: none
  // An error besides those of the reader.
  std::string problem_;

  int64_t deadline_ms_ = -1;
  uint64_t keys_ = 0;
  uint64_t expires_ = 0;
  uint64_t expired_ = 0;
  uint64_t element_expires_ = 0;
};

bool Checker::check_all() {
  if (!read_rdb_header(reader_, &problem_)) return false;
  for (bool is_end = false; !is_end;) {
    doing_ = "read-type";
    uint8_t opcode;
    if (!reader_.byte(&opcode)) return false;
    const bool is_intact = opcode >= static_cast<uint8_t>(RdbOpcode::kSlotImport)
                               ? check_opcode(opcode, &is_end)
                               : check_key(opcode);
    if (!is_intact) return false;
  }
  return reader_.version() < kFirstRdbVersionWithChecksum || check_sum();
}

bool Checker::check_opcode(uint8_t opcode, bool* is_end) {
  uint64_t number;
  uint8_t byte;
  switch (static_cast<RdbOpcode>(opcode)) {
    case RdbOpcode::kEnd:
      *is_end = true;
      return true;
    case RdbOpcode::kSelectDb:
      return select_database();
    case RdbOpcode::kResizeDb:
      doing_ = "read-len";
      return reader_.length(&number) && reader_.length(&number);
    case RdbOpcode::kSlotInfo:
      doing_ = "read-len";
      return reader_.length(&number) && reader_.length(&number) && reader_.length(&number);
    case RdbOpcode::kSlotImport:
      return check_slot_import();
    case RdbOpcode::kDeadlineMs:
    case RdbOpcode::kDeadline:
      return check_deadline(static_cast<RdbOpcode>(opcode));
    case RdbOpcode::kIdle:
      return reader_.length(&number);
    case RdbOpcode::kFrequency:
      return reader_.byte(&byte);
    case RdbOpcode::kAux:
      return check_aux();
    case RdbOpcode::kModuleAux:
      return check_module_aux();
    case RdbOpcode::kFunction:
      doing_ = "read-functions";
      return reader_.skip_string();
    case RdbOpcode::kFunctionPreGa:
      problem_ = "Pre-release function format not supported.";
      return false;
  }
  problem_ = "Invalid object type: " + std::to_string(opcode);
  return false;
}

bool Checker::select_database() {
  doing_ = "read-len";
  uint64_t index;
  if (!reader_.length(&index)) return false;
  info("Selecting DB ID " + std::to_string(index));
  return true;
}

bool Checker::check_aux() {
  doing_ = "read-aux";
  std::string_view text;
  if (!reader_.string(&text)) return false;
  const std::string name(text);
  if (!reader_.string(&text)) return false;
  info("AUX FIELD " + name + " = '" + std::string(text) + "'");
  return true;
}

bool Checker::check_slot_import() {
  doing_ = "read-slot-import";
  server::SlotImport import;
  if (!read_slot_import(reader_, &import)) return false;
  info("SLOT IMPORT " + import.name);
  return true;
}

bool Checker::check_module_aux() {
  doing_ = "read-module-aux";
  uint64_t id;
  uint64_t when;
  if (!reader_.length(&id) || !reader_.length(&when) || !reader_.length(&when)) return false;
  info("MODULE AUX for: " + module_name(id));
  return skip_module_data(reader_);
}

bool Checker::check_deadline(RdbOpcode opcode) {
  doing_ = "read-expire";
  if (opcode == RdbOpcode::kDeadlineMs) return reader_.milliseconds(&deadline_ms_);
  int32_t seconds;
  if (!reader_.raw(&seconds, sizeof seconds)) return false;
  deadline_ms_ = int64_t{seconds} * 1000;
  return true;
}

// --- Keys ---------------------------------------------------------------------------------------

bool Checker::check_key(uint8_t type) {
  if (!is_rdb_type(type)) {
    problem_ = "Invalid object type: " + std::to_string(type);
    return false;
  }
  type_ = type;
  doing_ = "read-key";
  std::string_view key;
  if (!reader_.string(&key)) return false;
  key_ = key;
  has_key_ = true;
  ++keys_;
  doing_ = "read-object-value";
  if (!check_value(type)) return false;
  if (deadline_ms_ >= 0) {
    ++expires_;
    if (deadline_ms_ < now_ms_) ++expired_;
  }
  deadline_ms_ = -1;
  has_key_ = false;
  type_ = -1;
  return true;
}

bool Checker::check_value(uint8_t type) {
  LoadedValue loaded;
  uint64_t module = 0;
  if (type == static_cast<uint8_t>(RdbType::kModule2)) {
    if (!reader_.length(&module)) return false;
    if (module != kVectorSetModule && module != kArrayModule) return skip_module_data(reader_);
  }
  switch (module == kVectorSetModule ? read_vector_set(reader_, environment_, &loaded)
          : module == kArrayModule   ? read_array(reader_, &loaded)
                                     : read_value(reader_, type, environment_, &loaded)) {
    case ReadResult::kDone:
      break;
    case ReadResult::kEmpty:
      problem_ = "The value is empty";
      return false;
    case ReadResult::kFailed:
      return false;
  }
  if (loaded.type == store::Type::kHash) {
    const auto& hash = static_cast<const store::Hash&>(*loaded.value);
    hash.for_each_stored([this](std::string_view, std::string_view, int64_t deadline_ms) {
      if (deadline_ms != store::Hash::kNoDeadline) ++element_expires_;
    });
  }
  return true;
}

bool Checker::check_sum() {
  doing_ = "check-sum";
  const uint64_t computed = reader_.source().checksum();
  uint64_t told;
  if (!reader_.raw(&told, sizeof told)) return false;
  if (told == 0) {
    info("RDB file was saved with checksum disabled: no check performed.");
    return true;
  }
  if (told != computed) {
    problem_ = "RDB CRC error";
    return false;
  }
  info("Checksum OK");
  return true;
}

// --- The report ---------------------------------------------------------------------------------

void Checker::show_error() {
  const uint64_t offset = reader_.source().offset();
  std::string reason = problem_;
  if (reason.empty()) {
    const bool ends = !reader_.source().ok();
    reason = ends ? reader_.error()
                  : "Internal error in RDB reading offset " + std::to_string(offset) + " -> " +
                        reader_.error();
  }
  output_("--- RDB ERROR DETECTED ---");
  info(reason);
  output_("[additional info] While doing: " + std::string(doing_));
  if (has_key_) output_("[additional info] Reading key '" + key_ + "'");
  if (type_ >= 0) {
    const std::string_view name = rdb_type_name(static_cast<uint8_t>(type_));
    output_("[additional info] Reading type " + std::to_string(type_) + " (" + std::string(name) +
            ")");
  }
}

void Checker::show_figures() {
  output_("[info] " + std::to_string(keys_) + " keys read");
  output_("[info] " + std::to_string(expires_) + " expires");
  output_("[info] " + std::to_string(expired_) + " already expired");
  output_("[info] " + std::to_string(element_expires_) + " subexpires");
}

int64_t wall_clock_ms() {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  return duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

ProgressWatch show_progress(ByteSource& source, server::Progress& progress, uint64_t base) {
  constexpr uint64_t kEvery = uint64_t{1} << 20;
  return source.on_progress(kEvery, [&progress, base](uint64_t offset) {
    progress.at(base + offset, base::SystemClock().monotonic_us());
    return true;
  });
}

bool check_rdb(const std::string& path, int64_t now_ms, const CheckOutput& output, uint64_t* end) {
  output("[offset 0] Checking RDB file " + path);
  const base::Descriptor file(path, O_RDONLY);
  if (!file.is_open()) return false;
  DescriptorSource source(base::disk(), file.number());
  server::Progress progress(nullptr, server::progress_terminal(), "Checking " + path,
                            server::ProgressUnit::kBytes, file.size().value_or(0),
                            base::SystemClock().monotonic_us());
  const auto watch = show_progress(source, progress, 0);
  const bool is_intact = Checker(source, now_ms, output).check();
  if (end != nullptr) *end = source.offset();
  return is_intact;
}

int run_check_rdb(std::span<const std::string> arguments) {
  if (arguments.size() != 2) {
    std::fprintf(stderr, "Usage: %s <rdb-file-name>\n", arguments[0].c_str());
    return 1;
  }
  if (arguments[1] == "-v" || arguments[1] == "--version") {
    // "Redis server v=..."
    const std::string version = server::version_line();
    std::printf("redis-check-rdb%s\n", version.substr(version.find(" v=")).c_str());
    return 0;
  }
  const bool is_intact = check_rdb(arguments[1], wall_clock_ms(), [](std::string_view line) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fputc('\n', stdout);
  });
  return is_intact ? 0 : 1;
}

}  // namespace latchkey::persist
