// Keys of any type: EXISTS, TYPE, DEL, UNLINK, TOUCH, RENAME, RENAMENX, MOVE, COPY, RANDOMKEY.
#include <optional>
#include <utility>

#include "commands/groups.h"
#include "commands/keys/database_index.h"
#include "server/client/client.h"
#include "server/command/command_context.h"
#include "server/command/lock_claims.h"
#include "server/server.h"
#include "store/time_series/series.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::Keyspace;

namespace {

// --- Asking -------------------------------------------------------------------------------------

int64_t count_existing(CommandContext& ctx, Keyspace::Find how) {
  int64_t count = 0;
  for (const std::string_view key : ctx.args.subspan(1)) count += ctx.db.find(key, how) ? 1 : 0;
  return count;
}

void exists(CommandContext& ctx) {
  ctx.reply.integer(count_existing(ctx, Keyspace::kNoTouch));
}

void touch(CommandContext& ctx) {
  ctx.reply.integer(count_existing(ctx, Keyspace::kTouch));
}

void type(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1], Keyspace::kNoTouch);
  ctx.reply.status(ref ? store::type_name(ref->type()) : "none");
}

void randomkey(CommandContext& ctx) {
  const store::Entry* entry = ctx.db.random_entry();
  if (entry == nullptr) return ctx.reply.null();
  ctx.reply.bulk(entry->key());
}

// --- Removing -----------------------------------------------------------------------------------

// There is no such key any more: it may have been a lock of the client's.
void note_late_delete(CommandContext& ctx, std::string_view key) {
  if (ctx.server.lock_claims() != nullptr) ctx.server.lock_claims()->release_failed(ctx, key);
}

void remove_keys(CommandContext& ctx, bool lazily) {
  int64_t count = 0;
  for (const std::string_view key : ctx.args.subspan(1)) {
    KeyRef ref = ctx.db.find(key, Keyspace::kPeek);
    if (!ref) {
      if (ctx.client.has(kClientTookLock)) note_late_delete(ctx, key);
      continue;
    }
    ctx.db.erase(ref, lazily);
    ctx.removed(key);
    ++count;
  }
  ctx.reply.integer(count);
}

void del(CommandContext& ctx) {
  remove_keys(ctx, ctx.server.settings().lazyfree_lazy_user_del);
}

void unlink(CommandContext& ctx) {
  remove_keys(ctx, true);
}

// --- Moving and copying -------------------------------------------------------------------------

// Inserts `entry` under `key`, which must not exist, with the access field of a new entry.
void put(Keyspace& keyspace, std::string_view key, store::DetachedEntry entry) {
  KeyRef place = keyspace.find(key, Keyspace::kPeek);
  keyspace.attach(place, std::move(entry));
  keyspace.set_access(place, store::initial_access(keyspace.environment()));
}

// Removes `key` if it exists, and sets *replaced to its type. False when it exists and `overwrite`
// is false. Invalidates KeyRefs of the keyspace.
bool make_way(CommandContext& ctx, Keyspace& keyspace, std::string_view key, bool overwrite,
              std::optional<store::Type>* replaced) {
  KeyRef ref = keyspace.find_to_replace(key);
  if (!ref) return true;
  if (!overwrite) return false;
  *replaced = ref->type();
  keyspace.erase(ref, ctx.server.settings().lazyfree_lazy_server_del);
  return true;
}

// Tells that `key` has taken the place of a key, if notifications of that are wanted: others need
// not hear of it.
void tell_replaced(CommandContext& ctx, Keyspace& keyspace, std::string_view key,
                   std::optional<store::Type> replaced) {
  const unsigned wanted = ctx.server.settings().notify_keyspace_events;
  if (!replaced || (wanted & (kNotifyOverwritten | kNotifyTypeChanged)) == 0) return;
  ctx.events.happened(keyspace, key, EventClass::kOverwritten, "overwritten");
  const KeyRef ref = keyspace.find(key, Keyspace::kPeek);
  if (ref && ref->type() != *replaced)
    ctx.events.happened(keyspace, key, EventClass::kTypeChanged, "type_changed");
}

