// Keyspace notifications: events of keys, published to the channels
//
//     __keyspace@<database>__:<key>    the event
//     __keyevent@<database>__:<event>  the key
//
// as far as notify-keyspace-events asks for. Where handlers name what changed within a key's value,
// the fields of hashes, it may ask for messages that name these, each with its length before it:
//
//     __subkeyspace@<database>__:<key>                 <event>|<length>:<field>,...
//     __subkeyevent@<database>__:<event>               <length>:<key>|<length>:<field>,...
//     __subkeyspaceitem@<database>__:<key>\n<field>    <event>
//     __subkeyspaceevent@<database>__:<event>|<key>    <length>:<field>,...
//
// as Redis 8.8 has them (https://redis.io/docs/latest/develop/pubsub/subkeyspace-notifications/).
// Before what replaces a key's whole value ("set", "sunionstore", ...) come "overwritten" when
// there was a key, and "type_changed" when its type was another.
//
// Registered for keyspace events, and for added and missed keys, only while the setting needs them.
// An event costs two messages, whether or not anybody has subscribed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/command/keyspace_events.h"
#include "store/keyspace.h"

namespace latchkey::server {

class Server;

class Notifications final : public KeyspaceEventListener,
                            public SubkeyListener,
                            public store::KeyObserver {
 public:
  // Follows notify-keyspace-events as it changes.
  explicit Notifications(Server& server);

  // KeyspaceEventListener
  void key_changed(store::Keyspace& keyspace, std::string_view key, EventClass event_class,
                   std::string_view event) override;
  void keyspace_clearing(store::Keyspace&) override {}
  void keyspaces_swapping(store::Keyspace&, store::Keyspace&) override {}

  // SubkeyListener
  void subkeys_changed(store::Keyspace& keyspace, std::string_view key, EventClass event_class,
                       std::string_view event, std::span<const std::string_view> subkeys) override;

  // store::KeyObserver
  void key_added(store::Keyspace& keyspace, std::string_view key) override;
  void key_missed(store::Keyspace& keyspace, std::string_view key) override;
  void type_changed(store::Keyspace& keyspace, std::string_view key) override;

 private:
  void apply_settings();
  void publish(store::Keyspace& keyspace, std::string_view key, EventClass event_class,
               std::string_view event);
  // Publishes what `event` has replaced, and forgets what was remembered of the key.
  void publish_replacement(store::Keyspace& keyspace, std::string_view key, std::string_view event);

  void remember(const store::Keyspace& keyspace, std::string_view key, bool added);
  // Clears `pending_` unless it is of the command that is running.
  void forget_earlier_commands();

  // A key that the running command has added, or given another type, and not yet reported by an
  // event that replaces the value. Many keys are never reported so: an event of another name, or
  // none, is all that their command raises.
  struct Pending {
    int database;
    std::string key;
    bool added;
  };

  Server& server_;
  std::string channel_;           // of the message being sent
  std::vector<Pending> pending_;  // while overwritten or type_changed are wanted
  uint64_t pending_since_ = 0;    // commands that had ended before that of `pending_`
};

}  // namespace latchkey::server
