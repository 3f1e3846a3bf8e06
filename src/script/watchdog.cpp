#include "script/watchdog.h"

#include <algorithm>
#include <chrono>

#include "base/thread.h"

namespace latchkey::script {

namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

// Pauses between two checks of the clock: a fraction of the limit, within these bounds.
constexpr milliseconds kShortestPause{1};
constexpr milliseconds kLongestPause{50};
constexpr int kLooksPerLimit = 20;
// The thread goes to sleep after this long without a script.
constexpr milliseconds kPatience{1000};

}  // namespace

Watchdog::~Watchdog() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  // Also wakes the thread when it waits for a script.
  sequence_.fetch_add(2);
  sequence_.notify_all();
  wake_.notify_all();
  thread_.join();
}

void Watchdog::begin(int64_t limit_ms) {
  if (limit_ms_.load(std::memory_order_relaxed) != limit_ms)
    limit_ms_.store(limit_ms, std::memory_order_relaxed);
  // Sequentially consistent with the check of asleep_: either the thread sees the script before it
  // sleeps, or it is woken.
  sequence_.store(sequence_.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
  if (asleep_.load(std::memory_order_seq_cst)) sequence_.notify_one();
  if (!thread_.joinable()) [[unlikely]]
    thread_ = base::start_thread("script_watchdog", [this] { run(); });
}

bool Watchdog::end() {
  const uint64_t script = sequence_.load(std::memory_order_relaxed);
  sequence_.store(script + 1, std::memory_order_seq_cst);
  if (overran_.load(std::memory_order_seq_cst) != script) return false;
  // Another script may begin at once: the thread must see that this one has ended.
  { const std::lock_guard lock(mutex_); }
  wake_.notify_all();
  return true;
}

void Watchdog::run() {
  std::unique_lock lock(mutex_);
  auto last_script = SteadyClock::now();
  while (!stopping_) {
    const uint64_t seen = sequence_.load();
    const milliseconds limit{limit_ms_.load()};
    if (seen % 2 == 1 && limit.count() > 0) {
      watch(lock, seen);
      last_script = SteadyClock::now();
      continue;
    }
    if (SteadyClock::now() - last_script > kPatience) {
      lock.unlock();
      asleep_ = true;
      sequence_.wait(seen);
      asleep_ = false;
      lock.lock();
      last_script = SteadyClock::now();
      continue;
    }
    wake_.wait_for(lock, std::clamp(limit / kLooksPerLimit, kShortestPause, kLongestPause));
    if (sequence_.load() != seen) last_script = SteadyClock::now();
  }
}

void Watchdog::watch(std::unique_lock<std::mutex>& lock, uint64_t script) {
  const milliseconds limit{limit_ms_.load()};
  const auto deadline = SteadyClock::now() + limit;
  const milliseconds pause = std::clamp(limit / kLooksPerLimit, kShortestPause, kLongestPause);
  while (!stopping_ && running(script)) {
    if (SteadyClock::now() >= deadline) {
      overran_ = script;
      // Sequentially consistent with end(): a script that has ended by now has not seen that.
      if (!running(script)) return;
      overrun_();
      while (!stopping_ && running(script)) wake_.wait_for(lock, kLongestPause);
      return;
    }
    wake_.wait_for(lock, pause);
  }
}

}  // namespace latchkey::script
