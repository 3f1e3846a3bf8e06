// Watches the running script from a thread of its own, and reports when it exceeds its time limit.
//
// A script that ends in time costs one atomic exchange at its start and one store at its end. The
// thread starts with the first script, checks every few milliseconds while scripts run, and sleeps
// after a second without any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace latchkey::script {

class Watchdog {
 public:
  // `overrun` is called once for a script that overruns, on the watchdog's thread with its lock
  // held, and only while that script runs.
  explicit Watchdog(std::function<void()> overrun) : overrun_(std::move(overrun)) {}
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Called when a script begins; it may take this long. 0 or less: no limit.
  void begin(int64_t limit_ms);
  // Called when it has ended. True when `overrun` was called for it.
  bool end();

  // While it is held, `overrun` is not called.
  std::mutex& lock() { return mutex_; }

 private:
  void run();
  void watch(std::unique_lock<std::mutex>& lock, uint64_t script);
  bool running(uint64_t script) const {
    return sequence_.load(std::memory_order_seq_cst) == script;
  }

  std::function<void()> overrun_;
  // Odd while a script runs; grows by one at each start and end.
  std::atomic<uint64_t> sequence_{0};
  std::atomic<int64_t> limit_ms_{0};
  // The thread sleeps until sequence_ changes.
  std::atomic<bool> asleep_{false};
  // The sequence_ of the last script that ran too long.
  std::atomic<uint64_t> overran_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace latchkey::script
