// How the server lives as a process: detaching, the pid file, supervision, limits, the kernel's
// settings.
//
// Everything here belongs to the process, not to a server in it, and is called by whoever composes
// the program. Log lines are the reference's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "server/config/config_values.h"

namespace latchkey::server {

// Gives the logger the level, file and system log of the configuration.
void configure_logger(const ConfigValues& values, base::Logger& logger);

// Continues in a child without a terminal; the parent ends at once with status 0. Standard streams
// become /dev/null. To be called before threads start. False, in the parent, when no child could be
// made.
bool daemonize();

// The file that holds the process id: `pidfile`, or /var/run/redis.pid for a daemon without one, or
// none.
std::string pidfile_path(const ConfigValues& values, bool daemonized);
// A failure is logged and no more.
void write_pidfile(const std::string& path, base::Logger& logger);
void remove_pidfile(const std::string& path, base::Logger& logger);

// Tells systemd or upstart how far the server has come.
class Supervision {
 public:
  // `auto` finds out by the environment. Under upstart, stops the process until upstart lets it go
  // on.
  Supervision(Supervised wanted, base::Logger& logger);

  // A supervised process stays in the foreground, whatever `daemonize` says.
  bool active() const { return active_; }

  void loading() { notify("STATUS=Redis is loading...\n"); }
  void ready();
  void stopping() { notify("STOPPING=1\n"); }
  // Any other text for systemd, "STATUS=...\n" and the like. Nothing unless supervised by systemd.
  void notify(std::string_view state);

 private:
  base::Logger& logger_;
  bool systemd_ = false;
  bool active_ = false;
};

// Files the server needs besides clients.
inline constexpr uint32_t kReservedFiles = 32;

// Raises the limit of open files to `wanted`, or as near as the system lets it, and returns the
// limit.
uint64_t raise_open_file_limit(uint64_t wanted);

// Makes room for the clients at start. Returns how many fit, which may be fewer than wanted;
// nothing when the server cannot start at all. Says in the log what changed.
std::optional<uint32_t> make_room_for_clients(uint32_t maxclients, base::Logger& logger);

// The same for CONFIG SET maxclients: false with the reply's words when they do not fit.
bool grow_room_for_clients(uint32_t maxclients, std::string* error);

// oom-score-adj: how eagerly the kernel ends this process when memory runs out.
class OomScore {
 public:
  enum class Role { kMaster, kReplica, kBackgroundChild };

  // Relative values count from the score that the process had before the first change; it gets that
  // back when oom-score-adj is switched off. False after a line in the log when the kernel refuses.
  bool apply(const ConfigValues& values, Role role, base::Logger& logger);

 private:
  int inherited_ = 0;
  bool changed_ = false;
};

// disable-thp: no huge pages for this process, which make forks slow. False when the kernel
// refuses.
bool disable_transparent_huge_pages();

// Gives back the memory of those pages of the program and its libraries that have been read so far.
// Most of them only the start needed, and they are a good part of what an idle server occupies;
// what is needed again comes back from the page cache. Does nothing under a debugger, whose
// breakpoints stand in such pages.
void release_program_pages();

// "0,2-5,8-14:2" as processor numbers; nothing when it cannot be read.
std::optional<std::vector<int>> parse_cpu_list(std::string_view list);
// server-cpulist and its kin, for the calling thread. An unreadable or empty list changes nothing;
// false on failure.
bool pin_to_cpus(std::string_view list);

// The warning for a backlog that the kernel cuts short.
std::optional<std::string> tcp_backlog_warning(int backlog);

// --check-system: what about this machine makes servers slow or lose writes.
struct SystemCheck {
  std::string name;
  std::optional<std::string> advice;  // none: all is well
};
std::vector<SystemCheck> check_system();
// "[name]...OK", or "[name]...WARNING:" and the advice, one after the other.
std::string format_checks(const std::vector<SystemCheck>& checks);

}  // namespace latchkey::server
