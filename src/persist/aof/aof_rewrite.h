// Rewrites the append-only file: a child writes the dataset as a new base, while propagated
// commands go to a new increment; then the manifest names these two, and the older files become
// history.
//
// A rewrite starts on BGREWRITEAOF, when the file has grown by auto-aof-rewrite-percentage since
// the last rewrite, and when appendonly is switched on. It is postponed while another child runs.
// After three failures in a row, automatic rewrites wait a minute, then two, four, up to an hour.
//
// Where the file cannot be written to, as on a full disk, the new base holds what it lacks, and the
// rewrite makes room for what comes behind.
//
// On any failure, the files named by the manifest on disk still hold the dataset, and
// propagated commands are still written.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "persist/aof/aof_directory.h"
#include "persist/aof/append_only_file.h"
#include "persist/background_child.h"
#include "server/observe/persistence_figures.h"

namespace latchkey::persist {

// Writes the dataset, as RDB or requests by aof-use-rdb-preamble, to a temporary file, syncs it and
// renames it to `path`. `progress`: the progress of the child that calls this, or null in the
// server. False, with the reason logged, on failure.
bool write_aof_base(server::Server& server, const std::string& path, ChildProgress* progress);

class AofRewrite {
 public:
  // The arguments must outlive it.
  AofRewrite(server::Server& server, AofDirectory& directory, AppendOnlyFile& file,
             BackgroundChild& child);

  // The use of the new increment.
  enum class Purpose : uint8_t {
    kReplace,   // the file is being appended to
    kBaseOnly,  // appendonly is off
    // appendonly has just been switched on: the increment is a temporary file, useless until the
    // base is complete.
    kFirst,
    // As kReplace, of a file that cannot be written to: start() finds that out. The increment is
    // opened at the end.
    kRescue,
  };

  // Starts a rewrite. False, with the reason logged, on failure. REQUIRES: no child runs.
  bool start(Purpose purpose);
  void schedule() { scheduled_ = true; }
  bool scheduled() const { return scheduled_; }
  bool running() const { return child_.running(ChildKind::kAofRewrite); }
  // Drops a scheduled rewrite, and stops the child.
  void cancel();
  // While held, no rewrite starts by itself; one may be scheduled.
  void hold(bool held) { held_ = held; }
  bool held() const { return held_; }
  // Propagated commands go to another increment from now on, as after a rewrite begins. False, with
  // the reason logged, on failure. REQUIRES: the file is being appended to, and no rewrite runs.
  bool rotate();

  // `purpose` is called for the purpose of a starting rewrite, `ended` after each.
  void on_start_needed(std::function<Purpose()> purpose) { purpose_ = std::move(purpose); }
  void on_ended(std::function<void(bool done)> ended) { ended_ = std::move(ended); }

  // Starts a rewrite that is scheduled or due. Callers must call this at every tick, after
  // BackgroundChild::poll().
  void tick(bool appending);
  // Called on a user's request for a rewrite: earlier failures do not delay it.
  void forget_failures() { failures_in_a_row_ = 0; }

  // Bytes of the dataset's files at the last rewrite.
  uint64_t base_bytes() const { return base_bytes_; }
  void set_base_bytes(uint64_t bytes) { base_bytes_ = bytes; }
  // Fills in the figures of rewrites.
  void describe(server::AofFigures* figures) const;
  // Counts rewrites from 0 again.
  void reset_figures() { rewrites_ = 0; }

 private:
  // Writes out what is buffered. False when it cannot be.
  bool flush();
  // Opens an empty increment. -1, with the reason logged, on failure.
  int open_file(const std::string& name);
  bool open_increment();
  void ended(const ChildEnd& end);
  bool switch_files(const ChildEnd& end);
  void give_up(const ChildEnd& end);
  // Removes the temporary increment, whose base will not come.
  void drop_increment();
  bool is_limited();
  bool has_grown() const;
  int64_t now_s() const;
  std::string temporary_base(pid_t pid) const;
  std::string temporary_increment() const;

  server::Server& server_;
  AofDirectory& directory_;
  AppendOnlyFile& file_;
  BackgroundChild& child_;
  std::function<Purpose()> purpose_;
  std::function<void(bool done)> ended_;

  Purpose current_ = Purpose::kReplace;
  int64_t start_offset_ = 0;  // of the temporary increment
  bool base_is_rdb_ = false;  // of the running rewrite, whatever aof-use-rdb-preamble is by now
  bool scheduled_ = false;
  bool held_ = false;
  bool cancelling_ = false;
  uint64_t base_bytes_ = 0;
  bool last_ok_ = true;
  int64_t last_duration_s_ = -1;
  uint64_t rewrites_ = 0;
  uint64_t failures_in_a_row_ = 0;
  size_t last_copied_bytes_ = 0;
  int64_t delay_minutes_ = 0;
  int64_t next_try_s_ = 0;  // Unix time; 0: at once
};

}  // namespace latchkey::persist
