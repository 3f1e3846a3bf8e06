#include "persist/aof/aof_manifest.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "base/text/number.h"
#include "server/config/config_parse.h"

namespace latchkey::persist {

namespace {

constexpr char kBadFormat[] = "Invalid AOF manifest file format";
// The largest that is read, and so the largest that is written.
constexpr int64_t kMaxSequence = INT64_MAX / 2;
// "file NAME seq N type T"
constexpr size_t kMinWords = 6;

// The number at the beginning of a text, as strtoll() reads it.
int64_t leading_number(const std::string& text) {
  return std::strtoll(text.c_str(), nullptr, 10);
}

base::Result<AofFile> parse_line(std::string_view line) {
  const auto words = server::split_arguments(line);
  if (!words || words->size() < kMinWords || words->size() % 2 != 0) return base::fail(kBadFormat);
  AofFile file;
  bool named = false;
  char type = 0;
  for (size_t i = 0; i < words->size(); i += 2) {
    const std::string& key = (*words)[i];
    const std::string& value = (*words)[i + 1];
    if (server::equal_ignoring_case(key, "file")) {
      if (value.find('/') != std::string::npos)
        return base::fail("File can't be a path, just a filename");
      // The system would end the name there, and take it for another one.
      if (value.find('\0') != std::string::npos) return base::fail(kBadFormat);
      file.name = value;
      named = true;
    } else if (server::equal_ignoring_case(key, "seq")) {
      file.sequence = leading_number(value);
    } else if (server::equal_ignoring_case(key, "type")) {
      type = value.empty() ? '\0' : value[0];
    } else if (server::equal_ignoring_case(key, "startoffset")) {
      file.start_offset = leading_number(value);
    } else if (server::equal_ignoring_case(key, "endoffset")) {
      file.end_offset = leading_number(value);
    }
  }
  if (!named || file.sequence == 0 || file.sequence > kMaxSequence || type == 0)
    return base::fail(kBadFormat);
  file.type = static_cast<AofFileType>(type);
  // A negative one of an increment is refused for not growing.
  if (file.sequence < 0 && file.type != AofFileType::kIncrement) return base::fail(kBadFormat);
  return file;
}

}  // namespace

std::vector<std::string> AofManifestError::log_lines() const {
  std::vector<std::string> lines = {"\n*** FATAL AOF MANIFEST FILE ERROR ***"};
  if (line > 0) {
    lines.push_back("Reading the manifest file, at line " + std::to_string(line));
    lines.push_back(">>> '" + text + "'");
  }
  lines.push_back(message);
  // An empty line follows each of them.
  for (std::string& each : lines) each.push_back('\n');
  return lines;
}

base::Result<void, AofManifestError> AofManifest::parse(std::string_view text) {
  const auto refuse = [](int number, std::string_view line, std::string message) {
    return base::fail_with(AofManifestError{number, std::string(line), std::move(message)});
  };
  if (text.empty()) return refuse(0, {}, "Found an empty AOF manifest");
  AofManifest read(file_name_);
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view piece = text.substr(0, std::min(kMaxLine, text.find('\n') + 1));
    const bool whole = !piece.empty() && piece.back() == '\n';
    const std::string_view untrimmed = whole ? piece : text.substr(0, kMaxLine);
    text.remove_prefix(untrimmed.size());
    if (untrimmed.front() == '#') continue;
    if (!whole) return refuse(0, {}, "The AOF manifest file contains too long line");
    const std::string_view line = server::trim_line(untrimmed);
    base::Result<AofFile> file = parse_line(line);
    if (!file) return refuse(number, line, file.error());
    switch (file->type) {
      case AofFileType::kBase:
        if (read.base_) return refuse(number, line, "Found duplicate base file information");
        read.base_sequence_ = file->sequence;
        read.base_ = *std::move(file);
        break;
      case AofFileType::kHistory:
        read.history_.push_back(*std::move(file));
        break;
      case AofFileType::kIncrement:
        if (file->sequence <= read.increment_sequence_)
          return refuse(number, line, "Found a non-monotonic sequence number");
        read.increment_sequence_ = file->sequence;
        read.increments_.push_back(*std::move(file));
        break;
      default:
        return refuse(number, line, "Unknown AOF file type");
    }
  }
  *this = std::move(read);
  return {};
}

