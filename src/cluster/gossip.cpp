#include "cluster/gossip.h"

#include <algorithm>

#include "base/time_units.h"
#include "cluster/cluster.h"
#include "server/server.h"

namespace latchkey::cluster {

namespace {

constexpr size_t kMinEntries = 3;
// Tolerated difference of other nodes' clocks.
constexpr int64_t kClockSlackMs = 500;

GossipEntry entry_of(const Node& node, const server::Server& server) {
  const auto time_s = [&](int64_t at_ms) {
    return static_cast<uint32_t>(at_ms == 0 ? 0 : server.shown_ms(at_ms) / base::kMsPerSecond);
  };
  return {.id = node.id,
          .ping_sent_s = time_s(node.ping_sent_ms),
          .pong_received_s = time_s(node.pong_received_ms),
          .address = node.address,
          .flags = node.flags};
}

}  // namespace

// --- Messages to others -------------------------------------------------------------------------

void Gossip::send(Link& link, MessageType type, bool to_unknown_node) {
  Message message = cluster_.message(type);
  add_gossip(message, link.node);
  const bool is_understood = link.node != nullptr && link.node->has(kExtensions);
  if (is_understood || to_unknown_node) add_extensions(message, /*to_unknown_node=*/!is_understood);
  if (type != MessageType::kPong && link.node != nullptr && link.node->ping_sent_ms == 0)
    link.node->ping_sent_ms = cluster_.server().machine_ms();
  base::Logger& log = cluster_.server().log();
  if (type == MessageType::kPing && link.node != nullptr && log.enabled(base::LogLevel::kDebug))
    log.debug("Sending ping packet to node " + title(*link.node) + " by its link");
  cluster_.bus().send(link, message);
}

void Gossip::broadcast_pong() {
  for (Node* node : cluster_.nodes().all()) {
    if (node->link != nullptr && !node->has(kMyself | kHandshake))
      send(*node->link, MessageType::kPong);
  }
}

void Gossip::broadcast_pong_to_shard() {
  for (Node* node : cluster_.shard()) {
    if (node->link != nullptr) send(*node->link, MessageType::kPong);
  }
}

void Gossip::add_gossip(Message& message, const Node* receiver) {
  NodeTable& nodes = cluster_.nodes();
  if (nodes.size() <= 2) return;
  const auto percent =
      static_cast<size_t>(cluster_.server().settings().cluster_message_gossip_perc);
  const size_t wanted =
      std::min(std::max(kMinEntries, nodes.size() * percent / 100), nodes.size() - 2);
  std::vector<Node*> all = nodes.all();
  // A shuffle of the list, as far as it is needed.
  size_t told = 0;
  for (size_t i = 0; i < all.size() && told < wanted; ++i) {
    std::swap(all[i],
              all[i + cluster_.server().random_source().background().below(all.size() - i)]);
    const Node& node = *all[i];
    const bool of_use = !node.has(kMyself | kSuspect | kHandshake | kNoAddress) &&
                        (node.link != nullptr || !node.slots.empty());
    if (!of_use || &node == receiver) continue;
    message.gossip.push_back(entry_of(node, cluster_.server()));
    ++told;
  }
  for (const Node* node : nodes.all()) {
    if (node->has(kSuspect) && !node->has(kHandshake | kNoAddress))
      message.gossip.push_back(entry_of(*node, cluster_.server()));
  }
}

void Gossip::add_extensions(Message& message, bool to_unknown_node) {
  const Node& myself = cluster_.myself();
  Extensions& extensions = message.extensions;
  if (!myself.hostname.empty()) extensions.hostname = myself.hostname;
  if (!myself.human_name.empty()) extensions.human_name = myself.human_name;
  if (!myself.client_ipv4.empty()) extensions.client_ipv4 = myself.client_ipv4;
  if (!myself.client_ipv6.empty()) extensions.client_ipv6 = myself.client_ipv6;
  if (myself.client_port != 0) extensions.client_port = static_cast<uint16_t>(myself.client_port);
  if (myself.client_tls_port != 0)
    extensions.client_tls_port = static_cast<uint16_t>(myself.client_tls_port);
  if (!myself.availability_zone.empty()) extensions.availability_zone = myself.availability_zone;
  const int64_t now_ms = cluster_.server().machine_ms();
  for (const auto& [id, until_ms] : cluster_.nodes().forgotten(now_ms))
    extensions.forgotten.push_back(
        {id, static_cast<uint64_t>((until_ms - now_ms) / base::kMsPerSecond)});
  extensions.shard_id = myself.shard_id;
  if (!to_unknown_node) extensions.secret = cluster_.secret();
}

// --- Messages from others -----------------------------------------------------------------------

void Gossip::receive(Link& link, Node* sender, const Message& message) {
  const bool asks = message.type != MessageType::kPong;
  if (asks) {
    learn_own_address(link, message);
    const bool meets = message.type == MessageType::kMeet;
    if (meets && cluster_.nodes().find(message.sender) == nullptr) start_handshake(link, message);
    // A node that this one has forgotten (CLUSTER RESET) learns by it to which shard this one
    // belongs.
    const bool to_unknown_node = sender == nullptr && link.node == nullptr && !meets;
    send(link, MessageType::kPong, to_unknown_node && message.has(kKnowsExtensions));
  }
  if (sender == &cluster_.myself()) sender = nullptr;
  if (!link.incoming && link.node != nullptr) {
    if (link.node->has(kHandshake)) {
      sender = finish_handshake(link, sender, message);
    } else if (link.node->id != message.sender) {
      // Another node uses this address, or the node has forgotten who it was (CLUSTER RESET HARD).
      Node& lost = *link.node;
      cluster_.server().log().notice("PONG contains mismatching sender ID: " + title(lost) +
                                     " is not at its address any more.");
      lost.set(kNoAddress);
      lost.address = {};
      // Valkey has it replaced by a replica; for Redis an operator decides.
      const bool replaces = cluster_.server().edition().is_valkey_since({8, 1});
      if (replaces && !lost.has(kFailing)) cluster_.detector().mark_failing(lost);
      cluster_.bus().drop(link);
      return cluster_.changed();
    }
  }
  if (sender == nullptr) return;
  sender->set(kNoFailover, (message.flags & kNoFailover) != 0);
  sender->set(kMasterFails, (message.flags & kMasterFails) != 0);
  if (message.type == MessageType::kPing) update_address(*sender, link, message);
  if (message.type == MessageType::kPong && link.node == sender) record_pong(*sender);
  update_role(*sender, message);
  cluster_.claims().process_heartbeat(*sender, message);
  process_gossip(*sender, message);
  apply_extensions(*sender, message.extensions);
}

void Gossip::learn_own_address(const Link& link, const Message& message) {
  Node& myself = cluster_.myself();
  if (!cluster_.server().settings().cluster_announce_ip.empty()) return;
  if (message.type != MessageType::kMeet && !myself.address.ip.empty()) return;
  const std::string ip = link.own_ip();
  if (ip.empty() || ip == myself.address.ip) return;
  myself.address.ip = ip;
  cluster_.server().log().notice("IP address for this node updated to " + ip);
  cluster_.changed();
}

NodeAddress Gossip::address_of(const Link& link, const Message& message) const {
  NodeAddress address = message.address;
  if (address.ip.empty()) address.ip = link.peer_ip();
  if (address.bus_port == 0) {
    const bool secure = cluster_.server().settings().tls_cluster;
    address.bus_port = address.port_for(secure) + kBusPortDistance;
  }
  return address;
}

void Gossip::start_handshake(const Link& link, const Message& message) {
  // A node repeats MEET until it is answered.
  const NodeAddress address = address_of(link, message);
  if (!cluster_.in_handshake_with(address)) cluster_.add_handshake_node(address, kHandshake);
  // Nodes of Redis wait for the end of the handshake.
  if (!cluster_.server().edition().is_valkey_since({8, 1})) return;
  for (const GossipEntry& entry : message.gossip) {
    if (cluster_.nodes().find(entry.id) == nullptr) add_unknown_node(entry);
  }
}

Node* Gossip::finish_handshake(Link& link, Node* sender, const Message& message) {
  Node& node = *link.node;
  base::Logger& log = cluster_.server().log();
  if (sender != nullptr || message.sender == cluster_.myself().id) {
    log.verbose("Handshake: we already know node " + message.sender +
                ", updating the address if needed.");
    if (sender != nullptr) update_address(*sender, link, message);
    cluster_.remove(node);
    cluster_.changed();
    return nullptr;
  }
  // An earlier handshake may have completed with the same node.
  if (cluster_.nodes().find(message.sender) != nullptr) {
    cluster_.remove(node);
    return nullptr;
  }
  cluster_.nodes().rename(node, message.sender);
  log.debug("Handshake with node " + node.id + " completed.");
  node.set(kHandshake | kMeet, false);
  node.set(kMaster);
  node.set(kExtensions, message.has(kKnowsExtensions));
  node.data_received_ms = cluster_.server().machine_ms();
  node.config_epoch = message.config_epoch;
  node.offset = message.offset;
  cluster_.changed();
  return &node;
}

void Gossip::update_address(Node& node, const Link& link, const Message& message) {
  if (&link == node.link) return;
  const NodeAddress address = address_of(link, message);
  if (address == node.address && !node.has(kNoAddress)) return;
  node.address = address;
  node.set(kNoAddress, false);
  if (node.link != nullptr) cluster_.bus().drop(*node.link);
  cluster_.server().log().notice(
      "Address updated for node " + title(node) + ", now " + address.ip + ":" +
      std::to_string(address.port != 0 ? address.port : address.tls_port));
  cluster_.changed();
}

void Gossip::record_pong(Node& node) {
  node.pong_received_ms = cluster_.server().machine_ms();
  node.ping_sent_ms = 0;
  if (node.has(kSuspect)) {
    node.set(kSuspect, false);
    cluster_.changed();
  }
  if (node.has(kFailing)) cluster_.detector().clear_failing(node);
}

void Gossip::update_role(Node& sender, const Message& message) {
  NodeTable& nodes = cluster_.nodes();
  if (message.master.empty()) {
    if (sender.is_master()) return;
    nodes.make_master(sender);
    return cluster_.changed();
  }
  Node* const master = nodes.find(message.master);
  if (master == &sender || (master != nullptr && master->has(kHandshake))) return;
  if (sender.is_replica() && sender.master == master) return;
  if (sender.is_master() && master != nullptr && master->master == &sender)
    transfer_slots(sender, *master, message);
  if (master != nullptr && master->shard_id == sender.shard_id) log_moves(sender, *master);
  nodes.make_replica(sender, master);
  cluster_.changed();
}

// The successor takes the former node's place in moves of slots (NodeTable::make_replica).
void Gossip::log_moves(const Node& former, const Node& successor) {
  base::Logger& log = cluster_.server().log();
  const std::string whom = " to node " + title(successor) + " in shard " + successor.shard_id + ".";
  for (const auto& [slot, from] : cluster_.nodes().importing()) {
    if (from == &former)
      log.notice("Failover occurred in migration source. Update importing source for slot " +
                 std::to_string(slot) + whom);
  }
  for (const auto& [slot, to] : cluster_.nodes().migrating()) {
    if (to == &former)
      log.notice("Failover occurred in migration target. Slot " + std::to_string(slot) +
                 " is now being migrated" + whom);
  }
}

// A master has become a replica of its own replica, which has taken over: moves its slots to that
// one before it says so itself.
void Gossip::transfer_slots(Node& former, Node& master, const Message& message) {
  if (&master == &cluster_.myself()) return;
  NodeTable& nodes = cluster_.nodes();
  nodes.make_master(master);
  master.config_epoch = std::max(master.config_epoch, message.config_epoch);
  const SlotSet slots = former.slots;
  slots.for_each([&](int slot) { nodes.assign(slot, master); });
}

// --- Gossip about other nodes -------------------------------------------------------------------

void Gossip::process_gossip(Node& sender, const Message& message) {
  for (const GossipEntry& entry : message.gossip) {
    if (Node* const node = cluster_.nodes().find(entry.id); node != nullptr) {
      if (!node->has(kMyself | kHandshake)) update_known_node(sender, *node, entry);
    } else {
      add_unknown_node(entry);
    }
  }
}

void Gossip::update_known_node(Node& sender, Node& node, const GossipEntry& entry) {
  const int64_t now_ms = cluster_.server().machine_ms();
  base::Logger& log = cluster_.server().log();
  const bool found_dead = (entry.flags & (kSuspect | kFailing)) != 0;
  if (sender.votes() && &sender != &node) {
    if (found_dead) {
      if (NodeTable::add_report(node, sender, now_ms))
        log.verbose("Node " + title(sender) + " reported node " + title(node) +
                    " as not reachable.");
      cluster_.detector().mark_failing_at_quorum(node);
    } else if (NodeTable::remove_report(node, sender)) {
      log.verbose("Node " + title(sender) + " reported node " + title(node) + " is back online.");
    }
  }
  if (found_dead) return;
  if (!node.has(kSuspect | kFailing)) {
    // A pong that another node received saves a ping from here.
    const int64_t shown_ms = int64_t{entry.pong_received_s} * base::kMsPerSecond;
    const int64_t pong_ms = shown_ms - cluster_.server().shown_ms(0);
    if (node.ping_sent_ms == 0 && node.reports.empty() && pong_ms <= now_ms + kClockSlackMs)
      node.pong_received_ms = std::max(node.pong_received_ms, pong_ms);
    return;
  }
  if ((entry.flags & kNoAddress) != 0 || entry.address == node.address) return;
  // The node may have failed only at its old address.
  if (node.link != nullptr) cluster_.bus().drop(*node.link);
  node.address = entry.address;
  node.set(kNoAddress, false);
  cluster_.changed();
}

void Gossip::add_unknown_node(const GossipEntry& entry) {
  NodeTable& nodes = cluster_.nodes();
  const int64_t now_ms = cluster_.server().machine_ms();
  const bool has_address = (entry.flags & kNoAddress) == 0 && !entry.address.ip.empty() &&
                           (entry.address.port != 0 || entry.address.tls_port != 0) &&
                           entry.address.bus_port != 0;
  if (!has_address || nodes.is_forgotten(entry.id, now_ms)) return;
  Node& node = nodes.add(entry.id, (entry.flags & kReplica) != 0 ? kReplica : kMaster, now_ms);
  node.shard_id = cluster_.server().random_source().hex(kIdDigits);
  node.address = entry.address;
  cluster_.changed();
}

// --- Extensions ---------------------------------------------------------------------------------

void Gossip::apply_extensions(Node& sender, const Extensions& extensions) {
  // A node that does not know yet that this one understands extensions sends none.
  if (!extensions.shard_id) return;
  // What is not told is empty, or 0.
  const auto take = [this](auto& known, const auto& told) {
    using Known = std::decay_t<decltype(known)>;
    const Known now = told ? Known(*told) : Known();
    if (known == now) return;
    known = now;
    cluster_.changed();
  };
  take(sender.hostname, extensions.hostname);
  take(sender.human_name, extensions.human_name);
  take(sender.client_ipv4, extensions.client_ipv4);
  take(sender.client_ipv6, extensions.client_ipv6);
  take(sender.client_port, extensions.client_port);
  take(sender.client_tls_port, extensions.client_tls_port);
  take(sender.availability_zone, extensions.availability_zone);
  apply_shard_id(sender, *extensions.shard_id);
  // The cluster's secret is the smallest of the nodes' secrets.
  if (extensions.secret && *extensions.secret < cluster_.secret())
    cluster_.adopt_secret(*extensions.secret);
  for (const ForgottenNode& forgotten : extensions.forgotten) apply_forgotten(forgotten);
}

void Gossip::apply_shard_id(Node& sender, const std::string& shard_id) {
  if (sender.shard_id == shard_id) return;
  sender.shard_id = shard_id;
  for (Node* replica : sender.replicas) replica->shard_id = shard_id;
  cluster_.changed();
}

void Gossip::apply_forgotten(const ForgottenNode& forgotten) {
  Node* const node = cluster_.nodes().find(forgotten.id);
  const Node& myself = cluster_.myself();
  if (node == nullptr || node == &myself || node == myself.master) return;
  constexpr uint64_t kLongestSeconds = 24 * 3600;
  const auto seconds = static_cast<int64_t>(std::min(forgotten.seconds, kLongestSeconds));
  cluster_.nodes().forget(forgotten.id,
                          cluster_.server().machine_ms() + seconds * base::kMsPerSecond);
  cluster_.remove(*node);
  cluster_.changed();
}

}  // namespace latchkey::cluster
