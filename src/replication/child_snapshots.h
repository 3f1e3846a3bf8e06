// Snapshots for replicas, made by the child that persistence forks. A snapshot in a file is the
// dump file, counted and reported as that of BGSAVE.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "replication/snapshot_maker.h"

namespace latchkey::persist {
class ByteSink;
class ChildProgress;
class Persistence;
}  // namespace latchkey::persist
namespace latchkey::server {
class Server;
}

namespace latchkey::replication {

class ChildSnapshots final : public SnapshotMaker {
 public:
  // Both must outlive the object.
  ChildSnapshots(server::Server& server, persist::Persistence& persistence)
      : server_(server), persistence_(persistence) {}

  bool is_busy() const override;
  bool begin_file(const SnapshotPlace& place, Done done) override;
  std::string path() const override { return path_; }
  bool begin_pipe(const SnapshotPlace& place, int pipe, Done done) override;
  bool begin_sockets(const SnapshotPlace& place, Receivers receivers, Done done) override;
  void abandon() override;

 private:
  // Writes the dataset to the sink, in the child.
  bool write(persist::ByteSink& sink, const SnapshotPlace& place, persist::ChildProgress& progress);
  bool start(std::function<bool(persist::ChildProgress&)> work, std::vector<int> keep_open,
             Done done, const char* where);

  server::Server& server_;
  persist::Persistence& persistence_;
  std::string path_;  // of the file that was begun last, whatever `dir` and `dbfilename` are now
};

}  // namespace latchkey::replication
