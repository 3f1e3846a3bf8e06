#include "server/client_registry.h"

#include <utility>

#include "server/output_limits.h"
#include "server/server.h"

namespace latchkey::server {

Client& ClientRegistry::add(net::Connection* connection) {
  const uint64_t id = next_id_++;
  auto client = std::make_unique<Client>(server_, id, connection);
  Client& added = *client;
  clients_.emplace_hint(clients_.end(), id, std::move(client));
  return added;
}

void ClientRegistry::remove(Client& client) {
  const auto it = clients_.find(client.id);
  if (it == clients_.end()) return;
  removed_.push_back(std::move(it->second));
  clients_.erase(it);
}

void ClientRegistry::free_removed() { removed_.clear(); }

Client* ClientRegistry::find(uint64_t id) const {
  const auto it = clients_.find(id);
  return it == clients_.end() ? nullptr : it->second.get();
}

void ClientRegistry::run_scheduled() {
  // Sending may close clients, resuming may make others ready: go on until nothing is left.
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
      client->connection_->flush();
      if (Client* still = find(id); still != nullptr) enforce_output_limit(*still);
    }
  }
}

}  // namespace latchkey::server
