// Steps shared by the commands on hash fields: reading FIELDS numfields field ..., and expiring the
// fields that a command uses.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "commands/hashes/hash_field_dialect.h"
#include "server/command/command_context.h"
#include "store/value/hash.h"

namespace latchkey::commands {

// Reads "FIELDS numfields field [field ...]" to the end of the request. On anything else sends the
// error and returns false; the error is `bad_count` when numfields is not a positive number.
bool read_fields(server::CommandContext& ctx, server::ArgReader& reader, server::Arguments* fields,
                 std::string_view bad_count = "ERR Number of fields must be a positive integer");

// The same of a request that has nothing else behind its key, at which `ref` is; false also when
// there is no hash, with the error sent that comes first in the dialect.
bool read_fields_of(server::CommandContext& ctx, const store::KeyRef& ref,
                    server::Arguments* fields);

// The dialect of the release that the server is or emulates.
const HashFieldDialect& dialect_of(const server::CommandContext& ctx);

// The reply without named errors to a number of fields that is not the number of those that follow.
inline constexpr std::string_view kBadNumberOfFields =
    "ERR numfields should be greater than 0 and match the provided number of fields";

// Removes those of `fields` that are past their deadline, and the key if no field is left; `ref` is
// empty then. Handlers must call this on a hash before they write single fields.
void expire_fields(server::CommandContext& ctx, store::KeyRef& ref, server::Arguments fields);
// The same for handlers that read them, unless the dialect leaves them to expiry.
void expire_read_fields(server::CommandContext& ctx, store::KeyRef& ref, server::Arguments fields);

// Sets *has_expired if `field` was past its deadline and the dialect does not delete it by a
// request of its own, so that what is propagated must not depend on the old value.
//
// The hash at `ref` for writing `field`; created when there is none. Removes `field` first if it is
// past its deadline; the caller must set it unless it sends an error for a value that is stored,
// since the hash may have been kept although that was its last field. Null, with a WRONGTYPE error
// sent, when the key holds another type.
store::Hash* hash_to_write(server::CommandContext& ctx, store::KeyRef& ref,
                           const std::string_view& field, bool* has_expired);

// The names of the fields that an event is about, kept only while somebody asks for them
// (KeyspaceEvents::wants_subkeys). They are views and must last.
class ChangedFields {
 public:
  explicit ChangedFields(const server::CommandContext& ctx) : wanted_(ctx.events.wants_subkeys()) {}
  void add(std::string_view field) {
    if (wanted_) [[unlikely]]
      names_.push_back(field);
  }
  // To be called behind the event of the key.
  void tell(server::CommandContext& ctx, std::string_view event) const {
    if (wanted_) [[unlikely]]
      ctx.events.subkeys_changed(ctx.db, ctx.args[1], server::EventClass::kHash, event, names_);
  }

 private:
  bool wanted_;
  std::vector<std::string_view> names_;
};

// As ChangedFields::tell() for all fields of alternating fields and values; costs a test while
// nobody asks.
void tell_fields_that_are_asked_for(server::CommandContext& ctx, std::string_view event,
                                    server::Arguments pairs);
inline void tell_fields_of_pairs(server::CommandContext& ctx, std::string_view event,
                                 server::Arguments pairs) {
  if (ctx.events.wants_subkeys()) [[unlikely]]
    tell_fields_that_are_asked_for(ctx, event, pairs);
}

// Records that a command has deleted these `count` fields of the hash at `ref`, and removes the key
// if no field is left.
void fields_deleted(server::CommandContext& ctx, store::KeyRef& ref, uint64_t count,
                    const ChangedFields& fields, std::string_view event = "hdel");

// Removes the fields of alternating fields and values that are past their deadline, of a hash that
// is about to get the pairs, so that it stays although the last field has expired. Returns how many
// of the pairs it has set already, for that: 0 or 1.
int64_t expire_before_set(server::CommandContext& ctx, store::KeyRef& ref, server::Arguments pairs);

// Elements of a reply: `count` nulls; a bulk string, or null if `text` is empty.
void reply_nulls(server::CommandContext& ctx, size_t count);
void reply_text_or_null(server::CommandContext& ctx, const std::optional<std::string_view>& text);

// Handlers must call this after they have set fields without deadlines: the hash leaves the names
// of its fields to a list that others share, if the settings say so for its size.
inline void share_names_of_written(server::CommandContext& ctx, store::Hash& hash) {
  const store::ValueLimits& limits = ctx.db.environment().limits;
  if (limits.hash_min_template_entries != 0) [[unlikely]]
    hash.share_names_if_within(limits.hash_min_template_entries, limits.hash_max_template_entries);
}

// Handlers must call this after they may have set, changed or removed deadlines of a hash.
inline void index_deadlines(server::CommandContext& ctx, const store::KeyRef& ref,
                            const store::Hash& hash) {
  if (hash.is_prepared()) ctx.db.index_elements(ref);
}

}  // namespace latchkey::commands
