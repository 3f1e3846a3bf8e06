#include "persist/leftovers.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/text/number.h"
#include "server/config/config.h"
#include "server/config/config_directive.h"
#include "server/server.h"

namespace latchkey::persist {

namespace {

// Linux's own limit, whatever pid_max is set to.
constexpr int64_t kMaxPid = 4'194'304;

// Identifies a file, by whatever name or link it is reached.
using FileId = std::pair<dev_t, ino_t>;

bool take_prefix(std::string_view* text, std::string_view prefix) {
  if (!text->starts_with(prefix)) return false;
  text->remove_prefix(prefix.size());
  return true;
}

bool take_suffix(std::string_view* text, std::string_view suffix) {
  if (!text->ends_with(suffix)) return false;
  text->remove_suffix(suffix.size());
  return true;
}

// The number of a name; parse_int64() accepts neither a plus sign nor leading zeros.
std::optional<int64_t> number_of(std::string_view digits) {
  int64_t number = 0;
  if (!base::parse_int64(digits, &number) || number <= 0) return std::nullopt;
  return number;
}

// Whether the process has ended and its entry waits for its parent to collect it, which never
// happens in a container without an init process.
bool is_zombie(pid_t pid) {
  const auto status = base::read_file("/proc/" + std::to_string(pid) + "/stat");
  // "PID (NAME) STATE ...", where the name may hold anything.
  const size_t end_of_name = status ? status->rfind(") ") : std::string::npos;
  return end_of_name != std::string::npos && status->substr(end_of_name + 2, 1) == "Z";
}

bool is_gone(pid_t pid) {
  // A process of another user cannot be signalled, but exists.
  return pid == getpid() || (kill(pid, 0) != 0 && errno == ESRCH) || is_zombie(pid);
}

// Nothing unless it is a plain file of this user.
std::optional<FileId> own_file(int directory, const char* name) {
  struct stat status {};
  if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != geteuid())
    return std::nullopt;
  return FileId(status.st_dev, status.st_ino);
}

// Asks for the value of every directive, so that none that names a file can be forgotten here.
std::set<FileId> files_named_by(const server::Config& config) {
  std::set<FileId> files;
  const auto add = [&](const std::string& name) {
    struct stat status {};
    if (!name.empty() && stat(config.directory().path_of(name).c_str(), &status) == 0)
      files.emplace(status.st_dev, status.st_ino);
  };
  for (const server::Directive& directive : server::Config::directives()) {
    if (!directive.has(server::kSensitive)) add(directive.format(config.values()));
  }
  // "rdb:PATH" or "aof:PATH".
  const std::string& preloaded = config.values().preload_file;
  add(preloaded.substr(preloaded.find(':') + 1));
  add(config.file());
  return files;
}

}  // namespace

std::optional<pid_t> writer_of_temporary(std::string_view name) {
  if (take_prefix(&name, "temp-rewriteaof-")) {
    take_prefix(&name, "bg-");
    if (!take_suffix(&name, ".aof")) return std::nullopt;
  } else {
    if (!take_prefix(&name, "temp-") || !take_suffix(&name, ".rdb")) return std::nullopt;
    if (const size_t dot = name.find('.'); dot != std::string_view::npos) {
      if (!number_of(name.substr(0, dot))) return std::nullopt;
      name.remove_prefix(dot + 1);
    }
  }
  const auto number = number_of(name);
  if (!number || *number > kMaxPid) return std::nullopt;
  return static_cast<pid_t>(*number);
}

void remove_leftovers(server::Server& server) {
  const std::string path = server.config().directory().path_of(".");
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()), closedir);
  if (directory == nullptr) return;
  const int descriptor = dirfd(directory.get());
  std::optional<std::set<FileId>> named;  // asked for only when there is something to remove
  while (const dirent* entry = readdir(directory.get())) {
    const char* name = entry->d_name;
    const auto pid = writer_of_temporary(name);
    if (!pid || !is_gone(*pid)) continue;
    const auto file = own_file(descriptor, name);
    if (!file) continue;
    if (!named) named = files_named_by(server.config());
    if (named->contains(*file)) continue;
    const bool removed = unlinkat(descriptor, name, 0) == 0;
    server.log().notice(
        (removed ? "Removed the temporary file " : "Cannot remove the temporary file ") +
        std::string(name) + " of a process that has gone" +
        (removed ? std::string() : std::string(": ") + strerror(errno)));
  }
}

}  // namespace latchkey::persist
