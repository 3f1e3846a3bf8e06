// Figures of replication for INFO and MEMORY, besides the replication section; filled in by
// replication, a layer above (LayerFigures). The defaults are those of a server
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
  uint64_t bytes_sent = 0;           // to replicas, disconnected ones included
  size_t locally_expiring_keys = 0;  // of a writable replica
  size_t migration_sockets = 0;      // kept by MIGRATE
  size_t backlog_memory = 0;
  // All buffers of the replication stream, for the backlog and for slow replicas.
  size_t buffers_memory = 0;
  // Memory of the replicas' connections, including pending output.
  size_t clients_memory = 0;
  // Stream kept only for slow replicas, freed when they catch up or disconnect: evicting keys does
  // not reduce it.
  size_t pending_memory = 0;
  // The master's stream, buffered while this server, as a replica, loads the dataset.
  size_t full_sync_buffer = 0;
};

}  // namespace latchkey::server
