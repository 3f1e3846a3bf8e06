// Ranges of sorted sets, by rank, by score and by bytes: ZRANGE and its variants, ZRANGESTORE,
// ZCOUNT, ZLEXCOUNT, ZREMRANGEBY*.
#include <algorithm>
#include <memory>
#include <utility>

#include "base/text/number.h"
#include "base/text/up_to_nul.h"
#include "commands/groups.h"
#include "commands/index_range.h"
#include "commands/keys/old_numbers.h"
#include "commands/keys/store_result.h"
#include "commands/keys/typed_key.h"
#include "server/command/command_context.h"
#include "store/value/sorted_set.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::LexBound;
using store::LexRange;
using store::RankRange;
using store::ScoreBound;
using store::ScoreRange;
using store::SortedSet;

namespace {

// --- Bounds -------------------------------------------------------------------------------------

bool parse_bound(const CommandContext& ctx, std::string_view text, ScoreBound* bound) {
  bound->excluded = text.starts_with('(');
  if (bound->excluded) text.remove_prefix(1);
  // The reference reads the text up to a zero byte, and an empty text as zero.
  text = base::up_to_nul(text);
  bound->score = 0;
  if (text.empty() || base::parse_rounded_double(text, &bound->score)) return true;
  return is_old_number(ctx, text) && base::parse_double(text, &bound->score);
}

bool parse_bound(std::string_view text, LexBound* bound) {
  if (text == "-" || text == "+") {
    bound->kind = text == "-" ? LexBound::Kind::kLowest : LexBound::Kind::kHighest;
    return true;
  }
  if (!text.starts_with('[') && !text.starts_with('(')) return false;
  *bound = {LexBound::Kind::kMember, text.substr(1), text[0] == '('};
  return true;
}

// Reads a range; false, with an error sent, when a bound is invalid.
bool read_range(CommandContext& ctx, std::string_view low, std::string_view high,
                ScoreRange* range) {
  if (parse_bound(ctx, low, &range->low) && parse_bound(ctx, high, &range->high)) return true;
  return ctx.refuse("ERR min or max is not a float");
}

bool read_range(CommandContext& ctx, std::string_view low, std::string_view high, LexRange* range) {
  if (parse_bound(low, &range->low) && parse_bound(high, &range->high)) return true;
  return ctx.refuse("ERR min or max not valid string range item");
}

RankRange ranks_of(const SortedSet& set, const IndexRange& range) {
  const IndexRange::Part part = range.within(set.size());
  return {part.first, part.count};
}

RankRange ranks_of(const SortedSet& set, const ScoreRange& range) {
  return set.range(range);
}

RankRange ranks_of(const SortedSet& set, const LexRange& range) {
  return set.range(range);
}

// --- Counting and removing ----------------------------------------------------------------------

template <typename Range>
void count_range(CommandContext& ctx) {
  Range range{};
  if (!read_range(ctx, ctx.args[2], ctx.args[3], &range)) return;
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ref) return ctx.reply.integer(0);
  const auto set = view_at<SortedSet>(ctx, ref);
  if (set != nullptr) ctx.reply.integer(static_cast<int64_t>(ranks_of(*set, range).count));
}

void zcount(CommandContext& ctx) {
  count_range<ScoreRange>(ctx);
}

void zlexcount(CommandContext& ctx) {
  count_range<LexRange>(ctx);
}

template <typename Range>
void remove_range(CommandContext& ctx, std::string_view event) {
  Range range{};
  if (!read_range(ctx, ctx.args[2], ctx.args[3], &range)) return;
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!ref) return ctx.reply.integer(0);
  SortedSet* set = value_at<SortedSet>(ctx, ref);
  if (set == nullptr) return;
  const RankRange ranks = ranks_of(*set, range);
  if (ranks.count > 0) {
    set->erase(ranks);
    ctx.changed(ctx.args[1], EventClass::kSortedSet, event);
    ctx.events.count(ranks.count - 1);
    erase_if_empty<SortedSet>(ctx, ref, ctx.args[1]);
  }
  ctx.reply.integer(static_cast<int64_t>(ranks.count));
}

