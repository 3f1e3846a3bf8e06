// Glob patterns of KEYS, SCAN and CONFIG GET: `*`, `?`, `[abc]`, `[^a-c]`, `\x`.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::base {

// True when the whole of `text` matches `pattern`. Both may contain any bytes. An empty text
// matches only the empty pattern, not even `*`: callers for which `*` means everything, such as
// KEYS and SCAN, check for it first. Several stars do not make the cost exponential: once a later
// star has failed to match to the end of the text, earlier stars are not tried again, so the cost
// is at most |pattern| * |text|. As in the reference, a pattern with more than 1000 stars that are
// followed by something (neighbours count once) matches nothing.
bool glob_match(std::string_view pattern, std::string_view text, bool ignore_case = false);

// A pattern prepared for long texts: matches() says what glob_match() says, and takes linear time.
// Between its stars the pattern consists of parts, which are looked for one after another, from the
// left. Those of literals alone are found by memmem(); others, with `?` or classes, by the
// shift-and algorithm (R. Baeza-Yates and G. Gonnet, "A new approach to text searching", 1992), in
// length / 64 steps for each byte.
class GlobPattern {
 public:
  // The most bytes of all parts with `?` or classes together.
  static constexpr size_t kMostComplex = 1024;

  // Nothing when the pattern has more than `most_complex` bytes in parts with `?` or classes.
  // REQUIRES: most_complex <= kMostComplex. Linear in the pattern.
  static std::optional<GlobPattern> compile(std::string_view pattern, bool ignore_case,
                                            size_t most_complex = kMostComplex);

  // Bytes in parts with `?` or classes.
  size_t complex_bytes() const { return complex_bytes_; }
  // REQUIRES: `text` is in lower case if the pattern ignores case.
  bool matches(std::string_view text) const;

 private:
  using ByteSet = std::bitset<256>;

  struct Part {
    size_t length = 0;     // bytes of text
    std::string literals;  // if `sets` is empty
    std::vector<ByteSet> sets;
    // 256 rows of so many words: for each byte the elements that match it. Only of parts between
    // two stars.
    std::vector<uint64_t> masks;

    size_t words() const { return (length + 63) / 64; }
    // Whether the part matches all of a text of its length.
    bool matches(std::string_view text) const;
    // The end of its first match, or npos.
    size_t find_end(std::string_view text) const;
    size_t find_end_of_sets(std::string_view text) const;
    void make_masks();
  };

  GlobPattern() = default;
  // Takes the part up to the next star off the pattern. False when it is too large.
  bool take_part(std::string_view* pattern, bool ignore_case, size_t most_complex);

  std::vector<Part> parts_;  // one more than there are stars
  bool is_empty_ = false;
  bool matches_nothing_ = false;  // too many stars
  size_t complex_bytes_ = 0;
};

}  // namespace latchkey::base
