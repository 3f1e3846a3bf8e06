#include "persist/check_aof.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text/text.h"
#include "base/time_units.h"
#include "persist/aof/aof_manifest.h"
#include "persist/check_rdb.h"
#include "persist/rdb/byte_stream.h"
#include "persist/rdb/rdb_header.h"
#include "server/config/command_line.h"
#include "server/observe/progress.h"

namespace latchkey::persist {

namespace {

constexpr std::string_view kTimestamp = "#TS:";
// Longest annotation that is read as one line.
constexpr size_t kMaxLine = 127;

enum class Outcome : uint8_t { kValid, kEmpty, kTruncated, kRefused };

struct Wanted {
  bool fix = false;
  std::optional<long> timestamp;
};

// A file to check.
struct File {
  std::string kind;  // for messages: "AOF", "BASE AOF"
  std::string name;
  std::string path;
  bool is_last = true;
  bool has_preamble = false;
};

[[gnu::format(printf, 1, 2)]] void say(const char* format, ...) {
  va_list values;
  va_start(values, format);
  std::vprintf(format, values);
  va_end(values);
  std::fputc('\n', stdout);
}

// False, after a message, when the file cannot be opened.
bool is_readable(const std::string& path) {
  if (base::Descriptor(path, O_RDONLY).is_open()) return true;
  say("Cannot open file %s: %s", path.c_str(), strerror(errno));
  return false;
}

// Reads requests, and records the offset of the first error.
class RequestReader {
 public:
  RequestReader(ByteSource& source, uint64_t begin, uint64_t size, int64_t& line)
      : source_(source), begin_(begin), size_(size), line_(line) {}

  uint64_t offset() const { return begin_ + source_.offset() - (ahead_ ? 1 : 0); }
  // The next byte, without consuming it; nothing at the end.
  std::optional<char> peek() {
    uint8_t byte = 0;
    if (!ahead_ && !source_.at_end() && source_.read_byte(&byte)) ahead_ = static_cast<char>(byte);
    return ahead_;
  }
  const std::string& error() const { return error_; }
  bool in_transaction() const { return transactions_ != 0; }
  void fail(const std::string& message) {
    char place[32];
    std::snprintf(place, sizeof place, "0x%16llx: ", static_cast<unsigned long long>(token_));
    error_ = place + message;
  }

  // Reads one request, from its '*' on. False when it is invalid or incomplete.
  bool read_request(const std::string& file) {
    long words = 0;
    if (!read_number('*', &words)) return false;
    for (long i = 0; i < words; ++i) {
      if (!read_word(i == 0)) return false;
      if (i == 0 && !note_command(file)) return false;
    }
    return true;
  }
  // Reads a line, including its end if it has one.
  std::string read_line(size_t most) {
    std::string text;
    while (text.size() < most && peek()) {
      text.push_back(*std::exchange(ahead_, std::nullopt));
      if (text.back() == '\n') break;
    }
    return text;
  }

 private:
  static std::string hex(std::string_view bytes) {
    char digits[8];
    const auto at = [&](size_t i) {
      return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0u;
    };
    std::snprintf(digits, sizeof digits, "%02x%02x", at(0), at(1));
    return digits;
  }
  bool is_line_end(std::string_view bytes) {
    if (bytes.starts_with("\r\n")) {
      ++line_;
      return true;
    }
    fail("Expected \\r\\n, got: " + hex(bytes));
    return false;
  }
  bool read_number(char prefix, long* number) {
    token_ = offset();
    const std::string text = read_line(kMaxLine);
    if (text.empty()) return false;
    if (text[0] != prefix) {
      std::string problem = "Expected prefix '";
      problem += prefix;
      problem.append("', got: '") += text[0];
      fail(problem += '\'');
      return false;
    }
    char* end = nullptr;
    *number = std::strtol(text.c_str() + 1, &end, 10);
    return is_line_end(std::string_view(text).substr(static_cast<size_t>(end - text.c_str())));
  }
  bool read_word(bool keep) {
    constexpr uint64_t kLineEnd = 2;
    long length = 0;
    if (!read_number('$', &length)) return false;
    if (length < 0 || length > LONG_MAX - static_cast<long>(kLineEnd)) {
      fail("Expected to read string of " + std::to_string(length) +
           " bytes, which is not in the suitable range");
      return false;
    }
    token_ = offset();
    const uint64_t left = size_ - std::min(size_, token_);
    const uint64_t wanted = static_cast<uint64_t>(length) + kLineEnd;
    if (wanted > left) {
      fail("Expected to read " + std::to_string(wanted) + " bytes, got " + std::to_string(left) +
           " bytes");
      return false;
    }
    // Only the command's name is kept, and the names of interest are short.
    constexpr long kLongestName = 8;
    word_.clear();
    if (keep && length <= kLongestName) {
      word_.resize(static_cast<size_t>(length));
      if (!source_.read(word_.data(), word_.size())) return false;
    } else if (!source_.skip(static_cast<uint64_t>(length))) {
      return false;
    }
    char line_end[kLineEnd];
    return source_.read(line_end, kLineEnd) && is_line_end({line_end, kLineEnd});
  }
  bool note_command(const std::string& file) {
    if (base::equal_ignoring_case(word_, "multi")) {
      if (transactions_++ == 0) return true;
      fail("Unexpected MULTI in AOF " + file);
      return false;
    }
    if (base::equal_ignoring_case(word_, "exec")) {
      if (--transactions_ == 0) return true;
      fail("Unexpected EXEC in AOF " + file);
      return false;
    }
    return true;
  }

