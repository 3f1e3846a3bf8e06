// Blocking pops from sorted sets: BZPOPMIN, BZPOPMAX, BZMPOP.
#include "commands/groups.h"
#include "commands/keys/typed_key.h"
#include "commands/sorted_sets/sorted_set_pops.h"
#include "server/client/blocking.h"
#include "server/command/command_context.h"
#include "server/server.h"
#include "store/value/sorted_set.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::SortedSet;

namespace {

// Pops one member from the first existing key. False, with nothing sent, when no key exists.
bool pop_from_first(CommandContext& ctx, Arguments keys, bool highest) {
  for (const std::string_view key : keys) {
    KeyRef ref = ctx.db.find_for_write(key);
    if (!ref) continue;
    if (!ctx.is_type(ref, SortedSet::kType)) return true;
    ctx.reply.array(3);
    ctx.reply.bulk(key);
    send_and_remove(ctx, ref, key, highest, members_at_end(value_of<SortedSet>(ref), highest, 1),
                    false);
    ctx.propagate({highest ? "ZPOPMAX" : "ZPOPMIN", key});
    return true;
  }
  return false;
}

void wait_for(CommandContext& ctx, Arguments keys, int64_t deadline_ms) {
  ctx.server.blocking().wait(ctx,
                             {.keys = keys, .type = SortedSet::kType, .deadline_ms = deadline_ms});
}

void pop_or_wait(CommandContext& ctx, bool highest) {
  int64_t deadline_ms = 0;
  if (!read_wait_timeout(ctx, ctx.args.back(), &deadline_ms)) return;
  const Arguments keys = ctx.args.subspan(1, ctx.args.size() - 2);
  if (!pop_from_first(ctx, keys, highest)) wait_for(ctx, keys, deadline_ms);
}

void bzpopmin(CommandContext& ctx) {
  pop_or_wait(ctx, false);
}

void bzpopmax(CommandContext& ctx) {
  pop_or_wait(ctx, true);
}

void bzmpop(CommandContext& ctx) {
  MultiPop wanted;
  if (!wanted.read(ctx, 2)) return;
  int64_t deadline_ms = 0;
  if (!read_wait_timeout(ctx, ctx.args[1], &deadline_ms)) return;
  if (!wanted.serve(ctx)) wait_for(ctx, wanted.keys, deadline_ms);
}

constexpr CommandRow kSortedSetWaitRows[] = {
    {"BZMPOP", bzmpop, "timeout:double numkeys key... {where=MIN|MAX} [COUNT count]",
     kWrite | kBlocking, counted_keys(2).rw().access().remove(), kAclSortedSet, Group::kSortedSet,
     "7.0.0",
     "O(K) + O(M*log(N)) where K is the number of provided keys, N being the number of elements in "
     "the sorted set, and M being the number of elements popped.",
     "Removes and returns a member by score from one or more sorted sets. Blocks until a member is "
     "available otherwise. Deletes the sorted set if the last element was popped."},
    {"BZPOPMAX",
     bzpopmax,
     "key... timeout:double",
     kWrite | kBlocking | kFast,
     keys(1, -2).rw().access().remove(),
     kAclSortedSet,
     Group::kSortedSet,
     "5.0.0",
     "O(log(N)) with N being the number of elements in the sorted set.",
     "Removes and returns the member with the highest score from one or more sorted sets. Blocks "
     "until a member available otherwise.  Deletes the sorted set if the last element was popped.",
     {.history = "6.0.0 `timeout` is interpreted as a double instead of an integer."}},
    {"BZPOPMIN",
     bzpopmin,
     "key... timeout:double",
     kWrite | kBlocking | kFast,
     keys(1, -2).rw().access().remove(),
     kAclSortedSet,
     Group::kSortedSet,
     "5.0.0",
     "O(log(N)) with N being the number of elements in the sorted set.",
     "Removes and returns the member with the lowest score from one or more sorted sets. Blocks "
     "until a member is available otherwise. Deletes the sorted set if the last element was "
     "popped.",
     {.history = "6.0.0 `timeout` is interpreted as a double instead of an integer."}},
};

}  // namespace

std::span<const CommandRow> sorted_set_wait_rows() {
  return kSortedSetWaitRows;
}

}  // namespace latchkey::commands
