// LCS: the longest common subsequence of two strings.
//
// Dynamic programming: length(i, j), the length for the first i bytes of one string and the first j
// of the other, is length(i-1, j-1) + 1 if bytes i and j are equal, else the greater of length(i-1,
// j) and length(i, j-1). Only two rows of lengths are kept; for each other cell, one bit says which
// of the two was greater, and these bits lead back from the end along the subsequence.
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

class CommonSubsequence {
 public:
  // O(first * second) steps and, `with_path`, as many bits.
  CommonSubsequence(std::string_view first, std::string_view second, bool with_path)
      : first_(first),
        second_(second),
        words_per_row_(with_path ? second.size() / kBitsPerWord + 1 : 0) {
    above_is_greater_.resize((first.size() + 1) * words_per_row_);
    std::vector<uint32_t> row(second.size() + 1);
    std::vector<uint32_t> above(second.size() + 1);
    for (size_t i = 1; i <= first.size(); ++i) {
      row.swap(above);
      if (with_path) {
        fill_row<true>(i, above, row);
      } else {
        fill_row<false>(i, above, row);
      }
    }
    length_ = row.back();
  }

  size_t length() const { return length_; }

  // Calls fn(i, j) for the positions of every byte of the subsequence, from the last to the first.
  // REQUIRES: with_path.
  template <typename Fn>
  void for_each_backwards(Fn&& fn) const {
    for (size_t i = first_.size(), j = second_.size(); i > 0 && j > 0;) {
      if (first_[i - 1] == second_[j - 1]) {
        fn(--i, --j);
      } else if ((above_is_greater_[i * words_per_row_ + j / kBitsPerWord] >> (j % kBitsPerWord) &
                  1) != 0) {
        --i;
      } else {
        --j;
      }
    }
  }

 private:
  static constexpr size_t kBitsPerWord = 64;

  // No branch on the bytes, because it would be unpredictable.
  template <bool kWithPath>
  void fill_row(size_t i, const std::vector<uint32_t>& above, std::vector<uint32_t>& row) {
    const char byte = first_[i - 1];
    uint64_t* const bits = above_is_greater_.data() + i * words_per_row_;
    uint32_t left = 0;
    for (size_t j = 1; j < row.size(); ++j) {
      const bool above_is_greater = above[j] > left;
      const uint32_t unequal = above_is_greater ? above[j] : left;
      const uint32_t equal = above[j - 1] + 1;
      left = byte == second_[j - 1] ? equal : unequal;
      row[j] = left;
      if constexpr (kWithPath)
        bits[j / kBitsPerWord] |= uint64_t{above_is_greater} << (j % kBitsPerWord);
    }
  }

  std::string_view first_;
  std::string_view second_;
  size_t words_per_row_;
  std::vector<uint64_t> above_is_greater_;
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
    if (ranges && length) {
      ctx.reply.error("ERR If you want both the length and indexes, please just use IDX.");
      return false;
    }
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