  ByteSource& source_;
  uint64_t begin_;
  uint64_t size_;
  int64_t& line_;
  std::optional<char> ahead_;
  uint64_t token_ = 0;  // offset of the last token read
  int transactions_ = 0;
  std::string word_;
  std::string error_;
};

class AofChecker {
 public:
  explicit AofChecker(const Wanted& wanted) : wanted_(wanted) {}

  bool check_old_style(const std::string& path) {
    say("Start checking Old-Style AOF");
    return check(
        {.kind = "AOF", .name = path, .path = path, .has_preamble = begins_with_rdb(path)});
  }
  bool check_multi_part(const std::string& path);

  static bool begins_with_rdb(const std::string& path);

 private:
  bool check(const File& file);
  Outcome examine(const File& file);
  Outcome read_requests(const File& file, RequestReader& reader, ByteSource& source, uint64_t size);
  // Nothing when checking goes on.
  std::optional<Outcome> heed_annotation(const File& file, const std::string& text,
                                         uint64_t offset);
  Outcome conclude(const File& file, uint64_t size, uint64_t valid);
  Outcome ask_and_cut(const File& file, uint64_t size, uint64_t valid);

  Wanted wanted_;
  int64_t line_ = 1;
};

bool AofChecker::begins_with_rdb(const std::string& path) {
  constexpr size_t kMinRdb = 8;
  const base::Descriptor file(path, O_RDONLY);
  char bytes[kRdbSignatureBytes];
  return file.is_open() && file.size().value_or(0) >= kMinRdb &&
         pread(file.number(), bytes, sizeof bytes, 0) == static_cast<ssize_t>(sizeof bytes) &&
         begins_like_rdb({bytes, sizeof bytes});
}

bool AofChecker::check_multi_part(const std::string& path) {
  say("Start checking Multi Part AOF");
  AofManifest manifest("");
  const auto parsed = manifest.parse(base::read_file(path).value_or(""));
  if (!parsed) {
    std::fflush(stdout);
    base::Logger log;
    log.set_role('C');
    for (const std::string& each : parsed.error().log_lines()) log.warning(each);
    return false;
  }
  const size_t slash = path.rfind('/');
  const std::string directory =
      slash == std::string::npos ? "./" : path.substr(0, std::max<size_t>(slash, 1)) + "/";
  if (manifest.base()) {
    const std::string& name = manifest.base()->name;
    if (!is_readable(directory + name)) return false;
    const File base{.kind = "BASE AOF",
                    .name = name,
                    .path = directory + name,
                    .is_last = manifest.is_last(name),
                    .has_preamble = begins_with_rdb(directory + name)};
    say("Start to check BASE AOF (%s format).", base.has_preamble ? "RDB" : "RESP");
    if (!check(base)) return false;
  }
  if (!manifest.increments().empty()) say("Start to check INCR files.");
  for (const AofFile& increment : manifest.increments()) {
    if (!check({.kind = "INCR AOF",
                .name = increment.name,
                .path = directory + increment.name,
                .is_last = manifest.is_last(increment.name)}))
      return false;
  }
  say("All AOF files and manifest are valid");
  return true;
}

bool AofChecker::check(const File& file) {
  switch (examine(file)) {
    case Outcome::kValid:
      say("%s %s is valid", file.kind.c_str(), file.name.c_str());
      return true;
    case Outcome::kEmpty:
      say("%s %s is empty", file.kind.c_str(), file.name.c_str());
      return true;
    case Outcome::kTruncated:
      if (wanted_.timestamp) {
        say("Successfully truncated AOF %s to timestamp %ld", file.name.c_str(),
            *wanted_.timestamp);
      } else {
        say("Successfully truncated AOF %s", file.name.c_str());
      }
      return true;
    case Outcome::kRefused:
      break;
  }
  return false;
}

Outcome AofChecker::examine(const File& file) {
  const base::Descriptor descriptor(file.path, O_RDONLY);
  if (!descriptor.is_open()) {
    say("Cannot open file %s: %s, aborting...", file.path.c_str(), strerror(errno));
    return Outcome::kRefused;
  }
  const auto size = descriptor.size();
  if (!size) {
    say("Cannot stat file: %s, aborting...", strerror(errno));
    return Outcome::kRefused;
  }
  if (*size == 0) return Outcome::kEmpty;
  uint64_t begin = 0;
  if (file.has_preamble) {
    const auto show = [](std::string_view line) {
      std::fwrite(line.data(), 1, line.size(), stdout);
      std::fputc('\n', stdout);
    };
    if (!check_rdb(file.path, base::SystemClock().wall_us() / base::kUsPerMs, show, &begin)) {
      say("RDB preamble of AOF file is not sane, aborting.");
      return Outcome::kRefused;
    }
    say("RDB preamble is OK, proceeding with AOF tail...");
    if (lseek(descriptor.number(), static_cast<off_t>(begin), SEEK_SET) < 0) {
      say("Failed to fseek in AOF %s: %s", file.name.c_str(), strerror(errno));
      return Outcome::kRefused;
    }
  }
  DescriptorSource source(base::disk(), descriptor.number());
  server::Progress progress(nullptr, server::progress_terminal(), "Checking " + file.name,
                            server::ProgressUnit::kBytes, *size,
                            base::SystemClock().monotonic_us());
  const auto watch = show_progress(source, progress, begin);
  RequestReader reader(source, begin, *size, line_);
  return read_requests(file, reader, source, *size);
}

Outcome AofChecker::read_requests(const File& file, RequestReader& reader, ByteSource& source,
                                  uint64_t size) {
  uint64_t valid = reader.offset();
  for (;;) {
    if (!reader.in_transaction()) valid = reader.offset();
    const auto kind = reader.peek();
    if (source.error() == ByteSource::Error::kFailed) {
      say("Failed to read from AOF %s, aborting...", file.name.c_str());
      return Outcome::kRefused;
    }
    if (!kind) break;
    if (*kind == '#') {
      const uint64_t offset = reader.offset();
      const std::string text = reader.read_line(SIZE_MAX);
      if (const auto outcome = heed_annotation(file, text, offset)) return *outcome;
    } else if (*kind == '*') {
      if (!reader.read_request(file.name)) break;
    } else {
      say("AOF %s format error", file.name.c_str());
      break;
    }
  }
  if (!reader.peek() && reader.in_transaction() && reader.error().empty())
    reader.fail("Reached EOF before reading EXEC for MULTI");
  if (!reader.error().empty()) say("%s", reader.error().c_str());
  return conclude(file, size, valid);
}

std::optional<Outcome> AofChecker::heed_annotation(const File& file, const std::string& text,
                                                   uint64_t offset) {
  if (!wanted_.timestamp || !text.starts_with(kTimestamp)) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const long timestamp = std::strtol(text.c_str() + kTimestamp.size(), &end, 10);
  if (errno != 0 || *end != '\r') {
    say("Invalid timestamp annotation");
    return Outcome::kRefused;
  }
  if (timestamp <= *wanted_.timestamp) return std::nullopt;
  if (offset == 0) {
    say("AOF %s has nothing before timestamp %ld, aborting...", file.path.c_str(),
        *wanted_.timestamp);
    return Outcome::kRefused;
  }
  if (!file.is_last) {
    say("Failed to truncate AOF %s to timestamp %ld to offset %ld because it is not the last file.",
        file.path.c_str(), *wanted_.timestamp, static_cast<long>(offset));
    say("If you insist, please delete all files after this file according to the manifest file and "
        "delete the corresponding records in manifest file manually. Then re-run redis-check-aof.");
    return Outcome::kRefused;
  }
  if (truncate(file.path.c_str(), static_cast<off_t>(offset)) != 0) {
    say("Failed to truncate AOF %s to timestamp %ld", file.path.c_str(), *wanted_.timestamp);
    return Outcome::kRefused;
  }
  return Outcome::kTruncated;
}

Outcome AofChecker::conclude(const File& file, uint64_t size, uint64_t valid) {
  const uint64_t rest = size - valid;
  if (wanted_.timestamp && rest == 0) {
    say("Truncate nothing in AOF %s to timestamp %ld", file.name.c_str(), *wanted_.timestamp);
    return Outcome::kValid;
  }
  const auto number = [](auto value) { return static_cast<long long>(value); };
  say("AOF analyzed: filename=%s, size=%lld, ok_up_to=%lld, ok_up_to_line=%lld, diff=%lld",
      file.name.c_str(), number(size), number(valid), number(line_), number(rest));
  if (rest == 0) return Outcome::kValid;
  if (wanted_.fix) return ask_and_cut(file, size, valid);
  say("AOF %s is not valid. Use the --fix option to try fixing it.", file.name.c_str());
  return Outcome::kRefused;
}

Outcome AofChecker::ask_and_cut(const File& file, uint64_t size, uint64_t valid) {
  if (!file.is_last) {
    say("Failed to truncate AOF %s because it is not the last file", file.name.c_str());
    return Outcome::kRefused;
  }
  say("This will shrink the AOF %s from %lld bytes, with %lld bytes, to %lld bytes",
      file.name.c_str(), static_cast<long long>(size), static_cast<long long>(size - valid),
      static_cast<long long>(valid));
  std::fputs("Continue? [y/N]: ", stdout);
  std::fflush(stdout);
  if (std::tolower(std::getchar()) != 'y') {
    say("Aborting...");
    return Outcome::kRefused;
  }
  if (truncate(file.path.c_str(), static_cast<off_t>(valid)) != 0) {
    say("Failed to truncate AOF %s", file.name.c_str());
    return Outcome::kRefused;
  }
  return Outcome::kTruncated;
}

bool is_manifest(const std::string& path) {
  const base::Descriptor file(path, O_RDONLY);
  if (!file.is_open()) return false;
  DescriptorSource source(base::disk(), file.number());
  int64_t line = 0;
  RequestReader reader(source, 0, 0, line);
  // The rest of a comment line that is longer than a manifest allows ends the search.
  for (;;) {
    const std::string text = reader.read_line(AofManifest::kMaxLine);
    if (text.empty()) return false;
    if (text[0] != '#') return text.starts_with("file");
  }
}

int usage(const std::string& program) {
  say("Usage: %s [--fix|--truncate-to-timestamp $timestamp] <file.manifest|file.aof>",
      program.c_str());
  return 1;
}

}  // namespace

int run_check_aof(std::span<const std::string> arguments) {
  const std::string program = arguments.empty() ? "redis-check-aof" : arguments[0];
  Wanted wanted;
  if (arguments.size() == 3) {
    if (arguments[1] != "--fix") return usage(program);
    wanted.fix = true;
  } else if (arguments.size() == 4) {
    if (arguments[1] != "--truncate-to-timestamp") return usage(program);
    char* end = nullptr;
    errno = 0;
    const long timestamp = std::strtol(arguments[2].c_str(), &end, 10);
    if (errno != 0 || *end != '\0' || end == arguments[2].c_str()) {
      say("Invalid timestamp, aborting...");
      return 1;
    }
    wanted.timestamp = timestamp;
  } else if (arguments.size() != 2) {
    return usage(program);
  } else if (arguments[1] == "-v" || arguments[1] == "--version") {
    say("%s", server::version_line("redis-check-aof").c_str());
    return 0;
  }
  const std::string& path = arguments.back();
  if (!is_readable(path)) return 1;
  AofChecker checker(wanted);
  const bool well = !AofChecker::begins_with_rdb(path) && is_manifest(path)
                        ? checker.check_multi_part(path)
                        : checker.check_old_style(path);
  return well ? 0 : 1;
}

}  // namespace latchkey::persist
