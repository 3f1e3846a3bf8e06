// A disk that fails when a test wants it to, and that can lose power.
//
//     TemporaryDirectory directory;
//     FaultyDisk disk(directory.path());
//     disk.fail({.kind = FaultKind::kOnce, .at = 3});
//     ... the fourth call from here on fails ...
//     disk.cut_power();
//     ... every call fails ...
//     disk.restore(Lost::kEverything);
//     ... the directory has what was synced ...
//
// Calls go through to the system, but for syncs, which would take most of a test's time. They are
// counted in memory that forked children share, so that a call of a child can be made to fail too,
// and counts as one of all. What is on the disk for good is kept in a directory of its own, by
// inode: the contents of each file when it was synced last, and the names of each directory then.
#pragma once

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_system.h"
#include "unit/temporary_directory.h"

namespace latchkey::tests {

enum class FaultKind : uint8_t {
  kOnce,     // the call fails
  kForGood,  // it and all later ones fail
  kFull,     // of writes, which alone are counted, that one is cut in half, and all later ones fail
  kPowerCut,  // the power is cut there: cut_power()
};

struct Fault {
  FaultKind kind = FaultKind::kOnce;
  uint64_t at = 0;  // calls that succeed before
  int error = EIO;
  bool fails_truncation = false;  // of kFull: also a file cannot be made shorter then
};

// What a loss of power takes. File systems differ in what they write first.
enum class Lost : uint8_t {
  kNothing,     // all was written, as when a process is killed
  kContents,    // names are as they were, contents as they were synced
  kNames,       // contents are as they were, names as they were synced
  kEverything,  // all that was not synced
};

class FaultyDisk final : public base::FileSystem {
 public:
  // What is in `root` is on the disk.
  explicit FaultyDisk(std::filesystem::path root);
  ~FaultyDisk() override;
  FaultyDisk(const FaultyDisk&) = delete;
  FaultyDisk& operator=(const FaultyDisk&) = delete;

  // Counts calls from here on.
  void fail(const Fault& fault);
  // Nothing can be written to files whose names end so, as where the disk is full for them alone.
  void refuse_writes(std::string ending) { unwritable_ = std::move(ending); }
  // The disk works again.
  void heal();
  // Whether the call was made that was to fail.
  bool has_failed() const;
  // That call: "rename dump.rdb".
  std::string failed_call() const;

  // Every call fails from here on; what is on the disk stays as it is.
  void cut_power();
  // What the directory then has, of all files and directories (whose names end in '/').
  using Contents = std::map<std::filesystem::path, std::string>;
  Contents left(Lost lost) const;
  // The disk works again, with what the loss of power has left.
  void restore(Lost lost) { restore(left(lost)); }
  void restore(const Contents& contents);
  // Has all that is in `root` on the disk, for files that a test has written itself.
  void sync_all();

  int open(const std::string& path, int flags, mode_t mode) override;
  bool close(int descriptor) override;
  ssize_t read(int descriptor, char* to, size_t size) override;
  ssize_t write(int descriptor, std::string_view bytes) override;
  bool sync(int descriptor) override;
  bool sync_data(int descriptor) override;
  bool truncate(int descriptor, uint64_t size) override;
  bool link(const std::string& from, const std::string& to) override;
  bool rename(const std::string& from, const std::string& to) override;
  bool remove(const std::string& path) override;
  bool create_directory(const std::string& path, mode_t mode) override;

 private:
  struct Shared;

  // False, with errno set, when the call is to fail.
  bool may(std::string_view call, const std::string& path);
  // What `descriptor` refers to, for failed_call().
  static std::string name_of(int descriptor);
  bool is_inside(const std::string& path) const;
  // Keeps the inode of a file from being used again.
  void keep(const std::string& path);
  void note_synced(int descriptor);
  void note_file(const std::filesystem::path& path, ino_t inode);
  void note_directory(const std::filesystem::path& path);
  std::filesystem::path kept(ino_t inode) const;
  std::filesystem::path synced(ino_t inode) const;
  std::filesystem::path names(ino_t inode) const;
  void collect(ino_t directory, const std::filesystem::path& place, Lost lost, Contents* all) const;
  std::string contents_of(ino_t inode, Lost lost) const;

  std::filesystem::path root_;
  TemporaryDirectory shadow_;
  Shared* shared_;
  std::string unwritable_;  // empty: nothing is
};

// Descriptors that this process has open.
size_t open_descriptors();

// Names with `part` in the directory and in those within it: what a failure may leave.
std::vector<std::string> files_with(const std::filesystem::path& root, std::string_view part);

struct Trial {
  Fault fault;
  Lost lost = Lost::kEverything;  // when the power is cut, at the call or at the end
};

// Runs `scene(trial)` for each way to fail and for each call, until it returns that the call was
// not made (FaultyDisk::has_failed()). Returns how many were.
template <typename Scene>
size_t fail_each_call(Scene scene) {
  constexpr Trial kTrials[] = {
      {{.kind = FaultKind::kOnce}, Lost::kEverything},
      {{.kind = FaultKind::kForGood}, Lost::kEverything},
      {{.kind = FaultKind::kFull}, Lost::kEverything},
      {{.kind = FaultKind::kPowerCut}, Lost::kNothing},
      {{.kind = FaultKind::kPowerCut}, Lost::kContents},
      {{.kind = FaultKind::kPowerCut}, Lost::kNames},
      {{.kind = FaultKind::kPowerCut}, Lost::kEverything},
  };
  size_t count = 0;
  for (Trial trial : kTrials) {
    for (; scene(std::as_const(trial)); ++trial.fault.at) ++count;
  }
  return count;
}

// "once, call 3 (rename dump.rdb)", for a message.
std::string told(const Trial& trial, const FaultyDisk& disk);

}  // namespace latchkey::tests
