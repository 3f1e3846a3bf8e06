// SAVE, BGSAVE and LASTSAVE, save points, and what else has the dataset saved: an exit, FLUSHALL.
//
// A snapshot is written to `dbfilename` in `dir`, by the server itself (save) or by a child while
// the server goes on (start). `save` points are looked at on every tick: the child is started when
// there were so many changes and the last snapshot is so old; after one that failed not before
// five seconds are over. A failure is remembered until the next one succeeds, and stops writes if
// stop-writes-on-bgsave-error says so and there are save points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

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

  // Writes the dataset before it returns. False, with the reason in the log, when that failed.
  bool save();
  // Has a child write it. False, with the reason in the log, when there can be none. REQUIRES: no
  // child runs. `done`, which may be empty, is told when the child has ended.
  bool start(std::function<void(bool saved)> done = {});
  // Has a child started as soon as there is none.
  void schedule() { scheduled_ = true; }
  bool running() const;
  // Counts changes from here on: what is in memory is what other files hold.
  void forget_changes();

  // Stops a child that writes a snapshot, to disk or to replicas.
  void abandon();

  // To be called on every tick, behind BackgroundChild::poll().
  void tick();
  // Adds what it knows.
  void describe(server::PersistenceFigures* figures) const;

  // Handlers.
  void save_command(server::CommandContext& ctx);
  void start_command(server::CommandContext& ctx);
  void last_save_command(server::CommandContext& ctx);

 private:
  bool may_try(int64_t now_s) const;
  bool is_due(int64_t now_s) const;
  uint64_t changes() const;
  void saved(uint64_t changes_total, int64_t now_s);
  void ended(const ChildEnd& end, uint64_t changes_total);
  void set_ok(bool ok);
  // Has writes refused, or lets them pass, as settings and the last result ask for.
  void update_refusal();
  bool prepare_exit(unsigned flags);
  void dataset_flushed();
  int64_t now_s() const;

  server::Server& server_;
  BackgroundChild& child_;
  uint64_t saved_total_ = 0;  // changes of the dataset up to the last snapshot
  int64_t last_save_s_;       // Unix time
  int64_t last_try_s_ = 0;
  bool ok_ = true;  // of the last one
  bool scheduled_ = false;
  int64_t last_duration_s_ = -1;
  uint64_t saves_ = 0;
  size_t last_copied_bytes_ = 0;
};

}  // namespace latchkey::persist
