#include "server/client/notifications.h"

#include <utility>

#include "server/client/pubsub.h"
#include "server/server.h"

namespace latchkey::server {

namespace {

constexpr unsigned kReplacements = kNotifyOverwritten | kNotifyTypeChanged;
constexpr unsigned kSubkeys =
    kNotifySubkeyspace | kNotifySubkeyevent | kNotifySubkeyspaceItem | kNotifySubkeyspaceEvent;

void append_counted(std::string& text, std::string_view bytes) {
  text.append(std::to_string(bytes.size())).append(":").append(bytes);
}

// Whether the event's command sets the whole value of the key. RENAME and COPY remove the key
// before, and tell what they have replaced themselves.
bool replaces_value(std::string_view event) {
  return event == "set" || event.ends_with("store");  // "restore" too
}

}  // namespace

Notifications::Notifications(Server& server) : server_(server) {
  server_.config().on_change({"notify-keyspace-events"}, [this] { apply_settings(); });
  apply_settings();
}

void Notifications::apply_settings() {
  const unsigned wanted = server_.settings().notify_keyspace_events;
  const bool anywhere = (wanted & (kNotifyKeyspace | kNotifyKeyevent)) != 0;
  server_.events().remove(*this);
  if (anywhere) server_.events().add(*this);
  server_.events().set_subkey_listener((wanted & kSubkeys) != 0 ? this : nullptr);
  server_.environment().name_expired_elements =
      server_.propagation().wanted() || server_.events().wants_subkeys();
  const bool lookups = anywhere && (wanted & (kNotifyNewKey | kNotifyKeyMiss | kReplacements)) != 0;
  server_.environment().key_observer = lookups ? this : nullptr;
  pending_.clear();
}

void Notifications::key_changed(store::Keyspace& keyspace, std::string_view key,
                                EventClass event_class, std::string_view event) {
  // Changes of vector sets and releases of pending entries have no names, and nobody is notified.
  if (event.empty()) return;
  if ((server_.settings().notify_keyspace_events & kReplacements) == 0)
    return publish(keyspace, key, event_class, event);
  // In the reference's order.
  const bool is_restore = event == "restore";
  if (is_restore) publish(keyspace, key, event_class, event);
  publish_replacement(keyspace, key, event);
  if (!is_restore) publish(keyspace, key, event_class, event);
}

void Notifications::publish(store::Keyspace& keyspace, std::string_view key, EventClass event_class,
                            std::string_view event) {
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

void Notifications::subkeys_changed(store::Keyspace& keyspace, std::string_view key,
                                    EventClass event_class, std::string_view event,
                                    std::span<const std::string_view> subkeys) {
  const unsigned wanted = server_.settings().notify_keyspace_events;
  if ((wanted & static_cast<unsigned>(event_class)) == 0) return;
  const std::string database = "@" + std::to_string(keyspace.index()) + "__:";
  std::string names;
  for (const std::string_view subkey : subkeys) {
    if (!names.empty()) names += ',';
    append_counted(names, subkey);
  }
  // What separates the parts must not be in one of them.
  const bool may_separate = event.find('|') == std::string_view::npos;
  PubSub& pubsub = server_.pubsub();
  if ((wanted & kNotifySubkeyspace) != 0 && may_separate) {
    channel_.assign("__subkeyspace").append(database).append(key);
    pubsub.publish(channel_, std::string(event).append("|").append(names));
  }
  if ((wanted & kNotifySubkeyevent) != 0) {
    channel_.assign("__subkeyevent").append(database).append(event);
    std::string message;
    append_counted(message, key);
    pubsub.publish(channel_, message.append("|").append(names));
  }
  if ((wanted & kNotifySubkeyspaceItem) != 0 && key.find('\n') == std::string_view::npos) {
    for (const std::string_view subkey : subkeys) {
      channel_.assign("__subkeyspaceitem").append(database).append(key).append("\n").append(subkey);
      pubsub.publish(channel_, event);
    }
  }
  if ((wanted & kNotifySubkeyspaceEvent) != 0 && may_separate) {
    channel_.assign("__subkeyspaceevent").append(database).append(event).append("|").append(key);
    pubsub.publish(channel_, names);
  }
}

void Notifications::publish_replacement(store::Keyspace& keyspace, std::string_view key,
                                        std::string_view event) {
  if (!replaces_value(event)) return;
  forget_earlier_commands();
  bool added = false;
  bool type_changed = false;
  std::erase_if(pending_, [&](const Pending& pending) {
    if (pending.database != keyspace.index() || pending.key != key) return false;
    (pending.added ? added : type_changed) = true;
    return true;
  });
  if (added) return;
  publish(keyspace, key, EventClass::kOverwritten, "overwritten");
  if (type_changed) publish(keyspace, key, EventClass::kTypeChanged, "type_changed");
}

void Notifications::key_added(store::Keyspace& keyspace, std::string_view key) {
  publish(keyspace, key, EventClass::kNewKey, "new");
  remember(keyspace, key, /*added=*/true);
}

void Notifications::key_missed(store::Keyspace& keyspace, std::string_view key) {
  publish(keyspace, key, EventClass::kKeyMiss, "keymiss");
}

void Notifications::type_changed(store::Keyspace& keyspace, std::string_view key) {
  remember(keyspace, key, /*added=*/false);
}

void Notifications::remember(const store::Keyspace& keyspace, std::string_view key, bool added) {
  // What is loaded has no events.
  if ((server_.settings().notify_keyspace_events & kReplacements) == 0 ||
      (server_.state() & kStateLoading) != 0)
    return;
  forget_earlier_commands();
  pending_.push_back({keyspace.index(), std::string(key), added});
}

void Notifications::forget_earlier_commands() {
  // Commands are counted when they have ended, those within transactions and scripts one by one.
  const uint64_t commands = server_.stats().commands_processed;
  if (std::exchange(pending_since_, commands) != commands) pending_.clear();
}

}  // namespace latchkey::server
