#include "server/client/client_registry.h"

#include <algorithm>
#include <utility>

#include "base/time_units.h"
#include "base/timeout.h"
#include "server/client/node_link.h"
#include "server/client/output_limits.h"
#include "server/client/replica_link.h"
#include "server/server.h"

namespace latchkey::server {

Client& ClientRegistry::add(net::Connection* connection) {
  const uint64_t id = next_id_++;
  auto client = std::make_unique<Client>(server_, id, connection);
  Client& added = *client;
  clients_.emplace_hint(clients_.end(), id, std::move(client));
  server_.client_eviction().touch(added);
  return added;
}

Client& ClientRegistry::add_internal() {
  return *internal_.emplace_back(std::make_unique<Client>(server_, 0, nullptr));
}

void ClientRegistry::remove(Client& client) {
  const auto it = clients_.find(client.id);
  if (it == clients_.end()) return;
  server_.client_eviction().forget(client);
  removed_.push_back(std::move(it->second));
  clients_.erase(it);
}

void ClientRegistry::free_removed() {
  std::erase_if(removed_, [](const auto& client) {
    // A suspended task may still be running a request of the client.
    if (client->has(kClientSuspended)) return false;
    client->unregister();
    return true;
  });
}

Client* ClientRegistry::find(uint64_t id) const {
  const auto it = clients_.find(id);
  return it == clients_.end() ? nullptr : it->second.get();
}

void ClientRegistry::run_scheduled() {
  // Sending may close clients, resuming may schedule others: loops until nothing is scheduled.
  while (!to_flush_.empty() || !to_resume_.empty()) {
    for (const uint64_t id : std::exchange(to_resume_, {})) {
      Client* client = find(id);
      if (client == nullptr) continue;
      client->resume_scheduled_ = false;
      client->connection_->resume_input();
      if (Client* still = find(id); still != nullptr && !still->out().empty()) still->flush_soon();
    }
    for (const uint64_t id : std::exchange(to_flush_, {})) {
      Client* client = find(id);
      if (client == nullptr) continue;
      client->flush_scheduled_ = false;
      enforce_output_limit(*client);
      if (Client* still = find(id); still != nullptr) still->connection_->flush();
    }
  }
}

void ClientRegistry::started_waiting(Client& client) {
  ++blocked_;
  const int64_t deadline_ms = client.block->deadline_ms;
  if (deadline_ms == 0) return;
  deadlines_.emplace(deadline_ms, client.id);
  server_.wake_at(deadline_ms);
}

void ClientRegistry::stopped_waiting(Client& client) {
  --blocked_;
  if (client.block->deadline_ms != 0) deadlines_.erase({client.block->deadline_ms, client.id});
}

void ClientRegistry::end_waits() {
  while (!deadlines_.empty()) {
    const auto [deadline_ms, id] = *deadlines_.begin();
    if (deadline_ms > server_.now_ms()) return server_.wake_at(deadline_ms);
    find(id)->unblock(BlockEnd::kTimeout);
  }
}

void ClientRegistry::clock_went_back(int64_t by_ms) {
  for (const auto& [deadline_ms, id] : std::exchange(deadlines_, {})) {
    Block& block = *find(id)->block;
    block.deadline_ms = base::moved_deadline(deadline_ms, by_ms);
    deadlines_.emplace_hint(deadlines_.end(), block.deadline_ms, id);
  }
}

void ClientRegistry::end_waits_for_role() {
  for_each([](Client& client) {
    if (!client.has(kClientBlocked) || client.block->outlives_role) return;
    client.unblock(BlockEnd::kRoleChanged);
    client.close_after_reply();
    client.flush_soon();
  });
}

void ClientRegistry::check_some() {
  const size_t count =
      std::min(clients_.size(),
               std::max(clients_.size() / static_cast<size_t>(server_.settings().hz), kMin));
  std::vector<uint64_t> ids;
  ids.reserve(count);
  for (auto it = clients_.upper_bound(last_checked_); ids.size() < count; ++it) {
    if (it == clients_.end()) it = clients_.begin();
    ids.push_back(it->first);
  }
  if (!ids.empty()) last_checked_ = ids.back();
  for (const uint64_t id : ids) {
    if (Client* client = find(id); client != nullptr && client->connection() != nullptr)
      check(*client);
  }
}

int64_t ClientRegistry::handshake_limit_ms() const {
  constexpr int64_t kLongest = 10'000;
  const int64_t timeout_ms = server_.settings().timeout * base::kMsPerSecond;
  return timeout_ms == 0 ? kLongest : std::min(timeout_ms, kLongest);
}

void ClientRegistry::check(Client& client) {
  constexpr int64_t kIdleMs = 2000;
  net::Connection& connection = *client.connection();
  const uint64_t seen = std::exchange(client.seen_bytes_sent_, connection.bytes_sent());
  // A replica acknowledges every second, so sent bytes do not prove that the master is alive.
  if (seen != connection.bytes_sent() && !client.has(kClientMaster)) {
    client.last_interaction_ms = server_.machine_ms();
  }
  if (connection.in_handshake() &&
      server_.machine_ms() - client.created_ms > handshake_limit_ms()) {
    return client.on_handshake_failed("the TLS handshake takes too long");
  }
  const int64_t idle_ms = server_.machine_ms() - client.last_interaction_ms;
  const int64_t limit_ms = server_.settings().timeout * base::kMsPerSecond;
  const bool exempt = client.has(kClientBlocked | kClientSuspended | kClientSubscribed |
                                 kClientMonitor | kClientReplica | kClientMaster) ||
                      (client.replica != nullptr && client.replica->may_be_idle()) ||
                      (client.node != nullptr && client.node->gets_stream());
  if (limit_ms != 0 && !exempt && idle_ms > limit_ms) {
    server_.log().verbose("Closing idle client");
    client.close();
    return;
  }
  connection.trim_input(idle_ms > kIdleMs);
  server_.client_eviction().touch(client);
  enforce_output_limit(client);
}

}  // namespace latchkey::server
