// What INFO and MEMORY tell of replicas outside of the replication section; filled in by
// replication, a layer above (Server::on_replication_figures). As it stands it is that of a server
// without replicas.
#pragma once

#include <cstddef>
#include <cstdint>

namespace latchkey::server {

struct ReplicationFigures {
  size_t replicas = 0;
  uint64_t full_syncs = 0;
  uint64_t partial_syncs = 0;
  uint64_t refused_partial_syncs = 0;
  uint64_t bytes_received = 0;       // from masters
  uint64_t bytes_sent = 0;           // to replicas, those that have gone included
  size_t locally_expiring_keys = 0;  // of a writable replica
  size_t migration_sockets = 0;      // kept by MIGRATE
  size_t backlog_memory = 0;
  // The stream as it is kept, for the backlog and for replicas that are slow.
  size_t buffers_memory = 0;
  // Of the replicas' connections, what waits to be sent to them included.
  size_t clients_memory = 0;
  // What is kept for replicas that are slow, and goes when they have gone: evicting keys does not
  // make it less.
  size_t pending_memory = 0;
  // The master's stream, kept by this server as a replica until it has the dataset.
  size_t full_sync_buffer = 0;
};

}  // namespace latchkey::server
