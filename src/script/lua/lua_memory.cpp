#include "script/lua/lua_memory.h"

namespace latchkey::script {

bool LuaMemory::refuses(size_t more) {
  if (granted_ == 0) return true;
  if (granted_ > 0) --granted_;
  return limit_ != 0 && (more > limit_ || used_ > limit_);
}

void* LuaMemory::refused(size_t old_size, size_t new_size) {
  used_ -= new_size - old_size;
  refused_ = true;
  return nullptr;
}

size_t LuaMemory::left() const {
  if (limit_ == 0) return SIZE_MAX;
  return limit_ > used_ ? limit_ - used_ : 0;
}

bool LuaMemory::take_refused() {
  return std::exchange(refused_, false);
}

}  // namespace latchkey::script
