#include "server/command/keyspace_events.h"

namespace latchkey::server {

bool is_beside_value(EventClass event_class, std::string_view event) {
  return event_class == EventClass::kStream &&
         (event.empty() || event.starts_with("xgroup-") || event == "xsetid");
}

void KeyspaceEvents::tell(store::Keyspace& keyspace, std::string_view key, EventClass event_class,
                          std::string_view event) {
  for (KeyspaceEventListener* listener : listeners_)
    listener->key_changed(keyspace, key, event_class, event);
}

void KeyspaceEvents::clearing(store::Keyspace& keyspace) {
  for (KeyspaceEventListener* listener : listeners_) listener->keyspace_clearing(keyspace);
}

void KeyspaceEvents::swapping(store::Keyspace& first, store::Keyspace& second) {
  total_ += 1;
  for (KeyspaceEventListener* listener : listeners_) listener->keyspaces_swapping(first, second);
}

void KeyspaceEvents::flushed() {
  for (KeyspaceEventListener* listener : listeners_) listener->dataset_flushed();
}

}  // namespace latchkey::server
