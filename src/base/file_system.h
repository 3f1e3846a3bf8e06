// The calls by which durable files are written and read: an interface, so that tests can make each
// of them fail, write short, or lose what was not synced (tests/unit/faulty_disk.h).
//
// Whatever must be found again after a crash goes through Server::files(), also in forked children:
// snapshots, the append-only file, received datasets, the cluster's node file, the ACL file, and
// rewritten configurations, a Sentinel's included. Files that are only of use while the process
// lives (its log, its pid file, /proc) do not.
//
// Each call is the system call of that name, made once: an interrupted one fails with EINTR, a
// write may be short. All fail with errno set. They may be called from any thread. The cost beside
// the system call is one virtual call.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace latchkey::base {

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // The descriptor, or -1. `flags` are those of open(2), to which O_CLOEXEC is added; a directory
  // is opened with O_DIRECTORY, for sync().
  virtual int open(const std::string& path, int flags, mode_t mode) = 0;
  // The descriptor is closed also when this returns false.
  virtual bool close(int descriptor) = 0;
  // The number of bytes, 0 at the end of the file, or -1.
  virtual ssize_t read(int descriptor, char* to, size_t size) = 0;
  // The number of bytes, maybe fewer than given, or -1.
  virtual ssize_t write(int descriptor, std::string_view bytes) = 0;
  // Makes the contents of a file durable (fsync), or the names in a directory.
  virtual bool sync(int descriptor) = 0;
  // Makes the contents of a file durable, without its times (fdatasync).
  virtual bool sync_data(int descriptor) = 0;
  virtual bool truncate(int descriptor, uint64_t size) = 0;
  virtual bool rename(const std::string& from, const std::string& to) = 0;
  // A second name for a file.
  virtual bool link(const std::string& from, const std::string& to) = 0;
  virtual bool remove(const std::string& path) = 0;
  virtual bool create_directory(const std::string& path, mode_t mode) = 0;

 protected:
  FileSystem() = default;
  FileSystem(const FileSystem&) = default;
  FileSystem& operator=(const FileSystem&) = default;
};

// The system's.
FileSystem& disk();

}  // namespace latchkey::base
