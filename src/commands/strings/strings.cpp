// Single strings: GET, SET and related commands.
#include <string_view>
#include <vector>

#include "commands/groups.h"
#include "commands/keys/expiration.h"
#include "commands/strings/value_condition.h"
#include "server/command/command_context.h"
#include "server/command/lock_claims.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::Keyspace;

namespace {

void reply_value_or_null(CommandContext& ctx, const KeyRef& ref) {
  if (ref) {
    reply_string(ctx.reply, *ref);
  } else {
    ctx.reply.null();
  }
}

// Stores args[1] = `value` and sends the events.
void put(CommandContext& ctx, KeyRef& ref, std::string_view value,
         int64_t deadline_ms = Keyspace::kNoDeadline) {
  if (base::Blob* blob = ctx.take_argument(value)) [[unlikely]] {
    ctx.db.set_blob(ref, blob, deadline_ms);
  } else {
    ctx.db.set_string(ref, value, deadline_ms);
  }
  ctx.changed(ctx.args[1], EventClass::kString, "set");
  if (deadline_ms >= 0) ctx.events.happened(ctx.db, ctx.args[1], EventClass::kGeneric, "expire");
}

void get(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ref) return ctx.reply.null();
  if (!ctx.is_string(ref)) return;
  reply_string(ctx.reply, *ref);
}

// --- SET ----------------------------------------------------------------------------------------

class SetOptions {
 public:
  // False when the options are invalid. A condition on the value may be followed by NX or XX,
  // except in Valkey; then both must hold. Two conditions on the value are refused, where the
  // reference forgets the first of two of a kind: nobody means that.
  bool read(ArgReader options, const Edition& edition) {
    while (options.more()) {
      if (!conditional() && value_condition.read(options)) continue;
      const bool may_add = !value_condition.given() || !edition.is_valkey();
      if (may_add && may_be(Existence::kAbsent) && options.word("NX")) {
        existence_ = Existence::kAbsent;
      } else if (may_add && may_be(Existence::kPresent) && options.word("XX")) {
        existence_ = Existence::kPresent;
      } else if (options.word("GET")) {
        get = true;
      } else if (!expiration.read(options)) {
        return false;
      }
    }
    return true;
  }

  // Whether the conditions allow the value at `ref` to be replaced. False, with the error sent,
  // when they cannot be checked.
  bool check(CommandContext& ctx, const KeyRef& ref, bool* holds) const {
    *holds = existence_ == Existence::kAny ||
             (existence_ == Existence::kPresent) == static_cast<bool>(ref);
    if (!*holds || !value_condition.given()) return true;
    if (ref) return ctx.is_string(ref) && value_condition.check(ctx, *ref, holds);
    *holds = value_condition.holds_without_key();
    return true;
  }

  // Whether these are options by which locks are taken.
  bool takes_locks() const { return existence_ == Existence::kAbsent || value_condition.given(); }
  LockRecipe recipe() const {
    return value_condition.given() ? LockRecipe::kSetIf : LockRecipe::kSetNx;
  }

  bool get = false;
  ExpirationOption expiration{ExpirationOption::kMayKeep};
  ValueCondition value_condition;

 private:
  enum class Existence : uint8_t { kAny, kAbsent, kPresent };

  bool conditional() const { return existence_ != Existence::kAny || value_condition.given(); }
  bool may_be(Existence existence) const {
    return existence_ == Existence::kAny || existence_ == existence;
  }

  Existence existence_ = Existence::kAny;
};

// Propagates SET with a Unix time instead of a relative one, and without GET.
void propagate_set(CommandContext& ctx, const SetOptions& options, int64_t deadline_ms) {
  // Before Redis 7.2 what named the deadline was propagated in the same form as all others.
  const bool may_stay = ctx.server.edition().has({7, 2});
  if (!ctx.propagation.wanted() || (options.expiration.names_deadline() && may_stay)) return;
  if (deadline_ms >= 0)
    return ctx.propagate({"SET", ctx.args[1], ctx.args[2], "PXAT", deadline_ms});
  if (!options.get) return;
  std::vector<std::string_view> options_left;
  for (ArgReader reader(ctx.args, 3); reader.more();) {
    if (!reader.word("GET")) options_left.push_back(reader.next());
  }
  ctx.propagate({ctx.args[0], ctx.args[1], ctx.args[2]}, options_left);
}

// The key is there, and perhaps a lock.
void note_attempt(CommandContext& ctx, const SetOptions& options, const KeyRef& ref, bool holds,
                  LockClaims& claims) {
  if (holds) return options.takes_locks() ? claims.compared(ref) : claims.exchanged(ref);
  if (options.recipe() == LockRecipe::kSetNx) claims.refused(ctx, ref, ctx.args[2]);
}

