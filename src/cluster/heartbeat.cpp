#include "cluster/heartbeat.h"

#include <algorithm>

#include "cluster/cluster.h"
#include "server/server.h"

namespace latchkey::cluster {

namespace {

constexpr int64_t kPingIntervalMs = 1000;
constexpr int kPingCandidates = 5;
constexpr int64_t kShortestHandshakeMs = 1000;

}  // namespace

void Heartbeat::tick() {
  maintain_links();
  if (pings_at_random_) ping_random_node();
  for (Node* node : cluster_.nodes().all()) {
    if (!node->has(kMyself | kNoAddress | kHandshake)) check_node(*node);
  }
}

int64_t Heartbeat::handshake_ms() const {
  return std::max(cluster_.timeout_ms(), kShortestHandshakeMs);
}

void Heartbeat::maintain_links() {
  const int64_t now_ms = cluster_.server().machine_ms();
  const uint64_t most = cluster_.server().settings().cluster_link_sendbuf_limit;
  if (most != 0) cluster_.bus().drop_over_limit(most);
  cluster_.bus().drop_stalled();
  for (Node* node : cluster_.nodes().all()) {
    if (node->has(kMyself | kNoAddress)) continue;
    if (node->has(kHandshake) && now_ms - node->created_ms > handshake_ms()) {
      cluster_.remove(*node);
    } else if (reconnects_ && node->link == nullptr && node->address.bus_port != 0) {
      cluster_.bus().connect(*node);
    }
  }
}

void Heartbeat::ping_random_node() {
  server::Server& server = cluster_.server();
  const int64_t configured_ms = server.settings().cluster_ping_interval;
  const int64_t interval_ms = configured_ms != 0 ? configured_ms : kPingIntervalMs;
  const int64_t now_ms = server.machine_ms();
  if (now_ms - pinged_ms_ < interval_ms) return;
  pinged_ms_ = now_ms;
  Node* longest_silent = nullptr;
  NodeTable& nodes = cluster_.nodes();
  for (int i = 0; i < kPingCandidates; ++i) {
    Node& node = nodes.at(server.random_source().background().below(nodes.size()));
    if (node.link == nullptr || node.ping_sent_ms != 0 || node.has(kMyself | kHandshake)) continue;
    if (longest_silent == nullptr || node.pong_received_ms < longest_silent->pong_received_ms)
      longest_silent = &node;
  }
  if (longest_silent != nullptr) cluster_.gossip().send(*longest_silent->link, MessageType::kPing);
}

// An old ping has no answer, and the link is not new: a new link may work better.
bool Heartbeat::is_stuck(const Node& node) const {
  const int64_t now_ms = cluster_.server().machine_ms();
  const int64_t timeout_ms = cluster_.timeout_ms();
  return node.link != nullptr && now_ms - node.link->created_ms > timeout_ms &&
         node.ping_sent_ms != 0 && now_ms - node.ping_sent_ms > timeout_ms / 2 &&
         now_ms - node.data_received_ms > timeout_ms / 2;
}

// A node that can be reached but opens no link does not know this one: its side of the handshake
// was cut off. Nodes of Redis wait for an operator.
void Heartbeat::send_meet_if_no_incoming_link(Node& node) {
  if (!cluster_.server().edition().is_valkey_since({8, 1})) return;
  if (node.incoming != nullptr || node.link == nullptr || !node.link->is_connected()) return;
  const int64_t now_ms = cluster_.server().machine_ms();
  if (now_ms - std::max(node.created_ms, node.no_incoming_link_since_ms) <= handshake_ms()) return;
  if (node.has(kSuspect | kFailing)) return;
  node.no_incoming_link_since_ms = now_ms;
  cluster_.server().log().notice("Sending MEET packet to node " + title(node) +
                                 " because there is no inbound link for it");
  cluster_.gossip().send(*node.link, MessageType::kMeet);
}

void Heartbeat::check_node(Node& node) {
  const int64_t now_ms = cluster_.server().machine_ms();
  const int64_t timeout_ms = cluster_.timeout_ms();
  if (is_stuck(node)) cluster_.bus().drop(*node.link);
  if (node.link != nullptr && node.link->is_connected()) {
    const bool silent = node.ping_sent_ms == 0 && now_ms - node.pong_received_ms > timeout_ms / 2;
    // The replica of a manual failover needs the current offset.
    if (silent || cluster_.manual_failover().successor() == &node)
      cluster_.gossip().send(*node.link, MessageType::kPing);
  }
  send_meet_if_no_incoming_link(node);
  if (node.ping_sent_ms == 0) return;
  const int64_t silent_ms = std::min(now_ms - node.ping_sent_ms, now_ms - node.data_received_ms);
  if (silent_ms <= timeout_ms) return;
  if (!node.has(kSuspect | kFailing)) cluster_.detector().suspect(node);
  cluster_.detector().mark_failing_at_quorum(node);
}

}  // namespace latchkey::cluster
