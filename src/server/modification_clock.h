// Marks keys as used when they are changed, for the eviction policies volatile-lrm and allkeys-lrm.
//
// Under these policies looking a key up does not mark it (store::Environment::use_lrm), so that
// reads leave it as old as its last change. Listens to keyspace events only while such a policy is
// set.
#pragma once

#include <string_view>

#include "server/command/keyspace_events.h"

namespace latchkey::server {

class Server;

class ModificationClock final : public KeyspaceEventListener {
 public:
  explicit ModificationClock(Server& server) : server_(server) {}

  // Begins or ends to listen, as maxmemory-policy says.
  void follow_policy();

  // KeyspaceEventListener
  void key_changed(store::Keyspace& keyspace, std::string_view key, EventClass event_class,
                   std::string_view event) override;
  void keyspace_clearing(store::Keyspace&) override {}
  void keyspaces_swapping(store::Keyspace&, store::Keyspace&) override {}

 private:
  Server& server_;
  bool listens_ = false;
};

}  // namespace latchkey::server
