#include "cluster/node_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace latchkey::cluster {

namespace {

constexpr mode_t kMode = 0644;

bool lock(int descriptor) {
  return flock(descriptor, LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

bool NodeFile::open(std::string* text, std::string* error) {
  auto file = std::make_unique<base::Descriptor>(
      base::open_regular(path_, O_RDWR | O_CREAT, files_), files_);
  if (!file->is_open()) {
    *error = "Can't open " + path_ + " in order to acquire a lock: " + base::read_error_text(errno);
    return false;
  }
  if (!lock(file->number())) {
    *error = errno == EWOULDBLOCK
                 ? "Sorry, the cluster configuration file " + path_ +
                       " is already used by a different Redis Cluster node. Please make sure that "
                       "different nodes use different cluster configuration files."
                 : "Impossible to lock " + path_ + ": " + strerror(errno);
    return false;
  }
  const auto content = base::read_all(file->number(), files_);
  if (!content) {
    *error = "Can't read " + path_ + ": " + strerror(errno);
    return false;
  }
  *text = *content;
  locked_ = std::move(file);
  return true;
}

bool NodeFile::replace(std::string_view text) {
  const std::string temporary = path_ + ".tmp-" + std::to_string(getpid());
  auto file = std::make_unique<base::Descriptor>(
      files_.open(temporary, O_WRONLY | O_CREAT | O_TRUNC, kMode), files_);
  // Locks the new file before it replaces the old one.
  const bool done = file->is_open() && lock(file->number()) &&
                    base::write_all(file->number(), text, files_) && files_.sync(file->number()) &&
                    files_.rename(temporary, path_);
  if (!done) {
    const int reason = errno;
    files_.remove(temporary);
    errno = reason;
    return false;
  }
  locked_ = std::move(file);
  return base::sync_directory_of(path_, files_);
}

}  // namespace latchkey::cluster
