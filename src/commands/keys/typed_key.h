// Steps that handlers of all collection types share: the value of a key as its class, made when
// there is none, gone when it is empty.
//
// A value class V says which type it is (`V::kType`, a store::Type), and can be asked for size().
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "server/command/command_context.h"
#include "store/keyspace.h"

namespace latchkey::commands {

template <typename V>
V& value_of(const store::KeyRef& ref) {
  return static_cast<V&>(*ref->value());
}

// The value at `ref`, or null: with a WRONGTYPE error sent when it is of another type, with nothing
// sent when there is no key.
template <typename V>
V* value_at(server::CommandContext& ctx, const store::KeyRef& ref) {
  return ref && ctx.is_type(ref, V::kType) ? &value_of<V>(ref) : nullptr;
}

// The value at `ref`, which is made from `arguments` when there is no key. Null with a WRONGTYPE
// error sent when it is of another type.
template <typename V, typename... Arguments>
V* value_or_new(server::CommandContext& ctx, store::KeyRef& ref, Arguments&&... arguments) {
  if (!ctx.is_type(ref, V::kType)) return nullptr;
  if (!ref)
    ctx.db.set_value(ref, V::kType, std::make_unique<V>(std::forward<Arguments>(arguments)...));
  return &value_of<V>(ref);
}

// Removes the key `key` at `ref` if its value has become empty, and says so to those who listen: to
// be called after the change itself has been told. True when the key is gone.
template <typename V>
bool erase_if_empty(server::CommandContext& ctx, store::KeyRef& ref, std::string_view key) {
  if (value_of<V>(ref).size() != 0) return false;
  ctx.db.erase(ref);
  // What emptied it has been counted.
  ctx.events.happened(ctx.db, key, server::EventClass::kGeneric, "del");
  return true;
}

}  // namespace latchkey::commands
