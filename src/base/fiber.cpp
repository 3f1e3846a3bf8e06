#include "base/fiber.h"

#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <utility>

#include "base/assert.h"

// Sanitizers must be told of each switch, because they keep track of every stack.
#if defined(__SANITIZE_ADDRESS__)
#define LK_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LK_ADDRESS_SANITIZER 1
#endif
#if __has_feature(thread_sanitizer)
#define LK_THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define LK_THREAD_SANITIZER 1
#endif

#ifdef LK_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef LK_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace latchkey::base {

namespace {

namespace context = boost::context;

constexpr size_t kMegabyte = 1024 * 1024;

// The sanitizers' view of one side of a switch between stacks.
class SwitchedStack {
 public:
  // Called on the side that is left. `bottom` and `size`: the stack that is entered.
  void begin_switch([[maybe_unused]] const void* bottom, [[maybe_unused]] size_t size,
                    [[maybe_unused]] void* thread_fiber) {
#ifdef LK_ADDRESS_SANITIZER
    __sanitizer_start_switch_fiber(&fake_stack_, bottom, size);
#endif
#ifdef LK_THREAD_SANITIZER
    __tsan_switch_to_fiber(thread_fiber, 0);
#endif
  }
  // Called on the same side when it is entered again. Sets the stack that was left.
  void end_switch([[maybe_unused]] const void** bottom, [[maybe_unused]] size_t* size) {
#ifdef LK_ADDRESS_SANITIZER
    __sanitizer_finish_switch_fiber(fake_stack_, bottom, size);
#endif
  }

 private:
  [[maybe_unused]] void* fake_stack_ = nullptr;
};

}  // namespace

#ifdef LK_ADDRESS_SANITIZER
const size_t Fiber::kStackSize = 64 * kMegabyte;
#else
const size_t Fiber::kStackSize = 8 * kMegabyte;
#endif

struct Fiber::Context {
  context::protected_fixedsize_stack allocator{kStackSize};
  context::stack_context stack = allocator.allocate();
  // Of these two, only the one that is not running is valid.
  context::fiber inside;
  context::fiber outside;
  SwitchedStack inner;
  SwitchedStack outer;
  const void* outer_bottom = nullptr;
  size_t outer_size = 0;
  bool leaving = false;  // the fiber is being destroyed
  [[maybe_unused]] void* thread_fiber = nullptr;
  [[maybe_unused]] void* outer_thread_fiber = nullptr;

  // The lowest usable address, above the guard page.
  const char* bottom() const { return static_cast<char*>(stack.sp) - stack.size; }

  void switch_in() {
#ifdef LK_THREAD_SANITIZER
    outer_thread_fiber = __tsan_get_current_fiber();
#endif
    outer.begin_switch(bottom(), stack.size, thread_fiber);
    inside = std::move(inside).resume();
    outer.end_switch(nullptr, nullptr);
  }
  void switch_out() {
    inner.begin_switch(outer_bottom, outer_size, outer_thread_fiber);
    outside = std::move(outside).resume();
    inner.end_switch(&outer_bottom, &outer_size);
  }
};

Fiber::Fiber()
    : context_(std::make_unique<Context>()),
      stack_end_(context_->bottom() +
                 context::protected_fixedsize_stack::traits_type::page_size()) {
  Context& self = *context_;
#ifdef LK_THREAD_SANITIZER
  self.thread_fiber = __tsan_create_fiber(0);
#endif
  const context::preallocated place(self.stack.sp, self.stack.size, self.stack);
  self.inside = context::fiber(
      std::allocator_arg, place, self.allocator, [this, &self](context::fiber&& caller) {
        self.inner.end_switch(&self.outer_bottom, &self.outer_size);
        self.outside = std::move(caller);
        // The fiber is entered once here, so that all later entries and the final one are alike.
        for (self.switch_out(); !self.leaving; self.switch_out()) {
          body_(object_);
          idle_ = true;
        }
        // The final return, after which the fiber cannot be entered: the stack is given up.
        self.inner.begin_switch(self.outer_bottom, self.outer_size, self.outer_thread_fiber);
        return std::move(self.outside);
      });
  self.switch_in();
}

Fiber::~Fiber() {
  LK_ASSERT(idle_);
  context_->leaving = true;
  context_->switch_in();
#ifdef LK_THREAD_SANITIZER
  __tsan_destroy_fiber(context_->thread_fiber);
#endif
}

bool Fiber::run(void (*body)(void*), void* object) {
  LK_ASSERT(idle_);
  body_ = body;
  object_ = object;
  idle_ = false;
  return enter();
}

bool Fiber::resume() {
  LK_ASSERT(!idle_);
  return enter();
}

bool Fiber::enter() {
  context_->switch_in();
  return idle_;
}

void Fiber::suspend() {
  context_->switch_out();
}

}  // namespace latchkey::base
