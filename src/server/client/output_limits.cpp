#include "server/client/output_limits.h"

#include <algorithm>

#include "base/time_units.h"
#include "server/client/client.h"
#include "server/client/client_info.h"
#include "server/client/node_link.h"
#include "server/client/replica_link.h"
#include "server/command/dispatcher.h"
#include "server/server.h"

namespace latchkey::server {

namespace {

// Pending output within the first buffer never exceeds a limit.
constexpr size_t kFirstBuffer = base::BufferPool::kBufferSize;
constexpr size_t kMaxUnauthenticated = kFirstBuffer + 1024;

// Replicas, and nodes to which slots are being migrated.
bool follows_stream(const Client& client) {
  return client.has(kClientReplica) || (client.node != nullptr && client.node->gets_stream());
}

const ClientBufferLimit& limit_of(const Client& client) {
  auto which = client.has(kClientSubscribed) ? kBufferPubsub : kBufferNormal;
  if (follows_stream(client)) which = kBufferReplica;
  return client.server.settings().client_output_buffer_limit[which];
}

size_t pending_bytes(const Client& client) {
  size_t pending = client.pending_output();
  if (client.replica != nullptr) pending += client.replica->held_bytes();
  // Of a client that waits or is suspended messages may be held back.
  if (client.has(kClientBlocked | kClientSuspended)) [[unlikely]]
    pending += client.server.dispatcher().held_push_bytes(client);
  return pending;
}

// Output that never exceeds a limit: a first buffer; for a replica also the backlog, which may be
// sent to it at once.
size_t always_allowed(const Client& client) {
  if (!follows_stream(client)) return kFirstBuffer;
  return kFirstBuffer + static_cast<size_t>(client.server.settings().repl_backlog_size);
}

// Valkey does not limit a client that logs out again.
bool limits_unauthenticated(const Client& client) {
  return !client.has_logged_in || !client.server.edition().is_valkey_since({8, 1});
}

// A client that has not logged in gets at most a first buffer and an error.
size_t max_unauthenticated_output(Server& server) {
  return server.debug_settings().enforce_reply_list ? 0 : kMaxUnauthenticated;
}

}  // namespace

bool exceeds_hard_limit(const Client& client) {
  const ClientBufferLimit& limit = limit_of(client);
  return limit.hard_limit_bytes != 0 &&
         pending_bytes(client) > std::max<size_t>(limit.hard_limit_bytes, always_allowed(client));
}

bool may_be_sent_more(Client& client) {
  if (client.has(kClientCloseAfterReply)) return false;
  if (!exceeds_hard_limit(client)) return true;
  client.set(kClientOverLimit);
  return false;
}

bool reply_is_lost(const Client& client) {
  // The reply of a script's command goes to the script, not to a client.
  return !client.has(kClientScript) && exceeds_hard_limit(client);
}

void enforce_output_limit(Client& client) {
  const size_t pending = pending_bytes(client);
  Server& server = client.server;
  const bool is_unauthenticated = client.has(kClientNeedsAuth) && limits_unauthenticated(client);
  if (pending <= kFirstBuffer && !client.has(kClientOverLimit) && !is_unauthenticated) {
    client.soft_limit_since_ms = 0;
    return;
  }
  const ClientBufferLimit& limit = limit_of(client);
  bool exceeded = exceeds_hard_limit(client) || client.has(kClientOverLimit);
  if (limit.soft_limit_bytes == 0 || pending <= limit.soft_limit_bytes) {
    client.soft_limit_since_ms = 0;
  } else if (client.soft_limit_since_ms == 0) {
    client.soft_limit_since_ms = server.machine_ms();
  } else if (server.machine_ms() - client.soft_limit_since_ms >
             limit.soft_limit_seconds * base::kMsPerSecond) {
    exceeded = true;
  }
  if (is_unauthenticated && pending > max_unauthenticated_output(server)) exceeded = true;
  if (!exceeded) return;
  server.log().warning("Client " + describe_for_log(client) +
                       " scheduled to be closed ASAP for overcoming of output buffer limits.");
  ++server.stats().output_buffer_limit_disconnections;
  client.close();
}

}  // namespace latchkey::server
