#include "base/heap_use.h"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <vector>

#include "base/jemalloc.h"

namespace latchkey::base {

namespace {

bool read_pointer(const char* name, const uint64_t** pointer) {
  size_t size = sizeof(*pointer);
  return mallctl != nullptr && mallctl(name, pointer, &size, nullptr, 0) == 0;
}

struct BackgroundThreads {
  std::mutex mutex;
  std::vector<const ThreadHeapUse*> running;
  uint64_t balance_of_ended = 0;
};

// Never destroyed, because threads may end after what is static.
BackgroundThreads& background_threads() {
  static auto& threads = *new BackgroundThreads;
  return threads;
}

}  // namespace

ThreadHeapUse::ThreadHeapUse() {
  if (!read_pointer("thread.allocatedp", &allocated_) ||
      !read_pointer("thread.deallocatedp", &freed_))
    allocated_ = freed_ = nullptr;
}

BackgroundHeapUse::BackgroundHeapUse() {
  BackgroundThreads& threads = background_threads();
  const std::lock_guard lock(threads.mutex);
  threads.running.push_back(&thread_);
}

BackgroundHeapUse::~BackgroundHeapUse() {
  BackgroundThreads& threads = background_threads();
  const std::lock_guard lock(threads.mutex);
  threads.balance_of_ended += thread_.balance();
  threads.running.erase(std::find(threads.running.begin(), threads.running.end(), &thread_));
}

uint64_t BackgroundHeapUse::balance() {
  BackgroundThreads& threads = background_threads();
  const std::lock_guard lock(threads.mutex);
  uint64_t sum = threads.balance_of_ended;
  for (const ThreadHeapUse* thread : threads.running) sum += thread->balance();
  return sum;
}

}  // namespace latchkey::base
