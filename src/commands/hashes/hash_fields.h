// Steps shared by the commands on hash fields: reading FIELDS numfields field ..., and expiring the
// fields that a command uses.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "commands/keys/typed_key.h"
#include "server/command/command_context.h"
#include "store/value/hash.h"

namespace latchkey::commands {

// Reads "FIELDS numfields field [field ...]" to the end of the request. On anything else sends the
// error and returns false; the error is `bad_count` when numfields is not a positive number.
bool read_fields(server::CommandContext& ctx, server::ArgReader& reader, server::Arguments* fields,
                 std::string_view bad_count = "ERR Number of fields must be a positive integer");

// Removes those of `fields` that are past their deadline, and the key if no field is left; `ref` is
// empty then. Handlers must call this on a hash before they read or write single fields.
void expire_fields(server::CommandContext& ctx, store::KeyRef& ref, server::Arguments fields);

// The hash at `ref` for writing `field`; created when there is none. Removes `field` first if it is
// past its deadline. Null, with a WRONGTYPE error sent, when the key holds another type.
store::Hash* hash_to_write(server::CommandContext& ctx, store::KeyRef& ref,
                           const std::string_view& field);

// Records that a command has deleted `count` fields of the hash at `ref`, and removes the key if no
// field is left.
void fields_deleted(server::CommandContext& ctx, store::KeyRef& ref, uint64_t count);

// Elements of a reply: `count` nulls; a bulk string, or null if `text` is empty.
void reply_nulls(server::CommandContext& ctx, size_t count);
void reply_text_or_null(server::CommandContext& ctx, const std::optional<std::string_view>& text);

// Handlers must call this after they may have set, changed or removed deadlines of a hash.
inline void index_deadlines(server::CommandContext& ctx, const store::KeyRef& ref,
                            const store::Hash& hash) {
  if (hash.is_prepared()) ctx.db.index_elements(ref);
}

}  // namespace latchkey::commands
