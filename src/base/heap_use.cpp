#include "base/heap_use.h"

#include <cstddef>

// jemalloc's control interface; absent where another allocator is linked.
extern "C" int mallctl(const char* name, void* old_value, size_t* old_size, void* new_value,
                       size_t new_size) __attribute__((weak));

namespace latchkey::base {

namespace {

bool read_pointer(const char* name, const uint64_t** pointer) {
  size_t size = sizeof(*pointer);
  return mallctl != nullptr && mallctl(name, pointer, &size, nullptr, 0) == 0;
}

}  // namespace

ThreadHeapUse::ThreadHeapUse() {
  if (!read_pointer("thread.allocatedp", &allocated_) ||
      !read_pointer("thread.deallocatedp", &freed_))
    allocated_ = freed_ = nullptr;
}

}  // namespace latchkey::base
