// A node of the cluster, as this one knows it: who it is, where it is, what it serves, and when it
// was last heard of. Nodes live in a NodeTable, which keeps what they say of one another in step.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/slot_set.h"

namespace latchkey::cluster {

class Link;

// The values are those that nodes send to each other.
enum NodeFlag : uint16_t {
  kMaster = 1u << 0,
  kReplica = 1u << 1,
  kSuspect = 1u << 2,      // this node does not reach it ("fail?")
  kFailing = 1u << 3,      // most masters do not
  kMyself = 1u << 4,       // it is this node
  kHandshake = 1u << 5,    // its id is not known yet
  kNoAddress = 1u << 6,    // where it is is not known any more
  kMeet = 1u << 7,         // it shall be asked to take this one into its cluster
  kMigrateTo = 1u << 8,    // a master that replicas may come to: it has had some
  kNoFailover = 1u << 9,   // a replica that will not take its master's place
  kExtensions = 1u << 10,  // it understands what follows the gossip of a message
};

// How a node is reached.
struct NodeAddress {
  std::string ip;  // empty: of this node, whatever the client used; of another one, unknown
  int port = 0;
  int bus_port = 0;
  bool operator==(const NodeAddress&) const = default;
};

struct Node;

// That a master has said of a node that it does not reach it.
struct FailureReport {
  const Node* by;
  int64_t time_ms;
};

// Times are Unix times in milliseconds, 0 where nothing has happened.
struct Node {
  std::string id;        // 40 hexadecimal digits
  std::string shard_id;  // the same
  uint16_t flags = 0;    // NodeFlag
  NodeAddress address;
  std::string hostname;
  std::string human_name;
  uint64_t config_epoch = 0;
  SlotSet slots;                // NodeTable alone changes them
  Node* master = nullptr;       // of a replica, where it is known
  std::vector<Node*> replicas;  // of a master
  uint64_t offset = 0;          // of the stream, as it last said

  int64_t created_ms = 0;
  int64_t ping_sent_ms = 0;  // of the one that is not answered yet
  int64_t pong_received_ms = 0;
  int64_t data_received_ms = 0;
  int64_t failing_since_ms = 0;
  int64_t voted_ms = 0;           // when this node voted for a replica of it
  int64_t orphaned_since_ms = 0;  // a master without working replicas
  std::vector<FailureReport> reports;

  // The link that this node keeps to it, and the one that it keeps to this node; null when there is
  // none.
  Link* link = nullptr;
  Link* incoming = nullptr;

  bool has(uint16_t flag) const { return (flags & flag) != 0; }
  void set(uint16_t flag, bool on = true) {
    flags = static_cast<uint16_t>(on ? flags | flag : flags & ~flag);
  }
  bool is_master() const { return has(kMaster); }
  bool is_replica() const { return has(kReplica); }
  bool is_myself() const { return has(kMyself); }
  // Masters that serve slots decide together.
  bool votes() const { return is_master() && !slots.empty(); }
  size_t working_replicas() const;
};

inline constexpr size_t kIdDigits = 40;
// Whether the text may be a node's id.
bool is_id(std::string_view text);

// "ID (human name)", for the log.
std::string title(const Node& node);

}  // namespace latchkey::cluster
