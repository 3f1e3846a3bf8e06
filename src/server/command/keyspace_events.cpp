#include "server/command/keyspace_events.h"

#include <utility>

namespace latchkey::server {

bool is_beside_value(EventClass event_class, std::string_view event) {
  return event_class == EventClass::kStream &&
         (event.empty() || event.starts_with("xgroup-") || event == "xsetid");
}

// A listener may cause further events, an expired key's for example.
template <typename Call>
void KeyspaceEvents::for_each_listener(Call&& call) {
  const bool nested = std::exchange(notifying_, true);
  for (KeyspaceEventListener* listener : listeners_) call(*listener);
  notifying_ = nested;
}

void KeyspaceEvents::notify(store::Keyspace& keyspace, std::string_view key, EventClass event_class,
                            std::string_view event) {
  for_each_listener([&](KeyspaceEventListener& listener) {
    listener.key_changed(keyspace, key, event_class, event);
  });
}

void KeyspaceEvents::clearing(store::Keyspace& keyspace) {
  for_each_listener([&](KeyspaceEventListener& listener) { listener.keyspace_clearing(keyspace); });
}

void KeyspaceEvents::swapping(store::Keyspace& first, store::Keyspace& second) {
  total_ += 1;
  for_each_listener(
      [&](KeyspaceEventListener& listener) { listener.keyspaces_swapping(first, second); });
}

void KeyspaceEvents::flushed() {
  for_each_listener([](KeyspaceEventListener& listener) { listener.dataset_flushed(); });
}

}  // namespace latchkey::server
