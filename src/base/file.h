// Files by plain system calls: the stream classes of the standard library would make up a third of
// the program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::base {

// An open file that the destructor closes, preserving errno.
class Descriptor {
 public:
  // Takes ownership; a negative number means no file.
  explicit Descriptor(int number) : number_(number) {}
  // Opens the file, with O_CLOEXEC; not open, with errno set, when that fails.
  Descriptor(const std::string& path, int flags);
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }
  // The size in bytes; nothing, with errno set, on failure.
  std::optional<uint64_t> size() const;

 private:
  int number_;
};

// The contents of the file; nothing, with errno set, when it cannot be opened or read.
std::optional<std::string> read_file(const std::string& path);

// Reads an open descriptor (standard input) to its end; fails as read_file() does.
std::optional<std::string> read_all(int descriptor);

// False, with errno set, when not all bytes could be written.
bool write_all(int descriptor, std::string_view bytes);

// Sets the contents of the file, not atomically and without syncing. False with errno set on
// failure.
bool write_file(const std::string& path, std::string_view text);

// Replaces the file atomically: readers see the old file or the new one, also after a crash. False,
// with errno set and the old file unchanged, on failure.
bool replace_file(const std::string& path, std::string_view text);

// Syncs the directory, so that files created, renamed or removed in it are so after a crash. False
// with errno set on failure.
bool sync_directory_of(const std::string& path);
bool sync_directory(const std::string& path);

// Closes all descriptors of the process except the standard streams and `kept`: for forked
// children.
void close_all_but(std::vector<int> kept);

}  // namespace latchkey::base
