#include "base/heap_use.h"

#include <cstddef>

#include "base/jemalloc.h"

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
