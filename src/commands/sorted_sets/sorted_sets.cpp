// Members of sorted sets and their scores: ZADD, ZINCRBY, ZREM, ZCARD, ZSCORE, ZMSCORE, ZRANK,
// ZREVRANK, ZSCAN.
#include <cmath>
#include <optional>
#include <vector>

#include "base/text/number.h"
#include "commands/groups.h"
#include "commands/keys/collection_scan.h"
#include "commands/keys/typed_key.h"
#include "commands/sorted_sets/sorted_set_adds.h"
#include "server/command/command_context.h"
#include "store/value/sorted_set.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::SortedSet;

namespace {

// --- Adding -------------------------------------------------------------------------------------

// Consumes the options that come next and adds them to `options`.
AddOptions read_add_options(ArgReader& reader, AddOptions options) {
  for (;;) {
    if (reader.word("NX")) {
      options.only_new = true;
    } else if (reader.word("XX")) {
      options.only_existing = true;
    } else if (reader.word("GT")) {
      options.only_greater = true;
    } else if (reader.word("LT")) {
      options.only_less = true;
    } else if (reader.word("CH")) {
      options.count_changes = true;
    } else if (reader.word("INCR")) {
      options.increment = true;
    } else {
      return options;
    }
  }
}

// False, with an error sent, when the options contradict each other or do not fit the pairs.
bool check_add_options(CommandContext& ctx, const AddOptions& options, size_t words_left) {
  if (words_left == 0 || words_left % 2 != 0) {
    ctx.syntax_error();
  } else if (options.only_new && options.only_existing) {
    ctx.reply.error("ERR XX and NX options at the same time are not compatible");
  } else if (options.only_greater + options.only_less + options.only_new > 1) {
    ctx.reply.error("ERR GT, LT, and/or NX options at the same time are not compatible");
  } else if (options.increment && words_left > 2) {
    ctx.reply.error("ERR INCR option supports a single increment-element pair");
  } else {
    return true;
  }
  return false;
}

enum class Outcome : uint8_t { kNothing, kAdded, kChanged, kSame, kNotANumber };

// Adds or changes one member according to `options`; sets *score to the member's resulting score.
Outcome add_member(SortedSet& set, std::string_view member, const AddOptions& options,
                   double* score) {
  const std::optional<double> old_score = set.score(member);
  if (!old_score) {
    if (options.only_existing) return Outcome::kNothing;
    set.add(member, *score);
    return Outcome::kAdded;
  }
  if (options.only_new) return Outcome::kNothing;
  if (options.increment) *score += *old_score;
  if (std::isnan(*score)) return Outcome::kNotANumber;
  if ((options.only_greater && *score <= *old_score) || (options.only_less && *score >= *old_score))
    return Outcome::kNothing;
  if (*score == *old_score) return Outcome::kSame;
  set.change(member, *score);
  return Outcome::kChanged;
}

void reply_nothing_added(CommandContext& ctx, const AddOptions& options) {
  options.increment ? ctx.reply.null() : ctx.reply.integer(0);
}

// `pairs`: alternating scores and members. False, with an error sent, when a score is not a number.
bool read_pairs(CommandContext& ctx, Arguments pairs, std::vector<ScoredText>* members) {
  members->resize(pairs.size() / 2);
  for (size_t i = 0; i < members->size(); ++i) {
    if (!ctx.read_double(pairs[i * 2], &(*members)[i].score)) return false;
    (*members)[i].member = pairs[i * 2 + 1];
  }
  return true;
}

void add(CommandContext& ctx, AddOptions options) {
  ArgReader reader(ctx.args, 2);
  options = read_add_options(reader, options);
  if (!check_add_options(ctx, options, reader.left())) return;
  std::vector<ScoredText> members;
  if (read_pairs(ctx, reader.rest(), &members)) add_members(ctx, options, members);
}

void zadd(CommandContext& ctx) {
  add(ctx, {});
}

// The increment is where ZADD's options begin; a number is never read as an option.
void zincrby(CommandContext& ctx) {
  add(ctx, {.increment = true});
}

// --- Removing -----------------------------------------------------------------------------------

void zrem(CommandContext& ctx) {
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!ref) return ctx.reply.integer(0);
  SortedSet* set = value_at<SortedSet>(ctx, ref);
  if (set == nullptr) return;
  uint64_t removed = 0;
  for (const std::string_view member : ctx.args.subspan(2)) removed += set->erase(member) ? 1 : 0;
  if (removed > 0) {
    ctx.changed(ctx.args[1], EventClass::kSortedSet, "zrem");
    ctx.events.count(removed - 1);
    erase_if_empty<SortedSet>(ctx, ref, ctx.args[1]);
  }
  ctx.reply.integer(static_cast<int64_t>(removed));
}

