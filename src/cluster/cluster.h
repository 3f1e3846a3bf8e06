// A server as a node of a cluster (cluster-enabled): its knowledge of the other nodes, its messages
// to and from them, and the effects on its role and its clients.
//
// Events of the cluster change the node table; reconcile() then updates the server by it: the role,
// which requests are served, removal of keys in lost slots, the node file. A change by a command is
// on disk before the reply, and one by the bus before the next message is sent.
//
// Parts: Gossip (heartbeats and their content), FailureDetector, SlotClaims, Election and
// ManualFailover (automatic and manual failover), ReplicaMigration, SlotMigration, Heartbeat
// (periodic work). They share this class and reach each other only through it.
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
#include "cluster/heartbeat.h"
#include "cluster/manual_failover.h"
#include "cluster/node_file.h"
#include "cluster/node_table.h"
#include "cluster/replica_migration.h"
#include "cluster/shutdown_failover.h"
#include "cluster/slot_claims.h"
#include "cluster/slot_jobs/slot_jobs.h"
#include "cluster/slot_migration/slot_migration.h"
#include "cluster/slot_stats.h"
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

// Sets `databases` to the number there is in a cluster, cluster-databases; where Valkey is
// emulated, both are shown as they were given. To be called before the server is made.
void adapt_configuration(server::Config& config, base::Logger& log);

class Cluster final : public server::SlotGate, public server::PubSubRelay, private Bus::Receiver {
 public:
  // To be made before anything is loaded.
  explicit Cluster(server::Server& server);
  ~Cluster() override;

  // Loads the node file, or becomes a new node. False, with the reason logged, when the file cannot
  // be used. To be called before anything is loaded.
  bool start();
  // Opens the bus and starts the timer of tick(). False, with the reason logged.
  bool listen();
  // Takes slots that have no owner although keys of them were loaded. False, with the reason
  // logged.
  bool claim_loaded_slots();

  server::Server& server() { return server_; }
  NodeTable& nodes() { return nodes_; }
  const NodeTable& nodes() const { return nodes_; }
  Node& myself() const { return nodes_.myself(); }
  // The master of this node's shard: this node, or its master. Null when that is unknown.
  Node* shard_master() const;
  std::vector<Node*> shard() const;

  Bus& bus() { return bus_; }
  Gossip& gossip() { return gossip_; }
  FailureDetector& detector() { return detector_; }
  SlotClaims& claims() { return claims_; }
  SlotStats& slot_stats() { return slot_stats_; }
  SlotMigration& slot_migration() { return slot_migration_; }
  SlotJobs& slot_jobs() { return slot_jobs_; }
  // Whether a migration of SlotMigration or SlotJobs includes the slot, or any of the slots.
  bool migrates(int slot) const;
  bool migrates_any(const SlotSet& slots) const;
  // Whether this node imports keys of other nodes' slots, by an atomic migration or by MIGRATE.
  bool imports_slots() const;
  Election& election() { return election_; }
  ManualFailover& manual_failover() { return manual_failover_; }
  Heartbeat& heartbeat() { return heartbeat_; }
  int64_t timeout_ms() const;

  // Whether the cluster is up for this node, so that requests are served.
  bool is_up() const { return up_; }
  // A hash of the secret that the nodes of the cluster share.
  int secret_hash() const;
  const std::string& secret() const { return secret_; }
  void adopt_secret(const std::string& secret) { secret_ = secret; }

  // --- Changes ----------------------------------------------------------------------------------
  // Marks the node file as out of date.
  void changed() { unsaved_ = true; }
  // Schedules the deletion of the keys of slots that this node has lost.
  void lost(const std::vector<int>& slots);
  // Updates the server by the node table. To be called after any change of it.
  void reconcile();
  // Calls reconcile() and writes the node file, unless that says the same already and changed() was
  // not called. False, with errno set, when it cannot be written.
  bool commit();
  // As commit(), for a command in the master's stream: reconcile() may have to close the link to
  // the master, so it runs at the end of the turn.
  bool commit_soon();
  // Takes a configuration epoch above all known ones, without an election.
  void bump_epoch();
  // Removes a node with its links. REQUIRES: not myself.
  void remove(Node& node);
  // Becomes a master that knows no other node; with a new id if `hard`.
  void reset(bool hard);
  // Starts a handshake with the node at that address. False when the address is invalid.
  bool meet(const NodeAddress& address);
  // Whether a handshake with the node at that address is going on.
  bool in_handshake_with(const NodeAddress& address) const;
  // Adds a node in handshake, under a random id until its own is known. `flags`: kHandshake, and
  // kMeet if this node is to send it MEET.
  void add_handshake_node(const NodeAddress& address, uint16_t flags);
  // Becomes a replica of that master / a master with the slots of its former master.
  void replicate_from(Node& master);
  void take_over();
  // Stops replicating and becomes a master without slots, of a shard of its own; the caller clears
  // the dataset. REQUIRES: a replica.
  void leave_shard();

