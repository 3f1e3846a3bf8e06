#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace latchkey::base {

namespace {

constexpr mode_t kFileMode = 0644;

mode_t mode_of_new_file() {
  const mode_t mask = umask(0);
  umask(mask);
  return kFileMode & ~mask;
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

Descriptor::Descriptor(const std::string& path, int flags)
    : Descriptor(open(path.c_str(), flags | O_CLOEXEC, kFileMode)) {}

Descriptor::~Descriptor() {
  const int error = errno;
  if (is_open()) close(number_);
  errno = error;
}

std::optional<uint64_t> Descriptor::size() const {
  struct stat status {};
  if (fstat(number_, &status) != 0) return std::nullopt;
  return static_cast<uint64_t>(status.st_size);
}

std::optional<std::string> read_all(int descriptor) {
  std::string text;
  char buffer[16 * 1024];
  for (;;) {
    const ssize_t count = read(descriptor, buffer, sizeof(buffer));
    if (count == 0) return text;
    if (count > 0) {
      text.append(buffer, static_cast<size_t>(count));
    } else if (errno != EINTR) {
      return std::nullopt;
    }
  }
}

std::optional<std::string> read_file(const std::string& path) {
  const Descriptor file(path, O_RDONLY);
  if (!file.is_open()) return std::nullopt;
  return read_all(file.number());
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(descriptor, bytes.data(), bytes.size());
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

bool replace_file(const std::string& path, std::string_view text) {
  std::string temporary = path + ".XXXXXX";
  const int descriptor = mkostemp(temporary.data(), O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool written = write_all(descriptor, text) && fchmod(descriptor, mode_of_new_file()) == 0 &&
                       fsync(descriptor) == 0;
  const int write_error = errno;
  close(descriptor);
  if (written && rename(temporary.c_str(), path.c_str()) == 0) {
    sync_directory_of(path);
    return true;
  }
  const int error = written ? errno : write_error;
  unlink(temporary.c_str());
  errno = error;
  return false;
}

bool sync_directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return sync_directory(slash == std::string::npos ? "." : path.substr(0, slash + 1));
}

bool sync_directory(const std::string& path) {
  const Descriptor directory(path, O_RDONLY | O_DIRECTORY);
  if (!directory.is_open()) return false;
  // Some file systems cannot sync a directory and return EINVAL or EBADF, which counts as success.
  return fsync(directory.number()) == 0 || errno == EINVAL || errno == EBADF;
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
