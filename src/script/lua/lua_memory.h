// The memory of one Lua VM: allocates it, counts it, and limits it while a script runs.
//
// Memory comes from the process's allocator, so that it is counted there as well. A refused
// allocation is an error ("not enough memory") in the script; outside of scripts nobody could catch
// that error, and nothing is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace latchkey::script {

class LuaMemory {
 public:
  // As lua_Alloc. Null when `new_size` is refused or not available.
  void* allocate(void* block, size_t old_size, size_t new_size) {
    if (new_size == 0) return release(block, old_size);
    used_ += new_size - old_size;
    if (new_size > old_size) {
      if (used_ > unlimited_up_to_ && refuses(new_size - old_size)) [[unlikely]]
        return refused(old_size, new_size);
      total_allocated_ += new_size - old_size;
    }
    void* granted = std::realloc(block, new_size);
    return granted != nullptr ? granted : refused(old_size, new_size);
  }

  // The same for a new size of 0. Null.
  void* release(void* block, size_t size) {
    used_ -= size;
    std::free(block);
    return nullptr;
  }

  // Bytes held.
  size_t used() const { return used_; }
  // Bytes allocated since the beginning, including those freed again.
  size_t total_allocated() const { return total_allocated_; }

  // Bytes that may be held while the limit is enforced; 0: any number.
  void set_limit(size_t bytes) {
    limit_ = bytes;
    update_threshold();
  }
  // Bytes left within the limit, for memory outside of Lua that is used on a script's behalf.
  size_t left() const;
  // Whether the collector should run sooner than usual because of the limit.
  bool is_short() const { return used_ > unlimited_up_to_; }
  // Whether an allocation was refused since the last call.
  bool take_refused();

  // Enforces the limit during its lifetime.
  class Enforcement {
   public:
    explicit Enforcement(LuaMemory& memory) : memory_(memory), before_(memory.enforce(true)) {}
    ~Enforcement() { memory_.enforce(before_); }
    Enforcement(const Enforcement&) = delete;
    Enforcement& operator=(const Enforcement&) = delete;

   private:
    LuaMemory& memory_;
    bool before_;
  };
  // Suspends the limit during its lifetime, where a refusal would be fatal.
  class Exemption {
   public:
    explicit Exemption(LuaMemory& memory) : memory_(memory), before_(memory.enforce(false)) {}
    ~Exemption() { memory_.enforce(before_); }
    Exemption(const Exemption&) = delete;
    Exemption& operator=(const Exemption&) = delete;

   private:
    LuaMemory& memory_;
    bool before_;
  };

  // For tests: grants so many more requests for memory while the limit is enforced, then none,
  // until the next call. Negative: all.
  void grant_only(long requests) {
    granted_ = requests;
    update_threshold();
  }

 private:
  // `more` is already counted in used_.
  bool refuses(size_t more);
  void* refused(size_t old_size, size_t new_size);
  // Switches enforcement of the limit. Returns whether it was on.
  bool enforce(bool on) {
    unlimited_up_to_ = on ? enforced_from_ : SIZE_MAX;
    return std::exchange(enforced_, on);
  }
  void update_threshold() {
    enforced_from_ = limit_ != 0 ? limit_ / 2 : SIZE_MAX;
    if (granted_ >= 0) enforced_from_ = 0;
    enforce(enforced_);
  }

  // Bytes that may be held without checking the limit: half of the limit, or SIZE_MAX while it is
  // not enforced.
  size_t unlimited_up_to_ = SIZE_MAX;
  size_t enforced_from_ = SIZE_MAX;
  size_t used_ = 0;
  size_t total_allocated_ = 0;
  size_t limit_ = 0;
  long granted_ = -1;
  bool enforced_ = false;
  bool refused_ = false;
};

}  // namespace latchkey::script
