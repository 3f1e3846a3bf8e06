#include "base/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

namespace latchkey::base {

namespace {

class Disk final : public FileSystem {
 public:
  int open(const std::string& path, int flags, mode_t mode) override {
    return ::open(path.c_str(), flags | O_CLOEXEC, mode);
  }
  bool close(int descriptor) override { return ::close(descriptor) == 0; }
  ssize_t read(int descriptor, char* to, size_t size) override {
    return ::read(descriptor, to, size);
  }
  ssize_t write(int descriptor, std::string_view bytes) override {
    return ::write(descriptor, bytes.data(), bytes.size());
  }
  bool sync(int descriptor) override { return ::fsync(descriptor) == 0; }
  bool sync_data(int descriptor) override { return ::fdatasync(descriptor) == 0; }
  bool truncate(int descriptor, uint64_t size) override {
    return ::ftruncate(descriptor, static_cast<off_t>(size)) == 0;
  }
  bool rename(const std::string& from, const std::string& to) override {
    return std::rename(from.c_str(), to.c_str()) == 0;
  }
  bool link(const std::string& from, const std::string& to) override {
    return ::link(from.c_str(), to.c_str()) == 0;
  }
  bool remove(const std::string& path) override { return ::unlink(path.c_str()) == 0; }
  bool create_directory(const std::string& path, mode_t mode) override {
    return ::mkdir(path.c_str(), mode) == 0;
  }
};

}  // namespace

FileSystem& disk() {
  static Disk files;
  return files;
}

}  // namespace latchkey::base
