// WAITAOF: clients that wait until their writes are on the disk of this server, or on the disks of
// replicas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "server/command/command_context.h"

namespace latchkey::persist {

class Aof;

class AofWaits {
 public:
  // Both must outlive it.
  AofWaits(server::Server& server, const Aof& aof) : server_(server), aof_(aof) {}

  // Counts the replicas that have everything up to a stream offset on their disks, and requests
  // acknowledgements from them. If not set, no replica counts.
  struct ReplicaDisks {
    std::function<size_t(int64_t offset)> count;
    std::function<void()> ask;
  };
  void set_replica_disks(ReplicaDisks disks) { replica_disks_ = std::move(disks); }

  // WAITAOF.
  void command(server::CommandContext& ctx);
  // Replies to clients whose writes are on enough disks; to be called when something has been
  // synced, here or by a replica. Linear in the clients that wait.
  void serve();
  // Replies an error to clients that wait for this server's disk: there is no file any more.
  void refuse();

 private:
  struct Waiting {
    uint64_t client_id;
    int64_t offset;    // in the replication stream
    int64_t here;      // copies required on this server's disk, 0 or 1
    int64_t replicas;  // copies required on disks of replicas
  };
  int64_t copies_here(int64_t offset) const;
  int64_t copies_on_replicas(int64_t offset) const;
  bool is_served(const Waiting& waiting) const;

  server::Server& server_;
  const Aof& aof_;
  std::vector<Waiting> waiting_;
  ReplicaDisks replica_disks_;
};

}  // namespace latchkey::persist
