// The nodes of a cluster as text: the lines of CLUSTER NODES, and the file of a node's state
// (cluster-config-file), in the reference's format:
//
//     <id> <ip>:<port>@<bus port>,<hostname>[,availability-zone=<zone>][,client-tls-port=<port>]
//         [,client-tcp-port=<port>][,client-ipv6=<ip>][,client-ipv4=<ip>],tls-port=<port>
//         [,nodename=<name>],shard-id=<id>
//     <flags>
//         <master or -> <ping sent> <pong received> <epoch> <link> <slots and moves>
//     vars currentEpoch <epoch> lastVoteEpoch <epoch>
//
// CLUSTER NODES leaves out everything after the hostname, and the comma before an empty hostname. A
// migrating slot is shown as "[slot->-id]", an imported one as "[slot-<-id]".
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cluster/node_table.h"

namespace latchkey::cluster {

// "myself,master"; "noflags" when there are none.
std::string flags_text(uint16_t flags);

// A line of CLUSTER NODES as that client sees it, without its line end.
std::string describe(const NodeTable& nodes, const Node& node, const ClientView& view = {});
// All lines, each with its line end.
std::string describe_all(const NodeTable& nodes, const ClientView& view = {});

// The content of the file. Nodes in handshake are left out.
std::string file_text(const NodeTable& nodes);
// Fills an empty table. Fails when the text is damaged; the table must not be used then. The error
// is a clause about the file ("it tells of no node").
base::Result<> parse_file(std::string_view text, int64_t now_ms, NodeTable* nodes);

}  // namespace latchkey::cluster
