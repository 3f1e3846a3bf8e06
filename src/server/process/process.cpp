#include "server/process/process.h"

#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/file.h"
#include "server/emulation/valkey_words.h"

namespace latchkey::server {

namespace {

using base::LogLevel;

constexpr const char* kDefaultPidfile = "/var/run/redis.pid";
constexpr const char* kOomScoreFile = "/proc/self/oom_score_adj";
constexpr int kMaxOomScore = 1000;

// The first line of a kernel file; empty when it cannot be read.
std::string first_line(const char* path) {
  const std::string text = base::read_file(path).value_or("");
  return text.substr(0, text.find('\n'));
}

std::optional<int> parse_int(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

void configure_logger(const ConfigValues& values, base::Logger& logger) {
  logger.set_level(values.loglevel);
  logger.set_file(values.logfile);
  if (values.edition.is_valkey()) logger.set_rewording(in_words_of_valkey);
  logger.set_format(values.log_format, values.log_timestamp_format);
  // Standard output then holds the URL and nothing else.
  if (values.print_url) logger.set_standard_stream(STDERR_FILENO);
  if (values.syslog_enabled) logger.open_syslog(values.syslog_ident, values.syslog_facility);
}

// ---- Detaching

void open_standard_streams() {
  // The lowest free number is taken.
  for (int opened = STDIN_FILENO; opened >= 0 && opened <= STDERR_FILENO;)
    opened = open("/dev/null", O_RDWR);
}

bool daemonize() {
  const pid_t child = fork();
  if (child < 0) return false;
  if (child > 0) _exit(0);
  setsid();
  const int null = open("/dev/null", O_RDWR);
  if (null < 0) return true;
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, stream);
  if (null > STDERR_FILENO) close(null);
  return true;
}

std::string pidfile_path(const ConfigValues& values, bool daemonized) {
  if (values.pidfile.empty() && daemonized) return kDefaultPidfile;
  return values.pidfile;
}

void write_pidfile(const std::string& path, base::Logger& logger) {
  if (!base::write_file(path, std::to_string(getpid()) + "\n"))
    logger.logf(LogLevel::kWarning, "Failed to write PID file: %s", strerror(errno));
}

void remove_pidfile(const std::string& path, base::Logger& logger) {
  logger.notice("Removing the pid file.");
  unlink(path.c_str());
}

// ---- Supervision

Supervision::Supervision(Supervised wanted, base::Logger& logger) : logger_(logger) {
  if (wanted == Supervised::kAuto) {
    if (getenv("UPSTART_JOB") != nullptr) wanted = Supervised::kUpstart;
    if (getenv("NOTIFY_SOCKET") != nullptr) wanted = Supervised::kSystemd;
  }
  if (wanted == Supervised::kUpstart) {
    if (getenv("UPSTART_JOB") == nullptr) {
      logger_.warning("upstart supervision requested, but UPSTART_JOB not found!");
      return;
    }
    logger_.notice("supervised by upstart, will stop to signal readiness.");
    raise(SIGSTOP);
    unsetenv("UPSTART_JOB");
    active_ = true;
  } else if (wanted == Supervised::kSystemd) {
    systemd_ = true;
    if (getenv("NOTIFY_SOCKET") == nullptr) {
      logger_.warning("systemd supervision error: NOTIFY_SOCKET not found!");
      return;
    }
    logger_.notice(
        "Supervised by systemd. Please make sure you set appropriate values for TimeoutStartSec "
        "and TimeoutStopSec in your service unit.");
    active_ = true;
    loading();
  }
}

void Supervision::ready() {
  notify("STATUS=Ready to accept connections\n");
  notify("READY=1\n");
}

void Supervision::notify(std::string_view state) {
  if (!systemd_) return;
  const char* name = getenv("NOTIFY_SOCKET");
  if (name == nullptr) {
    logger_.warning("systemd supervision error: NOTIFY_SOCKET not found!");
    return;
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t length = strlen(name);
  // sd_notify(3): a path, or an abstract name that is written with '@' for its leading zero byte.
  if ((name[0] != '/' && name[0] != '@') || length < 2 || length >= sizeof address.sun_path) {
    logger_.warning("systemd supervision error: NOTIFY_SOCKET is not a socket's address");
    return;
  }
  memcpy(address.sun_path, name, length);
  if (name[0] == '@') address.sun_path[0] = '\0';
  const int socket_descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const auto address_size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  if (socket_descriptor < 0 ||
      sendto(socket_descriptor, state.data(), state.size(), MSG_NOSIGNAL,
             reinterpret_cast<const sockaddr*>(&address), address_size) < 0) {
    logger_.logf(LogLevel::kWarning, "systemd supervision error: sendmsg: %s", strerror(errno));
  }
  if (socket_descriptor >= 0) close(socket_descriptor);
}

// ---- Open files

uint64_t raise_open_file_limit(uint64_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const uint64_t before = limit.rlim_cur;
  // Tries `wanted` first, then the highest limit for privileged processes, then the hard limit.
  const auto most =
      static_cast<uint64_t>(parse_int(first_line("/proc/sys/fs/nr_open")).value_or(0));
  int first_error = 0;
  for (const uint64_t attempt : {wanted, std::min(most, wanted), uint64_t{limit.rlim_max}}) {
    if (attempt <= before || attempt > wanted) continue;
    const rlimit raised{attempt, std::max<rlim_t>(attempt, limit.rlim_max)};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) {
      errno = first_error;
      return attempt;
    }
    if (first_error == 0) first_error = errno;
  }
  errno = first_error;
  return before;
}

std::optional<uint32_t> make_room_for_clients(uint32_t maxclients, base::Logger& logger) {
  const uint64_t wanted = uint64_t{maxclients} + kReservedFiles;
  rlimit before{};
  if (getrlimit(RLIMIT_NOFILE, &before) != 0) {
    logger.logf(LogLevel::kWarning,
                "Unable to obtain the current NOFILE limit (%s), assuming 1024 and setting the max "
                "clients configuration accordingly.",
                strerror(errno));
    constexpr uint32_t kAssumed = 1024;
    return kAssumed - kReservedFiles;
  }
  if (before.rlim_cur >= wanted) return maxclients;
  errno = 0;
  const uint64_t limit = raise_open_file_limit(wanted);
  const int error = errno;
  if (limit >= wanted) {
    logger.logf(LogLevel::kNotice,
                "Increased maximum number of open files to %llu (it was originally set to %llu).",
                static_cast<unsigned long long>(wanted),
                static_cast<unsigned long long>(before.rlim_cur));
    return maxclients;
  }
  if (limit <= kReservedFiles) {
    logger.logf(LogLevel::kWarning,
                "Your current 'ulimit -n' of %llu is not enough for the server to start. Please "
                "increase your open file limit to at least %llu. Exiting.",
                static_cast<unsigned long long>(limit), static_cast<unsigned long long>(wanted));
    return std::nullopt;
  }
  const auto fitting = static_cast<uint32_t>(limit - kReservedFiles);
  logger.logf(LogLevel::kWarning,
              "You requested maxclients of %u requiring at least %llu max file descriptors.",
              maxclients, static_cast<unsigned long long>(wanted));
  logger.logf(LogLevel::kWarning,
              "Server can't set maximum open files to %llu because of OS error: %s.",
              static_cast<unsigned long long>(wanted), strerror(error));
  logger.logf(LogLevel::kWarning,
              "Current maximum open files is %llu. maxclients has been reduced to %u to compensate "
              "for low ulimit. If you need higher maxclients increase 'ulimit -n'.",
              static_cast<unsigned long long>(limit), fitting);
  return fitting;
}

base::Result<> grow_room_for_clients(uint32_t maxclients) {
  const uint64_t wanted = uint64_t{maxclients} + kReservedFiles;
  const uint64_t limit = raise_open_file_limit(wanted);
  if (limit >= wanted) return {};
  const uint64_t fitting = limit > kReservedFiles ? limit - kReservedFiles : 0;
  return base::fail(
      "The operating system is not able to handle the specified number of clients, try with " +
      std::to_string(fitting));
}

// ---- The kernel

bool OomScore::apply(const ConfigValues& values, Role role, base::Logger& logger) {
  if (!changed_) inherited_ = parse_int(first_line(kOomScoreFile)).value_or(0);
  int score = inherited_;
  if (values.oom_score_adj == OomScoreAdj::kNo) {
    if (!changed_) return true;
  } else {
    const int configured = values.oom_score_adj_values[static_cast<size_t>(role)];
    score = values.oom_score_adj == OomScoreAdj::kRelative ? inherited_ + configured : configured;
    score = std::clamp(score, -kMaxOomScore, kMaxOomScore);
  }
  if (!base::write_file(kOomScoreFile, std::to_string(score))) {
    logger.logf(LogLevel::kWarning, "Unable to write oom_score_adj: %s", strerror(errno));
    return false;
  }
  changed_ = values.oom_score_adj != OomScoreAdj::kNo;
  return true;
}

bool disable_transparent_huge_pages() {
  return prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0;
}

namespace {

bool is_traced() {
  const std::string status = base::read_file("/proc/self/status").value_or("");
  return status.find("\nTracerPid:\t0\n") == std::string::npos;
}

// Discards the pages of one mapped file's read-only segments: they equal the file's content.
int release_clean_pages(dl_phdr_info* object, size_t, void*) {
  const std::string_view name = object->dlpi_name;
  const bool is_file = name.empty() || name.find('/') != std::string_view::npos;
  if (!is_file) return 0;  // the kernel's own object, without a file
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (size_t i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const uintptr_t address = object->dlpi_addr + segment.p_vaddr;
    const uintptr_t begin = address / page * page;
    madvise(reinterpret_cast<void*>(begin), address + segment.p_memsz - begin, MADV_DONTNEED);
  }
  return 0;
}

}  // namespace

void release_program_pages() {
  if (!is_traced()) dl_iterate_phdr(release_clean_pages, nullptr);
}

namespace {

// One part of a list of processors: "5", "2-5" or "8-14:2".
bool parse_cpu_range(std::string_view part, std::vector<int>* cpus) {
  int step = 1;
  if (const size_t colon = part.find(':'); colon != std::string_view::npos) {
    const auto parsed = parse_int(part.substr(colon + 1));
    if (!parsed || *parsed < 1) return false;
    step = *parsed;
    part = part.substr(0, colon);
  }
  const size_t dash = part.find('-');
  const auto first = parse_int(part.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_int(part.substr(dash + 1));
  if (!first || !last || *first < 0 || *last < *first || *last >= CPU_SETSIZE) return false;
  for (int cpu = *first; cpu <= *last; cpu += step) cpus->push_back(cpu);
  return true;
}

}  // namespace

std::optional<std::vector<int>> parse_cpu_list(std::string_view list) {
  std::vector<int> cpus;
  while (!list.empty()) {
    const size_t comma = list.find(',');
    if (!parse_cpu_range(list.substr(0, comma), &cpus)) return std::nullopt;
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return cpus;
}

bool pin_to_cpus(std::string_view list) {
  const auto cpus = parse_cpu_list(list);
  if (!cpus || cpus->empty()) return true;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : *cpus) CPU_SET(static_cast<size_t>(cpu), &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

std::optional<std::string> tcp_backlog_warning(int backlog) {
  const auto most = parse_int(first_line("/proc/sys/net/core/somaxconn"));
  if (!most || *most <= 0 || *most >= backlog) return std::nullopt;
  return "WARNING: The TCP backlog setting of " + std::to_string(backlog) +
         " cannot be enforced because /proc/sys/net/core/somaxconn is set to the lower value of " +
         std::to_string(*most) + ".";
}

// ---- --check-system

namespace {

std::optional<std::string> check_clocksource() {
  const auto source =
      first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  // Reading these clock sources costs a call of the kernel or the hypervisor.
  for (const std::string_view slow : {"acpi_pm", "hpet", "xen", "jiffies"}) {
    if (source == slow) {
      return "Reading the clock is slow with the clock source '" + source +
             "'. If the processor's time-stamp counter is reliable here, boot with "
             "'clocksource=tsc'.";
    }
  }
  return std::nullopt;
}

std::optional<std::string> check_overcommit() {
  const auto setting = first_line("/proc/sys/vm/overcommit_memory");
  if (setting == "1") return std::nullopt;
  return "Memory overcommit must be enabled! Saving in the background forks, and with "
         "vm.overcommit_memory at " +
         setting +
         " the fork may be refused although almost all memory is shared. Run 'sysctl "
         "vm.overcommit_memory=1', and put 'vm.overcommit_memory = "
         "1' into /etc/sysctl.conf to keep it.";
}

std::optional<std::string> check_huge_pages() {
  const auto setting = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  if (setting.find("[always]") == std::string::npos) return std::nullopt;
  return "Transparent huge pages are always on, which makes writes slow while a snapshot is being "
         "saved. Run 'echo madvise > /sys/kernel/mm/transparent_hugepage/enabled', or leave "
         "'disable-thp yes' in the configuration.";
}

// By the defaults: the configuration is not known here.
std::optional<std::string> check_backlog() {
  const int wanted = ConfigValues().tcp_backlog;
  const auto most = parse_int(first_line("/proc/sys/net/core/somaxconn"));
  if (!most || *most >= wanted) return std::nullopt;
  return "Only " + std::to_string(*most) +
         " connections may wait to be accepted, and tcp-backlog " + std::to_string(wanted) +
         " asks for more. Run 'sysctl net.core.somaxconn=" + std::to_string(wanted) + "'.";
}

std::optional<std::string> check_open_files() {
  const uint64_t wanted = uint64_t{ConfigValues().maxclients} + kReservedFiles;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max >= wanted) return std::nullopt;
  return "The process may open " + std::to_string(limit.rlim_max) + " files, and maxclients " +
         std::to_string(ConfigValues().maxclients) + " needs " + std::to_string(wanted) +
         ". Run 'ulimit -Hn " + std::to_string(wanted) +
         "' before the server, or set LimitNOFILE in its unit of systemd.";
}

}  // namespace

std::vector<SystemCheck> check_system() {
  return {{"slow-clocksource", check_clocksource()},
          {"overcommit", check_overcommit()},
          {"THP", check_huge_pages()},
          {"backlog", check_backlog()},
          {"open-files", check_open_files()}};
}

std::string format_checks(const std::vector<SystemCheck>& checks) {
  std::string text;
  for (const auto& check : checks) {
    text.append("[").append(check.name).append("]...");
    text.append(check.advice ? "WARNING:\n" + *check.advice : "OK").append("\n");
  }
  return text;
}

}  // namespace latchkey::server
