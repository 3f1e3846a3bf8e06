// Keys of a writable replica whose deadlines were set by its own clients.
//
// A replica leaves expiry to its master, which does not know these deadlines: so the keys are
// remembered here and deleted when they expire. Registered for keyspace events only while the
// server is a writable replica. Costs O(remembered keys) ten times a second.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "server/command/keyspace_events.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::replication {

class LocalExpiry final : public server::KeyspaceEventListener {
 public:
  explicit LocalExpiry(server::Server& server);
  ~LocalExpiry() override;
  LocalExpiry(const LocalExpiry&) = delete;
  LocalExpiry& operator=(const LocalExpiry&) = delete;

  // To be called at every tick.
  void tick();
  size_t keys() const { return keys_.size(); }

  // server::KeyspaceEventListener
  void key_changed(store::Keyspace& keyspace, std::string_view key, server::EventClass event_class,
                   std::string_view event) override;
  void keyspace_clearing(store::Keyspace& keyspace) override;
  void keyspaces_swapping(store::Keyspace& first, store::Keyspace& second) override;

 private:
  bool is_wanted() const;
  void expire();

  server::Server& server_;
  bool listens_ = false;
  std::set<std::pair<int, std::string>> keys_;  // database and key
};

}  // namespace latchkey::replication
