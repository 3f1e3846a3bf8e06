// Files by plain system calls: the stream classes of the standard library would make up a third of
// the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"

namespace latchkey::base {

// An open file that the destructor closes, preserving errno.
class Descriptor {
 public:
  // Takes ownership; a negative number means no file.
  explicit Descriptor(int number, FileSystem& files = disk()) : files_(files), number_(number) {}
  // Opens the file, with O_CLOEXEC; not open, with errno set, when that fails.
  Descriptor(const std::string& path, int flags, FileSystem& files = disk());
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }
  // The size in bytes; nothing, with errno set, on failure.
  std::optional<uint64_t> size() const;

 private:
  FileSystem& files_;
  int number_;
};

// The contents of the file; nothing, with errno set, when it cannot be opened or read.
std::optional<std::string> read_file(const std::string& path, FileSystem& files = disk());

// How much is read of what may be no file, and how long it may take.
struct ReadLimits {
  size_t most_bytes = size_t{64} << 20;
  // How long to wait for each piece that comes through a pipe; 0: pipes are refused. Shells make a
  // pipe of `<(command)`.
  int pipe_patience_ms = 10'000;
};

// The contents of whatever is at the path; nothing, with errno set, when it cannot be opened or
// read. EFBIG: it is larger, as a device is that has no end; ETIMEDOUT: nobody writes to the pipe;
// ENOTSUP: it is a pipe.
std::optional<std::string> read_within(const std::string& path, ReadLimits limits,
                                       FileSystem& files = disk());

// Opens a file that has to have an end: never waits for somebody to write to a pipe. -1 with errno
// on failure, ENOTSUP when it is a pipe or a device.
int open_regular(const std::string& path, int flags, FileSystem& files);

// strerror(), in other words where read_within() and open_regular() have set errno.
std::string read_error_text(int error);

// Reads an open descriptor (standard input) to its end; fails as read_file() does.
std::optional<std::string> read_all(int descriptor, FileSystem& files = disk());

// False, with errno set, when not all bytes could be written.
bool write_all(int descriptor, std::string_view bytes, FileSystem& files = disk());

// Sets the contents of the file, not atomically and without syncing. False with errno set on
// failure.
bool write_file(const std::string& path, std::string_view text);

// Replaces the file atomically and durably: readers see the old file or the new one, also after a
// crash. False, with errno set, on failure: the old file is there then, or, where only syncing the
// directory failed, the new one, of which a crash may make the old one. Keeps the owner, the group
// and the mode of the old file; a new one has 0644 without the bits of the umask.
bool replace_file(const std::string& path, std::string_view text, FileSystem& files);

// Syncs the directory, so that files created, renamed or removed in it are so after a crash. False
// with errno set on failure.
bool sync_directory_of(const std::string& path, FileSystem& files);
bool sync_directory(const std::string& path, FileSystem& files);

// Closes all descriptors of the process except the standard streams and `kept`: for forked
// children.
void close_all_but(std::vector<int> kept);

}  // namespace latchkey::base
