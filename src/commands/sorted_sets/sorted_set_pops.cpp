// The ends of sorted sets, and random members: ZPOPMIN, ZPOPMAX, ZMPOP, ZRANDMEMBER.
#include "commands/sorted_sets/sorted_set_pops.h"

#include <algorithm>

#include "commands/groups.h"
#include "commands/keys/typed_key.h"
#include "server/client/output_limits.h"
#include "server/command/command_context.h"
#include "store/value/sorted_set.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::RankRange;
using store::SortedSet;

// --- The ends -----------------------------------------------------------------------------------

RankRange members_at_end(const SortedSet& set, bool highest, size_t count) {
  count = std::min(count, set.size());
  return {highest ? set.size() - count : 0, count};
}

void send_and_remove(CommandContext& ctx, KeyRef& ref, std::string_view key, bool highest,
                     RankRange ranks, bool nested) {
  SortedSet& set = value_of<SortedSet>(ref);
  set.for_each(ranks, highest, [&](std::string_view member, double score) {
    if (nested) ctx.reply.array(2);
    ctx.reply.bulk(member);
    ctx.reply.number(score);
  });
  set.erase(ranks);
  ctx.changed(key, EventClass::kSortedSet, highest ? "zpopmax" : "zpopmin");
  ctx.events.count(ranks.count - 1);
  erase_if_empty<SortedSet>(ctx, ref, key);
}

bool MultiPop::read(CommandContext& ctx, size_t first) {
  int64_t key_count;
  if (!ctx.read_int64_in(ctx.args[first], 1, INT64_MAX, &key_count,
                         "ERR numkeys should be greater than 0"))
    return false;
  ArgReader reader(ctx.args, first + 1);
  if (static_cast<uint64_t>(key_count) >= reader.left()) {
    ctx.syntax_error();
    return false;
  }
  keys = ctx.args.subspan(first + 1, static_cast<size_t>(key_count));
  reader = ArgReader(ctx.args, first + 1 + keys.size());
  highest = reader.word("MAX");
  if (!highest && !reader.word("MIN")) {
    ctx.syntax_error();
    return false;
  }
  int64_t wanted = 1;
  if (std::string_view text;
      reader.word("COUNT", &text) &&
      !ctx.read_int64_in(text, 1, INT64_MAX, &wanted, "ERR count should be greater than 0"))
    return false;
  if (reader.more()) {
    ctx.syntax_error();
    return false;
  }
  count = static_cast<size_t>(wanted);
  return true;
}

bool MultiPop::serve(CommandContext& ctx) const {
  for (const std::string_view key : keys) {
    KeyRef ref = ctx.db.find_for_write(key);
    if (!ref) continue;
    if (!ctx.is_type(ref, SortedSet::kType)) return true;
    const RankRange ranks = members_at_end(value_of<SortedSet>(ref), highest, count);
    ctx.reply.array(2);
    ctx.reply.bulk(key);
    ctx.reply.array(ranks.count);
    send_and_remove(ctx, ref, key, highest, ranks, true);
    ctx.propagate({highest ? "ZPOPMAX" : "ZPOPMIN", key, ranks.count});
    return true;
  }
  return false;
}

namespace {

void pop_from_key(CommandContext& ctx, bool highest) {
  if (ctx.args.size() > 3) return ctx.syntax_error();
  const bool counted = ctx.args.size() == 3;
  int64_t count = 1;
  if (counted && !ctx.read_int64_in(ctx.args[2], 0, INT64_MAX, &count,
                                    "ERR value is out of range, must be positive"))
    return;
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!ctx.is_type(ref, SortedSet::kType)) return;
  if (!ref || count == 0) return ctx.reply.empty_array();
  const bool nested = counted && ctx.reply.is_resp3();
  const RankRange ranks =
      members_at_end(value_of<SortedSet>(ref), highest, static_cast<size_t>(count));
  ctx.reply.array(nested ? ranks.count : ranks.count * 2);
  send_and_remove(ctx, ref, ctx.args[1], highest, ranks, nested);
}

void zpopmin(CommandContext& ctx) {
  pop_from_key(ctx, false);
}

