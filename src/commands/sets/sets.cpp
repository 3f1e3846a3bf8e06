// Single sets: SADD, SREM and related commands.
#include "commands/groups.h"
#include "commands/keys/collection_scan.h"
#include "commands/keys/typed_key.h"
#include "store/value/set.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::Set;

namespace {

void sadd(CommandContext& ctx) {
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  Set* set = value_or_new<Set>(ctx, ref, ctx.db.environment());
  if (set == nullptr) return;
  const Arguments members = ctx.args.subspan(2);
  set->expect(members.size());
  uint64_t added = 0;
  for (const std::string_view member : members) added += set->add(member);
  if (added > 0) {
    ctx.changed(ctx.args[1], EventClass::kSet, "sadd");
    ctx.events.count(added - 1);
  }
  ctx.reply.integer(static_cast<int64_t>(added));
}

void srem(CommandContext& ctx) {
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!ref) return ctx.reply.integer(0);
  Set* set = value_at<Set>(ctx, ref);
  if (set == nullptr) return;
  uint64_t removed = 0;
  for (const std::string_view member : ctx.args.subspan(2)) removed += set->erase(member);
  if (removed > 0) {
    ctx.changed(ctx.args[1], EventClass::kSet, "srem");
    ctx.events.count(removed - 1);
    erase_if_empty<Set>(ctx, ref, ctx.args[1]);
  }
  ctx.reply.integer(static_cast<int64_t>(removed));
}

void smove(CommandContext& ctx) {
  const std::string_view source_key = ctx.args[1];
  const std::string_view destination_key = ctx.args[2];
  const std::string_view member = ctx.args[3];
  if (!ctx.db.find_for_write(source_key)) return ctx.reply.integer(0);
  KeyRef destination = ctx.db.find_for_write(destination_key);
  // Looking up the destination may have removed it, which invalidates other KeyRefs.
  KeyRef source = ctx.db.find(source_key, store::Keyspace::kPeek);
  Set* from = value_at<Set>(ctx, source);
  if (from == nullptr || !ctx.is_type(destination, Set::kType)) return;
  if (source_key == destination_key) return ctx.reply.integer(from->contains(member));
  if (!from->erase(member)) return ctx.reply.integer(0);

  ctx.changed(source_key, EventClass::kSet, "srem");
  if (erase_if_empty<Set>(ctx, source, source_key))
    destination = ctx.db.find_for_write(destination_key);
  const bool is_new = !destination;
  Set* to = value_or_new<Set>(ctx, destination, ctx.db.environment());
  if (is_new) to->expect(1);
  if (to->add(member)) ctx.changed(destination_key, EventClass::kSet, "sadd");
  ctx.reply.integer(1);
}

void scard(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ctx.is_type(ref, Set::kType)) return;
  ctx.reply.integer(ref ? static_cast<int64_t>(view_of<Set>(ref)->size()) : 0);
}

void sismember(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ctx.is_type(ref, Set::kType)) return;
  ctx.reply.integer(ref && view_of<Set>(ref)->contains(ctx.args[2]));
}

void smismember(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const auto set = view_at<Set>(ctx, ref);
  if (ref && set == nullptr) return;
  const Arguments members = ctx.args.subspan(2);
  ctx.reply.array(members.size());
  for (const std::string_view member : members)
    ctx.reply.integer(set != nullptr && set->contains(member));
}

void smembers(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ref) return ctx.reply.set(0);
  const auto set = view_at<Set>(ctx, ref);
  if (set == nullptr) return;
  ctx.reply.set(set->size());
  set->for_each([&](std::string_view member) { ctx.reply.bulk(member); });
}

void sscan(CommandContext& ctx) {
  scan_collection<Set>(ctx, [](ScannedElements& found, const CollectionScanOptions&, const Set&,
                               std::string_view member) { found.add(member); });
}

constexpr CommandRow kSetRows[] = {
    {"SADD",
     sadd,
     "key member...",
     kWrite | kDenyOom | kFast,
     keys(1).rw().insert(),
     kAclSet,
     Group::kSet,
     "1.0.0",
     "O(1) for each element added, so O(N) to add N elements when the command is called with "
     "multiple arguments.",
     "Adds one or more members to a set. Creates the key if it doesn't exist.",
     {.history = "2.4.0 Accepts multiple `member` arguments.", .element = 2}},
    {"SCARD", scard, "key", kReadOnly | kFast, keys(1).ro(), kAclSet, Group::kSet, "1.0.0", "O(1)",
     "Returns the number of members in a set."},
    {"SISMEMBER",
     sismember,
     "key member",
     kReadOnly | kFast,
     keys(1).ro(),
     kAclSet,
     Group::kSet,
     "1.0.0",
     "O(1)",
     "Determines whether a member belongs to a set.",
     {.element = 2}},
    {"SMEMBERS",
     smembers,
     "key",
     kReadOnly,
     keys(1).ro().access(),
     kAclSet,
     Group::kSet,
     "1.0.0",
     "O(N) where N is the set cardinality.",
     "Returns all members of a set.",
     {.tips = "nondeterministic_output_order"}},
    {"SMISMEMBER",
     smismember,
     "key member...",
     kReadOnly | kFast,
     keys(1).ro().access(),
     kAclSet,
     Group::kSet,
     "6.2.0",
     "O(N) where N is the number of elements being checked for membership",
     "Determines whether multiple members belong to a set.",
     {.element = 2}},
    {"SMOVE", smove, "source destination member", kWrite | kFast,
     keys(1).rw().access().remove() + keys(2).rw().insert(), kAclSet, Group::kSet, "1.0.0", "O(1)",
     "Moves a member from one set to another."},
    {"SREM",
     srem,
     "key member...",
     kWrite | kFast,
     keys(1).rw().remove(),
     kAclSet,
     Group::kSet,
     "1.0.0",
     "O(N) where N is the number of members to be removed.",
     "Removes one or more members from a set. Deletes the set if the last member was removed.",
     {.history = "2.4.0 Accepts multiple `member` arguments.", .element = 2}},
    {"SSCAN",
     sscan,
     "key cursor [MATCH pattern] [COUNT count]",
     kReadOnly,
     keys(1).ro().access(),
     kAclSet,
     Group::kSet,
     "2.8.0",
     "O(1) for every call. O(N) for a complete iteration, including enough command calls for the "
     "cursor to return back to 0. N is the number of elements inside the collection.",
     "Iterates over members of a set.",
     {.tips = "nondeterministic_output"}},
};

}  // namespace

std::span<const CommandRow> set_rows() {
  return kSetRows;
}

}  // namespace latchkey::commands
