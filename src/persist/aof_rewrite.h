// Rewrites the append-only file: a child writes the dataset as a new base, while effects go to a
// new increment; then the manifest names these two, and what was there before is history.
//
// It is started by BGREWRITEAOF, when the file has grown so much since the last time
// (auto-aof-rewrite-percentage), and when appendonly is switched on. While another child runs it is
// put off. By itself it is not tried again at once after three failures in a row: a minute later,
// then two, four, up to an hour.
//
// Whatever fails, the files that the manifest on disk names hold the dataset, and effects go on to
// be written.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "persist/aof_directory.h"
#include "persist/append_only_file.h"
#include "persist/background_child.h"
#include "server/observe/persistence_figures.h"

namespace latchkey::persist {

// Writes the dataset, RDB or requests as aof-use-rdb-preamble says, to a file that is synced and
// then moved to `path`. `progress`: of the child that this is, or null. False after a line in the
// log.
bool write_aof_base(server::Server& server, const std::string& path, ChildProgress* progress);

class AofRewrite {
 public:
  // All must outlive it.
  AofRewrite(server::Server& server, AofDirectory& directory, AppendOnlyFile& file,
             BackgroundChild& child);

  // What the new increment is for.
  enum class Purpose : uint8_t {
    kReplace,   // the file is being appended to
    kBaseOnly,  // appendonly is off
    // appendonly has just been switched on: the increment is a temporary file and of no use until
    // the base is there.
    kFirst,
  };

  // Begins. False, with the reason logged, when it could not. REQUIRES: no child runs.
  bool start(Purpose purpose);
  void schedule() { scheduled_ = true; }
  bool scheduled() const { return scheduled_; }
  bool running() const { return child_.running(ChildKind::kAofRewrite); }
  // Forgets what was scheduled, and stops the child.
  void cancel();

  // `purpose`: what a rewrite that begins now is for. `done` is called when one has ended well.
  void on_start_needed(std::function<Purpose()> purpose) { purpose_ = std::move(purpose); }
  void on_done(std::function<void()> done) { done_ = std::move(done); }

  // Begins what is scheduled or due. To be called at every tick, behind BackgroundChild::poll().
  void tick(bool appending);
  // Somebody asks for a rewrite: earlier failures are of no account.
  void forget_failures() { failures_in_a_row_ = 0; }

  // Bytes of the dataset's files when they were written anew last.
  uint64_t base_bytes() const { return base_bytes_; }
  void set_base_bytes(uint64_t bytes) { base_bytes_ = bytes; }
  // Adds what it knows.
  void describe(server::AofFigures* figures) const;

 private:
  bool open_increment();
  void ended(const ChildEnd& end);
  bool switch_files(const ChildEnd& end);
  void give_up(const ChildEnd& end);
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
  std::function<void()> done_;

  Purpose current_ = Purpose::kReplace;
  int64_t start_offset_ = 0;  // of the temporary increment
  bool scheduled_ = false;
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
