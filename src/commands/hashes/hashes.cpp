// Hashes: HSET, HGET and related commands.

#include "commands/groups.h"
#include "commands/hashes/hash_fields.h"
#include "commands/keys/collection_scan.h"
#include "commands/keys/typed_key.h"
#include "server/client/output_limits.h"
#include "store/value/hash.h"

namespace latchkey::commands {

using namespace server;
using store::Hash;
using store::KeyRef;
using store::View;

namespace {

// The hash at the command's key. Removes those of `fields` that are past their deadline; the caller
// is about to read them. Null with the reply sent: by `missing` when there is no key, a WRONGTYPE
// error when it holds another type.
template <typename Missing>
View<Hash> hash_or(CommandContext& ctx, Arguments fields, Missing&& missing) {
  KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ctx.is_type(ref, Hash::kType)) return {};
  if (ref) expire_read_fields(ctx, ref, fields);
  if (ref) return view_of<Hash>(ref);
  missing();
  return {};
}

// For commands that do not read single fields.
template <typename Missing>
View<Hash> hash_or(CommandContext& ctx, Missing&& missing) {
  return hash_or(ctx, {}, missing);
}

// --- Writing ------------------------------------------------------------------------------------

// Sets the pairs of the request. False, with an error sent, when they are invalid.
bool set_pairs(CommandContext& ctx, int64_t* created) {
  const Arguments pairs = ctx.args.subspan(2);
  if (pairs.size() % 2 != 0) {
    ctx.wrong_arity();
    return false;
  }
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  Hash* hash = value_or_new<Hash>(ctx, ref, ctx.db.environment());
  if (hash == nullptr) return false;
  // A field that was left although it is past its deadline has expired and counts as a new one.
  *created = dialect_of(ctx).leaves_expired_fields ? expire_before_set(ctx, ref, pairs) : 0;
  hash->expect(pairs.size() / 2);
  for (size_t i = 0; i < pairs.size(); i += 2) *created += hash->set(pairs[i], pairs[i + 1]);
  share_names_of_written(ctx, *hash);
  index_deadlines(ctx, ref, *hash);
  ctx.changed(ctx.args[1], EventClass::kHash, "hset");
  tell_fields_of_pairs(ctx, "hset", pairs);
  ctx.events.count(pairs.size() / 2 - 1);
  return true;
}

void hset(CommandContext& ctx) {
  int64_t created;
  if (set_pairs(ctx, &created)) ctx.reply.integer(created);
}

void hmset(CommandContext& ctx) {
  int64_t created;
  if (set_pairs(ctx, &created)) ctx.reply.ok();
}

void hsetnx(CommandContext& ctx) {
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  bool has_expired = false;
  Hash* hash = hash_to_write(ctx, ref, ctx.args[2], &has_expired);
  if (hash == nullptr) return;
  if (hash->contains(ctx.args[2])) return ctx.reply.integer(0);
  hash->set(ctx.args[2], ctx.args[3]);
  share_names_of_written(ctx, *hash);
  if (has_expired) ctx.propagate({"HSET", ctx.args[1], ctx.args[2], ctx.args[3]});
  ctx.changed(ctx.args[1], EventClass::kHash, "hset");
  tell_fields_of_pairs(ctx, "hset", ctx.args.subspan(2));
  ctx.reply.integer(1);
}

void hdel(CommandContext& ctx) {
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!ref) return ctx.reply.integer(0);
  Hash* hash = value_at<Hash>(ctx, ref);
  if (hash == nullptr) return;
  uint64_t deleted = 0;
  ChangedFields erased(ctx);
  for (const std::string_view field : ctx.args.subspan(2)) {
    if (!hash->erase(field)) continue;
    ++deleted;
    erased.add(field);
  }
  fields_deleted(ctx, ref, deleted, erased);
  ctx.reply.integer(static_cast<int64_t>(deleted));
}

