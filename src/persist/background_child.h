// The forked child that writes the dataset while the server goes on. There is one at a time, for
// all kinds of files.
//
//     child.start({.kind = ChildKind::kRdbToDisk,
//                  .keys_total = keys,
//                  .work = [&](ChildProgress& progress) { ...; progress.key_written(); ... },
//                  .ended = [this](const ChildEnd& end) { ... }});
//
// A fork copies only the calling thread, so the child has the dataset as of the fork, and possibly
// locks held by other threads. It may read and allocate; it must not free what a keyspace holds,
// use the reclaimer, run scripts or touch the loop. It closes every descriptor except the standard
// ones and those in `keep_open`, so that no listening socket and no client's connection outlives
// the server in the child; it ignores the signals that stop the server, and ends by _exit.
//
// About once a second it reports to its parent how many keys it has written and how many bytes copy
// on write has duplicated: in shared memory, because a server without free descriptors saves too.
// Costs the server the fork, which is proportional to its memory
// (latest_fork_us), and a page copy for each page it changes while the child lives.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "server/observe/progress.h"

namespace latchkey::server {
class OomScore;
class Server;
}  // namespace latchkey::server

namespace latchkey::persist {

enum class ChildKind : uint8_t { kRdbToDisk, kAofRewrite, kRdbToSocket };

// Process-wide objects that a child adjusts; empty where several servers share a process (tests).
struct ChildProcessParts {
  server::OomScore* oom_score = nullptr;
  // Sets the title of the process ("redis-rdb-bgsave").
  std::function<void(std::string_view name)> show_title;
};

// How a child ended.
struct ChildEnd {
  pid_t pid = 0;
  bool done = false;  // its work returned true
  int signal = 0;     // the signal that ended it, or 0; SIGUSR1 after kill()
  int64_t duration_s = 0;
  size_t copied_bytes = 0;  // by copy on write, as measured by the child at its end; 0 unless done
};

struct ChildReport;  // what the two processes share

// Used in the child to report to its parent.
class ChildProgress {
 public:
  ChildProgress(server::Server& server, ChildKind kind, pid_t parent, ChildReport& report);

  // The child must call this for each key.
  void key_written() {
    ++keys_;
    if (keys_ % kKeysPerCheck == 0 || checks_each_key_) [[unlikely]]
      report_if_due();
  }
  // Checks the clock at each key, for keys that are written slowly on purpose (rdb-key-save-delay).
  void expect_slow_keys() { checks_each_key_ = true; }
  // The file that the child is writing. The child removes it if its server has ended, because
  // nobody else would.
  void remove_if_orphaned(std::string path) { unfinished_ = std::move(path); }
  // Makes the last report, when the work is done.
  void report_end();

 private:
  static constexpr uint64_t kKeysPerCheck = 256;
  void report_if_due();
  void report(bool last);
  int64_t now_us() const;

  server::Server& server_;
  ChildKind kind_;
  pid_t parent_;
  ChildReport& shared_;
  bool checks_each_key_ = false;
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
    // Runs in the child; returns false, with the reason logged, on failure.
    std::function<bool(ChildProgress&)> work;
    // Runs in the server, from poll(), when the child has ended.
    std::function<void(const ChildEnd&)> ended;
    // Descriptors besides the standard ones that the child needs.
    std::vector<int> keep_open = {};
  };

  BackgroundChild(server::Server& server, ChildProcessParts parts);
  // Kills a running child.
  ~BackgroundChild();
  BackgroundChild(const BackgroundChild&) = delete;
  BackgroundChild& operator=(const BackgroundChild&) = delete;

  // REQUIRES: !running(). The error is the system call that failed and its message.
  base::Result<> start(Job job);

  bool running() const { return pid_ != 0; }
  bool running(ChildKind kind) const { return running() && job_.kind == kind; }
  // Whether the child writes a snapshot, into a file or to other servers.
  bool writes_rdb() const {
    return running(ChildKind::kRdbToDisk) || running(ChildKind::kRdbToSocket);
  }
  pid_t pid() const { return pid_; }

  // Stops the child at once; poll() will find it ended by SIGUSR1. Does nothing when there is none.
  void kill();
  // As kill(), but waits until the child has ended and its `ended` has been called.
  void kill_and_wait();

  // Reads the child's reports, and checks whether it has ended. Callers must call this at every
  // tick.
  void poll();

  // --- Figures -----------------------------------------------------------------------------------

  // Figures of the running child; zero when there is none.
  struct Figures {
    size_t copied_bytes = 0;
    size_t most_copied_bytes = 0;
    int64_t age_s = 0;  // seconds since the child measured the two above
    uint64_t keys_written = 0;
    size_t keys_total = 0;
    int64_t duration_s = 0;
  };
  Figures figures() const;
  // Duration of the last fork, and number of forks since the last reset.
  int64_t latest_fork_us() const { return latest_fork_us_; }
  uint64_t forks() const { return forks_; }
  void reset_forks() { forks_ = 0; }

 private:
  [[noreturn]] void run_child(const Job& job, pid_t parent);
  void prepare_child(const Job& job);
  void read_report();
  void finish(int status);

  server::Server& server_;
  ChildProcessParts parts_;
  Job job_{};
  std::optional<server::Progress> progress_;  // of the job, as its child reports it
  pid_t pid_ = 0;
  ChildReport* report_ = nullptr;  // mapped by the first start()
  int64_t started_us_ = 0;         // monotonic
  Figures current_;
  uint64_t reports_ = 0;        // of the child, as far as they were read
  int64_t last_report_us_ = 0;  // monotonic time of the child's last report; 0: none
  bool has_final_report_ = false;
  int64_t latest_fork_us_ = 0;
  uint64_t forks_ = 0;
};

}  // namespace latchkey::persist
