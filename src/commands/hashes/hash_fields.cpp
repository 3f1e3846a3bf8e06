#include "commands/hashes/hash_fields.h"

#include "commands/keys/typed_key.h"
#include "server/command/command.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;
using store::Hash;
using store::KeyRef;

namespace {

// As read_fields(), in a dialect without named errors. HTTL and its variants refuse a wrong number
// as any wrong syntax.
bool read_fields_plainly(CommandContext& ctx, ArgReader& reader, Arguments* fields) {
  if (!reader.word("FIELDS") || !reader.more()) {
    ctx.syntax_error();
    return false;
  }
  int64_t count;
  if (!ctx.read_int64(reader.next(), &count)) return false;
  *fields = reader.rest();
  if (count > 0 && fields->size() == static_cast<uint64_t>(count)) return true;
  const bool only_asks = (ctx.command.flags & kReadOnly) != 0;
  return ctx.refuse(only_asks ? "ERR syntax error" : kBadNumberOfFields);
}

}  // namespace

const HashFieldDialect& dialect_of(const CommandContext& ctx) {
  return HashFieldDialect::of(ctx.server.edition());
}

bool read_fields(CommandContext& ctx, ArgReader& reader, Arguments* fields,
                 std::string_view bad_count) {
  if (!dialect_of(ctx).names_errors) return read_fields_plainly(ctx, reader, fields);
  if (!reader.word("FIELDS"))
    return ctx.refuse("ERR Mandatory argument FIELDS is missing or not at the right position");
  int64_t count;
  const std::string_view text = reader.more() ? reader.next() : std::string_view();
  if (!ctx.read_int64_in(text, 1, INT64_MAX, &count, bad_count)) return false;
  *fields = reader.rest();
  if (fields->size() == static_cast<uint64_t>(count)) return true;
  return ctx.refuse("ERR The `numfields` parameter must match the number of arguments");
}

bool read_fields_of(CommandContext& ctx, const KeyRef& ref, Arguments* fields) {
  constexpr size_t kBehindKey = 2;
  ArgReader reader(ctx.args, kBehindKey);
  if (dialect_of(ctx).checks_key_last)
    return read_fields(ctx, reader, fields) && ctx.is_type(ref, Hash::kType);
  return ctx.is_type(ref, Hash::kType) && read_fields(ctx, reader, fields);
}

void expire_read_fields(CommandContext& ctx, KeyRef& ref, Arguments fields) {
  if (!dialect_of(ctx).leaves_expired_fields) expire_fields(ctx, ref, fields);
}

void expire_fields(CommandContext& ctx, KeyRef& ref, Arguments fields) {
  if (ref->is_packed()) return;  // without deadlines
  Hash& hash = value_of<Hash>(ref);
  if (!hash.has_due()) return;
  ctx.db.will_change(ref);
  size_t expired = 0;
  for (const std::string_view field : fields) expired += hash.expire(field) ? 1 : 0;
  if (expired > 0) ctx.db.elements_expired(ref);
}

Hash* hash_to_write(CommandContext& ctx, KeyRef& ref, const std::string_view& field,
                    bool* has_expired) {
  if (!ctx.is_type(ref, Hash::kType)) return nullptr;
  if (ref && dialect_of(ctx).leaves_expired_fields) {
    const std::string_view pair[] = {field, ""};
    const uint64_t before = ctx.db.environment().figures.expired_elements;
    if (expire_before_set(ctx, ref, pair) > 0) value_of<Hash>(ref).erase(field);
    *has_expired = ctx.db.environment().figures.expired_elements != before;
  } else if (ref) {
    expire_fields(ctx, ref, {&field, 1});
  }
  return value_or_new<Hash>(ctx, ref, ctx.db.environment());
}

void tell_fields_that_are_asked_for(CommandContext& ctx, std::string_view event, Arguments pairs) {
  ChangedFields fields(ctx);
  for (size_t i = 0; i < pairs.size(); i += 2) fields.add(pairs[i]);
  fields.tell(ctx, event);
}

int64_t expire_before_set(CommandContext& ctx, KeyRef& ref, Arguments pairs) {
  Hash& hash = value_of<Hash>(ref);
  if (!hash.has_due()) return 0;
  ctx.db.will_change(ref);
  size_t expired = 0;
  for (size_t i = 0; i < pairs.size(); i += 2) expired += hash.expire(pairs[i]) ? 1 : 0;
  if (expired == 0) return 0;
  const bool was_last = hash.element_count() == 0;
  if (was_last) hash.set(pairs[0], pairs[1], Hash::kNoDeadline);
  // What is propagated overwrites the fields, so that their names are of no use.
  if (!ctx.events.wants_subkeys()) ctx.db.environment().expired_names.clear();
  ctx.db.elements_expired(ref);
  return was_last ? 1 : 0;
}

void fields_deleted(CommandContext& ctx, KeyRef& ref, uint64_t count, const ChangedFields& fields,
                    std::string_view event) {
  if (count == 0) return;
  ctx.changed(ctx.args[1], EventClass::kHash, event);
  fields.tell(ctx, event);
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
