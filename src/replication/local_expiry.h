// Keys of a writable replica to which its own clients have given deadlines.
//
// A replica leaves expired keys to its master, which does not know of these: so they are kept in
// mind here, and removed when their time has come. Listens only while the server is a replica that
// may be written to; O(keys kept in mind) ten times a second.
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
