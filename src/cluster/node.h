// A node of the cluster, as this one knows it: its identity, address, slots, and the times of the
// last messages. Nodes are kept in a NodeTable, which keeps their references to each other
// consistent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/slot_set.h"

namespace latchkey::cluster {

class Link;

// The values are those in messages between nodes.
enum NodeFlag : uint16_t {
  kMaster = 1u << 0,
  kReplica = 1u << 1,
  kSuspect = 1u << 2,      // this node cannot reach it ("fail?")
  kFailing = 1u << 3,      // most masters cannot
  kMyself = 1u << 4,       // this node
  kHandshake = 1u << 5,    // its id is not known yet
  kNoAddress = 1u << 6,    // its address is not known
  kMeet = 1u << 7,         // to be sent MEET, so that it adds this node
  kMigrateTo = 1u << 8,    // a master that replicas may migrate to: others have replicas, or it had
                           // some
  kNoFailover = 1u << 9,   // a replica that does not start elections
  kExtensions = 1u << 10,  // understands the extensions of messages
  kMasterFails = 1u << 13,  // a replica of Valkey 9.1 whose master is failing, as it knows
};

// From a node's port to the port of its bus, where neither cluster-port nor MEET says otherwise.
inline constexpr int kBusPortDistance = 10'000;

// The address of a node.
struct NodeAddress {
  std::string ip;  // empty: for this node, the address that the client used; for others, unknown
  int port = 0;    // without TLS; 0: there is none
  int bus_port = 0;
  int tls_port = 0;  // 0: there is none
  int port_for(bool secure) const { return secure ? tls_port : port; }
  bool operator==(const NodeAddress&) const = default;
};

// Which of a node's addresses a client is given.
struct ClientView {
  bool secure = false;         // it speaks TLS, and is sent to TLS ports
  bool ipv6 = false;           // it came by IPv6
  int64_t clock_ahead_ms = 0;  // what Server::shown_ms() adds to a time
};

struct Node;

// A master has reported that it cannot reach a node.
struct FailureReport {
  const Node* by;
  int64_t time_ms;
};

// Times are Unix times in milliseconds; 0: never.
struct Node {
  std::string id;        // 40 hexadecimal digits
  std::string shard_id;  // the same
  uint16_t flags = 0;    // NodeFlag
  NodeAddress address;
  std::string hostname;
  std::string human_name;
  // Addresses for clients instead of address.ip, by the family they come by; empty: none announced.
  std::string client_ipv4;
  std::string client_ipv6;
  // Ports for clients instead of those of address; 0: none announced.
  int client_port = 0;
  int client_tls_port = 0;
  std::string availability_zone;  // empty: not told
  uint64_t config_epoch = 0;
  SlotSet slots;                // of which it is the owner; changed only by NodeTable
  Node* master = nullptr;       // of a replica, if known
  std::vector<Node*> replicas;  // of a master, in order of their ids
  uint64_t offset = 0;          // replication offset, as it last sent it

  int64_t created_ms = 0;
  int64_t ping_sent_ms = 0;  // of the ping that has no answer yet
  int64_t pong_received_ms = 0;
  int64_t data_received_ms = 0;
  int64_t failing_since_ms = 0;
  int64_t voted_ms = 0;           // when this node voted for one of its replicas
  int64_t orphaned_since_ms = 0;  // since when a master has no working replica
  int64_t no_incoming_link_since_ms =
      0;  // when the last link from it was dropped, or it was introduced
  std::vector<FailureReport> reports;

  // The link from this node to it, and the one from it to this node; null when there is none.
  Link* link = nullptr;
  Link* incoming = nullptr;

  bool has(uint16_t flag) const { return (flags & flag) != 0; }
  void set(uint16_t flag, bool on = true) {
    flags = static_cast<uint16_t>(on ? flags | flag : flags & ~flag);
  }
  bool is_master() const { return has(kMaster); }
  bool is_replica() const { return has(kReplica); }
  bool is_myself() const { return has(kMyself); }
  // Masters with slots vote.
  bool votes() const { return is_master() && !slots.empty(); }
  size_t working_replicas() const;

  const std::string& ip_for(const ClientView& view) const {
    const std::string& announced = view.ipv6 ? client_ipv6 : client_ipv4;
    return announced.empty() ? address.ip : announced;
  }
  // 0: the node has no such port, whatever is announced for it.
  int port_for(const ClientView& view) const {
    const int announced = view.secure ? client_tls_port : client_port;
    const int port = address.port_for(view.secure);
    return port == 0 || announced == 0 ? port : announced;
  }
};

inline constexpr size_t kIdDigits = 40;
// Whether the text has the form of a node's id. Nodes choose hexadecimal digits; any digits and
// small letters are taken, as the reference does.
bool is_id(std::string_view text);

// Whether the text can be sent to other nodes and stored in their node files: it has at most 255
// bytes, no control characters, and none of the characters that end a field there. Bytes beyond
// ASCII are safe.
bool is_safe_in_nodes_file(std::string_view text);

// "ID (human name)", or its address where it has no name, for the log.
std::string title(const Node& node);

}  // namespace latchkey::cluster
