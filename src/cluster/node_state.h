// What a node of a cluster remembers of itself, and its text in the cluster's configuration file
// (cluster-config-file), which is the reference's:
//
//     <id> <ip>:<port>@<bus port>,<hostname>,tls-port=0,shard-id=<id> myself,master - 0 0 <epoch>
//         connected <slots>
//     vars currentEpoch <epoch> lastVoteEpoch <epoch>
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cluster/slot_set.h"

namespace latchkey::cluster {

struct NodeState {
  std::string id;        // 40 hexadecimal digits
  std::string shard_id;  // the same
  uint64_t current_epoch = 0;
  uint64_t config_epoch = 0;
  uint64_t last_vote_epoch = 0;
  SlotSet slots;
};

// How a node is reached.
struct NodeAddress {
  std::string ip;  // empty: whatever the client used
  int port = 0;
  int bus_port = 0;
  std::string hostname;
};

// A node that nobody has seen yet.
NodeState new_node();

// "<ip>:<port>@<bus port>[,hostname]", then what follows it in CLUSTER NODES up to the slots.
std::string describe(const NodeState& state, const NodeAddress& address);

std::string file_text(const NodeState& state, const NodeAddress& address);
// False, with what is wrong in *error, when the text is damaged, or tells of other nodes: this
// server is a cluster of one.
bool parse_file(std::string_view text, NodeState* state, std::string* error);

}  // namespace latchkey::cluster
