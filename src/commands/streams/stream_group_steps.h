// Steps that the commands on consumer groups share.
#pragma once

#include <string>
#include <string_view>

#include "base/text/up_to_nul.h"
#include "commands/keys/typed_key.h"
#include "commands/streams/stream_steps.h"
#include "server/client/blocking.h"
#include "server/command/command_context.h"
#include "server/server.h"
#include "store/value/stream.h"

namespace latchkey::commands {

// Replies with the error for a group that does not exist, or whose key does not exist.
inline void no_such_group(server::CommandContext& ctx, std::string_view key, std::string_view group,
                          std::string_view where = {}) {
  std::string error = "NOGROUP No such key '";
  // As the reference's, names end at a NUL.
  error.append(base::up_to_nul(key))
      .append("' or consumer group '")
      .append(base::up_to_nul(group))
      .append("'")
      .append(where);
  ctx.reply.error(error);
}

// As no_such_group(), when the key exists.
inline void no_such_group_of(server::CommandContext& ctx, std::string_view key,
                             std::string_view group) {
  std::string error = "NOGROUP No such consumer group '";
  error.append(base::up_to_nul(group))
      .append("' for key name '")
      .append(base::up_to_nul(key))
      .append("'");
  ctx.reply.error(error);
}

struct GroupAtKey {
  store::Stream* stream = nullptr;
  store::StreamGroup* group = nullptr;
  explicit operator bool() const { return group != nullptr; }
};

// The group of that name at `ref`; empty, with the error sent, when there is none.
inline GroupAtKey group_at(server::CommandContext& ctx, const store::KeyRef& ref,
                           std::string_view key, std::string_view name) {
  store::Stream* stream = value_at<store::Stream>(ctx, ref);
  if (ref && stream == nullptr) return {};
  store::StreamGroup* group = stream == nullptr ? nullptr : stream->find_group(name);
  if (group == nullptr) no_such_group(ctx, key, name);
  return {stream, group};
}

// The group's consumer of that name, created if there is none; updates its seen_ms.
inline store::StreamConsumer& consumer_or_new(server::CommandContext& ctx, std::string_view key,
                                              store::StreamGroup& group, std::string_view name) {
  store::StreamConsumer* consumer = group.find_consumer(name);
  if (consumer == nullptr) {
    consumer = &group.add_consumer(name, ctx.now_ms());
    ctx.changed(key, server::EventClass::kStream, "xgroup-createconsumer");
  }
  consumer->seen_ms = ctx.now_ms();
  return *consumer;
}

// Milliseconds since the entry was delivered to its owner; -1 without one.
inline int64_t idle_time_ms(const server::CommandContext& ctx, const store::StreamGroup& group,
                            const store::PendingEntry& entry) {
  return group.is_released(entry) ? -1 : ctx.now_ms() - entry.delivered_ms();
}

// Runs the requests of clients that wait with CLAIM again if an entry was delivered earlier than
// those they know of. To be called after deliveries. There is no keyspace event, because the key
// has not changed.
inline void report_deliveries(server::CommandContext& ctx, std::string_view key,
                              store::StreamGroup& group) {
  if (group.take_awaited_delivery())
    ctx.server.blocking().key_changed(ctx.db, key, server::EventClass::kStream, "");
}

// --- Propagation --------------------------------------------------------------------------------

// Propagates the state of a pending entry: its consumer, delivery time and number of deliveries.
// Replicas take `last_delivered` for how far the group has read, unless they know of more. An entry
// that was released is about to go, with the entry that it refers to.
inline void propagate_pending(server::CommandContext& ctx, std::string_view key,
                              const store::StreamGroup& group, std::string_view group_name,
                              const store::PendingEntry& entry, store::StreamId last_delivered) {
  if (!ctx.propagation.wanted()) return;
  if (group.is_released(entry))
    return ctx.propagate({"XACK", key, group_name, stream_id_text(entry.id)});
  ctx.propagate({"XCLAIM", key, group_name, entry.consumer().name, "0", stream_id_text(entry.id),
                 "TIME", entry.delivered_ms(), "RETRYCOUNT", entry.deliveries, "FORCE", "JUSTID",
                 "LASTID", stream_id_text(last_delivered)});
}

inline void propagate_pending(server::CommandContext& ctx, std::string_view key,
                              const store::StreamGroup& group, std::string_view group_name,
                              const store::PendingEntry& entry) {
  propagate_pending(ctx, key, group, group_name, entry, group.last_delivered);
}

// Propagates how far the group has read.
inline void propagate_place(server::CommandContext& ctx, std::string_view key,
                            const store::StreamGroup& group, std::string_view group_name) {
  if (!ctx.propagation.wanted()) return;
  ctx.propagate({"XGROUP", "SETID", key, group_name, stream_id_text(group.last_delivered),
                 "ENTRIESREAD", group.entries_read});
}

}  // namespace latchkey::commands
