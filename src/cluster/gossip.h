// Sends and handles PING, PONG and MEET. By these messages nodes exchange their own state and that
// of some other nodes, and a new node becomes known:
//
//     CLUSTER MEET -> a node in handshake, of a random id -> link -> MEET -> PONG: its real id
//     MEET from an unknown node -> a node in handshake -> link -> PING -> PONG: its real id
//
// Known nodes are trusted: a node in their gossip is added with its id and address.
#pragma once

#include <string>

#include "cluster/bus_message.h"
#include "cluster/link.h"
#include "cluster/node.h"

namespace latchkey::cluster {

class Cluster;

class Gossip {
 public:
  explicit Gossip(Cluster& cluster) : cluster_(cluster) {}

  // Sends a PING, PONG or MEET. `to_unknown_node`: the receiver is not in the node table, and
  // understands extensions.
  void send(Link& link, MessageType type, bool to_unknown_node = false);
  // Sends the state of this node at once to all nodes / to those of its shard.
  void broadcast_pong();
  void broadcast_pong_to_shard();

  // Handles a PING, PONG or MEET. `sender`: null when it is unknown.
  void receive(Link& link, Node* sender, const Message& message);

 private:
  // Adds some random nodes, and all suspected ones.
  void add_gossip(Message& message, const Node* receiver);
  // `to_unknown_node`: without the cluster's secret.
  void add_extensions(Message& message, bool to_unknown_node);
  void learn_own_address(const Link& link, const Message& message);
  void start_handshake(const Link& link, const Message& message);
  // Ends the handshake of the link's node, which has answered with its real id. Null when that node
  // was known already.
  Node* finish_handshake(Link& link, Node* sender, const Message& message);
  NodeAddress address_of(const Link& link, const Message& message) const;
  void update_address(Node& node, const Link& link, const Message& message);
  void record_pong(Node& node);
  void update_role(Node& sender, const Message& message);
  void log_moves(const Node& former, const Node& successor);
  void transfer_slots(Node& former, Node& master, const Message& message);
  void process_gossip(Node& sender, const Message& message);
  void update_known_node(Node& sender, Node& node, const GossipEntry& entry);
  void add_unknown_node(const GossipEntry& entry);
  void apply_extensions(Node& sender, const Extensions& extensions);
  void apply_shard_id(Node& sender, const std::string& shard_id);
  void apply_forgotten(const ForgottenNode& forgotten);

  Cluster& cluster_;
};

}  // namespace latchkey::cluster
