#include "base/regex.h"

#include <re2/re2.h>

namespace latchkey::base {

namespace {

re2::StringPiece piece_of(std::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

Regex::Regex() = default;
Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

bool Regex::compile(std::string_view pattern, bool ignore_case, std::string* error) {
  if (pattern.size() > kLongest) {
    *error = "too long";
    return false;
  }
  re2::RE2::Options options;
  options.set_encoding(re2::RE2::Options::EncodingLatin1);
  options.set_case_sensitive(!ignore_case);
  options.set_dot_nl(true);
  options.set_never_capture(true);
  options.set_log_errors(false);
  options.set_max_mem(kMostBytes);
  compiled_ = std::make_unique<re2::RE2>(piece_of(pattern), options);
  if (compiled_->ok()) return true;
  *error = compiled_->error();
  compiled_.reset();
  return false;
}

size_t Regex::size() const {
  return static_cast<size_t>(compiled_->ProgramSize());
}

bool Regex::search(std::string_view text) const {
  return re2::RE2::PartialMatch(piece_of(text), *compiled_);
}

}  // namespace latchkey::base