  // --- Messages ---------------------------------------------------------------------------------
  // A message of this node with its header filled in.
  Message message(MessageType type);
  // The replication offset of this node. 0 for a replica that has not its master's dataset yet:
  // other nodes do not send clients to it, and it is behind the other replicas in an election.
  uint64_t offset() const;
  // Whether there is any key, of whatever database.
  bool has_keys() const;
  // Whether this replica has its shard's dataset, be it an old one: not while the first one, or
  // another in its place, has yet to come.
  bool has_dataset() const;
  // Whether has_dataset() is true and the link to the master is up.
  bool is_synchronized() const;

  // To be called ten times a second where there is no loop.
  void tick();
  void end_turn();

  // server::SlotGate
  Answer check(std::span<const server::SlotGate::Request> requests, const Caller& caller) override;
  LinkFigures link_figures() const override;
  bool admit_node(server::Client& client, std::string_view secret) override;
  server::DatasetSlots slots_in_dataset() const override;
  void adopt_slots(const server::DatasetSlots& told) override;
  const std::string& node_id() const override { return myself().id; }
  bool knows_node(std::string_view id) const override { return nodes_.find(id) != nullptr; }
  bool owns(int slot) const override { return nodes_.owner(slot) == &myself(); }
  // server::PubSubRelay
  void relay(server::TopicKind kind, std::string_view channel, std::string_view message) override;

 private:
  // Bus::Receiver
  void link_ready(Link& link) override;
  void received(Link& link, const Message& message) override;
  void link_lost(Node& node) override;

  void note_sender(Node& sender, Link& link, const Message& message);
  void dispatch(Link& link, Node* sender, const Message& message);
  void deliver_published(const Message& message);
  // Has CONFIG SET refuse cluster-bus-port-protected-mode without tls-cluster.
  void validate_bus_settings();
  // Logs a warning if the bus accepts nodes without authentication.
  void warn_of_open_bus();
  void update_myself();
  bool save();
  // Whether loading, a script or a task keeps the role and the keys from being changed.
  bool is_occupied() const;
  // Makes the server a replica of the node's master, or a master.
  void align_role();
  void update_state();
  // Why the cluster is down for this node; empty: it is up.
  std::string_view reason_to_be_down();
  void delete_lost_keys();
  void disconnect_unserved_clients();
  std::optional<Answer> answer_for_moving_slot(std::span<const server::SlotGate::Request> requests,
                                               const Caller& caller, int slot, const Node& owner);
  Answer answer_when_down(Answer answer, bool has_channels, bool writes) const;
  Answer redirect(Verdict verdict, int slot, const Node& node, const Caller& caller) const;

  server::Server& server_;
  NodeFile file_;
  NodeTable nodes_;
  Bus bus_;
  Gossip gossip_;
  FailureDetector detector_;
  SlotClaims claims_;
  SlotStats slot_stats_;
  SlotMigration slot_migration_;
  SlotJobs slot_jobs_;
  Election election_;
  ManualFailover manual_failover_;
  ShutdownFailover shutdown_failover_;
  ReplicaMigration migration_;
  Heartbeat heartbeat_;
  std::unique_ptr<net::Timer> timer_;
  std::string secret_;
  bool up_ = false;
  std::string_view down_because_;
  bool unsaved_ = false;
  std::string saved_text_;   // what the node file says; empty when that is not certain
  bool save_fails_ = false;  // the node file, where the node goes on without it
  bool unreconciled_ = false;
  bool is_new_in_shard_ =
      false;  // a replica that has another shard's dataset, or none, until it is synchronised
  SlotSet lost_;
  int64_t minority_ms_ = 0;     // the last time this node was in a minority
  int64_t serves_from_ms_ = 0;  // a master that restarts serves from then on, after it has heard
                                // the others
  std::vector<server::KeyReference> found_;  // reused from one request to the next
};

// By the client's connection; a client without one (a script's) has the plain view.
ClientView view_of(const server::Client& client);

// The endpoint that such a client is given for the node: as cluster-preferred-endpoint-type says.
std::string preferred_endpoint(const server::Server& server, const Node& node,
                               const ClientView& view);

}  // namespace latchkey::cluster