void hgetdel(CommandContext& ctx) {
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  Arguments fields;
  if (!read_fields_of(ctx, ref, &fields)) return;
  if (ref) expire_read_fields(ctx, ref, fields);
  ctx.reply.array(fields.size());
  if (!ref) return reply_nulls(ctx, fields.size());
  Hash& hash = value_of<Hash>(ref);
  char scratch[Hash::kScratch];
  uint64_t deleted = 0;
  ChangedFields erased(ctx);
  for (const std::string_view field : fields) {
    const auto value = hash.get(field, scratch);
    reply_text_or_null(ctx, value);
    if (!value) continue;
    deleted += hash.erase(field);
    erased.add(field);
  }
  if (deleted == 0) return;
  ctx.propagate({"HDEL", ctx.args[1]}, fields);
  fields_deleted(ctx, ref, deleted, erased);
}

// --- Reading ------------------------------------------------------------------------------------

void hget(CommandContext& ctx) {
  const auto hash = hash_or(ctx, ctx.args.subspan(2), [&] { ctx.reply.null(); });
  if (hash == nullptr) return;
  char scratch[Hash::kScratch];
  reply_text_or_null(ctx, hash->get(ctx.args[2], scratch));
}

void hmget(CommandContext& ctx) {
  const Arguments fields = ctx.args.subspan(2);
  const auto hash = hash_or(ctx, fields, [&] {
    ctx.reply.array(fields.size());
    reply_nulls(ctx, fields.size());
  });
  if (hash == nullptr) return;
  ctx.reply.array(fields.size());
  char scratch[Hash::kScratch];
  for (const std::string_view field : fields) {
    const auto value = hash->get(field, scratch);
    reply_text_or_null(ctx, value);
    if (value && reply_is_lost_after(ctx.client, value->size())) return;
  }
}

void hgetall(CommandContext& ctx) {
  const auto hash = hash_or(ctx, [&] { ctx.reply.map(0); });
  if (hash == nullptr) return;
  ctx.reply.map(hash->living());
  hash->for_each([&](std::string_view field, std::string_view value) {
    ctx.reply.bulk(field);
    ctx.reply.bulk(value);
  });
}

void hkeys(CommandContext& ctx) {
  const auto hash = hash_or(ctx, [&] { ctx.reply.empty_array(); });
  if (hash == nullptr) return;
  ctx.reply.array(hash->living());
  hash->for_each([&](std::string_view field, std::string_view) { ctx.reply.bulk(field); });
}

void hvals(CommandContext& ctx) {
  const auto hash = hash_or(ctx, [&] { ctx.reply.empty_array(); });
  if (hash == nullptr) return;
  ctx.reply.array(hash->living());
  hash->for_each([&](std::string_view, std::string_view value) { ctx.reply.bulk(value); });
}

// Counts fields past their deadline that were not removed yet, as the reference does.
void hlen(CommandContext& ctx) {
  const auto hash = hash_or(ctx, [&] { ctx.reply.integer(0); });
  if (hash != nullptr) ctx.reply.integer(static_cast<int64_t>(hash->size()));
}

void hexists(CommandContext& ctx) {
  const auto hash = hash_or(ctx, ctx.args.subspan(2), [&] { ctx.reply.integer(0); });
  if (hash != nullptr) ctx.reply.integer(hash->contains(ctx.args[2]) ? 1 : 0);
}

void hstrlen(CommandContext& ctx) {
  const auto hash = hash_or(ctx, ctx.args.subspan(2), [&] { ctx.reply.integer(0); });
  if (hash == nullptr) return;
  char scratch[Hash::kScratch];
  const auto value = hash->get(ctx.args[2], scratch);
  ctx.reply.integer(value ? static_cast<int64_t>(value->size()) : 0);
}

void hscan(CommandContext& ctx) {
  scan_collection<Hash>(ctx, [](ScannedElements& found, const CollectionScanOptions& options,
                                const Hash&, std::string_view field, std::string_view value) {
    found.add(field);
    if (!options.no_values) found.add(value);
  });
}

// --- Rows ---------------------------------------------------------------------------------------

