// LCS: the longest common subsequence of two strings.
//
// Dynamic programming over length(i, j), the length for the first i bytes of one string and the
// first j of the other. Along a row it never falls, and grows by at most one from j-1 to j; a row
// is kept as one bit for each j that says whether it does not grow there. One addition makes 64
// cells of the next row from those above: Hyyro, "Bit-Parallel LCS-length Computation Revisited"
// (2004). The same bits lead back from the end along the subsequence.
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "base/text/number.h"
#include "commands/groups.h"
#include "server/command/command_context.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;

namespace {

constexpr size_t kBitsPerWord = 64;

// For each byte that `first` has, a row of bits that says where in `second` it stands. No more
// memory than both strings' lengths multiplied, in bits, or than 256 rows.
class Occurrences {
 public:
  Occurrences(std::string_view first, std::string_view second, size_t words) : words_(words) {
    row_.fill(kNone);
    size_t rows = 0;
    for (const char byte : first) {
      size_t& row = row_[static_cast<uint8_t>(byte)];
      if (row == kNone) row = rows++;
    }
    bits_.resize(rows * words);
    for (size_t j = 0; j < second.size(); ++j) {
      const size_t row = row_[static_cast<uint8_t>(second[j])];
      if (row != kNone) bits_[row * words + j / kBitsPerWord] |= uint64_t{1} << (j % kBitsPerWord);
    }
  }

  // REQUIRES: `first` has the byte.
  const uint64_t* of(char byte) const {
    return bits_.data() + row_[static_cast<uint8_t>(byte)] * words_;
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;

  size_t words_;
  std::array<size_t, 256> row_;
  std::vector<uint64_t> bits_;
};

class CommonSubsequence {
 public:
  // O(first * second / 64) steps and, `with_path`, as many words of memory.
  CommonSubsequence(std::string_view first, std::string_view second, bool with_path)
      : first_(first), second_(second), words_(second.size() / kBitsPerWord + 1) {
    if (first.empty() || second.empty()) return;
    const Occurrences occurrences(first, second, words_);
    level_.assign(words_ * (with_path ? first.size() + 1 : 1), ~uint64_t{0});
    uint64_t* row = level_.data();
    for (const char byte : first) {
      const uint64_t* const above = row;
      if (with_path) row += words_;
      fill_row(above, occurrences.of(byte), row);
    }
    // Behind the end of `second` no bit is ever cleared.
    for (size_t i = 0; i < words_; ++i) length_ += static_cast<size_t>(std::popcount(~row[i]));
  }

  size_t length() const { return length_; }

  // Calls fn(i, j) for the positions of every byte of the subsequence, from the last to the first.
  // REQUIRES: with_path.
  template <typename Fn>
  void for_each_backwards(Fn&& fn) const {
    for (size_t i = first_.size(), j = second_.size(); i > 0 && j > 0;) {
      if (first_[i - 1] == second_[j - 1]) {
        fn(--i, --j);
      } else if (grows_at(i, j)) {
        // The bytes differ, so the row above has this length too, and the cell before is shorter.
        --i;
      } else {
        --j;
      }
    }
  }

 private:
  // Whether length(i, j) is greater than length(i, j-1).
  bool grows_at(size_t i, size_t j) const {
    const uint64_t word = level_[i * words_ + (j - 1) / kBitsPerWord];
    return (word >> ((j - 1) % kBitsPerWord) & 1) == 0;
  }

  // Makes a row, which may be `above` itself, for the next byte of the first string, which the
  // second has where `equal` has ones.
  void fill_row(const uint64_t* above, const uint64_t* equal, uint64_t* row) const {
    uint64_t carry = 0;
    for (size_t i = 0; i < words_; ++i) {
      const uint64_t level = above[i];
      const uint64_t matched = level & equal[i];
      uint64_t sum;
      const bool over = __builtin_add_overflow(level, matched, &sum);
      const bool over_by_carry = __builtin_add_overflow(sum, carry, &sum);
      carry = uint64_t{over} | uint64_t{over_by_carry};
      row[i] = sum | (level ^ matched);
    }
  }

  std::string_view first_;
  std::string_view second_;
  size_t words_;
  // Rows of bits, one for each length of `first` or, without path, of the whole of it.
  std::vector<uint64_t> level_;
  size_t length_ = 0;
};

struct LcsOptions {
  bool length = false;
  bool ranges = false;
  bool with_match_length = false;
  int64_t min_match_length = 0;

