#include "unit/faulty_disk.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace latchkey::tests {

namespace fs = std::filesystem;

struct FaultyDisk::Shared {
  std::atomic<uint64_t> calls{0};
  std::atomic<bool> armed{false};
  std::atomic<bool> failed{false};
  std::atomic<bool> power{true};
  Fault fault;
  char call[256] = {};
};

namespace {

constexpr std::string_view kWrite = "write";

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

ino_t inode_of(const fs::path& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) throw std::runtime_error("no " + path.string());
  return status.st_ino;
}

}  // namespace

size_t open_descriptors() {
  // One of them reads the directory.
  const fs::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all))) - 1;
}

std::vector<std::string> files_with(const fs::path& root, std::string_view part) {
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    if (name.find(part) != std::string::npos) found.push_back(name);
  }
  return found;
}

std::string told(const Trial& trial, const FaultyDisk& disk) {
  constexpr const char* kKinds[] = {"once", "for good", "full", "power cut"};
  constexpr const char* kLosses[] = {"nothing", "contents", "names", "everything"};
  return std::string(kKinds[static_cast<size_t>(trial.fault.kind)]) + ", call " +
         std::to_string(trial.fault.at) + " (" + disk.failed_call() + "), loses " +
         kLosses[static_cast<size_t>(trial.lost)];
}

FaultyDisk::FaultyDisk(fs::path root) : root_(std::move(root)) {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                      /*fd=*/-1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory to share");
  shared_ = new (memory) Shared;
  for (const char* name : {"kept", "synced", "names"}) fs::create_directory(shadow_.path() / name);
  sync_all();
}

FaultyDisk::~FaultyDisk() {
  munmap(shared_, sizeof(Shared));
}

// ---- Failing

void FaultyDisk::fail(const Fault& fault) {
  shared_->fault = fault;
  shared_->failed = false;
  shared_->calls = 0;
  shared_->call[0] = '\0';
  shared_->armed = true;
}

void FaultyDisk::heal() {
  shared_->armed = false;
  unwritable_.clear();
}

bool FaultyDisk::has_failed() const {
  return shared_->failed;
}

std::string FaultyDisk::failed_call() const {
  return shared_->call;
}

bool FaultyDisk::may(std::string_view call, const std::string& path) {
  if (shared_->power && !shared_->armed) return true;
  const Fault& fault = shared_->fault;
  // A full disk fails nothing but writes.
  if (shared_->power && fault.kind == FaultKind::kFull && call != kWrite) return true;
  if (shared_->armed) {
    const uint64_t number = shared_->calls.fetch_add(1);
    if (number < fault.at || (number > fault.at && fault.kind == FaultKind::kOnce)) return true;
    if (number == fault.at) {
      std::snprintf(shared_->call, sizeof shared_->call, "%s %s", call.data(),
                    fs::path(path).filename().c_str());
      shared_->failed = true;
      if (fault.kind == FaultKind::kPowerCut) shared_->power = false;
    }
  }
  errno = fault.kind == FaultKind::kFull ? ENOSPC : fault.error;
  return false;
}

std::string FaultyDisk::name_of(int descriptor) {
  std::error_code error;
  return fs::read_symlink("/proc/self/fd/" + std::to_string(descriptor), error).string();
}

int FaultyDisk::open(const std::string& path, int flags, mode_t mode) {
  if (!may("open", path)) return -1;
  const int descriptor = base::disk().open(path, flags, mode);
  const int error = errno;
  if (descriptor >= 0 && (flags & O_CREAT) != 0 && is_inside(path)) keep(path);
  errno = error;
  return descriptor;
}

bool FaultyDisk::close(int descriptor) {
  const std::string path = name_of(descriptor);
  const bool fine = base::disk().close(descriptor);
  return may("close", path) && fine;
}

ssize_t FaultyDisk::read(int descriptor, char* to, size_t size) {
  return may("read", name_of(descriptor)) ? base::disk().read(descriptor, to, size) : -1;
}

ssize_t FaultyDisk::write(int descriptor, std::string_view bytes) {
  const std::string name = name_of(descriptor);
  if (!unwritable_.empty() && name.ends_with(unwritable_)) {
    errno = ENOSPC;
    return -1;
  }
  if (may(kWrite, name)) return base::disk().write(descriptor, bytes);
  const int error = errno;
  const bool halved = shared_->armed && shared_->fault.kind == FaultKind::kFull &&
                      shared_->calls == shared_->fault.at + 1 && bytes.size() > 1;
  if (halved) return base::disk().write(descriptor, bytes.substr(0, bytes.size() / 2));
  errno = error;
  return -1;
}

bool FaultyDisk::sync(int descriptor) {
  if (!may("sync", name_of(descriptor))) return false;
  note_synced(descriptor);
  return true;
}

