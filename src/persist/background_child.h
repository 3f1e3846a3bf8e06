// The forked child that writes the dataset while the server goes on: one at a time, whatever it
// writes.
//
//     child.start({.kind = ChildKind::kRdbToDisk,
//                  .keys_total = keys,
//                  .work = [&](ChildProgress& progress) { ...; progress.key_written(); ... },
//                  .ended = [this](const ChildEnd& end) { ... }},
//                 &error);
//
// A fork copies the calling thread alone, so the child has the dataset as it stood, and locks that
// another thread may have held. It may read and allocate; it must not free what a keyspace holds,
// hand anything to the reclaimer, run scripts or touch the loop. It closes every descriptor but the
// standard ones and those it was told to keep, so that no listening socket and no client's
// connection outlives the server in it, ignores the signals that end the server, and ends by _exit.
//
// It tells its parent about once a second how far it has come and how much memory it has made the
// two hold twice (copy on write). Costs the server the fork, which is proportional to its memory
// (latest_fork_us), and a page for each page it changes while the child lives.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace latchkey::server {
class OomScore;
class Server;
}  // namespace latchkey::server

namespace latchkey::persist {

enum class ChildKind : uint8_t { kRdbToDisk, kAofRewrite, kRdbToSocket };

// Parts of the process that a child makes its own; empty where a server is not the process's only
// one (tests).
struct ChildProcessParts {
  server::OomScore* oom_score = nullptr;
  // Shows the process under this name ("redis-rdb-bgsave").
  std::function<void(std::string_view name)> show_title;
};

// How a child ended.
struct ChildEnd {
  pid_t pid = 0;
  bool done = false;  // its work returned true
  int signal = 0;     // that ended it, or 0; SIGUSR1 when kill() did
  int64_t duration_s = 0;
  size_t copied_bytes = 0;  // by copy on write, as the child found at its end; 0 unless done
};

// In the child: what it tells its parent.
class ChildProgress {
 public:
  ChildProgress(server::Server& server, ChildKind kind, int pipe);

  // To be called for each key.
  void key_written() {
    ++keys_;
    if (keys_ % kKeysPerGlance == 0 || patient_) [[unlikely]]
      report_if_due();
  }
  // Looks at the clock at each key: for work that is made slow on purpose.
  void expect_slow_keys() { patient_ = true; }
  // The file that the child writes now, which it removes should it find that its server has gone:
  // nobody would know of it.
  void remove_if_orphaned(std::string path) { unfinished_ = std::move(path); }
  // The last report, when the work is done.
  void report_end();

 private:
  static constexpr uint64_t kKeysPerGlance = 256;
  void report_if_due();
  void report(bool last);
  int64_t now_us() const;

  server::Server& server_;
  ChildKind kind_;
  int pipe_;
  bool patient_ = false;
  std::string unfinished_;
  uint64_t keys_ = 0;
  int64_t next_report_us_;
  size_t peak_ = 0;
  uint64_t sum_ = 0;
  uint64_t reports_ = 0;
};

class BackgroundChild {
 public:
  struct Job {
    ChildKind kind;
    size_t keys_total = 0;
    // Runs in the child; false: it has failed, and said why in the log.
    std::function<bool(ChildProgress&)> work;
    // Runs in the server when the child has ended, from poll().
    std::function<void(const ChildEnd&)> ended;
    // Descriptors besides the standard ones that the child needs.
    std::vector<int> keep_open = {};
  };

  BackgroundChild(server::Server& server, ChildProcessParts parts);
  // Kills the child that is left.
  ~BackgroundChild();
  BackgroundChild(const BackgroundChild&) = delete;
  BackgroundChild& operator=(const BackgroundChild&) = delete;

  // REQUIRES: !running(). False with the system's words in `error` when there can be no child.
  bool start(Job job, std::string* error);

  bool running() const { return pid_ != 0; }
  bool running(ChildKind kind) const { return running() && job_.kind == kind; }
  pid_t pid() const { return pid_; }

  // Tells the child to stop, which it does at once; poll() will find it ended, by SIGUSR1. Nothing
  // when there is none.
  void kill();
  // The same, and waits for it: it is over, and its `ended` has been called, when this returns.
  void kill_and_wait();

  // Reads what the child has told, and sees whether it has ended. To be called at every tick.
  void poll();

  // --- Figures -----------------------------------------------------------------------------------

  // Of the child that runs; zero when there is none.
  struct Figures {
    size_t copied_bytes = 0;
    size_t most_copied_bytes = 0;
    int64_t age_s = 0;  // of the two above
    uint64_t keys_written = 0;
    size_t keys_total = 0;
    int64_t duration_s = 0;
  };
  Figures figures() const;
  // How long the last fork took, and how many there were since the last reset.
  int64_t latest_fork_us() const { return latest_fork_us_; }
  uint64_t forks() const { return forks_; }
  void reset_forks() { forks_ = 0; }

 private:
  [[noreturn]] void run_child(const Job& job, int pipe);
  void prepare_child(const Job& job, int pipe);
  void read_messages();
  void finish(int status);

  server::Server& server_;
  ChildProcessParts parts_;
  Job job_{};
  pid_t pid_ = 0;
  int pipe_ = -1;           // what the child tells
  int64_t started_us_ = 0;  // monotonic
  Figures current_;
  int64_t told_us_ = 0;  // monotonic, when the child spoke last; 0: not yet
  bool last_told_ = false;
  int64_t latest_fork_us_ = 0;
  uint64_t forks_ = 0;
};

}  // namespace latchkey::persist