  // False with the error sent.
  bool read(CommandContext& ctx) {
    for (ArgReader options(ctx.args, 3); options.more();) {
      std::string_view least;
      if (options.word("IDX")) {
        ranges = true;
      } else if (options.word("LEN")) {
        length = true;
      } else if (options.word("WITHMATCHLEN")) {
        with_match_length = true;
      } else if (options.word("MINMATCHLEN", &least)) {
        if (!ctx.read_int64(least, &min_match_length)) return false;
      } else {
        ctx.syntax_error();
        return false;
      }
    }
    if (ranges && length)
      return ctx.refuse("ERR If you want both the length and indexes, please just use IDX.");
    return true;
  }
};

// A run of bytes that is contiguous in both strings: its first positions and its length.
struct Match {
  size_t first;
  size_t second;
  size_t length;
};

// The contiguous runs of the subsequence, from the last to the first.
std::vector<Match> matches_of(const CommonSubsequence& common) {
  std::vector<Match> matches;
  common.for_each_backwards([&](size_t i, size_t j) {
    if (!matches.empty() && matches.back().first == i + 1 && matches.back().second == j + 1) {
      matches.back() = {i, j, matches.back().length + 1};
    } else {
      matches.push_back({i, j, 1});
    }
  });
  return matches;
}

void reply_ranges(CommandContext& ctx, const CommonSubsequence& common, const LcsOptions& options) {
  std::vector<Match> matches = matches_of(common);
  std::erase_if(matches, [&](const Match& match) {
    return static_cast<int64_t>(match.length) < options.min_match_length;
  });
  const auto range = [&](size_t start, size_t length) {
    ctx.reply.array(2);
    ctx.reply.integer(static_cast<int64_t>(start));
    ctx.reply.integer(static_cast<int64_t>(start + length - 1));
  };
  ctx.reply.map(2);
  ctx.reply.bulk(std::string_view("matches"));
  ctx.reply.array(matches.size());
  for (const Match& match : matches) {
    ctx.reply.array(options.with_match_length ? 3 : 2);
    range(match.first, match.length);
    range(match.second, match.length);
    if (options.with_match_length) ctx.reply.integer(static_cast<int64_t>(match.length));
  }
  ctx.reply.bulk(std::string_view("len"));
  ctx.reply.integer(static_cast<int64_t>(common.length()));
}

void reply_subsequence(CommandContext& ctx, const CommonSubsequence& common,
                       std::string_view first) {
  std::string text(common.length(), '\0');
  auto end = text.rbegin();
  common.for_each_backwards([&](size_t i, size_t) { *end++ = first[i]; });
  ctx.reply.bulk(text);
}

void lcs(CommandContext& ctx) {
  // Looking up the second key may remove it if it has expired, which invalidates the first KeyRef;
  // so the first key is looked up again.
  ctx.db.find(ctx.args[1]);
  const KeyRef second_ref = ctx.db.find(ctx.args[2]);
  const KeyRef first_ref = ctx.db.find(ctx.args[1], store::Keyspace::kPeek);
  if ((first_ref && !first_ref->is_string()) || (second_ref && !second_ref->is_string())) {
    return ctx.reply.error("ERR The specified keys must contain string values");
  }
  LcsOptions options;
  if (!options.read(ctx)) return;

  char first_scratch[base::kMaxInt64Text];
  char second_scratch[base::kMaxInt64Text];
  const std::string_view first = first_ref ? first_ref->string(first_scratch) : std::string_view();
  const std::string_view second =
      second_ref ? second_ref->string(second_scratch) : std::string_view();
  // The reference needs a 32-bit number for every cell and refuses more than proto-max-bulk-len
  // bytes of them.
  const auto limit = static_cast<size_t>(ctx.server.settings().proto_max_bulk_len);
  if (first.size() + 1 > limit / sizeof(uint32_t) / (second.size() + 1)) {
    return ctx.reply.error(
        "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");
  }

  const CommonSubsequence common(first, second, !options.length);
  if (options.ranges) {
    reply_ranges(ctx, common, options);
  } else if (options.length) {
    ctx.reply.integer(static_cast<int64_t>(common.length()));
  } else {
    reply_subsequence(ctx, common, first);
  }
}

constexpr CommandRow kLcsRows[] = {
    {"LCS", lcs, "key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len:integer] [WITHMATCHLEN]",
     kReadOnly, keys(1, 2).ro().access(), kAclString, Group::kString, "7.0.0",
     "O(N*M) where N and M are the lengths of s1 and s2, respectively",
     "Finds the longest common substring."},
};

}  // namespace

std::span<const CommandRow> lcs_rows() {
  return kLcsRows;
}

}  // namespace latchkey::commands
