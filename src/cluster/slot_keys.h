// The keys of slots of a cluster node, over all of its databases (store/slot_index.h keeps those of
// each). Costs by the number of databases, and where keys are visited or deleted by theirs.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "cluster/slot_set.h"

namespace latchkey::server {
class Server;
}
namespace latchkey::store {
class Keyspace;
}

namespace latchkey::cluster {

// REQUIRES of all `server`: it is a node of a cluster. Expired keys that are still there count.
size_t keys_in_slot(server::Server& server, int slot);
size_t keys_in_slots(server::Server& server, const SlotSet& slots);

// Deletes the slot's keys and calls `gone` for each. Propagates nothing: the caller does.
void delete_slot(server::Server& server, int slot,
                 const std::function<void(store::Keyspace& database, const std::string& key)>& gone,
                 bool lazily = false);

}  // namespace latchkey::cluster