std::string AofManifest::format() const {
  std::string text;
  const auto add = [&](const AofFile& file) {
    text.append("file ").append(server::quote_if_needed(file.name));
    text.append(" seq ").append(std::to_string(file.sequence));
    text.append(" type ").push_back(static_cast<char>(file.type));
    if (file.start_offset >= 0)
      text.append(" startoffset ").append(std::to_string(file.start_offset));
    if (file.end_offset >= 0) text.append(" endoffset ").append(std::to_string(file.end_offset));
    text.push_back('\n');
  };
  if (base_) add(*base_);
  for (const AofFile& file : history_) add(file);
  for (const AofFile& file : increments_) add(file);
  return text;
}

bool AofManifest::is_last(std::string_view name) const {
  if (!increments_.empty()) return increments_.back().name == name;
  return base_ && base_->name == name;
}

bool AofManifest::names(std::string_view name) const {
  const auto is_it = [name](const AofFile& file) { return file.name == name; };
  return (base_ && is_it(*base_)) || std::any_of(history_.begin(), history_.end(), is_it) ||
         std::any_of(increments_.begin(), increments_.end(), is_it);
}

const std::string& AofManifest::add_base(bool as_rdb) {
  if (base_) {
    base_->type = AofFileType::kHistory;
    history_.insert(history_.begin(), std::move(*base_));
  }
  std::string name;
  do {
    base_sequence_ = base_sequence_ < kMaxSequence ? base_sequence_ + 1 : 1;
    name = file_name_ + "." + std::to_string(base_sequence_) + ".base" + (as_rdb ? ".rdb" : ".aof");
  } while (names(name));
  base_ = AofFile{std::move(name), base_sequence_, AofFileType::kBase};
  return base_->name;
}

bool AofManifest::number_after(std::string_view file) {
  if (!file.starts_with(file_name_ + ".")) return false;
  file.remove_prefix(file_name_.size() + 1);
  const size_t dot = std::min(file.find('.'), file.size());
  int64_t number = 0;
  if (!base::parse_int64(file.substr(0, dot), &number) || number < 0 || number > kMaxSequence)
    return false;
  const std::string_view kind = file.substr(dot);
  const bool is_base = kind == ".base.rdb" || kind == ".base.aof";
  if (!is_base && kind != ".incr.aof") return false;
  int64_t& sequence = is_base ? base_sequence_ : increment_sequence_;
  sequence = std::max(sequence, number);
  return true;
}

void AofManifest::add_base_named(std::string name) {
  base_sequence_ = 1;
  base_ = AofFile{std::move(name), base_sequence_, AofFileType::kBase};
}

const std::string& AofManifest::add_increment(int64_t start_offset) {
  std::string name;
  do {
    if (increment_sequence_ == kMaxSequence) renumber_increments();
    ++increment_sequence_;
    name = file_name_ + "." + std::to_string(increment_sequence_) + ".incr.aof";
  } while (names(name));
  increments_.push_back(
      {std::move(name), increment_sequence_, AofFileType::kIncrement, start_offset});
  return increments_.back().name;
}

// The sequence numbers only give the order; they need not be those in the names.
void AofManifest::renumber_increments() {
  increment_sequence_ = 0;
  for (AofFile& file : increments_) file.sequence = ++increment_sequence_;
}

void AofManifest::retire_increments(bool keep_last) {
  const auto end = increments_.end() - (keep_last && !increments_.empty() ? 1 : 0);
  std::for_each(increments_.begin(), end, [](AofFile& file) { file.type = AofFileType::kHistory; });
  history_.insert(history_.begin(), std::make_move_iterator(increments_.begin()),
                  std::make_move_iterator(end));
  increments_.erase(increments_.begin(), end);
}

std::vector<AofFile> AofManifest::take_history() {
  return std::exchange(history_, {});
}

}  // namespace latchkey::persist
