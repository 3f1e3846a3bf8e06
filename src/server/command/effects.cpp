#include "server/command/effects.h"

namespace latchkey::server {

bool is_beside_value(EventClass event_class, std::string_view event) {
  return event_class == EventClass::kStream && (event.starts_with("xgroup-") || event == "xsetid");
}

void Effects::tell(store::Keyspace& keyspace, std::string_view key, EventClass event_class,
                   std::string_view event) {
  for (ChangeListener* listener : listeners_)
    listener->key_changed(keyspace, key, event_class, event);
}

void Effects::clearing(store::Keyspace& keyspace) {
  for (ChangeListener* listener : listeners_) listener->keyspace_clearing(keyspace);
}

void Effects::swapping(store::Keyspace& first, store::Keyspace& second) {
  total_ += 1;
  for (ChangeListener* listener : listeners_) listener->keyspaces_swapping(first, second);
}

void Effects::flushed() {
  for (ChangeListener* listener : listeners_) listener->dataset_flushed();
}

}  // namespace latchkey::server