void zremrangebyrank(CommandContext& ctx) {
  remove_range<IndexRange>(ctx, "zremrangebyrank");
}

void zremrangebyscore(CommandContext& ctx) {
  remove_range<ScoreRange>(ctx, "zremrangebyscore");
}

void zremrangebylex(CommandContext& ctx) {
  remove_range<LexRange>(ctx, "zremrangebylex");
}

// --- Ranges -------------------------------------------------------------------------------------

enum class By : uint8_t { kRank, kScore, kLex };

// The arguments of a request. The older commands have some of them in their names.
struct RangeRequest {
  By by = By::kRank;
  bool reverse = false;
  bool may_choose = false;  // accepts BYSCORE, BYLEX and REV
  bool store = false;
  bool with_scores = false;
  int64_t offset = 0;
  int64_t limit = -1;  // negative: no limit
};

// False, with an error sent, when the options are invalid.
bool read_range_options(CommandContext& ctx, size_t first, RangeRequest* request) {
  for (ArgReader reader(ctx.args, first); reader.more();) {
    if (!request->store && reader.word("WITHSCORES")) {
      request->with_scores = true;
    } else if (reader.left() >= 3 && reader.word("LIMIT")) {
      if (!ctx.read_int64(reader.next(), &request->offset) ||
          !ctx.read_int64(reader.next(), &request->limit))
        return false;
    } else if (request->may_choose && !request->reverse && reader.word("REV")) {
      request->reverse = true;
    } else if (request->may_choose && request->by == By::kRank && reader.word("BYLEX")) {
      request->by = By::kLex;
    } else if (request->may_choose && request->by == By::kRank && reader.word("BYSCORE")) {
      request->by = By::kScore;
    } else {
      ctx.syntax_error();
      return false;
    }
  }
  if (request->limit != -1 && request->by == By::kRank)
    return ctx.refuse(
        "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX");
  if (request->with_scores && request->by == By::kLex)
    return ctx.refuse("ERR syntax error, WITHSCORES not supported in combination with BYLEX");
  return true;
}

// The part of a range that LIMIT leaves; it counts from the range's end when `reverse`. A negative
// offset leaves nothing.
RankRange limited(RankRange ranks, const RangeRequest& request) {
  if (request.offset < 0) return {};
  const size_t skipped = std::min(static_cast<size_t>(request.offset), ranks.count);
  const size_t left = ranks.count - skipped;
  const size_t count =
      request.limit < 0 ? left : std::min(left, static_cast<size_t>(request.limit));
  return {request.reverse ? ranks.first + left - count : ranks.first + skipped, count};
}

void reply_range(CommandContext& ctx, const SortedSet& set, RankRange ranks,
                 const RangeRequest& request) {
  const bool pairs = request.with_scores && ctx.reply.is_resp3();
  ctx.reply.array(request.with_scores && !pairs ? ranks.count * 2 : ranks.count);
  set.for_each(ranks, request.reverse, [&](std::string_view member, double score) {
    if (pairs) ctx.reply.array(2);
    ctx.reply.bulk(member);
    if (request.with_scores) ctx.reply.number(score);
  });
}

// Stores a part of `set` (or nothing, when null) at the request's destination.
void store_range(CommandContext& ctx, const SortedSet* set, RankRange ranks) {
  std::unique_ptr<SortedSet> made;
  if (ranks.count > 0) {
    made = std::make_unique<SortedSet>(ctx.db.environment(), ranks.count, 0);
    set->for_each(ranks, false,
                  [&](std::string_view member, double score) { made->add(member, score); });
  }
  store_result(ctx, ctx.args[1], std::move(made), EventClass::kSortedSet, "zrangestore");
}

