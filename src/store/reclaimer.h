// Frees large things on a background thread, so that the server's thread does not stop for them.
//
// The thread starts with the first job; where none can be started, jobs are done at once.
// Destruction waits for every job.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace latchkey::store {

class Reclaimer {
 public:
  Reclaimer() = default;
  ~Reclaimer();
  Reclaimer(const Reclaimer&) = delete;
  Reclaimer& operator=(const Reclaimer&) = delete;

  // Runs `free_it` on the background thread. `objects` is what it counts for in the figures below.
  void free_later(size_t objects, std::function<void()> free_it);
  // Counts what was freed at once, being too little for another thread.
  void count_freed(size_t objects) { freed_.fetch_add(objects, std::memory_order_relaxed); }
  // Waits until every job handed over so far is done.
  void drain();

  // Jobs handed over since the start.
  size_t jobs() const { return handed_over_; }
  // Objects handed over and not yet freed / freed since the start (or the last reset_freed()).
  size_t pending_objects() const { return pending_.load(std::memory_order_relaxed); }
  size_t freed_objects() const { return freed_.load(std::memory_order_relaxed); }
  void reset_freed() { freed_.store(0, std::memory_order_relaxed); }

 private:
  struct Job {
    size_t objects;
    std::function<void()> free_it;
  };
  bool start_thread();
  void run_job(Job job);
  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::deque<Job> jobs_;
  bool busy_ = false;
  bool stopping_ = false;
  std::thread thread_;
  size_t handed_over_ = 0;
  std::atomic<size_t> pending_{0};
  std::atomic<size_t> freed_{0};
};

}  // namespace latchkey::store
