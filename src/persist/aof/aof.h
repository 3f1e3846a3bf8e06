// The append-only file as a whole: loading it, switching it on and off, rewriting it, and serving
// WAITAOF.
//
// Its state is off, on, or waiting for the first rewrite: then propagated commands are written to a
// temporary increment until the rewrite has made the base to which the increment belongs
// (persist/aof/aof_rewrite.h). At start the files named by the manifest are loaded instead of a
// snapshot, and propagated commands are appended to the last increment.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/worker.h"
#include "persist/aof/aof_directory.h"
#include "persist/aof/aof_loader.h"
#include "persist/aof/aof_rewrite.h"
#include "persist/aof/aof_waits.h"
#include "persist/aof/append_only_file.h"
#include "persist/loading.h"
#include "server/observe/persistence_figures.h"

namespace latchkey::server {
struct CommandContext;
class Server;
}  // namespace latchkey::server

namespace latchkey::persist {

class Aof {
 public:
  // Both must outlive it. Registers itself with the server: turns of the loop, settings, SHUTDOWN.
  Aof(server::Server& server, BackgroundChild& child);

  // At start: reads the manifest, whether or not appendonly is on. False, with the reason logged,
  // when the manifest is damaged.
  bool read_manifest() { return directory_.load(); }
  // Then, when appendonly is on: loads the files. kNoFile when there are none. Updates `figures`.
  Loading::Result load_at_start(LoadingFigures& figures);
  // Instead: loads the files that the manifest at `path` names, beside which they are.
  Loading::Result load_other(const std::string& path, LoadingFigures& figures);
  // When the dataset has been loaded: opens the file for appending if appendonly is on at that
  // time. False, with the reason logged, when the server cannot start.
  bool open_at_start();

  // DEBUG LOADAOF: clears the dataset and loads it from the files. False, with the reason logged,
  // on failure.
  bool reload(LoadingFigures& figures);

  // The dataset is about to be replaced, which is not propagated: begin_replacement() closes the
  // file, and end_replacement() begins a new one. On failure it tries again each second, and after
  // ten failures stops the server.
  void begin_replacement();
  // `snapshot`: the path of a file with the new dataset, which becomes the base where that has the
  // form of a snapshot; empty: there is none.
  void end_replacement(const std::string& snapshot = {});

  // For backups (persist/aof/backup.h): has a base written behind which an increment grows, now or
  // when that is possible, and opens the file for it where appendonly is off. Fails while the
  // dataset is being replaced, and, with the reason logged, when the file cannot be written; the
  // error is a reply's text after "ERR ". end_backup() lets rewrites start again, and closes and
  // removes a file that is open for the backup alone.
  base::Result<> begin_backup();
  void end_backup();
  // Never while appendonly is on.
  bool is_open_for_backup() const;
  // Puts everything so far on the disk. False on failure.
  bool sync();
  const AofManifest& manifest() const { return directory_.manifest(); }
  std::string path_of(std::string_view name) const { return directory_.path_of(name); }
  // `ended` is called after each rewrite, `stopping` before the file is closed because appendonly
  // was switched off or the dataset is being replaced.
  void on_rewrite_ended(std::function<void(bool done)> ended) { rewrite_ended_ = std::move(ended); }
  void on_stopping(std::function<void()> stopping) { stopping_ = std::move(stopping); }

  bool enabled() const { return state_ != State::kOff; }
  AppendOnlyFile& file() { return file_; }
  AofRewrite& rewrite() { return rewrite_; }
  std::string manifest_path() const { return directory_.manifest_path(); }

  // Callers must call this at every tick, after BackgroundChild::poll().
  void tick();
  // Fills in the figures of the append-only file.
  void describe(server::AofFigures* figures) const;
  void reset_figures() {
    file_.reset_delayed_syncs();
    rewrite_.reset_figures();
  }

  // Whether everything up to an offset of the replication stream is on this server's disk.
  bool is_on_disk(int64_t offset) const { return enabled() && file_.synced_offset() >= offset; }
  AofWaits& waits() { return waits_; }

  // BGREWRITEAOF.
  void rewrite_command(server::CommandContext& ctx);

 private:
  enum class State : uint8_t { kOff, kWaitForRewrite, kOn };

  // Called when `appendonly` has changed. The error is one of CONFIG SET.
  base::Result<> setting_changed();
  bool switch_on();
  void try_to_switch_on();
  bool switch_on_with(const std::string& snapshot);
  void switch_off();
  bool prepare_exit(unsigned flags);
  AofRewrite::Purpose purpose() const;
  void rewrite_ended(bool done);
  Loading::Result load_files(const AofManifest& manifest, const std::string& directory,
                             LoadingFigures& figures);
  // Logs how long it took.
  Loading::Result load_timed(const AofManifest& manifest, const std::string& directory,
                             LoadingFigures& figures);
  bool create_base(AofManifest* next);
  void follow_offset();
  // Stores in the manifest the stream offset at which the file was closed cleanly.
  void note_end();

  server::Server& server_;
  BackgroundChild& child_;
  base::Worker worker_;  // syncs, closes and frees
  AofDirectory directory_;
  AppendOnlyFile file_;
  AofRewrite rewrite_;
  AofLoader loader_;
  State state_ = State::kOff;
  int tries_left_ = 0;            // to begin a new file after a replacement
  bool dataset_changes_ = false;  // the dataset is being replaced
  int64_t next_try_ms_ = 0;
  bool loaded_ = false;                   // the dataset at start was loaded from the files
  bool is_open_for_backup_ = false;       // begin_backup() opened it, with appendonly off
  bool was_there_before_backup_ = false;  // its directory
  std::function<void(bool done)> rewrite_ended_;
  std::function<void()> stopping_;
  AofWaits waits_;
};

}  // namespace latchkey::persist