template <typename Range>
void answer_range(CommandContext& ctx, size_t key, const RangeRequest& request) {
  Range range{};
  std::string_view low = ctx.args[key + 1];
  std::string_view high = ctx.args[key + 2];
  // In reverse order, requests give the high bound of ranges by score and by bytes first.
  if (request.reverse && request.by != By::kRank) std::swap(low, high);
  if (!read_range(ctx, low, high, &range)) return;
  const KeyRef ref = ctx.db.find(ctx.args[key]);
  if (!ref) return request.store ? store_range(ctx, nullptr, {}) : ctx.reply.empty_array();
  const auto set = view_at<SortedSet>(ctx, ref);
  if (set == nullptr) return;
  RankRange ranks = ranks_of(*set, range);
  if (request.by != By::kRank) {
    ranks = limited(ranks, request);
  } else if (request.reverse && ranks.count > 0) {
    ranks.first = set->size() - ranks.first - ranks.count;
  }
  request.store ? store_range(ctx, set.get(), ranks) : reply_range(ctx, *set, ranks, request);
}

// `key`: the index of the sorted set's key, which the bounds and the options follow.
void answer(CommandContext& ctx, size_t key, RangeRequest request) {
  if (!read_range_options(ctx, key + 3, &request)) return;
  switch (request.by) {
    case By::kRank:
      return answer_range<IndexRange>(ctx, key, request);
    case By::kScore:
      return answer_range<ScoreRange>(ctx, key, request);
    case By::kLex:
      return answer_range<LexRange>(ctx, key, request);
  }
}

void zrange(CommandContext& ctx) {
  answer(ctx, 1, {.may_choose = true});
}

void zrangestore(CommandContext& ctx) {
  answer(ctx, 2, {.may_choose = true, .store = true});
}

void zrevrange(CommandContext& ctx) {
  answer(ctx, 1, {.reverse = true});
}

void zrangebyscore(CommandContext& ctx) {
  answer(ctx, 1, {.by = By::kScore});
}

void zrevrangebyscore(CommandContext& ctx) {
  answer(ctx, 1, {.by = By::kScore, .reverse = true});
}

void zrangebylex(CommandContext& ctx) {
  answer(ctx, 1, {.by = By::kLex});
}

void zrevrangebylex(CommandContext& ctx) {
  answer(ctx, 1, {.by = By::kLex, .reverse = true});
}

constexpr char kCountCost[] = "O(log(N)) with N being the number of elements in the sorted set.";
constexpr char kRankRangeCost[] =
    "O(log(N)+M) with N being the number of elements in the sorted set and M the number of "
    "elements returned.";
constexpr char kLimitedRangeCost[] =
    "O(log(N)+M) with N being the number of elements in the sorted set and M the number of "
    "elements being returned. If M is constant (e.g. always asking for the first 10 elements with "
    "LIMIT), you can consider it O(log(N)).";
constexpr char kRemovalCost[] =
    "O(log(N)+M) with N being the number of elements in the sorted set and M the number of "
    "elements removed by the operation.";

