#include "server/client/notifications.h"

#include "server/client/pubsub.h"
#include "server/server.h"

namespace latchkey::server {

Notifications::Notifications(Server& server) : server_(server) {
  server_.config().on_change({"notify-keyspace-events"}, [this](std::string*) {
    apply_settings();
    return true;
  });
  apply_settings();
}

void Notifications::apply_settings() {
  const unsigned wanted = server_.settings().notify_keyspace_events;
  const bool anywhere = (wanted & (kNotifyKeyspace | kNotifyKeyevent)) != 0;
  server_.events().remove(*this);
  if (anywhere) server_.events().add(*this);
  const bool lookups = anywhere && (wanted & (kNotifyNewKey | kNotifyKeyMiss)) != 0;
  server_.environment().key_observer = lookups ? this : nullptr;
}

void Notifications::key_changed(store::Keyspace& keyspace, std::string_view key,
                                EventClass event_class, std::string_view event) {
  // Changes of vector sets have no names, and nobody is notified of them.
  if (event.empty()) return;
  const unsigned wanted = server_.settings().notify_keyspace_events;
  if ((wanted & static_cast<unsigned>(event_class)) == 0) return;
  const std::string database = std::to_string(keyspace.index());
  if ((wanted & kNotifyKeyspace) != 0) {
    channel_.assign("__keyspace@").append(database).append("__:").append(key);
    server_.pubsub().publish(channel_, event);
  }
  if ((wanted & kNotifyKeyevent) != 0) {
    channel_.assign("__keyevent@").append(database).append("__:").append(event);
    server_.pubsub().publish(channel_, key);
  }
}

void Notifications::key_added(store::Keyspace& keyspace, std::string_view key) {
  key_changed(keyspace, key, EventClass::kNewKey, "new");
}

void Notifications::key_missed(store::Keyspace& keyspace, std::string_view key) {
  key_changed(keyspace, key, EventClass::kKeyMiss, "keymiss");
}

}  // namespace latchkey::server