enum class Renamed { kNoSource, kTaken, kSame, kDone };

Renamed rename_key(CommandContext& ctx, bool overwrite) {
  const std::string_view from = ctx.args[1];
  const std::string_view to = ctx.args[2];
  if (!ctx.db.find_to_replace(from)) return Renamed::kNoSource;
  if (from == to) return Renamed::kSame;
  std::optional<store::Type> replaced;
  if (!make_way(ctx, ctx.db, to, overwrite, &replaced)) return Renamed::kTaken;
  KeyRef source = ctx.db.find(from, Keyspace::kPeek);
  put(ctx.db, to, ctx.db.detach(source));
  ctx.changed(from, EventClass::kGeneric, "rename_from");
  ctx.events.happened(ctx.db, to, EventClass::kGeneric, "rename_to");
  tell_replaced(ctx, ctx.db, to, replaced);
  return Renamed::kDone;
}

void rename(CommandContext& ctx) {
  if (rename_key(ctx, true) == Renamed::kNoSource) return ctx.reply.error("ERR no such key");
  ctx.reply.ok();
}

void renamenx(CommandContext& ctx) {
  const Renamed outcome = rename_key(ctx, false);
  if (outcome == Renamed::kNoSource) return ctx.reply.error("ERR no such key");
  ctx.reply.integer(outcome == Renamed::kDone ? 1 : 0);
}

constexpr std::string_view kSamePlace = "ERR source and destination objects are the same";

void move(CommandContext& ctx) {
  const std::string_view key = ctx.args[1];
  if (has_one_database_of_cluster(ctx.server))
    return ctx.reply.error("ERR MOVE is not allowed in cluster mode");
  int index;
  if (!read_database_index(ctx, ctx.args[2], &index)) return;
  if (index == ctx.db.index()) return ctx.reply.error(kSamePlace);
  ctx.server.cluster_audit().count_incompatible();
  Keyspace& target = ctx.server.database(index);
  KeyRef source = ctx.db.find_to_replace(key);
  if (!source || target.find_to_replace(key)) return ctx.reply.integer(0);
  store::DetachedEntry moved = ctx.db.detach(source);
  if (moved->type() == store::Type::kTimeSeries)
    static_cast<store::TimeSeries&>(*moved->value()).forget_links();
  put(target, key, std::move(moved));
  ctx.changed(key, EventClass::kGeneric, "move_from");
  ctx.events.happened(target, key, EventClass::kGeneric, "move_to");
  ctx.reply.integer(1);
}

void copy(CommandContext& ctx) {
  const std::string_view from = ctx.args[1];
  const std::string_view to = ctx.args[2];
  int index = ctx.db.index();
  bool replace = false;
  for (ArgReader options(ctx.args, 3); options.more();) {
    std::string_view text;
    if (options.word("REPLACE")) {
      replace = true;
    } else if (options.word("DB", &text)) {
      if (!read_database_index(ctx, text, &index)) return;
    } else {
      return ctx.syntax_error();
    }
  }
  if (index == ctx.db.index() && from == to) return ctx.reply.error(kSamePlace);
  if (index != ctx.db.index()) ctx.server.cluster_audit().count_incompatible();
  Keyspace& target = ctx.server.database(index);
  std::optional<store::Type> replaced;
  if (!ctx.db.find(from) || !make_way(ctx, target, to, replace, &replaced))
    return ctx.reply.integer(0);
  put(target, to, ctx.db.copy(ctx.db.find(from, Keyspace::kPeek)));
  ctx.events.changed(target, to, EventClass::kGeneric, "copy_to");
  tell_replaced(ctx, target, to, replaced);
  ctx.reply.integer(1);
}

