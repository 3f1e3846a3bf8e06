#include "store/reclaimer.h"

#include <cstdint>
#include <utility>

#include "base/heap_use.h"

namespace latchkey::store {

void Reclaimer::free_later(size_t objects, std::function<void()> free_it) {
  ++jobs_;
  pending_.fetch_add(objects, std::memory_order_relaxed);
  worker_.run([this, objects, free_it = std::move(free_it)]() mutable {
    const base::ThreadHeapUse thread;
    const uint64_t before = thread.balance();
    free_it();
    free_it = nullptr;
    freed_bytes_.fetch_add(before - thread.balance(), std::memory_order_relaxed);
    pending_.fetch_sub(objects, std::memory_order_relaxed);
    freed_.fetch_add(objects, std::memory_order_relaxed);
  });
}

}  // namespace latchkey::store
