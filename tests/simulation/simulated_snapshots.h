// Snapshots for full resynchronisations without a child: the dataset is written to memory at once,
// as a child would see it, and leaves in pieces when the simulation says so.
#pragma once

#include <string>

#include "replication/snapshot_maker.h"
#include "simulation/dice.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::simulation {

class SimulatedSnapshots final : public replication::SnapshotMaker {
 public:
  // `path`: where files go.
  SimulatedSnapshots(server::Server& server, Dice& dice, std::string path);
  ~SimulatedSnapshots() override;

  // The child goes on a little: writes a piece, ends, or fails. `may_fail`: whether it may.
  void work(bool may_fail);

  bool is_busy() const override { return done_ != nullptr; }
  bool begin_file(const replication::SnapshotPlace& place, Done done) override;
  std::string path() const override { return path_; }
  bool begin_pipe(const replication::SnapshotPlace& place, int pipe, Done done) override;
  // Only for RDB channels, which are switched off here.
  bool begin_sockets(const replication::SnapshotPlace& place, Receivers receivers,
                     Done done) override;
  void abandon() override;

 private:
  // The socket's buffer takes this much at any time.
  static constexpr size_t kMaxPiece = 8192;

  void begin(const replication::SnapshotPlace& place, Done done);
  void write_piece();
  void end(bool ok);

  server::Server& server_;
  Dice& dice_;
  std::string path_;
  std::string dataset_;  // what has not been written
  std::string file_;     // what has
  Done done_;
  int pipe_ = -1;
  bool shut_ = false;
};

}  // namespace latchkey::simulation
