// Tasks: work that may take long (a script, a dataset that is loaded), done in slices between which
// the loop serves others.
//
// A task runs on a stack of its own (base::Fiber). Its code calls yield() at points where it may be
// suspended; the loop resumes it in its next turn. So turns of the loop never nest. Outside of a
// task yield() does nothing, and the work is done in one piece.
//
// A task that is suspended in the middle of a command takes with it what belongs to that command
// alone (TaskFrame): the dispatcher's call, the unit of propagated commands that it has begun, the
// keys it has made ready, and the time it sees. Others find the server between two commands.
//
// One thread. A task that is not suspended costs two switches and no allocation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/fiber.h"
#include "net/loop.h"

namespace latchkey::server {

class Server;
struct TaskFrame;

class Tasks {
 public:
  // For how long a task may run before it lets others be served, in microseconds of real time.
  static constexpr int64_t kSliceUs = 5000;

  class Task;

  explicit Tasks(Server& server);
  // REQUIRES: finish() was called.
  ~Tasks();
  Tasks(const Tasks&) = delete;
  Tasks& operator=(const Tasks&) = delete;

  // Calls `body` at once, in a task. True when it has ended; false when it was suspended: then it
  // is kept until it ends. REQUIRES: !running().
  template <typename Body>
  bool run(Body&& body) {
    auto kept = [body = std::forward<Body>(body)]() mutable {
      // What was given stands on the caller's stack, which does not wait.
      auto own = std::move(body);
      own();
    };
    Task& task = begin();
    return left(task, fiber_of(task).run(kept));
  }
  // The same in the next turn of the loop. May be called anywhere.
  void start(std::function<void()> body);

  // --- For the body of a task, and all that it calls ------------------------------------------

  bool running() const { return current_ != nullptr; }
  // Whether the running task has had its slice. False outside of a task.
  bool slice_is_over() const;
  // Lets others be served; returns in the next turn of the loop. Nothing outside of a task, and
  // when finishing().
  void yield();
  // Returns in the turn after wake() was called for this task, and not before. REQUIRES: running().
  void wait();
  Task* current() const { return current_; }
  // The lowest address of the running task's stack; null outside of a task.
  const void* stack_end() const;
  // May be called anywhere. Does nothing to a task that does not wait().
  void wake(Task& task);
  // The server ends: tasks give up work that can be given up.
  bool finishing() const { return finishing_; }

  // --- For the server ---------------------------------------------------------------------------

  // Whether there is a task that has begun, or been started, and not ended, but for the one that
  // runs now.
  bool any() const;
  // Gives each task that does not wait a slice. Called by the loop; tests without one call it, or
  // Server::tick().
  void resume_ready();
  // Has all tasks end. REQUIRES: !running().
  void finish();

 private:
  // Tasks that have ended are kept for the next ones, so many of them.
  static constexpr size_t kMaxSpare = 2;

  // A task that is idle, and its fiber.
  Task& begin();
  static base::Fiber& fiber_of(Task& task);
  // To be called when the task has returned or was suspended. Returns `ended`.
  bool left(Task& task, bool ended);
  void suspend(bool waits);
  void resume(Task& task);
  void schedule();

  Server& server_;
  std::unique_ptr<net::Timer> timer_;  // null without a loop
  Task* current_ = nullptr;
  uint64_t slice_began_ = 0;  // base::CycleClock
  // Those that have begun or have been started and have not ended, oldest first.
  std::vector<std::unique_ptr<Task>> tasks_;
  std::vector<std::unique_ptr<Task>> spare_;
  bool finishing_ = false;
};

}  // namespace latchkey::server