bool FaultyDisk::sync_data(int descriptor) {
  if (!may("sync", name_of(descriptor))) return false;
  note_synced(descriptor);
  return true;
}

bool FaultyDisk::truncate(int descriptor, uint64_t size) {
  if (shared_->armed && shared_->failed && shared_->fault.fails_truncation) {
    errno = EIO;
    return false;
  }
  return may("truncate", name_of(descriptor)) && base::disk().truncate(descriptor, size);
}

bool FaultyDisk::link(const std::string& from, const std::string& to) {
  return may("link", to) && base::disk().link(from, to);
}

bool FaultyDisk::rename(const std::string& from, const std::string& to) {
  return may("rename", to) && base::disk().rename(from, to);
}

bool FaultyDisk::remove(const std::string& path) {
  return may("remove", path) && base::disk().remove(path);
}

bool FaultyDisk::create_directory(const std::string& path, mode_t mode) {
  return may("create directory", path) && base::disk().create_directory(path, mode);
}

// ---- Losing power

fs::path FaultyDisk::kept(ino_t inode) const {
  return shadow_.path() / "kept" / std::to_string(inode);
}

fs::path FaultyDisk::synced(ino_t inode) const {
  return shadow_.path() / "synced" / std::to_string(inode);
}

fs::path FaultyDisk::names(ino_t inode) const {
  return shadow_.path() / "names" / std::to_string(inode);
}

bool FaultyDisk::is_inside(const std::string& path) const {
  return path.starts_with(root_.string() + "/");
}

void FaultyDisk::keep(const std::string& path) {
  const fs::path place = kept(inode_of(path));
  if (!fs::exists(place)) fs::create_hard_link(path, place);
}

void FaultyDisk::note_synced(int descriptor) {
  struct stat status {};
  if (!is_inside(name_of(descriptor) + "/") || fstat(descriptor, &status) != 0) return;
  const fs::path open_file = "/proc/self/fd/" + std::to_string(descriptor);
  if (S_ISDIR(status.st_mode)) return note_directory(open_file);
  if (S_ISREG(status.st_mode)) note_file(open_file, status.st_ino);
}

void FaultyDisk::note_file(const fs::path& path, ino_t inode) {
  write_file(synced(inode), read_file(path));
}

// A directory is noted as lines of type, inode and name.
void FaultyDisk::note_directory(const fs::path& path) {
  std::string lines;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    lines += (entry.is_directory() ? "d " : "f ") + std::to_string(inode_of(entry.path())) + " " +
             entry.path().filename().string() + "\n";
  }
  struct stat status {};
  if (stat(path.c_str(), &status) == 0) write_file(names(status.st_ino), lines);
}

void FaultyDisk::sync_all() {
  note_directory(root_);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root_)) {
    if (entry.is_directory()) {
      note_directory(entry.path());
    } else {
      keep(entry.path());
      note_file(entry.path(), inode_of(entry.path()));
    }
  }
}

void FaultyDisk::cut_power() {
  shared_->power = false;
}

std::string FaultyDisk::contents_of(ino_t inode, Lost lost) const {
  return read_file(lost == Lost::kNames ? kept(inode) : synced(inode));
}

// Collects what the directory, which is to be at `place`, has left.
void FaultyDisk::collect(ino_t directory, const fs::path& place, Lost lost, Contents* all) const {
  std::istringstream lines(read_file(names(directory)));
  std::string type;
  ino_t inode = 0;
  std::string name;
  while (lines >> type >> inode >> name) {
    if (type == "d") {
      (*all)[place / name / ""] = {};
      collect(inode, place / name, lost, all);
    } else {
      (*all)[place / name] = contents_of(inode, lost);
    }
  }
}

FaultyDisk::Contents FaultyDisk::left(Lost lost) const {
  Contents left;
  if (lost == Lost::kNames || lost == Lost::kEverything) {
    collect(inode_of(root_), root_, lost, &left);
    return left;
  }
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root_)) {
    if (entry.is_directory()) {
      left[entry.path() / ""] = {};
    } else if (lost == Lost::kNothing) {
      left[entry.path()] = read_file(entry.path());
    } else {
      left[entry.path()] = contents_of(inode_of(entry.path()), lost);
    }
  }
  return left;
}

void FaultyDisk::restore(const Contents& contents) {
  heal();
  shared_->power = true;
  for (const fs::directory_entry& entry : fs::directory_iterator(root_)) fs::remove_all(entry);
  for (const auto& [path, text] : contents) {
    if (path.has_filename()) {
      write_file(path, text);
    } else {
      fs::create_directories(path);
    }
  }
  sync_all();
}

}  // namespace latchkey::tests
