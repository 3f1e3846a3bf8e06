// The append-only file as a whole: whether there is one, what it is loaded from, when it is
// rewritten, who waits for it.
//
// It is off, on, or being switched on: then effects go to a temporary increment until a first
// rewrite has made the base that they continue (persist/aof_rewrite.h). At start the files that the
// manifest names are loaded instead of a snapshot, and the last increment is appended to.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/worker.h"
#include "persist/aof_directory.h"
#include "persist/aof_loader.h"
#include "persist/aof_rewrite.h"
#include "persist/append_only_file.h"
#include "persist/loading.h"
#include "server/observe/persistence_figures.h"

namespace latchkey::server {
struct CommandContext;
class Server;
}  // namespace latchkey::server

namespace latchkey::persist {

class Aof {
 public:
  // Both must outlive it. Hooks itself into the server: turns of the loop, settings, SHUTDOWN.
  Aof(server::Server& server, BackgroundChild& child);

  // At start: sees which files there are, whether or not they are wanted. False, with the reason
  // logged, when the manifest is damaged.
  bool read_manifest() { return directory_.load(); }
  // Then, when appendonly is on: loads the files. kNoFile when there are none. Figures of loading
  // go to `figures`.
  Loading::Result load_at_start(LoadingFigures& figures);
  // When the dataset has been loaded: opens what is appended to, as appendonly says by now. False,
  // with the reason logged, when the server cannot start.
  bool open_at_start();

  // DEBUG LOADAOF: forgets the dataset and loads it from the files. False, with the reason logged,
  // when that failed.
  bool reload(LoadingFigures& figures);

  // The dataset is about to be replaced by what is no effect: the file is closed, and begun anew
  // when that is done. A server that cannot begin it tries again each second, and after ten times
  // does not go on.
  void begin_replacement();
  void end_replacement();

  bool enabled() const { return state_ != State::kOff; }
  AppendOnlyFile& file() { return file_; }
  AofRewrite& rewrite() { return rewrite_; }

  // To be called at every tick, behind BackgroundChild::poll().
  void tick();
  // Adds what it knows.
  void describe(server::AofFigures* figures) const;
  void reset_figures() { file_.reset_delayed_syncs(); }

  // How many replicas have everything up to an offset of the stream on their disks, and how to ask
  // them. Without it there are none.
  struct ReplicaDisks {
    std::function<size_t(int64_t offset)> count;
    std::function<void()> ask;
  };
  void set_replica_disks(ReplicaDisks disks) { replica_disks_ = std::move(disks); }
  // Serves WAITAOF where enough has been synced here and, as they have said by now, on replicas.
  void serve_waiting();

  // Handlers.
  void rewrite_command(server::CommandContext& ctx);
  void wait_command(server::CommandContext& ctx);

 private:
  enum class State : uint8_t { kOff, kWaitForRewrite, kOn };
  struct Waiting {
    uint64_t client_id;
    int64_t offset;
    int64_t here;      // copies that are wanted on this server's disk, 0 or 1
    int64_t replicas;  // and on those of replicas
  };

  bool setting_changed(std::string* error);
  bool switch_on();
  void try_to_switch_on();
  void switch_off();
  bool prepare_exit(unsigned flags);
  AofRewrite::Purpose purpose() const;
  void rewritten();
  Loading::Result load_files(LoadingFigures& figures);
  bool create_base(AofManifest* next);
  void follow_offset();
  // Says in the manifest where the stream was when the file was closed in good order.
  void note_end();
  // 1 when everything up to there is on this server's disk.
  int64_t copies_here(int64_t offset) const;
  int64_t copies_on_replicas(int64_t offset) const;
  bool is_served(const Waiting& waiting) const;
  void refuse_waiting();

  server::Server& server_;
  BackgroundChild& child_;
  base::Worker worker_;  // syncs, closes and frees
  AofDirectory directory_;
  AppendOnlyFile file_;
  AofRewrite rewrite_;
  AofLoader loader_;
  State state_ = State::kOff;
  int tries_left_ = 0;            // to begin the file behind a replacement
  bool dataset_changes_ = false;  // another one is being put in its place
  int64_t next_try_ms_ = 0;
  bool loaded_ = false;  // what the server began with came from the files
  std::vector<Waiting> waiting_;
  ReplicaDisks replica_disks_;
};

}  // namespace latchkey::persist
