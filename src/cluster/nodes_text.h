// The nodes of a cluster as text: lines of CLUSTER NODES, and the file in which a node remembers
// them (cluster-config-file), which is the reference's:
//
//     <id> <ip>:<port>@<bus port>,<hostname>,tls-port=0[,nodename=<name>],shard-id=<id> <flags>
//         <master or -> <ping sent> <pong received> <epoch> <link> <slots and moves>
//     vars currentEpoch <epoch> lastVoteEpoch <epoch>
//
// CLUSTER NODES leaves out what follows the hostname, and the comma before it if there is none. A
// slot on its way stands as "[slot->-id]", one that comes as "[slot-<-id]".
#pragma once

#include <string>
#include <string_view>

#include "cluster/node_table.h"

namespace latchkey::cluster {

// "myself,master"; "noflags" when there are none.
std::string flags_text(uint16_t flags);

// A line of CLUSTER NODES, without its end.
std::string describe(const NodeTable& nodes, const Node& node);
// All of them, each with its end.
std::string describe_all(const NodeTable& nodes);

// What is to be written down. Nodes in handshake are left out.
std::string file_text(const NodeTable& nodes);
// Fills a table that is empty. False, with what is wrong in *error, when the text is damaged; the
// table is of no use then.
bool parse_file(std::string_view text, int64_t now_ms, NodeTable* nodes, std::string* error);

}  // namespace latchkey::cluster
