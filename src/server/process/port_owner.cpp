#include "server/process/port_owner.h"

#include <dirent.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <memory>
#include <optional>
#include <vector>

#include "base/file.h"
#include "base/text/number.h"
#include "server/config/config_parse.h"

namespace latchkey::server {

namespace {

// A socket that listens, as /proc/net/tcp lists it.
struct ListeningSocket {
  std::string inode;
  std::string uid;
};

// The socket at that port among the lines of /proc/net/tcp or tcp6.
// Source: https://docs.kernel.org/networking/proc_net_tcp.html
std::optional<ListeningSocket> find_listening(std::string_view table, int port) {
  constexpr size_t kState = 3;
  constexpr size_t kUid = 7;
  constexpr size_t kInode = 9;
  char listening[16];
  snprintf(listening, sizeof listening, ":%04X ", static_cast<unsigned>(port));
  for (size_t at = table.find(listening); at != std::string_view::npos;
       at = table.find(listening, at + 1)) {
    const size_t begin = table.rfind('\n', at) + 1;
    const std::string_view line = table.substr(begin, table.find('\n', at) - begin);
    const auto words = split_arguments(line).value_or(std::vector<std::string>());
    const bool is_local =
        words.size() > kInode && words[1].ends_with(std::string_view(listening, 5));
    if (is_local && words[kState] == "0A") return ListeningSocket{words[kInode], words[kUid]};
  }
  return std::nullopt;
}

std::vector<std::string> entries_of(const std::string& directory) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(directory.c_str()), closedir);
  if (open == nullptr) return names;
  while (const dirent* entry = readdir(open.get())) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  return names;
}

bool holds_socket(const std::string& process, const std::string& inode) {
  const std::string wanted = "socket:[" + inode + "]";
  for (const std::string& name : entries_of(process + "/fd")) {
    char target[PATH_MAX];
    const ssize_t size = readlink((process + "/fd/" + name).c_str(), target, sizeof target);
    if (size > 0 && wanted == std::string_view(target, static_cast<size_t>(size))) return true;
  }
  return false;
}

// The command line, of which a process may have made its title.
std::string title_of(const std::string& process) {
  constexpr size_t kLongest = 100;
  std::string line = base::read_file(process + "/cmdline").value_or("");
  std::replace(line.begin(), line.end(), '\0', ' ');
  line.resize(std::min(line.size(), kLongest));
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

std::string name_of_user(const std::string& uid) {
  int64_t number = 0;
  if (!base::parse_int64(uid, &number)) return uid;
  const passwd* const user = getpwuid(static_cast<uid_t>(number));
  return user != nullptr ? user->pw_name : uid;
}

}  // namespace

std::string describe_port_owner(int port, std::string_view proc) {
  const std::string root(proc);
  std::optional<ListeningSocket> socket;
  for (const char* table : {"/net/tcp", "/net/tcp6"}) {
    if (!socket) socket = find_listening(base::read_file(root + table).value_or(""), port);
  }
  if (!socket) return {};
  const std::string used = "Port " + std::to_string(port) + " is used by ";
  for (const std::string& name : entries_of(root)) {
    int64_t pid = 0;
    const std::string process = root + "/" + name;
    if (!base::parse_int64(name, &pid) || !holds_socket(process, socket->inode)) continue;
    return used + "process " + name + " (" + title_of(process) + ").";
  }
  return used + "a process of user " + name_of_user(socket->uid) +
         ", which this one may not look at: as root, ss -ltnp 'sport = :" + std::to_string(port) +
         "' tells which.";
}

}  // namespace latchkey::server
