// CLUSTER SETSLOT: moves a slot to another master key by key. The slot is migrating here and being
// imported there while a client moves its keys (MIGRATE); then both nodes are told its new owner.
//
// Where Valkey is emulated the replicas know of it too, as since Valkey 8.0: the request goes into
// the replication stream, and is done here when all replicas have acknowledged it; after TIMEOUT
// milliseconds (2000 by default) it fails with NOREPLICAS, and some replicas may have done it. A
// new replica gets the moves with its dataset, as the auxiliary field "cluster-slot-states": for
// each move the slot, '>' (migrating) or '<' (importing), the id of the other node, and a comma.
// Seen in what Valkey 8.1.1 sends. So a replica that takes over goes on with the moves of its
// master.
#pragma once

#include <string>
#include <string_view>

namespace latchkey::cluster {

class Cluster;
class NodeTable;

// The moves of this node, as the auxiliary field; empty: none.
std::string moves_text(const NodeTable& nodes);
// Adds the moves of that text; those that make no sense, or concern unknown nodes, are left out.
void add_moves(std::string_view text, NodeTable* nodes);

}  // namespace latchkey::cluster