void zpopmax(CommandContext& ctx) {
  pop_from_key(ctx, true);
}

void zmpop(CommandContext& ctx) {
  MultiPop wanted;
  if (!wanted.read(ctx, 1)) return;
  if (!wanted.serve(ctx)) ctx.reply.null_array();
}

// --- Random members -----------------------------------------------------------------------------

void reply_member(CommandContext& ctx, std::string_view member, double score, bool with_scores) {
  if (with_scores && ctx.reply.is_resp3()) ctx.reply.array(2);
  ctx.reply.bulk(member);
  if (with_scores) ctx.reply.number(score);
}

void announce_members(CommandContext& ctx, size_t count, bool with_scores) {
  ctx.reply.array(with_scores && !ctx.reply.is_resp3() ? count * 2 : count);
}

void zrandmember(CommandContext& ctx) {
  const bool counted = ctx.args.size() > 2;
  const bool with_scores = ctx.args.size() > 3;
  int64_t count = 1;
  if (counted && !ctx.read_int64_in(ctx.args[2], -INT64_MAX, INT64_MAX, &count)) return;
  if (ctx.args.size() > 4 || (with_scores && !is_word(ctx.args[3], "WITHSCORES")))
    return ctx.syntax_error();
  if (with_scores && (count > INT64_MAX / 2 || count < -(INT64_MAX / 2)))
    return ctx.reply.error("ERR value is out of range");

  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ref) return counted ? ctx.reply.empty_array() : ctx.reply.null();
  const auto set = view_at<SortedSet>(ctx, ref);
  if (set == nullptr) return;
  base::Random& random = ctx.db.environment().random;
  const auto send = [&](std::string_view member, double score) {
    reply_member(ctx, member, score, with_scores);
  };
  if (!counted) return set->random(random, send);
  if (count >= 0) {
    const size_t wanted = std::min(static_cast<size_t>(count), set->size());
    announce_members(ctx, wanted, with_scores);
    return set->random_distinct(random, wanted, send);
  }
  announce_members(ctx, static_cast<size_t>(-count), with_scores);
  for (int64_t left = -count; left > 0 && !reply_is_lost(ctx.client); --left)
    set->random(random, send);
}

constexpr const char* kPopCost =
    "O(log(N)*M) with N being the number of elements in the sorted set, and M being the number of "
    "elements popped.";

constexpr CommandRow kSortedSetPopRows[] = {
    {"ZMPOP", zmpop, "numkeys key... {where=MIN|MAX} [COUNT count]", kWrite,
     counted_keys(1).rw().access().remove(), kAclSortedSet, Group::kSortedSet, "7.0.0",
     "O(K) + O(M*log(N)) where K is the number of provided keys, N being the number of elements in "
     "the sorted set, and M being the number of elements popped.",
     "Returns the highest- or lowest-scoring members from one or more sorted sets after removing "
     "them. Deletes the sorted set if the last member was popped."},
    {"ZPOPMAX", zpopmax, "key [count]", kWrite | kFast, keys(1).rw().access().remove(),
     kAclSortedSet, Group::kSortedSet, "5.0.0", kPopCost,
     "Returns the highest-scoring members from a sorted set after removing them. Deletes the "
     "sorted set if the last member was popped."},
    {"ZPOPMIN", zpopmin, "key [count]", kWrite | kFast, keys(1).rw().access().remove(),
     kAclSortedSet, Group::kSortedSet, "5.0.0", kPopCost,
     "Returns the lowest-scoring members from a sorted set after removing them. Deletes the sorted "
     "set if the last member was popped."},
    {"ZRANDMEMBER",
     zrandmember,
     "key [options=count [WITHSCORES]]",
     kReadOnly,
     keys(1).ro().access(),
     kAclSortedSet,
     Group::kSortedSet,
     "6.2.0",
     "O(N) where N is the number of members returned",
     "Returns one or more random members from a sorted set.",
     {.tips = "nondeterministic_output"}},
};

}  // namespace

std::span<const CommandRow> sorted_set_pop_rows() {
  return kSortedSetPopRows;
}

}  // namespace latchkey::commands
