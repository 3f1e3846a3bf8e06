#include "persist/check_rdb.h"

#include <fcntl.h>

#include <cstdint>
#include <cstdio>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/time_units.h"
#include "persist/rdb/byte_stream.h"
#include "persist/rdb/rdb_file_parser.h"
#include "persist/rdb/rdb_header.h"
#include "persist/rdb/rdb_modules.h"
#include "persist/rdb/rdb_primitives.h"
#include "persist/rdb/rdb_values.h"
#include "server/config/command_line.h"
#include "server/observe/progress.h"
#include "store/value/hash.h"

namespace latchkey::persist {

namespace {

class RdbChecker final : private RdbFileHandler {
 public:
  RdbChecker(ByteSource& source, int64_t now_ms, const CheckOutput& output)
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
  // RdbFileHandler
  bool database_selected(uint64_t index) override {
    info("Selecting DB ID " + std::to_string(index));
    return true;
  }
  void deadline_read(int64_t deadline_ms) override { deadline_ms_ = deadline_ms; }
  bool key_begins(uint8_t type) override;
  void aux_field_read(std::string_view name, std::string_view value) override {
    info("AUX FIELD " + std::string(name) + " = '" + std::string(value) + "'");
  }
  void slot_import_read(server::SlotImport import) override { info("SLOT IMPORT " + import.name); }
  bool function_library_read(std::string_view) override { return true; }
  bool pre_release_functions_begin() override {
    return refuse("Pre-release function format not supported.");
  }
  bool module_aux_begins(uint64_t module) override;
  bool unknown_opcode_read(uint8_t opcode) override {
    return refuse("Invalid object type: " + std::to_string(opcode));
  }
  bool checksum_read(uint64_t stored, uint64_t computed) override;

  bool check_all() {
    if (const base::Result<> header = read_rdb_header(reader_); !header)
      return refuse(header.error());
    step_ = {};
    return parser_.parse();
  }
  bool check_value(uint8_t type);
  // Always false.
  bool refuse(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  void info(std::string_view text) {
    output_("[offset " + std::to_string(reader_.source().offset()) + "] " + std::string(text));
  }
  void show_error();
  void show_figures();

  RdbReader reader_;
  RdbFileParser parser_{reader_, *this};
  int64_t now_ms_;
  const CheckOutput& output_;
  store::Environment environment_;

  // For the error report. The step is empty where the parser's is meant.
  std::string_view step_ = "start";
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

bool RdbChecker::module_aux_begins(uint64_t module) {
  uint64_t when;
  if (!reader_.length(&when) || !reader_.length(&when)) return false;
  info("MODULE AUX for: " + module_name(module));
  return skip_module_data(reader_);
}

// --- Keys ---------------------------------------------------------------------------------------

bool RdbChecker::key_begins(uint8_t type) {
  if (!is_rdb_type(type)) return unknown_opcode_read(type);
  type_ = type;
  step_ = "read-key";
  std::string_view key;
  if (!reader_.string(&key)) return false;
  key_ = key;
  has_key_ = true;
  ++keys_;
  step_ = "read-object-value";
  if (!check_value(type)) return false;
  if (deadline_ms_ >= 0) {
    ++expires_;
    if (deadline_ms_ < now_ms_) ++expired_;
  }
  deadline_ms_ = -1;
  has_key_ = false;
  type_ = -1;
  step_ = {};
  return true;
}

bool RdbChecker::check_value(uint8_t type) {
  LoadedValue loaded;
  const ModuleType* module = nullptr;
  uint64_t id = 0;
  if (type == static_cast<uint8_t>(RdbType::kModule2)) {
    if (!reader_.length(&id)) return false;
    module = module_type_of_id(id);
    if (module == nullptr) return skip_module_data(reader_);
  }
  switch (module != nullptr ? read_module_value(reader_, environment_, id, *module, &loaded)
                            : read_value(reader_, type, environment_, &loaded)) {
    case ReadResult::kDone:
      break;
    case ReadResult::kEmpty:
      return refuse("The value is empty");
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

bool RdbChecker::checksum_read(uint64_t stored, uint64_t computed) {
  if (stored == 0) {
    info("RDB file was saved with checksum disabled: no check performed.");
    return true;
  }
  if (stored != computed) return refuse("RDB CRC error");
  info("Checksum OK");
  return true;
}

// --- The report ---------------------------------------------------------------------------------

void RdbChecker::show_error() {
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
  output_("[additional info] While doing: " + std::string(step_.empty() ? parser_.step() : step_));
  if (has_key_) output_("[additional info] Reading key '" + key_ + "'");
  if (type_ >= 0) {
    const std::string_view name = rdb_type_name(static_cast<uint8_t>(type_));
    output_("[additional info] Reading type " + std::to_string(type_) + " (" + std::string(name) +
            ")");
  }
}

void RdbChecker::show_figures() {
  output_("[info] " + std::to_string(keys_) + " keys read");
  output_("[info] " + std::to_string(expires_) + " expires");
  output_("[info] " + std::to_string(expired_) + " already expired");
  output_("[info] " + std::to_string(element_expires_) + " subexpires");
}

int64_t wall_clock_ms() {
  return base::SystemClock().wall_us() / base::kUsPerMs;
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
  const bool is_intact = RdbChecker(source, now_ms, output).check();
  if (end != nullptr) *end = source.offset();
  return is_intact;
}

int run_check_rdb(std::span<const std::string> arguments) {
  if (arguments.size() != 2) {
    std::fprintf(stderr, "Usage: %s <rdb-file-name>\n", arguments[0].c_str());
    return 1;
  }
  if (arguments[1] == "-v" || arguments[1] == "--version") {
    std::printf("%s\n", server::version_line("redis-check-rdb").c_str());
    return 0;
  }
  const bool is_intact = check_rdb(arguments[1], wall_clock_ms(), [](std::string_view line) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fputc('\n', stdout);
  });
  return is_intact ? 0 : 1;
}

}  // namespace latchkey::persist
