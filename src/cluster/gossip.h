// PING, PONG and MEET: with them nodes exchange their own state, the state of some other nodes and
// their addresses; and how a node becomes known.
//
//     CLUSTER MEET -> a node in handshake, of a random id -> link -> MEET -> PONG: its real id
//     MEET from a stranger -> a node in handshake -> link -> PING -> PONG: its real id
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

  // Sends a PING, PONG or MEET. `to_stranger`: to a node that is not known and understands
  // extensions.
  void send(Link& link, MessageType type, bool to_stranger = false);
  // Sends the state of this node at once to all nodes / to those of its shard.
  void broadcast_pong();
  void broadcast_pong_to_shard();

  // Handles a PING, PONG or MEET. `sender`: null when it is unknown.
  void receive(Link& link, Node* sender, const Message& message);

 private:
  // Adds some random nodes, and all suspected ones.
  void add_gossip(Message& message, const Node* receiver);
  // `to_stranger`: without the cluster's secret.
  void add_extensions(Message& message, bool to_stranger);
  void learn_own_address(const Link& link, const Message& message);
  void greet_stranger(const Link& link, const Message& message);
  // Ends the handshake of the link's node, which has answered with its real id. Null when that node
  // was known already.
  Node* finish_handshake(Link& link, Node* sender, const Message& message);
  NodeAddress address_of(const Link& link, const Message& message) const;
  void update_address(Node& node, const Link& link, const Message& message);
  void note_pong(Node& node);
  void note_role(Node& sender, const Message& message);
  void log_moves(const Node& former, const Node& successor);
  void hand_slots_on(Node& former, Node& master, const Message& message);
  void hear(Node& sender, const Message& message);
  void hear_of_known(Node& sender, Node& node, const GossipEntry& entry);
  void hear_of_stranger(const GossipEntry& entry);
  void take_extensions(Node& sender, const Extensions& extensions);
  void take_shard_id(Node& sender, const std::string& shard_id);
  void take_forgotten(const ForgottenNode& forgotten);

  Cluster& cluster_;
};

}  // namespace latchkey::cluster
