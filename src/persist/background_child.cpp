#include "persist/background_child.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/assert.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/fork.h"
#include "base/time_units.h"
#include "server/process/process.h"
#include "server/server.h"

namespace latchkey::persist {

namespace {

constexpr int64_t kReportIntervalUs = base::kUsPerSecond;
// Measuring memory may take at most one part in this many of the time.
constexpr int64_t kMeasuringShare = 100;
constexpr double kMegabyte = 1024 * 1024;

// Exit statuses of a child.
constexpr int kExitDone = 0;
constexpr int kExitFailed = 1;
constexpr int kExitKilled = 255;
// What waitpid() would say of a child that has failed. It stands for a status that somebody else
// has taken.
constexpr int kStatusLost = kExitFailed << 8;

// The logger of the child process; global because a signal handler needs it.
std::atomic<base::Logger*> child_logger{nullptr};

void on_kill_signal(int) {
  base::Logger* log = child_logger.load();
  if (log != nullptr) log->signal_line("Received SIGUSR1 in child, exiting now.");
  _exit(kExitKilled);
}

std::string_view title_of(ChildKind kind) {
  switch (kind) {
    case ChildKind::kRdbToDisk:
      return "redis-rdb-bgsave";
    case ChildKind::kAofRewrite:
      return "redis-aof-rewrite";
    case ChildKind::kRdbToSocket:
      return "redis-rdb-to-slaves";
  }
  return {};
}

// The sum of a field in the kernel's statistics of this process's memory, in bytes.
size_t sum_of_memory(std::string_view field) {
  auto text = base::read_file("/proc/self/smaps_rollup");
  if (!text) text = base::read_file("/proc/self/smaps");
  if (!text) return 0;
  constexpr size_t kKilobyte = 1024;
  size_t sum = 0;
  for (size_t at = text->find(field); at != std::string::npos; at = text->find(field, at)) {
    at += field.size();
    sum += std::strtoull(text->c_str() + at, nullptr, 10) * kKilobyte;
  }
  return sum;
}

void set_handler(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

std::string_view task_name(ChildKind kind) {
  switch (kind) {
    case ChildKind::kRdbToDisk:
      return "Saving in the background";
    case ChildKind::kAofRewrite:
      return "Rewriting the append-only file";
    case ChildKind::kRdbToSocket:
      return "Sending the dataset to replicas";
  }
  return {};
}

}  // namespace

struct ChildReport {
  std::atomic<uint64_t> number{0};  // counts the reports; set behind what belongs to one
  std::atomic<uint64_t> keys_written{0};
  std::atomic<uint64_t> copied_bytes{0};
  std::atomic<bool> last{false};
};

// --- In the child --------------------------------------------------------------------------------

ChildProgress::ChildProgress(server::Server& server, ChildKind kind, pid_t parent,
                             ChildReport& report)
    : server_(server),
      kind_(kind),
      parent_(parent),
      shared_(report),
      next_report_us_(now_us() + kReportIntervalUs) {}

int64_t ChildProgress::now_us() const {
  // The machine's time: a clock that tests move stands still in the child, and what reading the
  // kernel's statistics costs is real.
  return base::SystemClock().monotonic_us();
}

void ChildProgress::report_if_due() {
  if (now_us() >= next_report_us_) report(false);
}

void ChildProgress::report_end() {
  report(true);
}

void ChildProgress::report(bool last) {
  const int64_t started_us = now_us();
  const size_t copied = sum_of_memory("Private_Dirty:");
  const int64_t cost_us = now_us() - started_us;
  next_report_us_ = started_us + std::max(kReportIntervalUs, cost_us * kMeasuringShare);
  peak_ = std::max(peak_, copied);
  sum_ += copied;
  ++reports_;
  server_.log().logf(last ? base::LogLevel::kNotice : base::LogLevel::kVerbose,
                     "Fork CoW for %s: current %.0f MB, peak %.0f MB, average %.0f MB",
                     kind_ == ChildKind::kAofRewrite ? "AOF rewrite" : "RDB",
                     static_cast<double>(copied) / kMegabyte,
                     static_cast<double>(peak_) / kMegabyte,
                     static_cast<double>(sum_ / reports_) / kMegabyte);
  shared_.keys_written = keys_;
  shared_.copied_bytes = copied;
  shared_.last = last;
  shared_.number = reports_;
  if (getppid() == parent_) return;
  // The server has ended, so nobody needs the file.
  server_.log().warning("The server that this child writes for has gone, exiting.");
  if (!unfinished_.empty()) server_.files().remove(unfinished_);
  _exit(kExitFailed);
}

void BackgroundChild::prepare_child(const Job& job) {
  const server::ConfigValues& settings = server_.settings();
  base::Logger& log = server_.log();
  child_logger = &log;
  log.set_role('C');
  // Ctrl-C signals the child as well; the server stops it.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  // A failed write to a pipe of the job shows that its reader has ended.
  std::signal(SIGPIPE, SIG_IGN);
  set_handler(SIGUSR1, on_kill_signal);
  base::close_all_but(job.keep_open);
  server::pin_to_cpus(job.kind == ChildKind::kAofRewrite ? settings.aof_rewrite_cpulist
                                                         : settings.bgsave_cpulist);
  if (parts_.oom_score != nullptr)
    parts_.oom_score->apply(settings, server::OomScore::Role::kBackgroundChild, log);
  if (parts_.show_title) parts_.show_title(title_of(job.kind));
}

void BackgroundChild::run_child(const Job& job, pid_t parent) {
  prepare_child(job);
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  ChildProgress progress(server_, job.kind, parent, *report_);
  const bool done = job.work(progress);
  if (done) progress.report_end();
  _exit(done ? kExitDone : kExitFailed);
}

// --- In the server -------------------------------------------------------------------------------

BackgroundChild::BackgroundChild(server::Server& server, ChildProcessParts parts)
    : server_(server), parts_(std::move(parts)) {}

BackgroundChild::~BackgroundChild() {
  if (running()) {
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (report_ != nullptr) munmap(report_, sizeof(ChildReport));
}

base::Result<> BackgroundChild::start(Job job) {
  LK_ASSERT(!running());
  if (report_ == nullptr) {
    void* const shared = mmap(nullptr, sizeof(ChildReport), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, /*fd=*/-1, 0);
    if (shared == MAP_FAILED) return base::fail(std::string("mmap: ") + strerror(errno));
    report_ = new (shared) ChildReport;
  }
  report_->number = reports_ = 0;
  report_->last = false;
  // Blocks all signals, because a signal to the child before it has set its handlers would run the
  // server's.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int64_t started_us = server_.clock().monotonic_us();
  const pid_t self = getpid();
  const pid_t pid = base::fork_process();
  if (pid == 0) run_child(job, self);
  const int fork_error = errno;
  const int64_t forked_us = server_.clock().monotonic_us();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return base::fail(std::string("fork: ") + strerror(fork_error));
  latest_fork_us_ = forked_us - started_us;
  ++forks_;
  server_.latency_monitor().add("fork", latest_fork_us_ / base::kUsPerMs,
                                server_.now_ms() / base::kMsPerSecond);
  pid_ = pid;
  started_us_ = started_us;
  current_ = {.keys_total = job.keys_total};
  last_report_us_ = 0;
  has_final_report_ = false;
  job_ = std::move(job);
  progress_.emplace(&server_.log(), /*terminal=*/-1, std::string(task_name(job_.kind)),
                    server::ProgressUnit::kKeys, job_.keys_total, forked_us);
  return {};
}

void BackgroundChild::kill() {
  if (running()) ::kill(pid_, SIGUSR1);
}

void BackgroundChild::kill_and_wait() {
  if (!running()) return;
  kill();
  int status = 0;
  pid_t ended = 0;
  do {
    ended = waitpid(pid_, &status, 0);
  } while (ended < 0 && errno == EINTR);
  finish(ended == pid_ ? status : kStatusLost);
}

void BackgroundChild::poll() {
  if (!running()) return;
  read_report();
  int status = 0;
  const pid_t ended = waitpid(pid_, &status, WNOHANG);
  if (ended == pid_) finish(status);
  if (ended < 0 && errno == ECHILD) finish(kStatusLost);
}

void BackgroundChild::read_report() {
  const uint64_t number = report_->number;
  if (std::exchange(reports_, number) == number) return;
  last_report_us_ = server_.clock().monotonic_us();
  current_.keys_written = report_->keys_written;
  current_.copied_bytes = report_->copied_bytes;
  current_.most_copied_bytes = std::max(current_.most_copied_bytes, current_.copied_bytes);
  has_final_report_ = report_->last;
  if (!has_final_report_) progress_->at(current_.keys_written, last_report_us_);
}

void BackgroundChild::finish(int status) {
  read_report();
  ChildEnd end{.pid = std::exchange(pid_, 0)};
  const int exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : kExitFailed;
  end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (end.signal == 0 && exit_status == kExitKilled) end.signal = SIGUSR1;
  end.done = end.signal == 0 && exit_status == kExitDone;
  end.duration_s = (server_.clock().monotonic_us() - started_us_) / base::kUsPerSecond;
  if (has_final_report_) end.copied_bytes = current_.copied_bytes;
  current_ = {};
  // The callback may start the next child.
  const Job job = std::exchange(job_, {});
  if (job.ended) job.ended(end);
}

BackgroundChild::Figures BackgroundChild::figures() const {
  Figures figures = current_;
  if (!running()) return figures;
  const int64_t now_us = server_.clock().monotonic_us();
  figures.duration_s = (now_us - started_us_) / base::kUsPerSecond;
  if (last_report_us_ != 0) figures.age_s = (now_us - last_report_us_) / base::kUsPerSecond;
  return figures;
}

}  // namespace latchkey::persist
