// The memory of one Lua world: where it comes from, how much it is, and how much it may be while a
// script runs.
//
// It comes from the process's allocator, so that it is counted there as well. What is refused is an
// error ("not enough memory") to the script that asked; outside of scripts, where nobody could take
// such an error, nothing is refused.
#pragma once

#include <cstddef>

namespace latchkey::script {

class LuaMemory {
 public:
  // As lua_Alloc. Null when `new_size` is not to be had.
  void* allocate(void* block, size_t old_size, size_t new_size);

  // Bytes held.
  size_t used() const { return used_; }
  // Bytes handed out since the beginning, whether they are still held or not.
  size_t handed_out() const { return handed_out_; }

  // Bytes that may be held while the limit is enforced; 0: any number.
  void set_limit(size_t bytes) { limit_ = bytes; }
  // How much of what it may have is left, for what is kept outside of Lua on a script's behalf.
  size_t left() const;
  // Whether so much is held that collecting is to be done sooner than usual.
  bool is_short() const { return enforced_ && limit_ != 0 && used_ > limit_ / 2; }
  // Whether anything has been refused since this was asked last.
  bool take_refused();

  // The limit holds while it lives.
  class Enforcement {
   public:
    explicit Enforcement(LuaMemory& memory) : memory_(memory), before_(memory.enforced_) {
      memory_.enforced_ = true;
    }
    ~Enforcement() { memory_.enforced_ = before_; }
    Enforcement(const Enforcement&) = delete;
    Enforcement& operator=(const Enforcement&) = delete;

   private:
    LuaMemory& memory_;
    bool before_;
  };
  // The limit does not hold while it lives, where refusing would be fatal.
  class Exemption {
   public:
    explicit Exemption(LuaMemory& memory) : memory_(memory), before_(memory.enforced_) {
      memory_.enforced_ = false;
    }
    ~Exemption() { memory_.enforced_ = before_; }
    Exemption(const Exemption&) = delete;
    Exemption& operator=(const Exemption&) = delete;

   private:
    LuaMemory& memory_;
    bool before_;
  };

  // For tests: of what is asked for while the limit is enforced, so much is still granted, and then
  // nothing, up to the next call. Negative: all.
  void grant_only(long requests) { granted_ = requests; }

 private:
  bool refuses(size_t more);

  size_t used_ = 0;
  size_t handed_out_ = 0;
  size_t limit_ = 0;
  long granted_ = -1;
  bool enforced_ = false;
  bool refused_ = false;
};

}  // namespace latchkey::script
