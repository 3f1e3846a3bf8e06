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

base::Result<std::string> NodeFile::open() {
  auto file = std::make_unique<base::Descriptor>(
      base::open_regular(path_, O_RDWR | O_CREAT, files_), files_);
  if (!file->is_open())
    return base::fail("Can't open " + path_ +
                      " in order to acquire a lock: " + base::read_error_text(errno));
  if (!lock(file->number())) {
    return base::fail(
        errno == EWOULDBLOCK
            ? "Sorry, the cluster configuration file " + path_ +
                  " is already used by a different Redis Cluster node. Please make sure that "
                  "different nodes use different cluster configuration files."
            : "Impossible to lock " + path_ + ": " + strerror(errno));
  }
  if (file->size().value_or(0) > base::ReadLimits{}.most_bytes)
    return base::fail("Can't read " + path_ + ": " + strerror(EFBIG));
  auto content = base::read_all(file->number(), files_);
  if (!content) return base::fail("Can't read " + path_ + ": " + strerror(errno));
  locked_ = std::move(file);
  return *std::move(content);
}

base::Result<> NodeFile::write_and_rename(const base::Descriptor& file,
                                          const std::string& temporary, std::string_view text) {
  if (!file.is_open()) return base::fail("Could not open temp cluster config file");
  // Locks the new file before it replaces the old one.
  if (!lock(file.number())) return base::fail("Could not lock tmp cluster config file");
  if (!base::write_all(file.number(), text, files_))
    return base::fail("Failed after writing to tmp cluster config file");
  if (!files_.sync(file.number())) return base::fail("Could not sync tmp cluster config file");
  if (!files_.rename(temporary, path_))
    return base::fail("Could not rename tmp cluster config file");
  return {};
}

base::Result<> NodeFile::replace(std::string_view text) {
  const std::string temporary = path_ + ".tmp-" + std::to_string(getpid());
  auto file = std::make_unique<base::Descriptor>(
      files_.open(temporary, O_WRONLY | O_CREAT | O_TRUNC, kMode), files_);
  if (base::Result<> written = write_and_rename(*file, temporary, text); !written) {
    const int reason = errno;
    files_.remove(temporary);
    errno = reason;
    return written;
  }
  locked_ = std::move(file);
  if (!base::sync_directory_of(path_, files_))
    return base::fail("Could not sync cluster config file dir");
  return {};
}

}  // namespace latchkey::cluster
