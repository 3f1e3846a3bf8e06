// The file of a node's state (cluster/nodes_text.h). It is locked during this object's lifetime, so
// that two nodes cannot share it, and is replaced atomically.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"

namespace latchkey::cluster {

class NodeFile {
 public:
  // `files` must outlive it.
  NodeFile(std::string path, base::FileSystem& files) : path_(std::move(path)), files_(files) {}

  const std::string& path() const { return path_; }
  // Opens the file, creating it if needed, locks it and reads it. False, with the reason in *error.
  bool open(std::string* text, std::string* error);
  // Replaces the content, and syncs it to disk. Empty when that is done; otherwise what could not
  // be done, for the log, with errno set: the old content stays, or the new one is there and may
  // be gone after a crash.
  std::string_view replace(std::string_view text);

 private:
  std::string_view write_and_rename(const base::Descriptor& file, const std::string& temporary,
                                    std::string_view text);

  std::string path_;
  base::FileSystem& files_;
  std::unique_ptr<base::Descriptor> locked_;
};

}  // namespace latchkey::cluster