// --- Asking -------------------------------------------------------------------------------------

void zcard(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ref) return ctx.reply.integer(0);
  const auto set = view_at<SortedSet>(ctx, ref);
  if (set != nullptr) ctx.reply.integer(static_cast<int64_t>(set->size()));
}

void reply_score(CommandContext& ctx, std::optional<double> score) {
  score ? ctx.reply.number(*score) : ctx.reply.null();
}

void zscore(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ref) return ctx.reply.null();
  const auto set = view_at<SortedSet>(ctx, ref);
  if (set != nullptr) reply_score(ctx, set->score(ctx.args[2]));
}

void zmscore(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const auto set = view_at<SortedSet>(ctx, ref);
  if (ref && set == nullptr) return;
  const Arguments members = ctx.args.subspan(2);
  ctx.reply.array(members.size());
  for (const std::string_view member : members)
    reply_score(ctx, set == nullptr ? std::nullopt : set->score(member));
}

void reply_rank(CommandContext& ctx, bool from_highest) {
  if (ctx.args.size() > 4) return ctx.wrong_arity();
  const bool with_score = ctx.args.size() == 4;
  if (with_score && !is_word(ctx.args[3], "WITHSCORE")) return ctx.syntax_error();
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const auto set = view_at<SortedSet>(ctx, ref);
  if (ref && set == nullptr) return;
  const auto rank = set == nullptr ? std::nullopt : set->rank(ctx.args[2]);
  if (!rank) return with_score ? ctx.reply.null_array() : ctx.reply.null();
  if (with_score) ctx.reply.array(2);
  ctx.reply.integer(static_cast<int64_t>(from_highest ? set->size() - 1 - *rank : *rank));
  if (with_score) reply_score(ctx, set->score(ctx.args[2]));
}

void zrank(CommandContext& ctx) {
  reply_rank(ctx, false);
}

void zrevrank(CommandContext& ctx) {
  reply_rank(ctx, true);
}

void zscan(CommandContext& ctx) {
  const bool stores_shortest = ctx.server.edition().has({7, 2});
  scan_collection<SortedSet>(ctx, [&](ScannedElements& found, const CollectionScanOptions& options,
                                      const SortedSet& set, std::string_view member, double score) {
    char text[base::kMaxDoubleText];
    found.add(member);
    if (options.no_scores) return;
    // A listpack's score is sent as it is stored; other scores with all 17 digits, as in the
    // reference.
    found.add({text, set.is_listpack() && stores_shortest
                         ? base::format_double(score, text)
                         : base::format_double_17_digits(score, text)});
  });
}

