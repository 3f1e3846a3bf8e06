#include "commands/hashes/hash_fields.h"

namespace latchkey::commands {

using namespace server;
using store::Hash;
using store::KeyRef;

bool read_fields(CommandContext& ctx, ArgReader& reader, Arguments* fields,
                 std::string_view bad_count) {
  if (!reader.word("FIELDS")) {
    ctx.reply.error("ERR Mandatory argument FIELDS is missing or not at the right position");
    return false;
  }
  int64_t count;
  const std::string_view text = reader.more() ? reader.next() : std::string_view();
  if (!ctx.read_int64_in(text, 1, INT64_MAX, &count, bad_count)) return false;
  *fields = reader.rest();
  if (fields->size() == static_cast<uint64_t>(count)) return true;
  ctx.reply.error("ERR The `numfields` parameter must match the number of arguments");
  return false;
}

void expire_fields(CommandContext& ctx, KeyRef& ref, Arguments fields) {
  Hash& hash = value_of<Hash>(ref);
  if (!hash.has_due()) return;
  ctx.db.will_change(ref);
  size_t expired = 0;
  for (const std::string_view field : fields) expired += hash.expire(field) ? 1 : 0;
  if (expired > 0) ctx.db.elements_expired(ref);
}

Hash* hash_to_write(CommandContext& ctx, KeyRef& ref, const std::string_view& field) {
  if (!ctx.is_type(ref, Hash::kType)) return nullptr;
  if (ref) expire_fields(ctx, ref, {&field, 1});
  return value_or_new<Hash>(ctx, ref, ctx.db.environment());
}

void tell_fields_that_are_asked_for(CommandContext& ctx, std::string_view event, Arguments pairs) {
  ChangedFields fields(ctx);
  for (size_t i = 0; i < pairs.size(); i += 2) fields.add(pairs[i]);
  fields.tell(ctx, event);
}

void fields_deleted(CommandContext& ctx, KeyRef& ref, uint64_t count, const ChangedFields& fields) {
  if (count == 0) return;
  ctx.changed(ctx.args[1], EventClass::kHash, "hdel");
  fields.tell(ctx, "hdel");
  ctx.events.count(count - 1);
  if (!erase_if_empty<Hash>(ctx, ref, ctx.args[1])) index_deadlines(ctx, ref, value_of<Hash>(ref));
}

void reply_nulls(CommandContext& ctx, size_t count) {
  for (; count > 0; --count) ctx.reply.null();
}

void reply_text_or_null(CommandContext& ctx, const std::optional<std::string_view>& text) {
  if (text) {
    ctx.reply.bulk(*text);
  } else {
    ctx.reply.null();
  }
}

}  // namespace latchkey::commands
