// Regular expressions over bytes, for ARGREP: RE2's, which has the extended ones of POSIX and the
// escapes of Perl. A match may begin anywhere in the text; `.` is any byte; case is that of ASCII.
//
// What comes from clients must not take exponential time or unbounded memory: RE2 has no back
// references, and searches in O(text * pattern) with about kMostBytes for a compiled pattern.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace latchkey::base {

class Regex {
 public:
  static constexpr int64_t kMostBytes = 1 << 20;
  static constexpr size_t kLongest = 4096;  // bytes of a pattern

  Regex();
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  // False, with *error saying why, when the pattern is malformed or too large.
  bool compile(std::string_view pattern, bool ignore_case, std::string* error);
  // Instructions of the compiled pattern. A search may take as many steps for each byte of the
  // text: a short pattern with repetitions, "(.*a){900}b", has thousands. REQUIRES: compiled.
  size_t size() const;
  // Whether some part of `text` matches. REQUIRES: compiled.
  bool search(std::string_view text) const;

 private:
  std::unique_ptr<re2::RE2> compiled_;
};

}  // namespace latchkey::base
