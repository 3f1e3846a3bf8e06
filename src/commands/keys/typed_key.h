// Steps that handlers of all collection types share: getting the value of a key as its class, to be
// read or to be changed, creating it when there is none, and removing it when it is empty.
//
// A value class V has `V::kType`, a store::Type, and size().
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "server/command/command_context.h"
#include "store/keyspace.h"
#include "store/value/view.h"

namespace latchkey::commands {

// A collection to be read, of a key that is there and has its type.
template <typename V>
store::View<V> view_of(const store::KeyRef& ref) {
  return store::View<V>(*ref);
}

// A collection to be read; none, with a WRONGTYPE error sent, when the key has another type, and
// none without a reply when there is no key.
template <typename V>
store::View<V> view_at(server::CommandContext& ctx, const store::KeyRef& ref) {
  return ref && ctx.is_type(ref, V::kType) ? view_of<V>(ref) : store::View<V>();
}

// A collection to be changed. REQUIRES: `ref` is of find_for_write(), will_change() has been called
// for it, or the value is of a type that is never packed.
template <typename V>
V& value_of(const store::KeyRef& ref) {
  LK_ASSERT(!ref->is_packed());
  return static_cast<V&>(*ref->value());
}

// The same; null as view_at().
template <typename V>
V* value_at(server::CommandContext& ctx, const store::KeyRef& ref) {
  return ref && ctx.is_type(ref, V::kType) ? &value_of<V>(ref) : nullptr;
}

// The value at `ref`, constructed from `arguments` when there is no key. Null, with a WRONGTYPE
// error sent, when it has another type.
template <typename V, typename... Arguments>
V* value_or_new(server::CommandContext& ctx, store::KeyRef& ref, Arguments&&... arguments) {
  if (!ctx.is_type(ref, V::kType)) return nullptr;
  if (!ref)
    ctx.db.set_value(ref, V::kType, std::make_unique<V>(std::forward<Arguments>(arguments)...));
  return &value_of<V>(ref);
}

// Removes the key `key` at `ref` if its value is empty, and sends the "del" event. Callers must
// have sent the event of their own change before. Returns whether the key was removed.
template <typename V>
bool erase_if_empty(server::CommandContext& ctx, store::KeyRef& ref, std::string_view key) {
  if (value_of<V>(ref).size() != 0) return false;
  ctx.db.erase(ref);
  // The command that emptied the value has already counted the change.
  ctx.events.happened(ctx.db, key, server::EventClass::kGeneric, "del");
  return true;
}

}  // namespace latchkey::commands
