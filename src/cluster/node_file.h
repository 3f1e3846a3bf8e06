// The file of a node's state (cluster/nodes_text.h). It is locked during this object's lifetime, so
// that two nodes cannot share it, and is replaced atomically.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/result.h"

namespace latchkey::cluster {

class NodeFile {
 public:
  // `files` must outlive it.
  NodeFile(std::string path, base::FileSystem& files) : path_(std::move(path)), files_(files) {}

  const std::string& path() const { return path_; }
  // Opens the file, creating it if needed, locks it and reads it. Returns its content. Fails also
  // when it is larger than base::ReadLimits says.
  base::Result<std::string> open();
  // Replaces the content, and syncs it to disk. When that fails, the old content stays, or the new
  // one is there and may be gone after a crash. The error says for the log what could not be done;
  // errno is set.
  base::Result<> replace(std::string_view text);

 private:
  base::Result<> write_and_rename(const base::Descriptor& file, const std::string& temporary,
                                  std::string_view text);

  std::string path_;
  base::FileSystem& files_;
  std::unique_ptr<base::Descriptor> locked_;
};

}  // namespace latchkey::cluster
