// Files by plain system calls: the stream classes of the standard library would make up a third of
// the program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::base {

// An open file, closed when this ends; errno survives that.
class Descriptor {
 public:
  // Takes over; a negative number is none.
  explicit Descriptor(int number) : number_(number) {}
  // Opens the file, with O_CLOEXEC; not open, with errno set, when that fails.
  Descriptor(const std::string& path, int flags);
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }
  // In bytes; nothing, with errno set, when it cannot be found out.
  std::optional<uint64_t> size() const;

 private:
  int number_;
};

// Everything in the file; nothing, with errno set, when it cannot be opened or read.
std::optional<std::string> read_file(const std::string& path);

// Everything until the end of an open descriptor (standard input), as above.
std::optional<std::string> read_all(int descriptor);

// False with errno set when not all could be written.
bool write_all(int descriptor, std::string_view bytes);

// Makes the file hold `text`, not atomically and without syncing. False with errno set on failure.
bool write_file(const std::string& path, std::string_view text);

// Replaces `path` by `text` in one step: whoever reads sees the old file or the new one, also after
// a crash. False with errno set when that failed; the old file then is as it was.
bool replace_file(const std::string& path, std::string_view text);

// Makes sure that a file that has been made, renamed or removed there is found so after a crash.
// False with errno set.
bool sync_directory_of(const std::string& path);
bool sync_directory(const std::string& path);

// Closes all descriptors of the process but the standard streams and `kept`: for children that go
// their own way.
void close_all_but(std::vector<int> kept);

}  // namespace latchkey::base
