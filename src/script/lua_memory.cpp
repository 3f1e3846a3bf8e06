#include "script/lua_memory.h"

#include <cstdint>
#include <cstdlib>
#include <utility>

namespace latchkey::script {

bool LuaMemory::refuses(size_t more) {
  if (granted_ >= 0 && granted_-- == 0) {
    granted_ = 0;
    return true;
  }
  return limit_ != 0 && (more > limit_ || used_ > limit_ - more);
}

void* LuaMemory::allocate(void* block, size_t old_size, size_t new_size) {
  if (new_size == 0) {
    std::free(block);
    used_ -= old_size;
    return nullptr;
  }
  const size_t more = new_size > old_size ? new_size - old_size : 0;
  if (more > 0 && enforced_ && refuses(more)) [[unlikely]] {
    refused_ = true;
    return nullptr;
  }
  void* granted = std::realloc(block, new_size);
  if (granted == nullptr) [[unlikely]] {
    refused_ = true;
    return nullptr;
  }
  used_ += new_size - old_size;
  handed_out_ += more;
  return granted;
}

size_t LuaMemory::left() const {
  if (limit_ == 0) return SIZE_MAX;
  return limit_ > used_ ? limit_ - used_ : 0;
}

bool LuaMemory::take_refused() {
  return std::exchange(refused_, false);
}

}  // namespace latchkey::script
