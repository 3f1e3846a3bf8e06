#include "server/client/client_eviction.h"

#include <algorithm>

#include "server/client/client.h"
#include "server/client/client_info.h"
#include "server/server.h"

namespace latchkey::server {

void ClientEviction::note(Client& client) {
  if (client.memory_touched) return;
  client.memory_touched = true;
  touched_.push_back(client.id);
}

void ClientEviction::forget(Client& client) {
  by_size_.erase({client.measured_memory, client.id});
  total_ -= client.measured_memory;
  client.measured_memory = 0;
}

size_t ClientEviction::limit() const {
  const ConfigValues& values = server_.settings();
  if (values.maxmemory_clients >= 0) return static_cast<size_t>(values.maxmemory_clients);
  constexpr double kWhole = 100;
  const double share = static_cast<double>(-values.maxmemory_clients) / kWhole;
  return static_cast<size_t>(static_cast<double>(values.maxmemory) * share);
}

void ClientEviction::start() {
  active_ = true;
  server_.clients().for_each([this](Client& client) { note(client); });
}

void ClientEviction::stop() {
  active_ = false;
  server_.clients().for_each([this](Client& client) {
    forget(client);
    client.memory_touched = false;
  });
  touched_.clear();
}

void ClientEviction::measure(Client& client) {
  client.memory_touched = false;
  forget(client);
  // What other servers send and are sent must not be lost, and is not for users to limit.
  if (client.has(kClientReplica | kClientMaster) || client.node != nullptr) return;
  client.measured_memory = memory_usage(client);
  total_ += client.measured_memory;
  const bool may_go = !client.has(kClientNoEvict) && client.measured_memory >= kMinToClose;
  if (may_go) by_size_.emplace(client.measured_memory, client.id);
}

void ClientEviction::close(Client& client, bool is_current) {
  server_.log().notice("Evicting client: " + describe_for_log(client));
  ++server_.stats().evicted_clients;
  const size_t leaving =
      client.measured_memory - std::min(client.measured_memory, client.out().memory_usage());
  // With what the allocator rounds it up by, which is a quarter at most.
  leaving_ += leaving + leaving / 4;
  client.close();
  // It is freed later, but its memory is wanted now.
  if (!is_current && !client.has(kClientSuspended)) client.out().clear();
}

bool ClientEviction::enforce(Client* current) {
  // The turn is over.
  if (current == nullptr) leaving_ = 0;
  const size_t most = limit();
  if (most == 0) {
    if (active_) stop();
    return false;
  }
  if (!active_) start();
  if (current != nullptr) note(*current);
  for (const uint64_t id : std::exchange(touched_, {})) {
    if (Client* client = server_.clients().find(id); client != nullptr) measure(*client);
  }
  bool closed_current = false;
  while (total_ > most && !by_size_.empty()) {
    Client& largest = *server_.clients().find(by_size_.rbegin()->second);
    closed_current |= &largest == current;
    close(largest, &largest == current);
  }
  // It goes on.
  if (current != nullptr && !closed_current) note(*current);
  return closed_current;
}

}  // namespace latchkey::server