void set_with_options(CommandContext& ctx) {
  SetOptions options;
  if (!options.read(ArgReader(ctx.args, 3), ctx.server.edition())) return ctx.syntax_error();
  int64_t deadline_ms;
  if (!options.expiration.resolve(ctx, &deadline_ms)) return;

  // With GET the command reads, so it counts as a hit or a miss.
  KeyRef ref =
      ctx.db.find_to_replace(ctx.args[1], options.get ? Keyspace::kTouch : Keyspace::kNoStats);
  if (options.get && !ctx.is_string(ref)) return;
  bool holds;
  if (!options.check(ctx, ref, &holds)) return;

  if (options.get) reply_value_or_null(ctx, ref);
  LockClaims* const claims =
      options.takes_locks() || options.get ? ctx.server.lock_claims() : nullptr;
  const auto was_there = static_cast<bool>(ref);
  if (claims != nullptr && was_there) note_attempt(ctx, options, ref, holds, *claims);
  // Valkey makes no key whose time has passed, and removes the one that is there.
  const bool comes_too_late = ctx.server.edition().is_valkey() &&
                              options.expiration.names_unix_time() &&
                              deletes_at_once(ctx, deadline_ms);
  if (holds && comes_too_late) {
    ref ? remove_at_once(ctx, ref, ctx.args[1]) : ctx.propagate_nothing();
  } else if (holds) {
    put(ctx, ref, ctx.args[2], deadline_ms);
    propagate_set(ctx, options, deadline_ms);
  }
  const bool was_made = ref && !was_there;
  if (was_made && claims != nullptr && options.takes_locks()) {
    claims->taken(ctx, ref, options.recipe());
  } else if (was_made && claims == nullptr && deadline_ms >= 0 && ctx.client.has(kClientScript) &&
             ctx.server.lock_claims() != nullptr) {
    ctx.server.lock_claims()->made_by_script(ctx, ref);
  }
  if (options.get) return;
  if (holds) {
    ctx.reply.ok();
  } else {
    ctx.reply.null();
  }
}

void set(CommandContext& ctx) {
  if (ctx.args.size() > 3) return set_with_options(ctx);
  KeyRef ref = ctx.db.find_to_replace(ctx.args[1]);
  put(ctx, ref, ctx.args[2]);
  ctx.reply.ok();
}

// --- Variants of SET and GET --------------------------------------------------------------------

void setnx(CommandContext& ctx) {
  KeyRef ref = ctx.db.find_to_replace(ctx.args[1]);
  LockClaims* const claims = ctx.server.lock_claims();
  if (ref) {
    if (claims != nullptr) claims->refused(ctx, ref, ctx.args[2]);
    return ctx.reply.integer(0);
  }
  put(ctx, ref, ctx.args[2]);
  if (claims != nullptr) claims->taken(ctx, ref, LockRecipe::kSetnx);
  ctx.reply.integer(1);
}

void set_with_time(CommandContext& ctx, TimeUnit unit) {
  int64_t deadline_ms;
  if (!read_deadline(ctx, ctx.args[2], unit, TimeBase::kFromNow, &deadline_ms)) return;
  KeyRef ref = ctx.db.find_to_replace(ctx.args[1]);
  put(ctx, ref, ctx.args[3], deadline_ms);
  ctx.propagate({"SET", ctx.args[1], ctx.args[3], "PXAT", deadline_ms});
  ctx.reply.ok();
}

void setex(CommandContext& ctx) {
  set_with_time(ctx, TimeUnit::kSeconds);
}

void psetex(CommandContext& ctx) {
  set_with_time(ctx, TimeUnit::kMilliseconds);
}

void getset(CommandContext& ctx) {
  KeyRef ref = ctx.db.find_to_replace(ctx.args[1], Keyspace::kTouch);
  if (!ctx.is_string(ref)) return;
  reply_value_or_null(ctx, ref);
  if (ctx.server.lock_claims() != nullptr) ctx.server.lock_claims()->exchanged(ref);
  put(ctx, ref, ctx.args[2]);
  ctx.propagate({"SET", ctx.args[1], ctx.args[2]});
}

void getdel(CommandContext& ctx) {
  KeyRef ref = ctx.db.find_to_replace(ctx.args[1], Keyspace::kTouch);
  if (!ref) return ctx.reply.null();
  if (!ctx.is_string(ref)) return;
  reply_string(ctx.reply, *ref);
  ctx.db.erase(ref);
  ctx.removed(ctx.args[1]);
  ctx.propagate({"DEL", ctx.args[1]});
}

void getex(CommandContext& ctx) {
  ExpirationOption expiration(ExpirationOption::kMayPersist);
  for (ArgReader options(ctx.args, 2); options.more();) {
    if (!expiration.read(options)) return ctx.syntax_error();
  }
  const std::string_view key = ctx.args[1];
  int64_t deadline_ms;
  // Valkey 9.1 looks at the time before it looks for the key.
  const bool time_first = ctx.server.edition().is_valkey_since({9, 1});
  if (time_first && !expiration.resolve(ctx, &deadline_ms)) return;
  KeyRef ref = ctx.db.find_to_replace(key, Keyspace::kTouch);
  if (!ref) return ctx.reply.null();
  if (!ctx.is_string(ref)) return;
  if (!time_first && !expiration.resolve(ctx, &deadline_ms)) return;

  reply_string(ctx.reply, *ref);
  if (expiration.names_unix_time() && deletes_at_once(ctx, deadline_ms)) {
    remove_at_once(ctx, ref, key);
  } else if (deadline_ms >= 0) {
    ctx.db.set_deadline(ref, deadline_ms);
    ctx.changed(key, EventClass::kGeneric, "expire");
    ctx.propagate({"PEXPIREAT", key, deadline_ms});
  } else if (expiration.persists() && ref->has_deadline()) {
    ctx.db.set_deadline(ref, Keyspace::kNoDeadline);
    ctx.changed(key, EventClass::kGeneric, "persist");
    ctx.propagate({"PERSIST", key});
  }
}

