// Online backups (BACKUP): files that hold the dataset as it was at one moment, made while the
// server goes on. They came with Redis 8.10 and follow its documentation
// (https://redis.io/docs/latest/commands/backup/).
//
// START has the append-only file rewritten and puts a hard link to the new base into the directory
// `backupdirname`; from then on no other rewrite begins, and the increment behind the base grows.
// SEAL links the increment too, writes a manifest of the two beside them, and lets the server go on
// in another increment, so that what is linked stays as it is. `preload-file aof:MANIFEST` loads
// it. While appendonly is off the file is open for the backup alone.
//
// A backup that fails, is aborted, or is not sealed when the server ends, leaves nothing in its
// directory; nothing that it does can harm the append-only file. As its files and those of the
// append-only file are named relative to `dir`, CONFIG SET dir is refused from START on until the
// backup has failed or its files were removed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "persist/aof/aof.h"

namespace latchkey::persist {

class Backup {
 public:
  // Both must outlive it. Registers itself with the append-only file, the settings and SHUTDOWN.
  Backup(server::Server& server, Aof& aof);

  // Callers must call this at every tick, after Aof::tick().
  void tick();
  // Whether a backup has begun and is neither sealed nor failed.
  bool in_progress() const;

  // Command handlers.
  void start_command(server::CommandContext& ctx);
  void seal_command(server::CommandContext& ctx);
  void abort_command(server::CommandContext& ctx);
  void cleanup_command(server::CommandContext& ctx);
  void status_command(server::CommandContext& ctx) const;
  void list_command(server::CommandContext& ctx) const;

 private:
  enum class State : uint8_t { kIdle, kPending, kSnapshotting, kIncrementing, kSealed, kFailed };

  void rewrite_ended(bool done);
  void fail(std::string reason);
  // Refuses CONFIG SET dir as long as there are files that would not be found then. The error is
  // one of CONFIG SET.
  base::Result<> check_directory_change() const;
  base::Result<> seal();
  // Makes the directory, if there is none. Fails when there is anything in it. The error is a
  // reply's text after "ERR ".
  base::Result<> take_directory() const;
  // Puts a hard link to that file of the append-only file into the directory.
  base::Result<> link(const std::string& name);
  void remove_files();
  std::string path_of(const std::string& name) const;
  int64_t now_s() const;
  // The Unix time to show; 0 for 0.
  int64_t shown_s(int64_t at_s) const;

  server::Server& server_;
  Aof& aof_;
  State state_ = State::kIdle;
  std::string error_;
  int64_t started_s_ = 0;  // Server::machine_ms(), in seconds; 0: not yet
  int64_t sealed_s_ = 0;
  std::vector<std::string>
      files_;  // names in the directory: the base, the increments, the manifest
};

}  // namespace latchkey::persist
