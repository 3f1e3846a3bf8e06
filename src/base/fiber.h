// A fiber: a function on a stack of its own. It can be suspended anywhere below, and goes on from
// there when it is resumed.
//
// The stack is Boost.Context's, with a guard page at its end: who overflows it ends with a
// segmentation fault and touches nothing else. Memory is taken page by page as the stack is used. A
// fiber is used again and again: a run costs two switches, some nanoseconds each, and allocates
// nothing.
//
// A fiber belongs to the thread that made it. Exceptions must not leave its body.
#pragma once

#include <cstddef>
#include <memory>

namespace latchkey::base {

class Fiber {
 public:
  // Bytes of address space. As much as a process's first thread has, since the same code runs on
  // both; sanitizers make frames several times as large.
  static const size_t kStackSize;

  Fiber();
  // REQUIRES: idle().
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Calls `body` on the fiber's stack. True when it has ended, false when it was suspended: what it
  // uses must live on until it ends. REQUIRES: idle().
  template <typename Body>
  bool run(Body& body) {
    return run([](void* object) { (*static_cast<Body*>(object))(); }, &body);
  }
  // Goes on where it was suspended. The result is as for run(). REQUIRES: suspended, and called
  // from outside.
  bool resume();
  // Returns to whoever called run() or resume(). REQUIRES: called by the fiber's body.
  void suspend();

  // No body has begun that has not ended.
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
