// Deadlines of keys: EXPIRE, TTL and their variants, PERSIST.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/time_units.h"
#include "commands/groups.h"
#include "commands/keys/expiration.h"
#include "server/command/command_context.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::Keyspace;

namespace {

// The nearest number of seconds.
int64_t to_seconds(int64_t ms) {
  return static_cast<int64_t>((static_cast<uint64_t>(ms) + base::kMsPerSecond / 2) /
                              base::kMsPerSecond);
}

// --- Setting ------------------------------------------------------------------------------------

// Propagates the deadline as a Unix time in milliseconds, with the request's conditions.
void propagate_deadline(CommandContext& ctx, TimeUnit unit, TimeBase base, int64_t deadline_ms) {
  if (unit == TimeUnit::kMilliseconds && base == TimeBase::kUnixTime) return;
  ctx.propagate({"PEXPIREAT", ctx.args[1], deadline_ms}, ctx.args.subspan(3));
}

void set_deadline(CommandContext& ctx, TimeUnit unit, TimeBase base) {
  const std::string_view key = ctx.args[1];
  DeadlineCondition condition;
  int64_t time;
  if (!read_conditions(ctx, ctx.args.subspan(3), &condition) || !ctx.read_int64(ctx.args[2], &time))
    return;
  const std::optional<int64_t> deadline_ms = deadline_of(time, unit, base, ctx.now_ms());
  if (!deadline_ms) return reply_invalid_expire_time(ctx);
  KeyRef ref = ctx.db.find_to_replace(key);
  if (!ref || !condition.holds(ref->deadline_ms(), *deadline_ms)) return ctx.reply.integer(0);
  if (deletes_at_once(ctx, *deadline_ms)) {
    remove_at_once(ctx, ref, key);
  } else {
    ctx.db.set_deadline(ref, std::max<int64_t>(*deadline_ms, 0));
    ctx.changed(key, EventClass::kGeneric, "expire");
    propagate_deadline(ctx, unit, base, *deadline_ms);
  }
  ctx.reply.integer(1);
}

void expire(CommandContext& ctx) {
  set_deadline(ctx, TimeUnit::kSeconds, TimeBase::kFromNow);
}
void pexpire(CommandContext& ctx) {
  set_deadline(ctx, TimeUnit::kMilliseconds, TimeBase::kFromNow);
}
void expireat(CommandContext& ctx) {
  set_deadline(ctx, TimeUnit::kSeconds, TimeBase::kUnixTime);
}
void pexpireat(CommandContext& ctx) {
  set_deadline(ctx, TimeUnit::kMilliseconds, TimeBase::kUnixTime);
}

void persist(CommandContext& ctx) {
  KeyRef ref = ctx.db.find_to_replace(ctx.args[1]);
  if (!ref || !ref->has_deadline()) return ctx.reply.integer(0);
  ctx.db.set_deadline(ref, Keyspace::kNoDeadline);
  ctx.changed(ctx.args[1], EventClass::kGeneric, "persist");
  ctx.reply.integer(1);
}

// --- Asking -------------------------------------------------------------------------------------

// Replies of TTL and related commands instead of a time.
constexpr int64_t kNoSuchKey = -2;
constexpr int64_t kLivesForEver = -1;

template <typename Show>
void reply_deadline(CommandContext& ctx, Show&& show) {
  const KeyRef ref = ctx.db.find(ctx.args[1], Keyspace::kNoTouch);
  if (!ref) return ctx.reply.integer(kNoSuchKey);
  if (!ref->has_deadline()) return ctx.reply.integer(kLivesForEver);
  ctx.reply.integer(show(ref->deadline_ms()));
}

int64_t time_left_ms(const CommandContext& ctx, int64_t deadline_ms) {
  return std::max<int64_t>(deadline_ms - ctx.now_ms(), 0);
}

void ttl(CommandContext& ctx) {
  reply_deadline(ctx,
                 [&](int64_t deadline_ms) { return to_seconds(time_left_ms(ctx, deadline_ms)); });
}
void pttl(CommandContext& ctx) {
  reply_deadline(ctx, [&](int64_t deadline_ms) { return time_left_ms(ctx, deadline_ms); });
}
void expiretime(CommandContext& ctx) {
  reply_deadline(ctx, [](int64_t deadline_ms) { return to_seconds(deadline_ms); });
}
void pexpiretime(CommandContext& ctx) {
  reply_deadline(ctx, [](int64_t deadline_ms) { return deadline_ms; });
}

constexpr CommandRow kExpireRows[] = {
    {"EXPIRE",
     expire,
     "key seconds [condition=NX|XX|GT|LT]@7.0.0",
     kWrite | kFast,
     keys(1).rw().update(),
     kAclKeyspace,
     Group::kGeneric,
     "1.0.0",
     "O(1)",
     "Sets the expiration time of a key in seconds.",
     {.history = "7.0.0 Added options: `NX`, `XX`, `GT` and `LT`."}},
    {"EXPIREAT",
     expireat,
     "key unix-time-seconds [condition=NX|XX|GT|LT]@7.0.0",
     kWrite | kFast,
     keys(1).rw().update(),
     kAclKeyspace,
     Group::kGeneric,
     "1.2.0",
     "O(1)",
     "Sets the expiration time of a key to a Unix timestamp.",
     {.history = "7.0.0 Added options: `NX`, `XX`, `GT` and `LT`."}},
    {"EXPIRETIME", expiretime, "key", kReadOnly | kFast, keys(1).ro().access(), kAclKeyspace,
     Group::kGeneric, "7.0.0", "O(1)", "Returns the expiration time of a key as a Unix timestamp."},
    {"PERSIST", persist, "key", kWrite | kFast, keys(1).rw().update(), kAclKeyspace,
     Group::kGeneric, "2.2.0", "O(1)", "Removes the expiration time of a key."},
    {"PEXPIRE",
     pexpire,
     "key milliseconds [condition=NX|XX|GT|LT]@7.0.0",
     kWrite | kFast,
     keys(1).rw().update(),
     kAclKeyspace,
     Group::kGeneric,
     "2.6.0",
     "O(1)",
     "Sets the expiration time of a key in milliseconds.",
     {.history = "7.0.0 Added options: `NX`, `XX`, `GT` and `LT`."}},
    {"PEXPIREAT",
     pexpireat,
     "key unix-time-milliseconds [condition=NX|XX|GT|LT]@7.0.0",
     kWrite | kFast,
     keys(1).rw().update(),
     kAclKeyspace,
     Group::kGeneric,
     "2.6.0",
     "O(1)",
     "Sets the expiration time of a key to a Unix milliseconds timestamp.",
     {.history = "7.0.0 Added options: `NX`, `XX`, `GT` and `LT`."}},
    {"PEXPIRETIME", pexpiretime, "key", kReadOnly | kFast, keys(1).ro().access(), kAclKeyspace,
     Group::kGeneric, "7.0.0", "O(1)",
     "Returns the expiration time of a key as a Unix milliseconds timestamp."},
    {"PTTL",
     pttl,
     "key",
     kReadOnly | kFast,
     keys(1).ro().access(),
     kAclKeyspace,
     Group::kGeneric,
     "2.6.0",
     "O(1)",
     "Returns the expiration time in milliseconds of a key.",
     {.tips = "nondeterministic_output", .history = "2.8.0 Added the -2 reply."}},
    {"TTL",
     ttl,
     "key",
     kReadOnly | kFast,
     keys(1).ro().access(),
     kAclKeyspace,
     Group::kGeneric,
     "1.0.0",
     "O(1)",
     "Returns the expiration time in seconds of a key.",
     {.tips = "nondeterministic_output", .history = "2.8.0 Added the -2 reply."}},
};

}  // namespace

std::span<const CommandRow> expire_rows() {
  return kExpireRows;
}

}  // namespace latchkey::commands