constexpr CommandRow kHashRows[] = {
    {"HDEL",
     hdel,
     "key field...",
     kWrite | kFast,
     keys(1).rw().remove(),
     kAclHash,
     Group::kHash,
     "2.0.0",
     "O(N) where N is the number of fields to be removed.",
     "Deletes one or more fields and their values from a hash. Deletes the hash if no fields "
     "remain.",
     {.history = "2.4.0 Accepts multiple `field` arguments.", .element = 2}},
    {"HEXISTS",
     hexists,
     "key field",
     kReadOnly | kFast,
     keys(1).ro(),
     kAclHash,
     Group::kHash,
     "2.0.0",
     "O(1)",
     "Determines whether a field exists in a hash.",
     {.element = 2}},
    {"HGET",
     hget,
     "key field",
     kReadOnly | kFast,
     keys(1).ro().access(),
     kAclHash,
     Group::kHash,
     "2.0.0",
     "O(1)",
     "Returns the value of a field in a hash.",
     {.element = 2}},
    {"HGETALL",
     hgetall,
     "key",
     kReadOnly,
     keys(1).ro().access(),
     kAclHash,
     Group::kHash,
     "2.0.0",
     "O(N) where N is the size of the hash.",
     "Returns all fields and values in a hash.",
     {.tips = "nondeterministic_output_order"}},
    {"HGETDEL", hgetdel, "key {FIELDS fields=numfields field...}", kWrite | kFast,
     keys(1).rw().access().remove(), kAclHash, Group::kHash, "8.0.0",
     "O(N) where N is the number of specified fields",
     "Returns the value of a field and deletes it from the hash."},
    {"HKEYS",
     hkeys,
     "key",
     kReadOnly,
     keys(1).ro().access(),
     kAclHash,
     Group::kHash,
     "2.0.0",
     "O(N) where N is the size of the hash.",
     "Returns all fields in a hash.",
     {.tips = "nondeterministic_output_order"}},
    {"HLEN", hlen, "key", kReadOnly | kFast, keys(1).ro(), kAclHash, Group::kHash, "2.0.0", "O(1)",
     "Returns the number of fields in a hash."},
    {"HMGET",
     hmget,
     "key field...",
     kReadOnly | kFast,
     keys(1).ro().access(),
     kAclHash,
     Group::kHash,
     "2.0.0",
     "O(N) where N is the number of fields being requested.",
     "Returns the values of all fields in a hash.",
     {.element = 2}},
    {"HMSET",
     hmset,
     "key {data=field value}...",
     kWrite | kDenyOom | kFast,
     keys(1).rw().update(),
     kAclHash,
     Group::kHash,
     "2.0.0",
     "O(N) where N is the number of fields being set.",
     "Sets the values of multiple fields.",
     {.deprecated_since = "4.0.0",
      .replaced_by = "`HSET` with multiple field-value pairs",
      .element = 2}},
    {"HSCAN",
     hscan,
     "key cursor [MATCH pattern] [COUNT count] [NOVALUES]",
     kReadOnly,
     keys(1).ro().access(),
     kAclHash,
     Group::kHash,
     "2.8.0",
     "O(1) for every call. O(N) for a complete iteration, including enough command calls for the "
     "cursor to return back to 0. N is the number of elements inside the collection.",
     "Iterates over fields and values of a hash.",
     {.tips = "nondeterministic_output"}},
    {"HSET",
     hset,
     "key {data=field value}...",
     kWrite | kDenyOom | kFast,
     keys(1).rw().update(),
     kAclHash,
     Group::kHash,
     "2.0.0",
     "O(1) for each field/value pair added, so O(N) to add N field/value pairs when the command is "
     "called with multiple field/value pairs.",
     "Creates or modifies the value of a field in a hash.",
     {.history = "4.0.0 Accepts multiple `field` and `value` arguments.", .element = 2}},
    {"HSETNX",
     hsetnx,
     "key field value",
     kWrite | kDenyOom | kFast,
     keys(1).rw().insert(),
     kAclHash,
     Group::kHash,
     "2.0.0",
     "O(1)",
     "Sets the value of a field in a hash only when the field doesn't exist.",
     {.element = 2}},
    {"HSTRLEN",
     hstrlen,
     "key field",
     kReadOnly | kFast,
     keys(1).ro(),
     kAclHash,
     Group::kHash,
     "3.2.0",
     "O(1)",
     "Returns the length of the value of a field.",
     {.element = 2}},
    {"HVALS",
     hvals,
     "key",
     kReadOnly,
     keys(1).ro().access(),
     kAclHash,
     Group::kHash,
     "2.0.0",
     "O(N) where N is the size of the hash.",
     "Returns all values in a hash.",
     {.tips = "nondeterministic_output_order"}},
};

}  // namespace

std::span<const CommandRow> hash_rows() {
  return kHashRows;
}

}  // namespace latchkey::commands
