#include "cluster/shutdown_failover.h"

#include <algorithm>

#include "cluster/cluster.h"
#include "replication/replication.h"
#include "server/command/propagation.h"
#include "server/config/cluster_shutdown.h"
#include "server/process/shutdown.h"
#include "server/server.h"

namespace latchkey::cluster {

using replication::Replica;
using replication::ReplicaState;

ShutdownFailover::ShutdownFailover(Cluster& cluster) : cluster_(cluster) {
  server::Shutdown& shutdown = cluster_.server().shutdown();
  shutdown.before_saving([this](unsigned flags) { return may_leave(flags); });
  shutdown.before_leaving([this](unsigned flags) { hand_over(flags); });
}

bool ShutdownFailover::may_leave(unsigned flags) const {
  if ((flags & server::kShutdownSafe) == 0 || !cluster_.myself().votes()) return true;
  cluster_.server().log().warning(
      "This is a voting primary. Shutting it down may cause the cluster to go down.");
  return false;
}

std::string ShutdownFailover::find_successor() const {
  const auto& replication = cluster_.server().layer<replication::Replication>();
  for (const Node* node : cluster_.myself().replicas) {
    const NodeAddress& address = node->address;
    const auto is_synced = [&](const Replica* replica) {
      return replica->state == ReplicaState::kOnline &&
             replica->acked_offset == replication.offset() &&
             (replica->cluster_node_id == node->id || replica->is_at(address.ip, address.port) ||
              replica->is_at(address.ip, address.tls_port));
    };
    if (std::ranges::any_of(replication.replicas(), is_synced)) return node->id;
  }
  return {};
}

void ShutdownFailover::hand_over(unsigned flags) {
  if ((flags & server::kShutdownFailover) == 0 || !cluster_.myself().votes()) return;
  server::Server& server = cluster_.server();
  const std::string successor = find_successor();
  if (successor.empty()) {
    return server.log().warning(
        "Unable to find a replica to perform the auto failover on shutdown.");
  }
  server.log().notice("Perform auto failover to replica " + successor + " on shutdown.");
  // In the stream, behind all writes. The others learn by it that it is not they.
  server.propagation().add(server::kAnyDatabase,
                           {"CLUSTER", "FAILOVER", "FORCE", "REPLICAID", successor},
                           server::kPropagateToReplicas | server::kPropagateOutsideMulti);
  // The process may end before the turn of the loop does.
  auto& replication = server.layer<replication::Replication>();
  replication.feed_replicas();
  for (const Replica* replica : replication.replicas()) {
    net::Connection* const connection = replica->client.connection();
    if (connection == nullptr) continue;
    connection->flush();
    connection->send_deferred();
  }
}

}  // namespace latchkey::cluster
