// Steps that the commands about fields of a hash share: the words FIELDS numfields field ..., and
// the expiry of the fields they come by.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "commands/keys/typed_key.h"
#include "server/command/command_context.h"
#include "store/value/hash.h"

namespace latchkey::commands {

// Reads "FIELDS numfields field [field ...]" to the end of the request. False, with the error sent,
// when that is not what stands there; `bad_count` when the number is not one above zero.
bool read_fields(server::CommandContext& ctx, server::ArgReader& reader, server::Arguments* fields,
                 std::string_view bad_count = "ERR Number of fields must be a positive integer");

// Removes those of `fields` that are past their deadline, and the key with the last one; `ref` is
// empty then. To be called with a hash, before it is read or written field by field.
void expire_fields(server::CommandContext& ctx, store::KeyRef& ref, server::Arguments fields);

// The hash at `ref`, to write that field of; made when there is none. A field past its deadline has
// been removed. Null, with a WRONGTYPE error sent, when the key holds another type.
store::Hash* hash_to_write(server::CommandContext& ctx, store::KeyRef& ref,
                           const std::string_view& field);

// Tells that a command has deleted `count` fields of the hash at `ref`, and removes the key if none
// is left.
void fields_deleted(server::CommandContext& ctx, store::KeyRef& ref, uint64_t count);

// Elements of a reply: `count` nulls; a bulk string, or null.
void reply_nulls(server::CommandContext& ctx, size_t count);
void reply_text_or_null(server::CommandContext& ctx, const std::optional<std::string_view>& text);

// To be called after deadlines of a hash may have been set, changed or dropped.
inline void index_deadlines(server::CommandContext& ctx, const store::KeyRef& ref,
                            const store::Hash& hash) {
  if (hash.is_prepared()) ctx.db.index_elements(ref);
}

}  // namespace latchkey::commands
