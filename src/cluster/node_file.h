// The file in which a node keeps its state (cluster/node_state.h). It is locked as long as this
// lives, so that two nodes do not share it, and takes a new text whole or not at all.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"

namespace latchkey::cluster {

class NodeFile {
 public:
  explicit NodeFile(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  // Opens the file, making it if need be, locks it and reads it. False, with the reason in *error.
  bool open(std::string* text, std::string* error);
  // Puts the text in place of what is there, on disk. False with errno set; the old text stays.
  bool replace(std::string_view text);

 private:
  std::string path_;
  std::unique_ptr<base::Descriptor> locked_;
};

}  // namespace latchkey::cluster
