#include "cluster/replica_migration.h"

#include <algorithm>

#include "cluster/cluster.h"
#include "server/server.h"

namespace latchkey::cluster {

namespace {

// An orphaned master may be in a failover, which comes first.
constexpr int64_t kPatienceMs = 5000;

}  // namespace

bool ReplicaMigration::is_orphan(const Node& master) const {
  return master.votes() && master.has(kMigrateTo) && !master.has(kFailing) &&
         master.working_replicas() == 0;
}

void ReplicaMigration::note_orphans() {
  const int64_t now_ms = cluster_.server().machine_ms();
  for (Node* node : cluster_.nodes().all()) {
    if (!is_orphan(*node)) {
      node->orphaned_since_ms = 0;
    } else if (node->orphaned_since_ms == 0) {
      node->orphaned_since_ms = now_ms;
    }
  }
}

bool ReplicaMigration::is_chosen() const {
  const Node& myself = cluster_.myself();
  size_t most = 0;
  for (const Node* node : cluster_.nodes().all()) {
    if (node->is_master()) most = std::max(most, node->working_replicas());
  }
  if (myself.master->working_replicas() != most || most < 2) return false;
  // The candidate is the working replica with the smallest id among all masters with that many
  // replicas.
  for (const Node* node : cluster_.nodes().all()) {
    if (!node->is_replica() || node->has(kFailing) || node->master == nullptr) continue;
    if (node->master->working_replicas() == most && node->id < myself.id) return false;
  }
  return true;
}

void ReplicaMigration::tick() {
  note_orphans();
  const Node& myself = cluster_.myself();
  const auto& settings = cluster_.server().settings();
  if (!cluster_.is_up() || !settings.cluster_allow_replica_migration || !myself.is_replica() ||
      myself.master == nullptr)
    return;
  const auto barrier = static_cast<size_t>(settings.cluster_migration_barrier);
  if (myself.master->working_replicas() <= barrier || !is_chosen()) return;
  const int64_t now_ms = cluster_.server().machine_ms();
  for (Node* node : cluster_.nodes().all()) {
    if (node->orphaned_since_ms == 0 || now_ms - node->orphaned_since_ms <= kPatienceMs) continue;
    cluster_.server().log().notice("Migrating to orphaned master " + title(*node));
    return cluster_.replicate_from(*node);
  }
}

}  // namespace latchkey::cluster
