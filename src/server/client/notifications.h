// Keyspace notifications: what happens to keys, published to the channels
//
//     __keyspace@<database>__:<key>    the event
//     __keyevent@<database>__:<event>  the key
//
// as far as notify-keyspace-events asks for. Listens to effects, and to keys that are added or
// missed, only while it does; an event that is asked for costs two messages, whoever receives them.
#pragma once

#include <string>
#include <string_view>

#include "server/command/keyspace_events.h"
#include "store/keyspace.h"

namespace latchkey::server {

class Server;

class Notifications final : public KeyspaceEventListener, public store::KeyObserver {
 public:
  // From now on follows the setting.
  explicit Notifications(Server& server);

  // KeyspaceEventListener
  void key_changed(store::Keyspace& keyspace, std::string_view key, EventClass event_class,
                   std::string_view event) override;
  void keyspace_clearing(store::Keyspace&) override {}
  void keyspaces_swapping(store::Keyspace&, store::Keyspace&) override {}

  // store::KeyObserver
  void key_added(store::Keyspace& keyspace, std::string_view key) override;
  void key_missed(store::Keyspace& keyspace, std::string_view key) override;

 private:
  void apply_settings();

  Server& server_;
  std::string channel_;  // of the message being sent
};

}  // namespace latchkey::server