constexpr CommandRow kKeyRows[] = {
    {"COPY",
     copy,
     "source destination [DB destination-db] [REPLACE]",
     kWrite | kDenyOom,
     keys(1).ro().access() + keys(2).ow().update(),
     kAclKeyspace,
     Group::kGeneric,
     "6.2.0",
     "O(N) worst case for collections, where N is the number of nested items. O(1) for string "
     "values.",
     "Copies the value of a key to a new key.",
     {.databases = {.option = true}}},
    {"DEL",
     del,
     "key...",
     kWrite,
     keys(1, -1).rm().remove(),
     kAclKeyspace,
     Group::kGeneric,
     "1.0.0",
     "O(N) where N is the number of keys that will be removed. When a key to remove holds a value "
     "other than a string, the individual complexity for this key is O(M) where M is the number of "
     "elements in the list, set, sorted set or hash. Removing a single key that holds a string "
     "value is O(1).",
     "Deletes one or more keys.",
     {.tips = "request_policy:multi_shard response_policy:agg_sum"}},
    {"EXISTS",
     exists,
     "key...",
     kReadOnly | kFast,
     keys(1, -1).ro(),
     kAclKeyspace,
     Group::kGeneric,
     "1.0.0",
     "O(N) where N is the number of keys to check.",
     "Determines whether one or more keys exist.",
     {.tips = "request_policy:multi_shard response_policy:agg_sum",
      .history = "3.0.3 Accepts multiple `key` arguments."}},
    {"MOVE",
     move,
     "key db",
     kWrite | kFast,
     keys(1).rw().access().update(),
     kAclKeyspace,
     Group::kGeneric,
     "1.0.0",
     "O(1)",
     "Moves a key to another database.",
     {.databases = {.first = 2, .count = 1}}},
    {"RANDOMKEY",
     randomkey,
     "",
     kReadOnly,
     {},
     kAclKeyspace,
     Group::kGeneric,
     "1.0.0",
     "O(1)",
     "Returns a random key name from the database.",
     {.tips = "request_policy:all_shards response_policy:special nondeterministic_output"}},
    {"RENAME", rename, "key newkey", kWrite, keys(1).rw().access().remove() + keys(2).ow().update(),
     kAclKeyspace, Group::kGeneric, "1.0.0", "O(1)",
     "Renames a key and overwrites the destination."},
    {"RENAMENX",
     renamenx,
     "key newkey",
     kWrite | kFast,
     keys(1).rw().access().remove() + keys(2).ow().insert(),
     kAclKeyspace,
     Group::kGeneric,
     "1.0.0",
     "O(1)",
     "Renames a key only when the target key name doesn't exist.",
     {.history = "3.2.0 The command no longer returns an error when source and destination names "
                 "are the same."}},
    {"TOUCH",
     touch,
     "key...",
     kReadOnly | kFast,
     keys(1, -1).ro(),
     kAclKeyspace,
     Group::kGeneric,
     "3.2.1",
     "O(N) where N is the number of keys that will be touched.",
     "Returns the number of existing keys out of those specified after updating the time they were "
     "last accessed.",
     {.tips = "request_policy:multi_shard response_policy:agg_sum"}},
    {"TYPE", type, "key", kReadOnly | kFast, keys(1).ro(), kAclKeyspace, Group::kGeneric, "1.0.0",
     "O(1)", "Determines the type of value stored at a key."},
    {"UNLINK",
     unlink,
     "key...",
     kWrite | kFast,
     keys(1, -1).rm().remove(),
     kAclKeyspace,
     Group::kGeneric,
     "4.0.0",
     "O(1) for each key removed regardless of its size. Then the command does O(N) work in a "
     "different thread in order to reclaim memory, where N is the number of allocations the "
     "deleted objects where composed of.",
     "Asynchronously deletes one or more keys.",
     {.tips = "request_policy:multi_shard response_policy:agg_sum"}},
};

}  // namespace

std::span<const CommandRow> key_rows() {
  return kKeyRows;
}

}  // namespace latchkey::commands
