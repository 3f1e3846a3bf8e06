#include "server/output_limits.h"

#include <algorithm>

#include "server/client.h"
#include "server/client_info.h"
#include "server/server.h"

namespace latchkey::server {

namespace {

// A first buffer's worth of replies is never too much.
constexpr size_t kFirstBuffer = base::BufferPool::kBufferSize;
constexpr size_t kMostUnauthenticated = kFirstBuffer + 1024;

const ClientBufferLimit& limit_of(const Client& client) {
  const auto which = client.has(kClientSubscribed) ? kBufferPubsub : kBufferNormal;
  return client.server.settings().client_output_buffer_limit[which];
}

}  // namespace

bool exceeds_hard_limit(const Client& client) {
  const ClientBufferLimit& limit = limit_of(client);
  const size_t pending = client.pending_output();
  return limit.hard_limit_bytes != 0 &&
         pending > std::max<size_t>(limit.hard_limit_bytes, kFirstBuffer);
}

void enforce_output_limit(Client& client) {
  const size_t pending = client.pending_output();
  if (pending <= kFirstBuffer && !client.has(kClientOverLimit)) {
    client.soft_limit_since_ms = 0;
    return;
  }
  Server& server = client.server;
  const ClientBufferLimit& limit = limit_of(client);
  bool exceeded = exceeds_hard_limit(client) || client.has(kClientOverLimit);
  if (limit.soft_limit_bytes == 0 || pending <= limit.soft_limit_bytes) {
    client.soft_limit_since_ms = 0;
  } else if (client.soft_limit_since_ms == 0) {
    client.soft_limit_since_ms = server.now_ms();
  } else if (server.now_ms() - client.soft_limit_since_ms > limit.soft_limit_seconds * 1000) {
    exceeded = true;
  }
  // Who has not logged in gets no more than a first buffer's worth and an error.
  if (client.has(kClientNeedsAuth) && pending > kMostUnauthenticated) exceeded = true;
  if (!exceeded) return;
  server.log().warning("Client " + describe(client) +
                       " scheduled to be closed ASAP for overcoming of output buffer limits.");
  ++server.stats().output_buffer_limit_disconnections;
  client.close();
}

}  // namespace latchkey::server
