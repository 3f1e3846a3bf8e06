#include "base/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace latchkey::base {

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
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return std::nullopt;
  auto text = read_all(descriptor);
  const int error = errno;
  close(descriptor);
  errno = error;
  return text;
}

bool write_file(const std::string& path, std::string_view text) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) return false;
  while (!text.empty()) {
    const ssize_t count = write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;
    text.remove_prefix(static_cast<size_t>(count));
  }
  const int error = errno;
  close(descriptor);
  errno = error;
  return text.empty();
}

bool sync_directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int descriptor = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return false;
  // Some file systems cannot sync a directory, and say so.
  const bool synced = fsync(descriptor) == 0 || errno == EINVAL || errno == EBADF;
  const int error = errno;
  close(descriptor);
  errno = error;
  return synced;
}

}  // namespace latchkey::base
