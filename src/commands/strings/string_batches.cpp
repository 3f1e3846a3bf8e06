// Strings in batches: MGET, MSET, MSETNX, MSETEX.
//
// The keys are prefetched together before they are looked up, so that the cache misses of a batch
// overlap.
#include "commands/groups.h"
#include "commands/keys/expiration.h"
#include "commands/keys/key_batch.h"
#include "server/client/output_limits.h"
#include "server/command/command_context.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::Keyspace;

namespace {

void mget(CommandContext& ctx) {
  ctx.reply.array(ctx.args.size() - 1);
  for_each_key_of_batch(ctx.db, ctx.args, 1, 1, [&](size_t position, uint64_t hash) {
    const KeyRef ref = ctx.db.find_hashed(ctx.args[position], hash);
    if (!ref || !ref->is_string()) {
      ctx.reply.null();
      return true;
    }
    reply_string(ctx.reply, *ref);
    return !ref->is_blob() || !reply_is_lost_after(ctx.client, ref->blob()->size());
  });
}

// `pairs`: alternating keys and values.
void store_pairs(CommandContext& ctx, Arguments pairs,
                 int64_t deadline_ms = Keyspace::kNoDeadline) {
  // Valkey tells of the value before the deadline, as both do of SET.
  const bool value_first = ctx.server.edition().is_valkey();
  for_each_key_of_batch(ctx.db, pairs, 0, 2, [&](size_t position, uint64_t hash) {
    const std::string_view key = pairs[position];
    KeyRef ref = ctx.db.find_hashed_to_replace(key, hash);
    ctx.db.set_string(ref, pairs[position + 1], deadline_ms);
    if (value_first) ctx.changed(key, EventClass::kString, "set");
    if (deadline_ms >= 0) ctx.events.happened(ctx.db, key, EventClass::kGeneric, "expire");
    if (!value_first) ctx.changed(key, EventClass::kString, "set");
    return true;
  });
}

// Whether every key of `pairs` exists, or with `exist` false, none.
bool all_keys(CommandContext& ctx, Arguments pairs, bool exist) {
  return for_each_key_of_batch(ctx.db, pairs, 0, 2, [&](size_t position, uint64_t hash) {
    return static_cast<bool>(ctx.db.find_hashed(pairs[position], hash, Keyspace::kNoStats)) ==
           exist;
  });
}

void mset(CommandContext& ctx) {
  const Arguments pairs = ctx.args.subspan(1);
  if (pairs.size() % 2 != 0) return ctx.wrong_arity();
  store_pairs(ctx, pairs);
  ctx.reply.ok();
}

void msetnx(CommandContext& ctx) {
  const Arguments pairs = ctx.args.subspan(1);
  if (pairs.size() % 2 != 0) return ctx.wrong_arity();
  if (!all_keys(ctx, pairs, false)) return ctx.reply.integer(0);
  store_pairs(ctx, pairs);
  ctx.reply.integer(1);
}

// Propagates MSETEX without its conditions, which have held, and with the time as a Unix time.
void propagate_msetex(CommandContext& ctx, Arguments request, int64_t deadline_ms) {
  if (!ctx.propagation.wanted()) return;
  const std::string time = std::to_string(deadline_ms);
  std::vector<std::string_view> words(request.begin(), request.end());
  words.insert(words.end(), {"PXAT", time});
  ctx.propagate({}, words);
}

void msetex(CommandContext& ctx) {
  constexpr size_t kFirstKey = 2;
  int64_t count;
  const bool as_valkey = ctx.server.edition().is_valkey();
  if (!ctx.read_int64_in(
          ctx.args[1], 1, INT32_MAX, &count,
          as_valkey ? "ERR invalid numkeys value or out of range" : "ERR invalid numkeys value"))
    return;
  const size_t words = static_cast<size_t>(count) * 2;
  if (words > ctx.args.size() - kFirstKey)
    return ctx.reply.error(as_valkey ? "ERR syntax error" : "ERR wrong number of key-value pairs");

  bool absent = false;
  bool present = false;
  ExpirationOption expiration(ExpirationOption::kMayKeep);
  for (ArgReader options(ctx.args, kFirstKey + words); options.more();) {
    if (!present && options.word("NX")) {
      absent = true;
    } else if (!absent && options.word("XX")) {
      present = true;
    } else if (!expiration.read(options)) {
      return ctx.syntax_error();
    }
  }
  int64_t deadline_ms;
  if (!expiration.resolve(ctx, &deadline_ms)) return;

  const Arguments pairs = ctx.args.subspan(kFirstKey, words);
  if ((absent || present) && !all_keys(ctx, pairs, present)) return ctx.reply.integer(0);
  store_pairs(ctx, pairs, deadline_ms);
  // Valkey propagates a request that names the deadline as it came.
  const bool stays = as_valkey && expiration.names_deadline() && !absent && !present;
  if (deadline_ms >= 0 && !stays)
    propagate_msetex(ctx, ctx.args.first(kFirstKey + words), deadline_ms);
  ctx.reply.integer(1);
}

constexpr CommandRow kStringBatchRows[] = {
    {"MGET",
     mget,
     "key...",
     kReadOnly | kFast,
     keys(1, -1).ro().access(),
     kAclString,
     Group::kString,
     "1.0.0",
     "O(N) where N is the number of keys to retrieve.",
     "Atomically returns the string values of one or more keys.",
     {.tips = "request_policy:multi_shard"}},
    {"MSET",
     mset,
     "{data=key value}...",
     kWrite | kDenyOom,
     keys(1, -1, 2).ow().update(),
     kAclString,
     Group::kString,
     "1.0.1",
     "O(N) where N is the number of keys to set.",
     "Atomically creates or modifies the string values of one or more keys.",
     {.tips = "request_policy:multi_shard response_policy:all_succeeded"}},
    {"MSETEX",
     msetex,
     "numkeys {data=key value}... [condition=NX|XX] [expiration=EX seconds|PX milliseconds|EXAT "
     "unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL]",
     kWrite | kDenyOom,
     counted_keys(1, 2).ow().update(),
     kAclString,
     Group::kString,
     "8.4.0",
     "O(N) where N is the number of keys to set.",
     "Atomically sets multiple string keys with a shared expiration in a single operation. "
     "Supports flexible argument parsing where condition and expiration flags can appear in any "
     "order.",
     {.tips = "request_policy:multi_shard response_policy:all_succeeded"}},
    {"MSETNX", msetnx, "{data=key value}...", kWrite | kDenyOom, keys(1, -1, 2).ow().insert(),
     kAclString, Group::kString, "1.0.1", "O(N) where N is the number of keys to set.",
     "Atomically modifies the string values of one or more keys only when all keys don't exist."},
};

}  // namespace

std::span<const CommandRow> string_batch_rows() {
  return kStringBatchRows;
}

}  // namespace latchkey::commands
