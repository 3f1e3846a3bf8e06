// HIMPORT: many hashes with the same fields, whose names are sent once for each connection. It came
// with Redis 8.10 and follows its documentation
// (https://redis.io/docs/latest/commands/himport/).
#include <memory>
#include <span>
#include <vector>

#include "commands/groups.h"
#include "commands/hashes/hash_fields.h"
#include "server/client/client.h"
#include "server/client/fieldsets.h"
#include "server/command/help.h"
#include "store/value/hash.h"

namespace latchkey::commands {

using namespace server;
using store::Hash;
using store::KeyRef;

namespace {

void himport_prepare(CommandContext& ctx) {
  auto& fieldsets = ctx.client.fieldsets;
  if (fieldsets == nullptr) fieldsets = std::make_unique<Fieldsets>();
  if (!fieldsets->prepare(ctx.db.environment(), ctx.args[2], ctx.args.subspan(3)))
    return ctx.reply.error("ERR duplicate field name in fieldset");
  ctx.reply.ok();
}

// What is propagated, as the fieldset is known here alone: the fields and values, after a DEL when
// they take the place of others.
void propagate_import(CommandContext& ctx, const Fieldset& fieldset, bool replaced) {
  const std::string_view key = ctx.args[2];
  const Arguments values = ctx.args.subspan(4);
  std::vector<std::string_view> pairs;
  pairs.reserve(2 * values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    pairs.push_back((*fieldset.names)[i]);
    pairs.push_back(values[fieldset.places[i]]);
  }
  if (replaced) ctx.propagate({"DEL", key});
  ctx.propagate({"HSET", key}, pairs);
}

void himport_set(CommandContext& ctx) {
  const std::string_view key = ctx.args[2];
  const Arguments values = ctx.args.subspan(4);
  const Fieldset* fieldset =
      ctx.client.fieldsets != nullptr ? ctx.client.fieldsets->find(ctx.args[3]) : nullptr;
  if (fieldset == nullptr) return ctx.reply.error("ERR no such fieldset");
  if (values.size() != fieldset->names->size())
    return ctx.reply.error("ERR value count does not match the fieldset");
  KeyRef ref = ctx.db.find_to_replace(key);
  if (!ctx.is_type(ref, Hash::kType)) return;
  const bool replaced = static_cast<bool>(ref);
  auto hash = std::make_unique<Hash>(ctx.db.environment());
  hash->assign(*fieldset->names, fieldset->places, values);
  ctx.db.set_value(ref, Hash::kType, std::move(hash));
  propagate_import(ctx, *fieldset, replaced);
  ctx.changed(key, EventClass::kHash, "hset");
  if (ctx.events.wants_subkeys())
    ctx.events.subkeys_changed(ctx.db, key, EventClass::kHash, "hset", fieldset->names->all());
  if (replaced) ctx.events.happened(ctx.db, key, EventClass::kOverwritten, "overwritten");
  ctx.reply.ok();
}

void himport_discard(CommandContext& ctx) {
  const bool discarded =
      ctx.client.fieldsets != nullptr && ctx.client.fieldsets->discard(ctx.args[2]);
  ctx.reply.integer(discarded ? 1 : 0);
}

void himport_discardall(CommandContext& ctx) {
  const size_t discarded = ctx.client.fieldsets != nullptr ? ctx.client.fieldsets->size() : 0;
  ctx.client.fieldsets.reset();
  ctx.reply.integer(static_cast<int64_t>(discarded));
}

void himport_help(CommandContext& ctx) {
  reply_help(ctx,
             {
                 "DISCARD <fieldset-name>",
                 "    Forget the fieldset; the reply is 1, or 0 if there is none of that name.",
                 "DISCARDALL",
                 "    Forget all fieldsets of this connection, and return their number.",
                 "PREPARE <fieldset-name> <field> [<field> ...]",
                 "    Give this connection a fieldset: names of fields, which are sent once.",
                 "SET <key> <fieldset-name> <value> [<value> ...]",
                 "    Make the key a hash of the fieldset's fields, with values in their order.",
             });
}

constexpr CommandRow kImportSubcommands[] = {
    {"DISCARD",
     himport_discard,
     "fieldset-name",
     0,
     {},
     kAclHash,
     Group::kHash,
     "8.10.0",
     "O(N) where N is the number of session-local fieldsets.",
     "Removes a single session-local fieldset by name.",
     {.tips = "request_policy:all_shards"}},
    {"DISCARDALL",
     himport_discardall,
     "",
     0,
     {},
     kAclHash,
     Group::kHash,
     "8.10.0",
     "O(N) where N is the number of session-local fieldsets.",
     "Removes all session-local fieldsets for the connection.",
     {.tips = "request_policy:all_shards"}},
    help_row(himport_help, kAclHash, Group::kHash, "8.10.0"),
    {"PREPARE",
     himport_prepare,
     "fieldset-name field...",
     kDenyOom,
     {},
     kAclHash,
     Group::kHash,
     "8.10.0",
     "O(N*log(N)) where N is the number of fields.",
     "Defines a session-local fieldset that maps a name to a sorted set of field names.",
     {.tips = "request_policy:all_shards"}},
    {"SET", himport_set, "key fieldset-name value...", kWrite | kDenyOom, keys(2).ow().update(),
     kAclHash, Group::kHash, "8.10.0", "O(N) where N is the number of fields in the fieldset.",
     "Creates a fieldset-based hash from values supplied in the order matching a previously "
     "prepared fieldset."},
};

constexpr CommandRow kImportRows[] = {
    {"HIMPORT",
     nullptr,
     "",
     0,
     {},
     kAclHash,
     Group::kHash,
     "8.10.0",
     "Depends on subcommand.",
     "A container for session-based hash import commands using fieldsets.",
     {.subcommands = kImportSubcommands}},
};

}  // namespace

std::span<const CommandRow> hash_import_rows() {
  return kImportRows;
}

}  // namespace latchkey::commands
