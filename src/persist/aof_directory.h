// The directory of the append-only file (appenddirname) and the manifest in it, on disk.
//
// Whatever happens in between, the manifest on disk names files that together hold the dataset: it
// is replaced as a whole (written aside, synced, renamed, the directory synced), before files it no
// longer names are removed. Failures are logged in the reference's words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/worker.h"
#include "persist/aof_manifest.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::persist {

class AofDirectory {
 public:
  // Both must outlive it.
  AofDirectory(server::Server& server, base::Worker& worker);

  const AofManifest& manifest() const { return manifest_; }

  // How to open a file of the directory.
  std::string path_of(std::string_view name) const;
  // The same for a file beside it, in the server's own directory.
  std::string path_beside(std::string_view name) const;

  // Takes what the manifest on disk says; an empty manifest when there is none. False, with the
  // reason logged, when it cannot be read or is damaged.
  bool load();
  // Makes `next` the manifest, on disk and here. False, with the reason logged and nothing changed,
  // when it could not be written.
  bool replace(AofManifest next);
  bool create();

  // A single file of an older server, beside the directory, becomes the base in it. False when it
  // was there and could not be moved.
  bool migrate_old_file();

  // Opens for appending what the manifest's increments are called. -1 with errno on failure.
  int open_for_append(std::string_view name, bool truncate) const;
  // Bytes of the base and the increments; files that are not there count nothing.
  uint64_t dataset_bytes() const;

  // Forgets the history and has its files removed in the background, unless aof-disable-auto-gc.
  // False when the manifest could not be written.
  bool collect_history();
  // Removes a file; its space is given back by the worker.
  void remove_in_background(std::string_view name);
  // Makes renames within the directory last. False with errno.
  bool sync() const;

 private:
  std::string manifest_name() const;
  bool old_file_must_move() const;
  bool save(const AofManifest& manifest) const;

  server::Server& server_;
  base::Worker& worker_;
  AofManifest manifest_;
};

}  // namespace latchkey::persist