constexpr CommandRow kSortedSetRangeRows[] = {
    {"ZCOUNT", zcount, "key min:double max:double", kReadOnly | kFast, keys(1).ro().access(),
     kAclSortedSet, Group::kSortedSet, "2.0.0", kCountCost,
     "Returns the count of members in a sorted set that have scores within a range."},
    {"ZLEXCOUNT", zlexcount, "key min max", kReadOnly | kFast, keys(1).ro().access(), kAclSortedSet,
     Group::kSortedSet, "2.8.9", kCountCost,
     "Returns the number of members in a sorted set within a lexicographical range."},
    {"ZRANGE",
     zrange,
     "key start:string stop:string [sortby=BYSCORE|BYLEX]@6.2.0 [REV]@6.2.0 [LIMIT limit=offset "
     "count]@6.2.0 [WITHSCORES]",
     kReadOnly,
     keys(1).ro().access(),
     kAclSortedSet,
     Group::kSortedSet,
     "1.2.0",
     kRankRangeCost,
     "Returns members in a sorted set within a range of indexes.",
     {.history = "6.2.0 Added the `REV`, `BYSCORE`, `BYLEX` and `LIMIT` options."}},
    {"ZRANGEBYLEX",
     zrangebylex,
     "key min max [LIMIT limit=offset count]",
     kReadOnly,
     keys(1).ro().access(),
     kAclSortedSet,
     Group::kSortedSet,
     "2.8.9",
     kLimitedRangeCost,
     "Returns members in a sorted set within a lexicographical range.",
     {.deprecated_since = "6.2.0", .replaced_by = "`ZRANGE` with the `BYLEX` argument"}},
    {"ZRANGEBYSCORE",
     zrangebyscore,
     "key min:double max:double [WITHSCORES]@2.0.0 [LIMIT limit=offset count]",
     kReadOnly,
     keys(1).ro().access(),
     kAclSortedSet,
     Group::kSortedSet,
     "1.0.5",
     kLimitedRangeCost,
     "Returns members in a sorted set within a range of scores.",
     {.history = "2.0.0 Added the `WITHSCORES` modifier.",
      .deprecated_since = "6.2.0",
      .replaced_by = "`ZRANGE` with the `BYSCORE` argument"}},
    {"ZRANGESTORE", zrangestore,
     "dst src min max [sortby=BYSCORE|BYLEX] [REV] [LIMIT limit=offset count]", kWrite | kDenyOom,
     keys(1).ow().update() + keys(2).ro().access(), kAclSortedSet, Group::kSortedSet, "6.2.0",
     "O(log(N)+M) with N being the number of elements in the sorted set and M the number of "
     "elements stored into the destination key.",
     "Stores a range of members from sorted set in a key."},
    {"ZREMRANGEBYLEX", zremrangebylex, "key min max", kWrite, keys(1).rw().remove(), kAclSortedSet,
     Group::kSortedSet, "2.8.9", kRemovalCost,
     "Removes members in a sorted set within a lexicographical range. Deletes the sorted set if "
     "all members were removed."},
    {"ZREMRANGEBYRANK", zremrangebyrank, "key start stop", kWrite, keys(1).rw().remove(),
     kAclSortedSet, Group::kSortedSet, "2.0.0", kRemovalCost,
     "Removes members in a sorted set within a range of indexes. Deletes the sorted set if all "
     "members were removed."},
    {"ZREMRANGEBYSCORE", zremrangebyscore, "key min:double max:double", kWrite,
     keys(1).rw().remove(), kAclSortedSet, Group::kSortedSet, "1.2.0", kRemovalCost,
     "Removes members in a sorted set within a range of scores. Deletes the sorted set if all "
     "members were removed."},
    {"ZREVRANGE",
     zrevrange,
     "key start stop [WITHSCORES]",
     kReadOnly,
     keys(1).ro().access(),
     kAclSortedSet,
     Group::kSortedSet,
     "1.2.0",
     kRankRangeCost,
     "Returns members in a sorted set within a range of indexes in reverse order.",
     {.deprecated_since = "6.2.0", .replaced_by = "`ZRANGE` with the `REV` argument"}},
    {"ZREVRANGEBYLEX",
     zrevrangebylex,
     "key max min [LIMIT limit=offset count]",
     kReadOnly,
     keys(1).ro().access(),
     kAclSortedSet,
     Group::kSortedSet,
     "2.8.9",
     kLimitedRangeCost,
     "Returns members in a sorted set within a lexicographical range in reverse order.",
     {.deprecated_since = "6.2.0", .replaced_by = "`ZRANGE` with the `REV` and `BYLEX` arguments"}},
    {"ZREVRANGEBYSCORE",
     zrevrangebyscore,
     "key max:double min:double [WITHSCORES] [LIMIT limit=offset count]",
     kReadOnly,
     keys(1).ro().access(),
     kAclSortedSet,
     Group::kSortedSet,
     "2.2.0",
     kLimitedRangeCost,
     "Returns members in a sorted set within a range of scores in reverse order.",
     {.history = "2.1.6 `min` and `max` can be exclusive.",
      .deprecated_since = "6.2.0",
      .replaced_by = "`ZRANGE` with the `REV` and `BYSCORE` arguments"}},
};

}  // namespace

std::span<const CommandRow> sorted_set_range_rows() {
  return kSortedSetRangeRows;
}

}  // namespace latchkey::commands
