#include "cluster/slot_keys.h"

#include <vector>

#include "server/server.h"
#include "store/slot_index.h"

namespace latchkey::cluster {

size_t keys_in_slot(server::Server& server, int slot) {
  size_t keys = 0;
  for (const auto& database : server.databases()) keys += database->slot_index()->in(slot);
  return keys;
}

size_t keys_in_slots(server::Server& server, const SlotSet& slots) {
  size_t keys = 0;
  slots.for_each([&](int slot) { keys += keys_in_slot(server, slot); });
  return keys;
}

void delete_slot(server::Server& server, int slot,
                 const std::function<void(store::Keyspace& database, const std::string& key)>& gone,
                 bool lazily) {
  for (const auto& database : server.databases()) {
    std::vector<std::string> keys;
    keys.reserve(database->slot_index()->in(slot));
    database->slot_index()->for_each(
        slot, [&](const store::Entry& entry) { keys.emplace_back(entry.key()); });
    for (const std::string& key : keys) {
      store::KeyRef ref =
          database->find_for_write(key, store::Keyspace::kPeek | store::Keyspace::kEvenExpired);
      if (!ref) continue;
      database->erase(ref, lazily);
      gone(*database, key);
    }
  }
}

}  // namespace latchkey::cluster
