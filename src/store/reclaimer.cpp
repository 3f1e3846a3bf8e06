#include "store/reclaimer.h"

#include <utility>

namespace latchkey::store {

void Reclaimer::free_later(size_t objects, std::function<void()> free_it) {
  ++handed_over_;
  pending_.fetch_add(objects, std::memory_order_relaxed);
  worker_.run([this, objects, free_it = std::move(free_it)]() mutable {
    free_it();
    free_it = nullptr;
    pending_.fetch_sub(objects, std::memory_order_relaxed);
    freed_.fetch_add(objects, std::memory_order_relaxed);
  });
}

}  // namespace latchkey::store
