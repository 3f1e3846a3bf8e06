// Regular expressions over bytes, for ARGREP: those of POSIX (extended), and \d \w \s \D \W \S \b
// \B \n \r \t \xHH, (?:...) as well. A match may begin anywhere in the text. Case is that of ASCII.
//
// What comes from clients must not take exponential time or unbounded memory, so there are no back
// references, a pattern may have 4 KiB and a compiled one 10,000 instructions, and all ways through
// the pattern are followed at once: O(text * instructions), whatever the pattern.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::base {

class Regex {
 public:
  // False, with *error saying why, when the pattern is malformed or too large.
  bool compile(std::string_view pattern, bool ignore_case, std::string* error);
  // Whether some part of `text` matches. REQUIRES: compiled. Not for several threads at once.
  bool search(std::string_view text);

 private:
  friend class RegexCompiler;
  using ByteSet = std::bitset<256>;

  enum class Op : uint8_t { kBytes, kSplit, kJump, kBegin, kEnd, kWordEdge, kNoWordEdge, kMatch };
  struct Instruction {
    Op op;
    // kBytes: index of the set; kSplit and kJump: where to go on, kSplit at both.
    uint32_t first = 0;
    uint32_t second = 0;
  };
  // Instructions that are reached at a position of the text, each once.
  struct Threads {
    std::vector<uint32_t> list;
    std::vector<uint8_t> has;
    void clear();
    void add(uint32_t at);
  };

  bool holds(Op op, std::string_view text, size_t position) const;
  // Adds what is reached from `start` without reading a byte. True when that is the end.
  bool follow(uint32_t start, std::string_view text, size_t position, Threads* threads);

  std::vector<Instruction> program_;
  std::vector<ByteSet> sets_;
  Threads now_;
  Threads next_;
  std::vector<uint32_t> stack_;
};

}  // namespace latchkey::base
