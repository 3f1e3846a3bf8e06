// A server as a node of a cluster (cluster-enabled): what it knows of the others, what it and they
// tell each other, and what follows from it for its clients.
//
// What happens in the cluster changes the table of nodes; reconcile() then brings the server in
// line with it: the role, who may be served, keys that are not this node's any more, the file. Of a
// command the change is on disk before it is answered, and what came by the bus before anything is
// sent by it.
//
// Parts: Gossip (heartbeats and what comes with them), FailureDetector, SlotClaims, Election
// and Handover (failover by itself and on request), ReplicaMigration, Heartbeat (what happens by
// itself). They share this class, and know of each other by it alone.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/bus.h"
#include "cluster/election.h"
#include "cluster/failure_detector.h"
#include "cluster/gossip.h"
#include "cluster/handover.h"
#include "cluster/heartbeat.h"
#include "cluster/node_file.h"
#include "cluster/node_table.h"
#include "cluster/replica_migration.h"
#include "cluster/slot_claims.h"
#include "net/loop.h"
#include "server/client/pubsub.h"
#include "server/command/slot_gate.h"

namespace latchkey::base {
class Logger;
}
namespace latchkey::server {
class Config;
class Server;
}  // namespace latchkey::server

namespace latchkey::cluster {

// A node has one database. To be called before the server is made.
void adapt_configuration(server::Config& config, base::Logger& log);

class Cluster final : public server::SlotGate, public server::PubSubRelay, private Bus::Receiver {
 public:
  // To be made before anything is loaded.
  explicit Cluster(server::Server& server);
  ~Cluster() override;

  // Takes what the node knows from its file, or becomes a new node. False, with the reason logged,
  // when the file cannot be used. To be called before anything is loaded.
  bool start();
  // Opens the bus, and begins to do what a node does by itself. False as above.
  bool listen();
  // Takes slots that nobody serves though keys of theirs were loaded. False as above.
  bool claim_loaded_slots();

  server::Server& server() { return server_; }
  NodeTable& nodes() { return nodes_; }
  const NodeTable& nodes() const { return nodes_; }
  Node& myself() const { return nodes_.myself(); }
  // The master of this node's shard: itself, or its master. Null when that is not known.
  Node* shard_master() const;
  std::vector<Node*> shard() const;

  Bus& bus() { return bus_; }
  Gossip& gossip() { return gossip_; }
  FailureDetector& detector() { return detector_; }
  SlotClaims& claims() { return claims_; }
  Election& election() { return election_; }
  Handover& handover() { return handover_; }
  int64_t timeout_ms() const;

  // Whether requests are served.
  bool is_up() const { return up_; }
  // Hashes what the nodes of the cluster share.
  int secret_hash() const;
  const std::string& secret() const { return secret_; }
  void adopt_secret(const std::string& secret) { secret_ = secret; }

  // --- Changes ----------------------------------------------------------------------------------
  // What is written down has changed.
  void changed() { unsaved_ = true; }
  // Keys of these slots are not this node's any more.
  void lost(const std::vector<int>& slots);
  // Brings the server in line. To be called when something has been done to the nodes.
  void reconcile();
  // That, and writes everything down. False, with errno set, when it cannot be written.
  bool commit();
  // Takes an epoch that nobody else has, without asking anybody.
  void bump_epoch();
  // Removes a node with its links. REQUIRES: not myself.
  void remove(Node& node);
  // Becomes a node that knows no other; with another id if `hard`.
  void reset(bool hard);
  // Begins to meet whoever listens there. False when the address is none.
  bool meet(const NodeAddress& address);
  // Becomes a replica of that master, or a master with the slots that its own one had.
  void replicate_from(Node& master);
  void take_over();

  // --- Messages ---------------------------------------------------------------------------------
  // One of this node, with its header filled in.
  Message message(MessageType type);
  // How far the replication stream has come here.
  uint64_t offset() const;

  // To be called ten times a second, where there is no loop.
  void tick();
  void end_turn();

  // server::SlotGate
  Answer judge(std::span<const server::SlotGate::Request> requests, const Caller& caller) override;
  LinkFigures link_figures() const override;
  // server::PubSubRelay
  void relay(server::TopicKind kind, std::string_view channel, std::string_view message) override;

 private:
  // Bus::Receiver
  void link_ready(Link& link) override;
  void received(Link& link, const Message& message) override;
  void link_lost(Node& node) override;

  void note_sender(Node& sender, Link& link, const Message& message);
  void dispatch(Link& link, Node* sender, const Message& message);
  void take_published(const Message& message);
  void update_myself();
  bool save();
  // Whether something goes on in which the server's role and keys cannot be changed.
  bool is_occupied() const;
  // Has the server follow whom the table says, or nobody.
  void align_role();
  void update_state();
  bool finds_itself_up();
  void delete_lost_keys();
  void disconnect_unserved_clients();
  std::vector<std::string> keys_in(const SlotSet& slots) const;
  std::optional<Answer> judge_moving(std::span<const server::SlotGate::Request> requests,
                                     const Caller& caller, int slot, const Node& owner);
  Answer judge_down(Answer answer, bool has_channels, bool writes) const;
  Answer redirect(Verdict verdict, int slot, const Node& node) const;

  server::Server& server_;
  NodeFile file_;
  NodeTable nodes_;
  Bus bus_;
  Gossip gossip_;
  FailureDetector detector_;
  SlotClaims claims_;
  Election election_;
  Handover handover_;
  ReplicaMigration migration_;
  Heartbeat heartbeat_;
  std::unique_ptr<net::Timer> timer_;
  std::string secret_;
  bool up_ = false;
  bool unsaved_ = false;
  bool unreconciled_ = false;
  SlotSet lost_;
  int64_t minority_ms_ = 0;     // when this node was last in a minority
  int64_t serves_from_ms_ = 0;  // a master that comes back waits to hear the others first
  std::vector<server::KeyReference> found_;  // kept from one request to the next
};

// What clients are told to call the node: as cluster-preferred-endpoint-type says.
std::string preferred_endpoint(const server::Server& server, const Node& node);

}  // namespace latchkey::cluster
