// Runs the scripts of notification-script and client-reconfig-script, in the order in which they
// were added, up to sixteen at a time.
//
// A script that ends with status 1, or by a signal, is run again after a while that doubles each
// time, ten times at most. One that runs too long is killed, which counts as a signal. When many
// wait, the oldest is dropped for a new one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sentinel/settings.h"

namespace latchkey::sentinel {

class ScriptQueue {
 public:
  static constexpr size_t kMaxWaiting = 256;
  static constexpr size_t kMaxRunning = 16;
  static constexpr int kMaxAttempts = 10;

  // Processes, as the system or a test has them.
  class Launcher {
   public:
    virtual ~Launcher() = default;
    // Starts a process; 0 when that fails. Its end is reported by ended().
    virtual int64_t start(const std::vector<std::string>& words) = 0;
    virtual void kill(int64_t pid) = 0;
  };
  // Called when a script has failed, with the type and the message of an event.
  using OnFailure = std::function<void(std::string_view type, const std::string& message)>;

  struct Job {
    std::vector<std::string> words;  // the path, and the arguments
    int64_t pid = 0;                 // 0: it waits
    int64_t at_ms = 0;               // since when it runs; when it is to be run, 0: at once
    int attempts = 0;
    bool killed = false;
  };

  ScriptQueue(Launcher& launcher, const Periods& periods, OnFailure on_failure)
      : launcher_(launcher), periods_(periods), on_failure_(std::move(on_failure)) {}

  void add(std::vector<std::string> words);
  // Starts what is due, and kills what runs too long. To be called regularly.
  void tick(int64_t now_ms);
  // A process has ended, by a signal if that is not 0.
  void ended(int64_t pid, int exit_status, int signal, int64_t now_ms);

  // In their order.
  const std::list<Job>& jobs() const { return jobs_; }
  size_t running() const { return running_; }

 private:
  int64_t retry_delay_ms(int attempts) const;

  Launcher& launcher_;
  const Periods& periods_;
  OnFailure on_failure_;
  std::list<Job> jobs_;
  size_t running_ = 0;
};

}  // namespace latchkey::sentinel
