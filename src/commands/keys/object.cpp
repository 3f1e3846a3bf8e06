// OBJECT: the encoding and the access statistics of a value.
#include "commands/groups.h"
#include "server/command/command_context.h"
#include "server/command/help.h"
#include "server/server.h"
#include "store/value/hash.h"
#include "store/value/view.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::Keyspace;

namespace {

// Finds the command's key without marking it as used. Sends a null when there is none. It counts as
// a hit or a miss, but no miss is notified.
KeyRef find_object(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[2], Keyspace::kPeek);
  store::Environment& environment = ctx.db.environment();
  ++(ref ? environment.figures.hits : environment.figures.misses);
  if (!ref) ctx.reply.null();
  return ref;
}

// Before Redis 7.2 there were no lists but quicklists.
std::string_view encoding_shown(const store::Entry& entry, const Edition& edition) {
  // Valkey's hashes with deadlines are tables, whatever their size.
  if (entry.type() == store::Type::kHash && edition.is_valkey()) {
    const store::View<store::Hash> hash(entry);
    if (hash->first_deadline_ms() != store::Hash::kNoDeadline) return "hashtable";
    return entry.encoding_name().starts_with("listpack") ? "listpack" : entry.encoding_name();
  }
  const bool is_list = entry.type() == store::Type::kList;
  return is_list && !edition.has({7, 2}) ? "quicklist" : entry.encoding_name();
}

void object_encoding(CommandContext& ctx) {
  const KeyRef ref = find_object(ctx);
  if (ref) ctx.reply.bulk(encoding_shown(*ref, ctx.server.edition()));
}

void object_freq(CommandContext& ctx) {
  const KeyRef ref = find_object(ctx);
  if (!ref) return;
  const store::Environment& environment = ctx.db.environment();
  if (!environment.use_lfu) {
    return ctx.reply.error(
        "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note "
        "that when switching between "
        "policies at runtime LRU and LFU data will take some time to adjust.");
  }
  ctx.reply.integer(store::lfu_counter(environment, ref->access()));
}

void object_idletime(CommandContext& ctx) {
  const KeyRef ref = find_object(ctx);
  if (!ref) return;
  const store::Environment& environment = ctx.db.environment();
  if (environment.use_lfu) {
    return ctx.reply.error(
        "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when "
        "switching between policies at "
        "runtime LRU and LFU data will take some time to adjust.");
  }
  ctx.reply.integer(store::idle_seconds(environment, ref->access()));
}

// Values are never shared here, nor in Redis 8.6 and Valkey 8.1. Older releases share one object
// for each integer below 10,000, unless the eviction policy needs the access field of each key, and
// show these objects with a reference count of INT32_MAX.
bool is_shared_integer(CommandContext& ctx, const store::Entry& entry) {
  constexpr int64_t kSharedIntegers = 10'000;
  if (ctx.server.edition().has({8, 6}, {8, 1}) || !entry.is_string() || !entry.is_integer())
    return false;
  if (entry.integer() < 0 || entry.integer() >= kSharedIntegers) return false;
  const ConfigValues& settings = ctx.server.settings();
  const bool needs_access = settings.maxmemory_policy != MaxmemoryPolicy::kVolatileRandom &&
                            settings.maxmemory_policy != MaxmemoryPolicy::kVolatileTtl &&
                            settings.maxmemory_policy != MaxmemoryPolicy::kAllkeysRandom &&
                            settings.maxmemory_policy != MaxmemoryPolicy::kNoeviction;
  return settings.maxmemory == 0 || !needs_access;
}

void object_refcount(CommandContext& ctx) {
  const KeyRef ref = find_object(ctx);
  if (!ref) return;
  ctx.reply.integer(is_shared_integer(ctx, *ref) ? INT32_MAX : 1);
}

void object_help(CommandContext& ctx) {
  reply_help(ctx, {
                      "ENCODING <key>",
                      "    Name the form in which the value is kept.",
                      "FREQ <key>",
                      "    Tell how often the key is used, on a logarithmic scale.",
                      "IDLETIME <key>",
                      "    Tell for how many seconds the key has not been used.",
                      "REFCOUNT <key>",
                      "    Count the references to the value.",
                  });
}

constexpr CommandRow kObjectSubcommands[] = {
    {"ENCODING",
     object_encoding,
     "key",
     kReadOnly,
     keys(2).ro(),
     kAclKeyspace,
     Group::kGeneric,
     "2.2.3",
     "O(1)",
     "Returns the internal encoding of a Redis object.",
     {.tips = "nondeterministic_output"}},
    {"FREQ",
     object_freq,
     "key",
     kReadOnly,
     keys(2).ro(),
     kAclKeyspace,
     Group::kGeneric,
     "4.0.0",
     "O(1)",
     "Returns the logarithmic access frequency counter of a Redis object.",
     {.tips = "nondeterministic_output"}},
    help_row(object_help, kAclKeyspace, Group::kGeneric, "6.2.0"),
    {"IDLETIME",
     object_idletime,
     "key",
     kReadOnly,
     keys(2).ro(),
     kAclKeyspace,
     Group::kGeneric,
     "2.2.3",
     "O(1)",
     "Returns the time since the last access to a Redis object.",
     {.tips = "nondeterministic_output"}},
    {"REFCOUNT",
     object_refcount,
     "key",
     kReadOnly,
     keys(2).ro(),
     kAclKeyspace,
     Group::kGeneric,
     "2.2.3",
     "O(1)",
     "Returns the reference count of a value of a key.",
     {.tips = "nondeterministic_output"}},
};

constexpr CommandRow kObjectRows[] = {
    {"OBJECT",
     nullptr,
     "",
     0,
     {},
     0,
     Group::kGeneric,
     "2.2.3",
     "Depends on subcommand.",
     "A container for object introspection commands.",
     {.subcommands = kObjectSubcommands}},
};

}  // namespace

std::span<const CommandRow> object_rows() {
  return kObjectRows;
}

}  // namespace latchkey::commands
