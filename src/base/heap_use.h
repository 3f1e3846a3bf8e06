// What threads have allocated and freed, as jemalloc counts it for each of them.
#pragma once

#include <cstdint>

namespace latchkey::base {

// The counters of the thread that made it. Reading costs two loads. Other threads may read them as
// long as that one lives; what it does meanwhile they see in part.
class ThreadHeapUse {
 public:
  // Costs a microsecond.
  ThreadHeapUse();
  // Counters of the caller, for tests: sanitizers' allocators have none.
  ThreadHeapUse(const uint64_t* allocated, const uint64_t* freed)
      : allocated_(allocated), freed_(freed) {}

  // False when the program uses another allocator (a sanitizer's), which does not count by thread.
  bool is_known() const { return allocated_ != nullptr; }
  // Bytes that the thread has allocated, less those that it has freed, whichever thread had
  // allocated them; modulo 2^64. Zero when not known.
  uint64_t balance() const { return allocated_ == nullptr ? 0 : read(allocated_) - read(freed_); }

 private:
  static uint64_t read(const uint64_t* counter) {
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
  }

  const uint64_t* allocated_ = nullptr;
  const uint64_t* freed_ = nullptr;
};

// While it lives, the thread that made it counts among the background threads; what it has
// allocated and freed by then counts for good. start_thread() makes one for each thread.
class BackgroundHeapUse {
 public:
  BackgroundHeapUse();
  ~BackgroundHeapUse();
  BackgroundHeapUse(const BackgroundHeapUse&) = delete;
  BackgroundHeapUse& operator=(const BackgroundHeapUse&) = delete;

  // The sum of the balances of all background threads, also of those that have ended; modulo 2^64.
  // Any thread may ask. Costs a mutex and two loads for each.
  static uint64_t balance();

 private:
  ThreadHeapUse thread_;
};

}  // namespace latchkey::base
