// What threads have allocated and freed, as jemalloc counts it for each of them.
#pragma once

#include <cstdint>

namespace latchkey::base {

// The counters of the thread that made it, read by that thread. Reading costs two loads.
class ThreadHeapUse {
 public:
  // Costs a microsecond.
  ThreadHeapUse();

  // False when the program uses another allocator (a sanitizer's), which does not count by thread.
  bool is_known() const { return allocated_ != nullptr; }
  // Bytes that the thread has allocated, less those that it has freed, whoever had allocated them;
  // modulo 2^64. Zero when not known.
  uint64_t balance() const { return allocated_ == nullptr ? 0 : *allocated_ - *freed_; }

 private:
  const uint64_t* allocated_ = nullptr;
  const uint64_t* freed_ = nullptr;
};

}  // namespace latchkey::base
