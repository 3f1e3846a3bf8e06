// A fiber: a function with its own stack. It can be suspended at any depth of calls, and continues
// there when it is resumed.
//
// The stack is Boost.Context's, with a guard page at its end: an overflow causes a segmentation
// fault and overwrites nothing. Memory is allocated page by page as the stack is used. A fiber can
// be reused: a run costs two switches, some nanoseconds each, and allocates nothing.
//
// A fiber may only be used by the thread that created it. Exceptions must not leave its body.
#pragma once

#include <cstddef>
#include <memory>

namespace latchkey::base {

class Fiber {
 public:
  // Bytes of address space. The same as the stack of a process's first thread, since the same code
  // runs on both; more with sanitizers, whose frames are several times as large.
  static const size_t kStackSize;

  Fiber();
  // REQUIRES: idle().
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Calls `body` on the fiber's stack. Returns true when the body has ended, false when it was
  // suspended: whatever it uses must then live until it ends. REQUIRES: idle().
  template <typename Body>
  bool run(Body& body) {
    return run([](void* object) { (*static_cast<Body*>(object))(); }, &body);
  }
  // Continues the suspended body. Returns as run() does. REQUIRES: suspended, and not called from
  // the body.
  bool resume();
  // Suspends the body: run() or resume() returns. REQUIRES: called from the body.
  void suspend();

  // Whether no body is running or suspended.
  bool idle() const { return idle_; }
  // The lowest address that the body may use.
  const void* stack_end() const { return stack_end_; }

 private:
  struct Context;
  bool run(void (*body)(void*), void* object);
  bool enter();

  std::unique_ptr<Context> context_;
  const void* stack_end_;
  void (*body_)(void*) = nullptr;
  void* object_ = nullptr;
  bool idle_ = true;
};

}  // namespace latchkey::base
