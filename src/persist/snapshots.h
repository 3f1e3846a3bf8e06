// SAVE, BGSAVE and LASTSAVE, save points, and saving at exit and on FLUSHALL.
//
// A snapshot is written to `dbfilename` in `dir`, by the server itself (save) or by a child while
// the server goes on (start). `save` points are checked on every tick: a child is started when
// there have been enough changes and the last snapshot is old enough; after a failure, only when
// five seconds have passed. A failure is remembered until the next success, and stops writes if
// stop-writes-on-bgsave-error is set and there are save points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "server/observe/persistence_figures.h"

namespace latchkey::server {
struct CommandContext;
class Server;
}  // namespace latchkey::server

namespace latchkey::persist {

class BackgroundChild;
struct ChildEnd;

class Snapshots {
 public:
  // Both must outlive it.
  Snapshots(server::Server& server, BackgroundChild& child);

  // Writes the dataset before it returns. False, with the reason logged, on failure.
  bool save();
  // Starts a child that writes it. False, with the reason logged, on failure. REQUIRES: no child
  // runs. `done`, which may be empty, is called when the child has ended.
  bool start(std::function<void(bool saved)> done = {});
  // Starts a child as soon as none is running.
  void schedule() { scheduled_ = true; }
  bool running() const;
  // Resets the count of changes, because other files hold what is in memory.
  void reset_changes();

  // Stops a child that writes a snapshot, to disk or to replicas.
  void abandon();

  // Callers must call this on every tick, after BackgroundChild::poll().
  void tick();
  // Fills in the figures of snapshots.
  void describe(server::PersistenceFigures* figures) const;
  // Counts snapshots from 0 again.
  void reset_figures() { saves_ = 0; }

  // Command handlers.
  void save_command(server::CommandContext& ctx);
  void start_command(server::CommandContext& ctx);
  // BGSAVE CANCEL: stops the child that writes to disk, or else forgets what is scheduled. Does not
  // wait for the child's end.
  void cancel_command(server::CommandContext& ctx);
  void last_save_command(server::CommandContext& ctx);

 private:
  bool may_try(int64_t now_s) const;
  bool is_due(int64_t now_s) const;
  uint64_t changes() const;
  void saved(uint64_t changes_total, int64_t now_s);
  void ended(const ChildEnd& end, uint64_t changes_total);
  void set_ok(bool ok);
  // Has writes refused or accepted, by the settings and the last result.
  void update_refusal();
  bool prepare_exit(unsigned flags);
  void dataset_flushed();
  int64_t now_s() const;
  int64_t shown_now_s() const;

  server::Server& server_;
  BackgroundChild& child_;
  uint64_t saved_total_ = 0;  // changes of the dataset up to the last snapshot
  int64_t last_save_s_;       // the machine's time, by which save points go
  int64_t shown_save_s_;      // the same moment in the time that data lives in (LASTSAVE)
  int64_t last_try_s_ = 0;
  bool ok_ = true;  // whether the last snapshot succeeded
  bool scheduled_ = false;
  int64_t last_duration_s_ = -1;
  uint64_t saves_ = 0;
  uint64_t failures_in_a_row_ = 0;
  size_t last_copied_bytes_ = 0;
};

}  // namespace latchkey::persist
