// All clients, by id and in order of connection.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "server/client/client.h"

namespace latchkey::server {

class ClientRegistry {
 public:
  explicit ClientRegistry(Server& server) : server_(server) {}

  // Adds a client; `connection` may be null.
  Client& add(net::Connection* connection);
  // A client that no command lists or can close: the one that scripts run as. It has no id, is not
  // counted and lives as long as the registry.
  Client& add_internal();
  // Called by Client::close(): removes the client and frees it at the end of the turn.
  void remove(Client& client);
  // Frees removed clients; to be called when no client's code is on the stack.
  void free_removed();

  // Null when there is no such client, or it has been removed.
  Client* find(uint64_t id) const;
  // Connected clients, oldest first. fn(Client&) may add and remove clients.
  template <typename Fn>
  void for_each(Fn&& fn) {
    std::vector<uint64_t> ids;
    ids.reserve(clients_.size());
    for (const auto& [id, client] : clients_) ids.push_back(id);
    for (const uint64_t id : ids) {
      if (Client* client = find(id); client != nullptr) fn(*client);
    }
  }
  size_t size() const { return clients_.size(); }

  // Clients with replies to send, or with input to process, before the loop waits again.
  void schedule_flush(Client& client) { to_flush_.push_back(client.id); }
  void schedule_resume(Client& client) { to_resume_.push_back(client.id); }
  void run_scheduled();
  bool any_scheduled() const { return !to_flush_.empty() || !to_resume_.empty(); }

  // Called by Client::wait() and unblock().
  void started_waiting(Client& client);
  void stopped_waiting(Client& client);
  size_t blocked() const { return blocked_; }
  // Ends the waits that cannot go on when the server's role changes (Block::outlives_role is
  // false), and closes those clients after the error is sent.
  void end_waits_for_role();
  // Ends the waits whose deadline has passed, within a millisecond of it: asks the server to call
  // again at the next deadline.
  void end_waits();
  // The data's clock was set back by so much, or forward if negative: the waits last as long as
  // they would have.
  void clock_went_back(int64_t by_ms);
  // When the first of the waits ends that end by themselves, Unix time in milliseconds; INT64_MAX
  // where there is none.
  int64_t next_deadline_ms() const {
    return deadlines_.empty() ? INT64_MAX : deadlines_.begin()->first;
  }

  // Checks a share of the clients, at least kMin, so that each is checked once a second (`hz`):
  // closes idle ones (`timeout`) and those that do not read their replies
  // (client-output-buffer-limit), and frees unused input buffers. Called in each tick.
  void check_some();

 private:
  static constexpr size_t kMin = 5;
  void check(Client& client);
  // How long a TLS handshake may take, in milliseconds: ten seconds, or `timeout` if that is less.
  int64_t handshake_limit_ms() const;

  Server& server_;
  uint64_t next_id_ = 1;
  size_t blocked_ = 0;
  uint64_t last_checked_ = 0;  // client id
  std::map<uint64_t, std::unique_ptr<Client>> clients_;
  std::vector<std::unique_ptr<Client>> internal_;
  std::vector<std::unique_ptr<Client>> removed_;
  std::vector<uint64_t> to_flush_;
  std::vector<uint64_t> to_resume_;
  std::set<std::pair<int64_t, uint64_t>>
      deadlines_;  // of waits: Unix time in milliseconds, client id
};

}  // namespace latchkey::server
