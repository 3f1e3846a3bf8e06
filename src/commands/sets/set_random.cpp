// Random members of a set: SPOP, SRANDMEMBER.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "commands/groups.h"
#include "commands/keys/typed_key.h"
#include "server/client/output_limits.h"
#include "server/server.h"
#include "store/value/set.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::Set;

namespace {

void spop_one(CommandContext& ctx) {
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!ref) return ctx.reply.null();
  Set* set = value_at<Set>(ctx, ref);
  if (set == nullptr) return;
  const std::string member = set->random(ctx.db.environment().random);
  set->erase(member);
  ctx.changed(ctx.args[1], EventClass::kSet, "spop");
  erase_if_empty<Set>(ctx, ref, ctx.args[1]);
  ctx.propagate({"SREM", ctx.args[1], member});
  ctx.reply.bulk(std::string_view(member));
}

// Propagates the removal in requests of limited length.
void propagate_removal(CommandContext& ctx, const std::vector<std::string_view>& members) {
  constexpr size_t kMaxOfRequest = 1024;
  for (size_t first = 0; first < members.size(); first += kMaxOfRequest) {
    const size_t count = std::min(kMaxOfRequest, members.size() - first);
    ctx.propagate({"SREM", ctx.args[1]}, Arguments(members).subspan(first, count));
  }
}

// Whether so few members remain that the reference moves them to a new set, whose encoding depends
// on what they are. Otherwise the set keeps its encoding.
bool moves_remaining(size_t remaining, size_t chosen) {
  constexpr size_t kChosenPerRemaining = 5;
  return remaining <= chosen / kChosenPerRemaining;
}

void spop(CommandContext& ctx) {
  if (ctx.args.size() == 2) return spop_one(ctx);
  if (ctx.args.size() > 3) return ctx.syntax_error();
  int64_t count;
  if (!ctx.read_int64_in(ctx.args[2], 0, INT64_MAX, &count,
                         "ERR value is out of range, must be positive")) {
    return;
  }
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!ref) return ctx.reply.set(0);
  Set* set = value_at<Set>(ctx, ref);
  if (set == nullptr) return;
  if (count == 0) return ctx.reply.set(0);

  if (static_cast<uint64_t>(count) >= set->size()) {
    const size_t size = set->size();
    ctx.reply.set(size);
    set->for_each([&](std::string_view member) { ctx.reply.bulk(member); });
    ctx.db.erase(ref);
    ctx.changed(ctx.args[1], EventClass::kSet, "spop");
    ctx.events.count(size - 1);
    ctx.propagate({ctx.server.settings().lazyfree_lazy_server_del ? "UNLINK" : "DEL", ctx.args[1]});
    return ctx.events.happened(ctx.db, ctx.args[1], EventClass::kGeneric, "del");
  }
  std::vector<std::string> chosen;
  chosen.reserve(static_cast<size_t>(count));
  set->random_distinct(ctx.db.environment().random, static_cast<size_t>(count),
                       [&](std::string_view member) { chosen.emplace_back(member); });
  ctx.reply.set(chosen.size());
  for (const std::string& member : chosen) {
    set->erase(member);
    ctx.reply.bulk(std::string_view(member));
  }
  if (moves_remaining(set->size(), chosen.size()))
    set->choose_encoding(/*prefers_intset=*/!ctx.server.edition().has({7, 2}));
  ctx.changed(ctx.args[1], EventClass::kSet, "spop");
  ctx.events.count(chosen.size() - 1);
  propagate_removal(ctx, {chosen.begin(), chosen.end()});
}

void srandmember(CommandContext& ctx) {
  const bool counted = ctx.args.size() > 2;
  if (ctx.args.size() > 3) return ctx.syntax_error();
  int64_t count = 1;
  if (counted && !ctx.read_int64_in(ctx.args[2], -INT64_MAX, INT64_MAX, &count)) return;
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ref) return counted ? ctx.reply.empty_array() : ctx.reply.null();
  const auto set = view_at<Set>(ctx, ref);
  if (set == nullptr) return;
  base::Random& random = ctx.db.environment().random;
  if (!counted) return ctx.reply.bulk(std::string_view(set->random(random)));
  if (count < 0) {
    const auto repeats = static_cast<uint64_t>(-count);
    ctx.reply.array(repeats);
    for (uint64_t i = 0; i < repeats && !reply_is_lost(ctx.client); ++i)
      ctx.reply.bulk(std::string_view(set->random(random)));
    return;
  }
  const size_t wanted = std::min(static_cast<size_t>(count), set->size());
  ctx.reply.array(wanted);
  set->random_distinct(random, wanted, [&](std::string_view member) { ctx.reply.bulk(member); });
}

constexpr CommandRow kSetRandomRows[] = {
    {"SPOP",
     spop,
     "key [count]@3.2.0",
     kWrite | kFast,
     keys(1).rw().access().remove(),
     kAclSet,
     Group::kSet,
     "1.0.0",
     "Without the count argument O(1), otherwise O(N) where N is the value of the passed count.",
     "Returns one or more random members from a set after removing them. Deletes the set if the "
     "last member was popped.",
     {.tips = "nondeterministic_output", .history = "3.2.0 Added the `count` argument."}},
    {"SRANDMEMBER",
     srandmember,
     "key [count]@2.6.0",
     kReadOnly,
     keys(1).ro().access(),
     kAclSet,
     Group::kSet,
     "1.0.0",
     "Without the count argument O(1), otherwise O(N) where N is the absolute value of the passed "
     "count.",
     "Get one or multiple random members from a set",
     {.tips = "nondeterministic_output", .history = "2.6.0 Added the optional `count` argument."}},
};

}  // namespace

std::span<const CommandRow> set_random_rows() {
  return kSetRandomRows;
}

}  // namespace latchkey::commands
