// What nodes tell each other all the time, by PING, PONG and MEET: themselves, some other nodes,
// and how they find them; and how a node comes to be known.
//
//     CLUSTER MEET -> a node in handshake, of an invented id -> link -> MEET -> PONG: its real id
//     MEET from a stranger -> a node in handshake -> link -> PING -> PONG: its real id
//
// Who is known vouches for others: nodes that it tells of are taken over by id and address.
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

  // A PING, PONG or MEET.
  void send(Link& link, MessageType type);
  // Tells others at once what has changed.
  void broadcast_pong();
  void broadcast_pong_to_shard();

  // Such a message. `sender`: null when it is not known.
  void receive(Link& link, Node* sender, const Message& message);

 private:
  // Some nodes picked by chance, and all that are suspected.
  void add_gossip(Message& message, const Node* receiver);
  void add_extensions(Message& message);
  void learn_own_address(const Link& link, const Message& message);
  void greet_stranger(const Link& link, const Message& message);
  // Who answers by a link in handshake. Null when the node is known already, and the handshake
  // over.
  Node* finish_handshake(Link& link, Node* sender, const Message& message);
  NodeAddress address_of(const Link& link, const Message& message) const;
  void update_address(Node& node, const Link& link, const Message& message);
  void note_pong(Node& node);
  void note_role(Node& sender, const Message& message);
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
