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

std::string_view NodeFile::write_and_rename(const base::Descriptor& file,
                                            const std::string& temporary, std::string_view text) {
  if (!file.is_open()) return "Could not open temp cluster config file";
  // Locks the new file before it replaces the old one.
  if (!lock(file.number())) return "Could not lock tmp cluster config file";
  if (!base::write_all(file.number(), text, files_))
    return "Failed after writing to tmp cluster config file";
  if (!files_.sync(file.number())) return "Could not sync tmp cluster config file";
  if (!files_.rename(temporary, path_)) return "Could not rename tmp cluster config file";
  return {};
}

std::string_view NodeFile::replace(std::string_view text) {
  const std::string temporary = path_ + ".tmp-" + std::to_string(getpid());
  auto file = std::make_unique<base::Descriptor>(
      files_.open(temporary, O_WRONLY | O_CREAT | O_TRUNC, kMode), files_);
  const std::string_view failed = write_and_rename(*file, temporary, text);
  if (!failed.empty()) {
    const int reason = errno;
    files_.remove(temporary);
    errno = reason;
    return failed;
  }
  locked_ = std::move(file);
  if (!base::sync_directory_of(path_, files_)) return "Could not sync cluster config file dir";
  return {};
}

}  // namespace latchkey::cluster
