// The memory of one Lua VM: where it comes from, how much it is, and how much it may be while a
// script runs.
//
// It comes from the process's allocator, so that it is counted there as well. What is refused is an
// error ("not enough memory") to the script that asked; outside of scripts, where nobody could take
// such an error, nothing is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace latchkey::script {

class LuaMemory {
 public:
  // As lua_Alloc. Null when `new_size` is not to be had.
  void* allocate(void* block, size_t old_size, size_t new_size) {
    if (new_size == 0) return release(block, old_size);
    used_ += new_size - old_size;
    if (new_size > old_size) {
      if (used_ > unlimited_up_to_ && refuses(new_size - old_size)) [[unlikely]]
        return refused(old_size, new_size);
      handed_out_ += new_size - old_size;
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
  // Bytes handed out since the beginning, whether they are still held or not.
  size_t handed_out() const { return handed_out_; }

  // Bytes that may be held while the limit is enforced; 0: any number.
  void set_limit(size_t bytes) {
    limit_ = bytes;
    look_from_here();
  }
  // How much of what it may have is left, for what is kept outside of Lua on a script's behalf.
  size_t left() const;
  // Whether so much is held that collecting is to be done sooner than usual.
  bool is_short() const { return used_ > unlimited_up_to_; }
  // Whether anything has been refused since this was asked last.
  bool take_refused();

  // The limit holds while it lives.
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
  // The limit does not hold while it lives, where refusing would be fatal.
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

  // For tests: of what is asked for while the limit is enforced, so much is still granted, and then
  // nothing, up to the next call. Negative: all.
  void grant_only(long requests) {
    granted_ = requests;
    look_from_here();
  }

 private:
  // Of what is counted as used already.
  bool refuses(size_t more);
  void* refused(size_t old_size, size_t new_size);
  // Whether the limit is enforced from now on. Returns whether it was.
  bool enforce(bool on) {
    unlimited_up_to_ = on ? enforced_from_ : SIZE_MAX;
    return std::exchange(enforced_, on);
  }
  void look_from_here() {
    enforced_from_ = limit_ != 0 ? limit_ / 2 : SIZE_MAX;
    if (granted_ >= 0) enforced_from_ = 0;
    enforce(enforced_);
  }

  // What may be held without a look at the limit: half of it, but any number while it is not
  // enforced.
  size_t unlimited_up_to_ = SIZE_MAX;
  size_t enforced_from_ = SIZE_MAX;
  size_t used_ = 0;
  size_t handed_out_ = 0;
  size_t limit_ = 0;
  long granted_ = -1;
  bool enforced_ = false;
  bool refused_ = false;
};

}  // namespace latchkey::script
