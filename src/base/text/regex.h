// Regular expressions over bytes, for ARGREP: RE2's, which has the extended ones of POSIX and the
// escapes of Perl. A match may begin anywhere in the text; `.` is any byte; case is that of ASCII.
//
// What comes from clients must not take exponential time or unbounded memory: RE2 has no back
// references, and keeps about kMaxBytes for a compiled pattern. It searches by an automaton whose
// states it makes as the text needs them, in a few nanoseconds for each byte. A pattern such as
// "(a|b)*a(a|b){250}c" needs another state at each byte, so that the memory is full again and again
// (each time has taken about 5 ms); RE2 would then simulate the pattern's instructions one by one,
// at several microseconds for each byte. Here a search ends instead, with kTooSlow, when it has
// filled the memory more often than a RegexBudget allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/result.h"

namespace re2 {
class RE2;
}

namespace latchkey::base {

// What the searches of one request may cost together beyond the linear cost.
class RegexBudget {
 public:
  static constexpr size_t kFirstResets = 8;
  static constexpr size_t kBytesForReset = 64 << 10;

  // A text of so many bytes is searched next: adds what this allows.
  void add_text(size_t bytes) { bytes_ += bytes; }
  // The memory of a pattern's automaton is full. False when that is once too often.
  bool take_reset() { return ++resets_ <= kFirstResets + bytes_ / kBytesForReset; }

 private:
  size_t bytes_ = 0;
  size_t resets_ = 0;
};

class Regex {
 public:
  enum class Outcome : uint8_t { kFound, kNotFound, kTooSlow };

  static constexpr int64_t kMaxBytes = 1 << 20;
  static constexpr size_t kLongest = 4096;  // bytes of a pattern

  Regex();
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  // Fails when the pattern is malformed or too large; the error is RE2's, or "too long".
  Result<> compile(std::string_view pattern, bool ignore_case);
  // Instructions of the compiled pattern, in the direction in which it has more: a short one with
  // repetitions, "(.*a){900}b", has thousands. REQUIRES: compiled.
  size_t size() const;
  // Whether some part of `text` matches. After kTooSlow nothing more may be searched. REQUIRES:
  // compiled.
  Outcome search(std::string_view text, RegexBudget& budget) const;

 private:
  std::unique_ptr<re2::RE2> compiled_;
};

}  // namespace latchkey::base
