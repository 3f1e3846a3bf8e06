// The last step of commands that store their result: SINTERSTORE, ZRANGESTORE and similar ones.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "server/command/command_context.h"
#include "server/server.h"
#include "store/keyspace.h"

namespace latchkey::commands {

// Sets `key` to a collection, or removes the key when the collection is empty or null. Sends the
// event, and replies with the collection's size.
template <typename V>
void store_result(server::CommandContext& ctx, std::string_view key, std::unique_ptr<V> result,
                  server::EventClass event_class, std::string_view event) {
  const size_t size = result != nullptr ? result->size() : 0;
  store::KeyRef ref = ctx.db.find_to_replace(key);
  if (size > 0) {
    ctx.db.set_value(ref, V::kType, std::move(result));
    ctx.changed(key, event_class, event);
  } else if (ref) {
    ctx.db.erase(ref, ctx.server.settings().lazyfree_lazy_server_del);
    ctx.removed(key);
  }
  ctx.reply.integer(static_cast<int64_t>(size));
}

}  // namespace latchkey::commands
