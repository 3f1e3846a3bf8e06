#include "server/process/write_advice.h"

#include <pwd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>

#include "server/observe/info.h"

namespace latchkey::server {

namespace {

std::string name_of(uid_t uid) {
  const passwd* const user = getpwuid(uid);
  return user != nullptr ? user->pw_name : std::to_string(uid);
}

// The directory of a file, absolute where it can be told.
std::string directory_of(const std::string& path) {
  struct stat status {};
  std::string directory = path;
  if (stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    const size_t slash = path.rfind('/');
    directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  }
  char absolute[PATH_MAX];
  return realpath(directory.c_str(), absolute) != nullptr ? absolute : directory;
}

}  // namespace

std::string own_user_name() {
  return name_of(geteuid());
}

std::string advise_on_write_error(const std::string& path, int error) {
  const std::string directory = directory_of(path);
  if (error == ENOSPC || error == EDQUOT) {
    struct statvfs room {};
    if (statvfs(directory.c_str(), &room) != 0) return {};
    const auto bytes = [&](fsblkcnt_t blocks) { return human_bytes(blocks * room.f_frsize); };
    return "The file system of " + directory + " has " + bytes(room.f_bavail) + " left of " +
           bytes(room.f_blocks) + " for user " + own_user_name() +
           ": make room there, or move the data with CONFIG SET dir.";
  }
  if (error == EACCES || error == EPERM) {
    struct stat status {};
    if (stat(directory.c_str(), &status) != 0) return {};
    return "The directory " + directory + " belongs to user " + name_of(status.st_uid) +
           ", and this process runs as " + own_user_name() + ": chown " + own_user_name() + " " +
           directory + ", or set dir to another directory.";
  }
  if (error == EROFS)
    return "The file system of " + directory + " is mounted read-only: set dir to another one.";
  return {};
}

void log_write_advice(base::Logger& log, const std::string& path, int error) {
  const std::string advice = advise_on_write_error(path, error);
  if (!advice.empty()) log.warning(advice);
}

}  // namespace latchkey::server