constexpr CommandRow kSortedSetRows[] = {
    {"ZADD",
     zadd,
     "key [condition=NX|XX]@3.0.2 [comparison=GT|LT]@6.2.0 [change=CH]@3.0.2 "
     "[increment=INCR]@3.0.2 {data=score:double member}...",
     kWrite | kDenyOom | kFast,
     keys(1).rw().update(),
     kAclSortedSet,
     Group::kSortedSet,
     "1.2.0",
     "O(log(N)) for each item added, where N is the number of elements in the sorted set.",
     "Adds one or more members to a sorted set, or updates their scores. Creates the key if it "
     "doesn't exist.",
     {.history = "2.4.0 Accepts multiple elements.\n3.0.2 Added the `XX`, `NX`, `CH` and `INCR` "
                 "options.\n6.2.0 Added the `GT` and `LT` options.",
      .element = -1}},
    {"ZCARD", zcard, "key", kReadOnly | kFast, keys(1).ro(), kAclSortedSet, Group::kSortedSet,
     "1.2.0", "O(1)", "Returns the number of members in a sorted set."},
    {"ZINCRBY",
     zincrby,
     "key increment member",
     kWrite | kDenyOom | kFast,
     keys(1).rw().access().update(),
     kAclSortedSet,
     Group::kSortedSet,
     "1.2.0",
     "O(log(N)) where N is the number of elements in the sorted set.",
     "Increments the score of a member in a sorted set.",
     {.element = 3}},
    {"ZMSCORE",
     zmscore,
     "key member...",
     kReadOnly | kFast,
     keys(1).ro().access(),
     kAclSortedSet,
     Group::kSortedSet,
     "6.2.0",
     "O(N) where N is the number of members being requested.",
     "Returns the score of one or more members in a sorted set.",
     {.element = 2}},
    {"ZRANK",
     zrank,
     "key member [WITHSCORE]",
     kReadOnly | kFast,
     keys(1).ro().access(),
     kAclSortedSet,
     Group::kSortedSet,
     "2.0.0",
     "O(log(N))",
     "Returns the index of a member in a sorted set ordered by ascending scores.",
     {.history = "7.2.0 Added the optional `WITHSCORE` argument.", .element = 2}},
    {"ZREM",
     zrem,
     "key member...",
     kWrite | kFast,
     keys(1).rw().remove(),
     kAclSortedSet,
     Group::kSortedSet,
     "1.2.0",
     "O(M*log(N)) with N being the number of elements in the sorted set and M the number of "
     "elements to be removed.",
     "Removes one or more members from a sorted set. Deletes the sorted set if all members were "
     "removed.",
     {.history = "2.4.0 Accepts multiple elements.", .element = 2}},
    {"ZREVRANK",
     zrevrank,
     "key member [WITHSCORE]",
     kReadOnly | kFast,
     keys(1).ro().access(),
     kAclSortedSet,
     Group::kSortedSet,
     "2.0.0",
     "O(log(N))",
     "Returns the index of a member in a sorted set ordered by descending scores.",
     {.history = "7.2.0 Added the optional `WITHSCORE` argument.", .element = 2}},
    {"ZSCAN",
     zscan,
     "key cursor [MATCH pattern] [COUNT count] [NOSCORES]",
     kReadOnly,
     keys(1).ro().access(),
     kAclSortedSet,
     Group::kSortedSet,
     "2.8.0",
     "O(1) for every call. O(N) for a complete iteration, including enough command calls for the "
     "cursor to return back to 0. N is the number of elements inside the collection.",
     "Iterates over members and scores of a sorted set.",
     {.tips = "nondeterministic_output"}},
    {"ZSCORE",
     zscore,
     "key member",
     kReadOnly | kFast,
     keys(1).ro().access(),
     kAclSortedSet,
     Group::kSortedSet,
     "1.2.0",
     "O(1)",
     "Returns the score of a member in a sorted set.",
     {.element = 2}},
};

}  // namespace

void add_members(CommandContext& ctx, const AddOptions& options, std::span<ScoredText> members) {
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!ctx.is_type(ref, SortedSet::kType)) return;
  if (!ref && options.only_existing) return reply_nothing_added(ctx, options);
  SortedSet& set = *value_or_new<SortedSet>(ctx, ref, ctx.db.environment(), members.size(),
                                            members[0].member.size());
  set.expect(members.size());

  uint64_t added = 0;
  uint64_t changed = 0;
  Outcome outcome = Outcome::kNothing;
  for (ScoredText& scored : members) {
    outcome = add_member(set, scored.member, options, &scored.score);
    added += outcome == Outcome::kAdded ? 1 : 0;
    changed += outcome == Outcome::kChanged ? 1 : 0;
  }
  if (added + changed > 0) {
    ctx.changed(ctx.args[1], EventClass::kSortedSet, options.increment ? "zincr" : "zadd");
    ctx.events.count(added + changed - 1);
  }
  if (outcome == Outcome::kNotANumber)
    return ctx.reply.error("ERR resulting score is not a number (NaN)");
  if (!options.increment)
    return ctx.reply.integer(static_cast<int64_t>(options.count_changes ? added + changed : added));
  if (outcome == Outcome::kNothing) return ctx.reply.null();
  ctx.reply.number(members[0].score);
}

std::span<const CommandRow> sorted_set_rows() {
  return kSortedSetRows;
}

}  // namespace latchkey::commands
