// The container's entry point, where there is no shell to write it in. Behaves as that of the
// `redis` image:
//
//   * without arguments, or with arguments that begin with - or name a .conf file, it starts the
//   server with them; other commands
//     run as they are, if the image has them;
//   * as root it gives the dataset's folder, the working directory, to the user redis (999) and
//   continues as that user;
//   * files are made for that user alone, unless a umask was set;
//   * `protected-mode` is off by default, for the container's network stands in its place: what a
//   configuration file or an argument
//     says about it counts.
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr uid_t kUser = 999;
constexpr gid_t kGroup = 999;

bool is_configuration_file(std::string_view argument) {
  return argument.ends_with(".conf");
}

bool is_server(std::string_view command) {
  const std::string_view name = command.substr(command.rfind('/') + 1);
  return name == "redis-server" || name == "latchkey-server";
}

// True if a line of the file begins with the directive `protected-mode`.
bool names_protected_mode(const char* path) {
  FILE* file = fopen(path, "re");
  if (file == nullptr) return false;  // the server says what is wrong with it
  bool found = false;
  char* line = nullptr;
  size_t room = 0;
  while (!found && getline(&line, &room, file) >= 0) {
    const char* word = line + strspn(line, " \t");
    found = strncasecmp(word, "protected-mode", 14) == 0 && strspn(word + 14, " \t") > 0;
  }
  free(line);
  fclose(file);
  return found;
}

// Turns protected mode off before the arguments that may turn it on again, and after the
// configuration file, whose line wins.
void turn_protected_mode_off(std::vector<std::string>* arguments) {
  auto after = arguments->begin() + 1;
  if (after != arguments->end() && !after->starts_with('-')) {
    if (names_protected_mode(after->c_str())) return;
    ++after;
  } else if (after != arguments->end() &&
             (*after == "-" || *after == "-v" || *after == "-h" || *after == "--version" ||
              *after == "--help" || *after == "--ping")) {
    return;
  }
  for (const char* word : {"no", "--protected-mode"}) after = arguments->insert(after, word);
}

// Gives everything in the folder that belongs to another user to the container's user. Links are
// not followed.
void give_folder(int folder, const char* name) {
  const int descriptor = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return;
  DIR* entries = fdopendir(descriptor);
  if (entries == nullptr) {
    close(descriptor);
    return;
  }
  while (const dirent* entry = readdir(entries)) {
    if (strcmp(entry->d_name, "..") == 0) continue;
    struct stat status {};
    if (fstatat(descriptor, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (status.st_uid != kUser &&
        fchownat(descriptor, entry->d_name, kUser, kGroup, AT_SYMLINK_NOFOLLOW) != 0)
      fprintf(stderr,
              "docker-entrypoint: cannot give %s to user 999: %s; mount a folder that user may "
              "write to\n",
              entry->d_name, strerror(errno));
    if (S_ISDIR(status.st_mode) && strcmp(entry->d_name, ".") != 0)
      give_folder(descriptor, entry->d_name);
  }
  closedir(entries);
}

bool become_user() {
  return setgroups(0, nullptr) == 0 && setgid(kGroup) == 0 && setuid(kUser) == 0;
}

void tighten_umask() {
  const mode_t before = umask(077);
  if (before != 022) umask(before);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty() || arguments[0].starts_with('-') || is_configuration_file(arguments[0]))
    arguments.insert(arguments.begin(), "redis-server");
  if (is_server(arguments[0])) {
    if (getuid() == 0) {
      give_folder(AT_FDCWD, ".");
      if (!become_user()) {
        fprintf(
            stderr,
            "docker-entrypoint: cannot become user 999: %s; start the container with --user 999\n",
            strerror(errno));
        return 1;
      }
    }
    turn_protected_mode_off(&arguments);
  }
  tighten_umask();

  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  execvp(pointers[0], pointers.data());
  fprintf(stderr,
          "docker-entrypoint: cannot run %s: %s. This image has redis-server, redis-sentinel, "
          "redis-check-rdb, redis-check-aof and "
          "redis-cli for single commands, and no shell.\n",
          pointers[0], strerror(errno));
  return errno == ENOENT ? 127 : 126;
}
