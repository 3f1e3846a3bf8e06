// Glob patterns of KEYS, SCAN, PSUBSCRIBE, users and selectors: `*`, `?`, `[abc]`, `[^a-c]`, `\x`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::base {

// A pattern, prepared to be compared with texts. Both may contain any bytes, and nobody's choice of
// them makes it slow: to prepare takes linear time, and so does each comparison.
//
// Between its stars the pattern consists of parts, which are looked for one after another, from the
// left: whatever an earlier star could take, a later one can take as well. Parts of literals alone
// are found by memmem(), in a short text by comparing wherever the first byte is; others, with `?`
// or classes, by comparing at each place when they are short, and by the shift-and algorithm when
// they are long (R. Baeza-Yates and G. Gonnet, "A new approach to text searching", 1992), in length
// / 64 steps for each byte.
//
// Results are the reference's, with one exception that bounds the cost: a pattern matches nothing
// when the parts between two stars that have `?` or classes are longer than kMaxSearchedBytes bytes
// of text together, or when it has more than kMaxClasses classes. As in the reference, a pattern
// with more than 1000 stars that are followed by something (neighbours count once) matches nothing
// either.
class GlobPattern {
 public:
  static constexpr size_t kMaxSearchedBytes = 1024;
  static constexpr size_t kMaxClasses = 65'000;

  explicit GlobPattern(std::string_view pattern, bool ignore_case = false);

  // True when the whole of `text` matches. An empty text matches only the empty pattern, not even
  // `*`.
  bool matches(std::string_view text) const;
  // The same where `*` means everything, as for KEYS and SCAN: the empty text as well.
  bool covers(std::string_view text) const { return is_star_ || matches(text); }
  // The same for a text that is in lower case if the pattern ignores case.
  bool matches_folded(std::string_view text) const;

  // Bytes of the pattern in parts with `?` or classes.
  size_t complex_bytes() const { return complex_bytes_; }
  // Bytes of memory that it takes, approximately.
  size_t memory() const;

 private:
  // Stands for one byte of text: a literal (0 to 255), any byte, or a class.
  using Element = uint16_t;
  static constexpr Element kAny = 256;
  static constexpr Element kFirstClass = 257;

  // A set of bytes, which a range of signed numbers, as the reference takes bytes on x86, sets in
  // four steps.
  class ByteSet {
   public:
    void add(unsigned char byte) { words_[place(byte) / 64] |= uint64_t{1} << place(byte) % 64; }
    void add_range(signed char low, signed char high);
    void negate();
    bool has(unsigned char byte) const {
      return (words_[place(byte) / 64] >> place(byte) % 64 & 1) != 0;
    }

   private:
    static size_t place(unsigned char byte) { return byte ^ 0x80u; }
    std::array<uint64_t, 4> words_{};
  };

  struct Part {
    size_t begin = 0;   // in elements_ when complex, otherwise in literals_
    size_t length = 0;  // bytes of text
    bool is_complex = false;
    // In masks_: 256 rows of words() numbers, for each byte the elements that match it. Only of
    // complex parts between two stars that are longer than kShort.
    size_t masks = 0;

    size_t words() const { return (length + 63) / 64; }
  };
  // Up to this length a complex part is compared at each place.
  static constexpr size_t kShort = 16;

  Part take_part(std::string_view* pattern);
  size_t take_plain(std::string_view* pattern);
  void make_complex(Part* part, size_t more);
  Element take_element(std::string_view* pattern);
  Element take_class(std::string_view* pattern);
  void add_middle(Part part);
  void make_masks(Part* part);
  unsigned char folded(char byte) const;

  bool matches_byte(Element element, unsigned char byte) const;
  // Whether the part matches the bytes from `text` on, of which there are as many.
  bool is_at(const char* text, const Part& part) const;
  // The end of the first match in the text, or npos.
  size_t find_end(std::string_view text, const Part& part) const;
  size_t find_end_by_masks(std::string_view text, const Part& part) const;

  // Before the first star, after the last one, and between them. Without stars only the first.
  Part first_;
  Part last_;
  std::vector<Part> middle_;
  std::string literals_;
  std::vector<Element> elements_;
  std::vector<ByteSet> classes_;
  std::vector<uint64_t> masks_;
  size_t complex_bytes_ = 0;
  size_t searched_ = 0;  // bytes of text of the complex parts between two stars
  bool ignore_case_;
  bool is_empty_;
  bool is_star_;
  bool has_star_ = false;
  bool matches_nothing_ = false;
};

}  // namespace latchkey::base