// --- Rows ---------------------------------------------------------------------------------------

// Without GET the old value is not read; the compare-and-set conditions do read it.
bool find_set_keys(Arguments words, std::vector<KeyReference>* out) {
  uint32_t flags = kKeyOverwrite | kKeyUpdate;
  for (const std::string_view word : words.subspan(3)) {
    if (is_word(word, "GET")) {
      flags = kKeyReadWrite | kKeyAccess | kKeyUpdate;
    } else if (ValueCondition::is_name(word)) {
      flags = kKeyReadWrite | (flags & kKeyAccess) | kKeyUpdate;
    }
  }
  out->push_back({1, flags});
  return true;
}

constexpr CommandRow kStringRows[] = {
    {"GET", get, "key", kReadOnly | kFast, keys(1).ro().access(), kAclString, Group::kString,
     "1.0.0", "O(1)", "Returns the string value of a key."},
    {"GETDEL", getdel, "key", kWrite | kFast, keys(1).rw().access().remove(), kAclString,
     Group::kString, "6.2.0", "O(1)", "Returns the string value of a key after deleting the key."},
    {"GETEX", getex,
     "key [expiration=EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT "
     "unix-time-milliseconds|PERSIST]",
     kWrite | kFast,
     keys(1).rw().access().update().note("RW and UPDATE because it changes the TTL"), kAclString,
     Group::kString, "6.2.0", "O(1)",
     "Returns the string value of a key after setting its expiration time."},
    {"GETSET",
     getset,
     "key value",
     kWrite | kDenyOom | kFast,
     keys(1).rw().access().update(),
     kAclString,
     Group::kString,
     "1.0.0",
     "O(1)",
     "Returns the previous string value of a key after setting it to a new value.",
     {.deprecated_since = "6.2.0", .replaced_by = "`SET` with the `!GET` argument"}},
    {"PSETEX",
     psetex,
     "key milliseconds value",
     kWrite | kDenyOom,
     keys(1).ow().update(),
     kAclString,
     Group::kString,
     "2.6.0",
     "O(1)",
     "Sets both string value and expiration time in milliseconds of a key. The key is created if "
     "it doesn't exist.",
     {.deprecated_since = "2.6.12", .replaced_by = "`SET` with the `PX` argument"}},
    {"SET",
     set,
     "key value [condition=NX|XX|IFEQ ifeq-value@8.4.0|IFNE ifne-value@8.4.0|IFDEQ "
     "ifdeq-digest:integer@8.4.0|IFDNE ifdne-digest:integer@8.4.0]@2.6.12 [GET]@6.2.0 "
     "[expiration=EX seconds@2.6.12|PX milliseconds@2.6.12|EXAT unix-time-seconds@6.2.0|PXAT "
     "unix-time-milliseconds@6.2.0|KEEPTTL@6.0.0]",
     kWrite | kDenyOom,
     keys(1).rw().access().update().variable_flags().note(
         "RW and ACCESS due to the optional `GET` argument"),
     kAclString,
     Group::kString,
     "1.0.0",
     "O(1)",
     "Sets the string value of a key, ignoring its type. The key is created if it doesn't exist.",
     {.history = "2.6.12 Added the `EX`, `PX`, `NX` and `XX` options.\n6.0.0 Added the `KEEPTTL` "
                 "option.\n6.2.0 Added the `GET`, `EXAT` and `PXAT` option.\n7.0.0 Allowed the "
                 "`NX` and `GET` options to be used together.\n8.4.0 Added 'IFEQ', 'IFNE', "
                 "'IFDEQ', 'IFDNE' options.",
      .find_keys = find_set_keys}},
    {"SETEX",
     setex,
     "key seconds value",
     kWrite | kDenyOom,
     keys(1).ow().update(),
     kAclString,
     Group::kString,
     "2.0.0",
     "O(1)",
     "Sets the string value and expiration time of a key. Creates the key if it doesn't exist.",
     {.deprecated_since = "2.6.12", .replaced_by = "`SET` with the `EX` argument"}},
    {"SETNX",
     setnx,
     "key value",
     kWrite | kDenyOom | kFast,
     keys(1).ow().insert(),
     kAclString,
     Group::kString,
     "1.0.0",
     "O(1)",
     "Set the string value of a key only when the key doesn't exist.",
     {.deprecated_since = "2.6.12", .replaced_by = "`SET` with the `NX` argument"}},
};

}  // namespace

std::span<const CommandRow> string_rows() {
  return kStringRows;
}

}  // namespace latchkey::commands
