// Frees large things on a background thread, so that the server's thread does not stop for them.
//
// The thread starts with the first job; if it cannot be started, jobs run at once. The destructor
// waits for every job.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "base/worker.h"

namespace latchkey::store {

class Reclaimer {
 public:
  // Freeing up to so many elements costs less than giving them to another thread.
  static constexpr size_t kMaxFreedAtOnce = 64;

  // Has the thread run `prepare` when it starts. REQUIRES: nothing has been freed there yet.
  void prepare_thread(std::function<void()> prepare) { worker_.set_prepare(std::move(prepare)); }
  // Runs `free_it` on the background thread. `objects`: how many objects the job counts as below.
  void free_later(size_t objects, std::function<void()> free_it);
  // Destroys `owned` on the background thread, as so many objects.
  template <typename Owned>
  void destroy_later(size_t objects, Owned owned) {
    free_later(objects,
               [owned = std::make_shared<Owned>(std::move(owned))]() mutable { owned.reset(); });
  }
  // Destroys a container: one of more than kMaxFreedAtOnce elements on the background thread, where
  // each element counts as an object; a smaller one at once, and nothing is counted.
  template <typename Container>
  void free_container(Container container) {
    const size_t size = container.size();
    if (size > kMaxFreedAtOnce) destroy_later(size, std::move(container));
  }
  // Counts objects that were freed at once because they were too few for the background thread.
  void count_freed(size_t objects) { freed_.fetch_add(objects, std::memory_order_relaxed); }
  // Waits until every job queued so far is done.
  void drain() { worker_.drain(); }

  // Jobs queued since the start.
  size_t jobs() const { return jobs_; }
  // Objects queued and not yet freed; objects freed since the start or the last reset_freed().
  size_t pending_objects() const { return pending_.load(std::memory_order_relaxed); }
  size_t freed_objects() const { return freed_.load(std::memory_order_relaxed); }
  // Bytes that the background thread has freed since the start (base/heap_use.h).
  size_t freed_bytes() const { return freed_bytes_.load(std::memory_order_relaxed); }
  void reset_freed() { freed_.store(0, std::memory_order_relaxed); }

 private:
  size_t jobs_ = 0;
  std::atomic<size_t> pending_{0};
  std::atomic<size_t> freed_{0};
  std::atomic<size_t> freed_bytes_{0};
  // Last member, because its jobs use the counters above.
  base::Worker worker_{"bio_lazy_free"};
};

}  // namespace latchkey::store
