// Comparing and deleting strings, and digests of their values: DELEX, DELIFEQ, DIGEST.
#include <algorithm>

#include "base/text/number.h"
#include "commands/groups.h"
#include "commands/strings/value_condition.h"
#include "server/client/client.h"
#include "server/command/command_context.h"
#include "server/command/lock_claims.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;

namespace {

void erase(CommandContext& ctx, KeyRef& ref) {
  ctx.db.erase(ref);
  ctx.removed(ctx.args[1]);
  ctx.reply.integer(1);
}

// The key goes because its value is as the client expects, which is how locks are released.
void erase_compared(CommandContext& ctx, KeyRef& ref) {
  if (ctx.server.lock_claims() != nullptr) ctx.server.lock_claims()->compared(ref);
  erase(ctx, ref);
  ctx.propagate({"DEL", ctx.args[1]});
}

// Whoever has lost a lock learns it here.
void reply_nothing_deleted(CommandContext& ctx) {
  if (ctx.client.has(kClientTookLock) && ctx.server.lock_claims() != nullptr)
    ctx.server.lock_claims()->release_failed(ctx, ctx.args[1]);
  ctx.reply.integer(0);
}

void delex(CommandContext& ctx) {
  const bool conditional = ctx.args.size() > 2;
  if (conditional && ctx.args.size() != 4) return ctx.wrong_arity();
  // With a condition the command reads, so it counts as a hit or a miss.
  KeyRef ref = ctx.db.find_to_replace(
      ctx.args[1], conditional ? store::Keyspace::kTouch : store::Keyspace::kNoStats);
  if (!ref) return reply_nothing_deleted(ctx);
  if (!conditional) return erase(ctx, ref);

  if (!ref->is_string())
    return ctx.reply.error("ERR Key should be of string type if conditions are specified");
  ArgReader options(ctx.args, 2);
  ValueCondition condition;
  if (!condition.read(options))
    return ctx.reply.error("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE");
  bool holds;
  if (!condition.check(ctx, *ref, &holds)) return;
  if (!holds) return reply_nothing_deleted(ctx);
  erase_compared(ctx, ref);
}

void delifeq(CommandContext& ctx) {
  KeyRef ref = ctx.db.find_to_replace(ctx.args[1]);
  if (!ref) return reply_nothing_deleted(ctx);
  if (!ctx.is_string(ref)) return;
  char scratch[base::kMaxInt64Text];
  if (ref->string(scratch) != ctx.args[2]) return reply_nothing_deleted(ctx);
  erase_compared(ctx, ref);
}

void digest(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ref) return ctx.reply.null();
  if (!ctx.is_string(ref)) return;
  char scratch[base::kMaxInt64Text];
  char text[kDigestDigits];
  write_digest(ref->string(scratch), text);
  ctx.reply.bulk(std::string_view(text, kDigestDigits));
}

// --- Rows ---------------------------------------------------------------------------------------

// Without a condition DELEX does not read the value.
bool find_delex_keys(Arguments words, std::vector<KeyReference>* out) {
  const Arguments options = words.subspan(2);
  const bool reads = std::any_of(options.begin(), options.end(), ValueCondition::is_name);
  out->push_back({1, (reads ? kKeyReadWrite : kKeyRemove) | kKeyDelete});
  return true;
}

constexpr CommandRow kStringConditionRows[] = {
    {"DELEX",
     delex,
     "key [condition=IFEQ ifeq-value|IFNE ifne-value|IFDEQ ifdeq-digest:integer|IFDNE "
     "ifdne-digest:integer]",
     kWrite | kFast,
     keys(1).rw().remove().variable_flags(),
     kAclString,
     Group::kString,
     "8.4.0",
     "O(1) for IFEQ/IFNE, O(N) for IFDEQ/IFDNE where N is the length of the string value.",
     "Conditionally removes the specified key based on value or digest comparison.",
     {.find_keys = find_delex_keys}},
    {"DELIFEQ", delifeq, "key value", kWrite | kFast, keys(1).rm().remove(), kAclString,
     Group::kString, "9.0.0", "O(1)", "Delete key if value matches string."},
    {"DIGEST", digest, "key", kReadOnly | kFast, keys(1).ro().access(), kAclString, Group::kString,
     "8.4.0", "O(N) where N is the length of the string value.",
     "Returns the XXH3 hash of a string value."},
};

}  // namespace

std::span<const CommandRow> string_condition_rows() {
  return kStringConditionRows;
}

}  // namespace latchkey::commands
