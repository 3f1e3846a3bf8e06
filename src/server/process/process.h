// The server as a process: detaching, the pid file, supervision, limits, kernel settings.
//
// Everything here belongs to the process, not to a server in it. Log lines are the reference's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "server/config/config_values.h"

namespace latchkey::server {

// Applies the configured level, file and system log to the logger.
void configure_logger(const ConfigValues& values, base::Logger& logger);

// Opens /dev/null for those of the descriptors 0 to 2 that are closed, so that no other file gets
// their numbers: libraries count on that. To be called first.
void open_standard_streams();

// Continues in a child without a terminal; the parent ends at once with status 0. Standard streams
// become /dev/null. To be called before threads start. False, in the parent, when no child could be
// made.
bool daemonize();

// Path of the pid file: `pidfile`, or /var/run/redis.pid for a daemon without one, or empty.
std::string pidfile_path(const ConfigValues& values, bool daemonized);
// A failure is only logged.
void write_pidfile(const std::string& path, base::Logger& logger);
void remove_pidfile(const std::string& path, base::Logger& logger);

// Reports the server's state to systemd or upstart.
class Supervision {
 public:
  // `auto` decides by the environment. Under upstart, stops the process until upstart continues it.
  Supervision(Supervised wanted, base::Logger& logger);

  // A supervised process stays in the foreground, whatever `daemonize` says.
  bool active() const { return active_; }

  void loading() { notify("STATUS=Redis is loading...\n"); }
  void ready();
  void stopping() { notify("STOPPING=1\n"); }
  // Sends any other text to systemd ("STATUS=...\n"). No effect unless supervised by systemd.
  void notify(std::string_view state);

 private:
  base::Logger& logger_;
  bool systemd_ = false;
  bool active_ = false;
};

// Files the server needs besides those of clients.
inline constexpr uint32_t kReservedFiles = 32;

// Raises the limit of open files to `wanted`, or as near as the system lets it, and returns the
// limit.
uint64_t raise_open_file_limit(uint64_t wanted);

// Raises the limit of open files for `maxclients` at start. Returns how many clients fit, which may
// be fewer; nothing when the server cannot start at all. Logs what it changed.
std::optional<uint32_t> make_room_for_clients(uint32_t maxclients, base::Logger& logger);

// The same for CONFIG SET maxclients. Fails when they do not fit; the error is for the reply.
base::Result<> grow_room_for_clients(uint32_t maxclients);

// oom-score-adj: how likely the kernel is to kill this process when memory runs out.
class OomScore {
 public:
  enum class Role { kMaster, kReplica, kBackgroundChild };

  // Relative values are added to the score that the process had before the first change; that one
  // is restored when oom-score-adj is switched off. False, after logging it, when the kernel
  // refuses.
  bool apply(const ConfigValues& values, Role role, base::Logger& logger);

 private:
  int inherited_ = 0;
  bool changed_ = false;
};

// disable-thp: no huge pages for this process, since they make forks slow. False when the kernel
// refuses.
bool disable_transparent_huge_pages();

// Discards the pages of the program and its libraries that have been read so far. Most of them were
// needed only at start, and they are much of an idle server's resident memory; pages needed again
// come back from the page cache. Does nothing under a debugger, because its breakpoints are in such
// pages.
void release_program_pages();

// Parses "0,2-5,8-14:2" to processor numbers; nothing when it is malformed.
std::optional<std::vector<int>> parse_cpu_list(std::string_view list);
// Pins the calling thread to the processors of server-cpulist and the like. A malformed or empty
// list changes nothing; false on failure.
bool pin_to_cpus(std::string_view list);

// The warning for a backlog that the kernel reduces; nothing when it does not.
std::optional<std::string> tcp_backlog_warning(int backlog);

// --check-system: properties of this machine that slow servers down or make them lose writes.
struct SystemCheck {
  std::string name;
  std::optional<std::string> advice;  // none: the check passed
};
std::vector<SystemCheck> check_system();
// Formats the checks as "[name]...OK", or "[name]...WARNING:" and the advice.
std::string format_checks(const std::vector<SystemCheck>& checks);

}  // namespace latchkey::server
