// Snapshots for replicas as this server makes them: by the child that persistence forks. Those on
// disk are snapshots like any other: the dump file, counted and reported as BGSAVE's.
#pragma once

#include "replication/snapshot_maker.h"

namespace latchkey::persist {
class Persistence;
}
namespace latchkey::server {
class Server;
}

namespace latchkey::replication {

class ChildSnapshots final : public SnapshotMaker {
 public:
  // Both must outlive it.
  ChildSnapshots(server::Server& server, persist::Persistence& persistence)
      : server_(server), persistence_(persistence) {}

  bool is_busy() const override;
  bool begin_file(const SnapshotPlace& place, Done done) override;
  std::string path() const override;
  bool begin_pipe(const SnapshotPlace& place, int pipe, Done done) override;
  void abandon() override;

 private:
  server::Server& server_;
  persist::Persistence& persistence_;
};

}  // namespace latchkey::replication
