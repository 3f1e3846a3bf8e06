// The directory of the append-only file (appenddirname) and the manifest in it, on disk.
//
// At any time the manifest on disk names files that together hold the dataset: it is replaced
// atomically (written to a temporary file, synced, renamed, the directory synced) before the files
// it does not name any more are removed. Failures are logged with the reference's messages.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/worker.h"
#include "persist/aof/aof_manifest.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::persist {

// Of what is made for an append-only file, less the process's umask.
inline constexpr mode_t kFileMode = 0644;
inline constexpr mode_t kDirectoryMode = 0755;

class AofDirectory {
 public:
  // Both must outlive it.
  AofDirectory(server::Server& server, base::Worker& worker);

  const AofManifest& manifest() const { return manifest_; }

  // The path of a file in the directory.
  std::string path_of(std::string_view name) const;
  std::string manifest_path() const { return path_of(manifest_name()); }
  // The path of a file in the server's own directory (`dir`).
  std::string path_beside(std::string_view name) const;

  // Reads the manifest from disk; it is empty when there is no file. False, with the reason logged,
  // when it cannot be read or is damaged.
  bool load();
  // Replaces the manifest on disk and in memory by `next`. False, with the reason logged and
  // nothing changed, when it could not be written. Callers must use discard() for files that only
  // `next` names: on a disk that fails, it may be the one that is found after a crash.
  bool replace(AofManifest next);
  bool exists() const;
  // Removes the files that the manifest names, the manifest, and the directory if nothing else is
  // in it.
  void remove_all();
  // Creates the directory, if needed, and makes it durable. False, with the reason logged, on
  // failure.
  bool create();

  // Moves a single file of an older server from `dir` into the directory as the base. False when
  // the file exists and could not be moved.
  bool migrate_old_file();

  // Opens an increment for appending. -1 with errno on failure.
  int open_for_append(std::string_view name, bool truncate) const;
  // Bytes of the base and the increments; missing files count as 0.
  uint64_t dataset_bytes() const;

  // Where an increment that is opened now begins (AofFile::start_offset); -1 when the release that
  // is emulated has manifests without it.
  int64_t next_start_offset() const;

  // Removes the history from the manifest, and its files in the background, unless
  // aof-disable-auto-gc. The manifest, the base and the increments stay, whatever the history
  // names. False when the manifest could not be written.
  bool collect_history();
  // Removes a file that a manifest was to name which replace() refused, unless that manifest may
  // still be on disk. False when it stays.
  bool discard(std::string_view name);
  // Whether a manifest that replace() refused may be on disk, until it succeeds again.
  bool is_in_doubt() const { return is_in_doubt_; }
  // Removes a file; the worker frees its disk space.
  void remove_in_background(std::string_view name);
  // Syncs the directory, so that renames within it are durable. False with errno.
  bool sync() const;

 private:
  std::string manifest_name() const;
  bool old_file_must_move() const;
  enum class Saved : uint8_t { kYes, kNo, kNotSynced };
  Saved save(const AofManifest& manifest) const;
  void restore_manifest();
  // Numbers new files after those in the directory: where only the manifest was lost, its files may
  // still be needed.
  void number_after_existing_files();

  server::Server& server_;
  base::Worker& worker_;
  AofManifest manifest_;
  bool is_in_doubt_ = false;  // another manifest than this one may be on disk
};

}  // namespace latchkey::persist
