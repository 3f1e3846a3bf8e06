#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace latchkey::base {

namespace {

constexpr mode_t kFileMode = 0644;

// Creates a file beside `path` that was not there; -1 with errno on failure. Sets its name.
int create_beside(const std::string& path, std::string* name, FileSystem& files) {
  constexpr int kMaxTries = 1000;
  int descriptor = -1;
  for (int i = 0; i < kMaxTries; ++i) {
    *name = path + ".tmp-" + std::to_string(getpid()) + "-" + std::to_string(i);
    descriptor = files.open(*name, O_WRONLY | O_CREAT | O_EXCL, kFileMode);
    if (descriptor >= 0 || errno != EEXIST) break;
  }
  return descriptor;
}

// Gives a new file the owner, group and mode of the one that it will replace, as far as the process
// may; the mode only with the group that it was meant for.
void keep_rights(int descriptor, const struct stat& former) {
  struct stat own {};
  if (fstat(descriptor, &own) != 0) return;
  const bool is_alike = own.st_uid == former.st_uid && own.st_gid == former.st_gid;
  const bool is_given = is_alike || fchown(descriptor, former.st_uid, former.st_gid) == 0;
  const mode_t allowed = is_given ? 07777 : 0700;
  static_cast<void>(fchmod(descriptor, former.st_mode & allowed));
}

mode_t type_of(int descriptor) {
  struct stat status {};
  return fstat(descriptor, &status) == 0 ? status.st_mode & S_IFMT : 0;
}

// Waits until a pipe has bytes or has been closed. False, with errno set, when neither comes.
bool wait_for_pipe(int descriptor, int patience_ms) {
  pollfd pipe{descriptor, POLLIN, 0};
  int count;
  do {
    count = poll(&pipe, 1, patience_ms);
  } while (count < 0 && errno == EINTR);
  if (count == 0) errno = ETIMEDOUT;
  return count > 0;
}

void close_range_from(int first, int last) {
  if (first > last) return;
#ifdef SYS_close_range
  if (syscall(SYS_close_range, static_cast<unsigned>(first), static_cast<unsigned>(last), 0u) == 0)
    return;
#endif
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return;
  std::vector<int> descriptors;
  while (const dirent* entry = readdir(directory)) {
    const int descriptor = std::atoi(entry->d_name);
    if (descriptor >= first && descriptor <= last) descriptors.push_back(descriptor);
  }
  closedir(directory);
  for (const int descriptor : descriptors) close(descriptor);
}

}  // namespace

Descriptor::Descriptor(const std::string& path, int flags, FileSystem& files)
    : Descriptor(files.open(path, flags, kFileMode), files) {}

Descriptor::~Descriptor() {
  const int error = errno;
  if (is_open()) files_.close(number_);
  errno = error;
}

std::optional<uint64_t> Descriptor::size() const {
  struct stat status {};
  if (fstat(number_, &status) != 0) return std::nullopt;
  return static_cast<uint64_t>(status.st_size);
}

std::optional<std::string> read_all(int descriptor, FileSystem& files) {
  std::string text;
  char buffer[16 * 1024];
  for (;;) {
    const ssize_t count = files.read(descriptor, buffer, sizeof(buffer));
    if (count == 0) return text;
    if (count > 0) {
      text.append(buffer, static_cast<size_t>(count));
    } else if (errno != EINTR) {
      return std::nullopt;
    }
  }
}

std::optional<std::string> read_file(const std::string& path, FileSystem& files) {
  const Descriptor file(path, O_RDONLY, files);
  if (!file.is_open()) return std::nullopt;
  return read_all(file.number(), files);
}

std::optional<std::string> read_within(const std::string& path, ReadLimits limits,
                                       FileSystem& files) {
  const Descriptor file(path, O_RDONLY | O_NONBLOCK, files);
  if (!file.is_open()) return std::nullopt;
  const bool is_pipe = type_of(file.number()) == S_IFIFO;
  if (is_pipe && limits.pipe_patience_ms == 0) {
    errno = ENOTSUP;
    return std::nullopt;
  }
  // A terminal may take its time.
  if (!is_pipe) fcntl(file.number(), F_SETFL, fcntl(file.number(), F_GETFL) & ~O_NONBLOCK);
  std::string text;
  char buffer[16 * 1024];
  for (;;) {
    if (is_pipe && !wait_for_pipe(file.number(), limits.pipe_patience_ms)) return std::nullopt;
    const ssize_t count = files.read(file.number(), buffer, sizeof(buffer));
    if (count == 0) return text;
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) return std::nullopt;
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > limits.most_bytes) {
      errno = EFBIG;
      return std::nullopt;
    }
  }
}

int open_regular(const std::string& path, int flags, FileSystem& files) {
  const int descriptor = files.open(path, flags | O_NONBLOCK, kFileMode);
  if (descriptor < 0) return descriptor;
  const mode_t type = type_of(descriptor);
  // A directory opens as well, and tells what it is when it is read.
  if (type == S_IFREG || type == S_IFDIR) return descriptor;
  files.close(descriptor);
  errno = ENOTSUP;
  return -1;
}

std::string read_error_text(int error) {
  if (error == ENOTSUP) return "It is a pipe or a device";
  if (error == ETIMEDOUT) return "It is a pipe, and nobody writes to it";
  return strerror(error);
}

bool write_all(int descriptor, std::string_view bytes, FileSystem& files) {
  while (!bytes.empty()) {
    const ssize_t count = files.write(descriptor, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

bool write_file(const std::string& path, std::string_view text) {
  const Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC);
  return file.is_open() && write_all(file.number(), text);
}

bool replace_file(const std::string& path, std::string_view text, FileSystem& files) {
  struct stat former {};
  const bool is_there = stat(path.c_str(), &former) == 0;
  std::string temporary;
  const int descriptor = create_beside(path, &temporary, files);
  if (descriptor < 0) return false;
  if (is_there) keep_rights(descriptor, former);
  const bool written = write_all(descriptor, text, files) && files.sync(descriptor);
  const int write_error = errno;
  files.close(descriptor);
  if (written && files.rename(temporary, path)) return sync_directory_of(path, files);
  const int error = written ? errno : write_error;
  files.remove(temporary);
  errno = error;
  return false;
}

bool sync_directory_of(const std::string& path, FileSystem& files) {
  const size_t slash = path.rfind('/');
  return sync_directory(slash == std::string::npos ? "." : path.substr(0, slash + 1), files);
}

bool sync_directory(const std::string& path, FileSystem& files) {
  const Descriptor directory(path, O_RDONLY | O_DIRECTORY, files);
  if (!directory.is_open()) return false;
  // Some file systems cannot sync a directory and return EINVAL or EBADF, which counts as success.
  return files.sync(directory.number()) || errno == EINVAL || errno == EBADF;
}

void close_all_but(std::vector<int> kept) {
  std::sort(kept.begin(), kept.end());
  int first = STDERR_FILENO + 1;
  for (const int descriptor : kept) {
    close_range_from(first, descriptor - 1);
    first = std::max(first, descriptor + 1);
  }
  constexpr int kLast = 0x7fffffff;
  close_range_from(first, kLast);
}

}  // namespace latchkey::base
