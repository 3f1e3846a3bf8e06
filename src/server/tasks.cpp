#include "server/tasks.h"

#include <algorithm>

#include "base/assert.h"
#include "server/server.h"
#include "server/task_frame.h"

namespace latchkey::server {

class Tasks::Task {
 public:
  base::Fiber fiber;
  std::function<void()> body;  // of one that was started and has not begun
  TaskFrame frame;             // while it is suspended
  bool waits = false;
};

Tasks::Tasks(Server& server) : server_(server) {
  if (server.loop() == nullptr) return;
  timer_ = std::make_unique<net::Timer>(*server.loop(), [this] { resume_ready(); });
}

Tasks::~Tasks() {
  LK_ASSERT(tasks_.empty());
}

Tasks::Task& Tasks::begin() {
  LK_ASSERT(current_ == nullptr);
  if (spare_.empty()) {
    tasks_.push_back(std::make_unique<Task>());
  } else {
    tasks_.push_back(std::move(spare_.back()));
    spare_.pop_back();
  }
  current_ = tasks_.back().get();
  slice_began_ = base::CycleClock::ticks();
  return *current_;
}

base::Fiber& Tasks::fiber_of(Task& task) {
  return task.fiber;
}

bool Tasks::left(Task& task, bool ended) {
  current_ = nullptr;
  if (!ended) return false;
  const auto it = std::find_if(tasks_.rbegin(), tasks_.rend(),
                               [&task](const auto& each) { return each.get() == &task; });
  std::unique_ptr<Task> done = std::move(*it);
  tasks_.erase(std::next(it).base());
  if (spare_.size() < kMaxSpare) spare_.push_back(std::move(done));
  return true;
}

void Tasks::start(std::function<void()> body) {
  tasks_.push_back(std::make_unique<Task>());
  tasks_.back()->body = std::move(body);
  schedule();
}

const void* Tasks::stack_end() const {
  return current_ != nullptr ? current_->fiber.stack_end() : nullptr;
}

bool Tasks::slice_is_over() const {
  if (current_ == nullptr) return false;
  return server_.cycle_clock().to_us(base::CycleClock::ticks() - slice_began_) >= kSliceUs;
}

void Tasks::yield() {
  if (current_ != nullptr && !finishing_) suspend(/*waits=*/false);
}

void Tasks::wait() {
  LK_ASSERT(current_ != nullptr);
  // Nobody would wake it.
  if (!finishing_) suspend(/*waits=*/true);
}

void Tasks::suspend(bool waits) {
  Task& self = *current_;
  self.waits = waits;
  self.frame = suspend_frame(server_);
  if (!waits) schedule();
  self.fiber.suspend();
  resume_frame(server_, std::move(self.frame));
}

void Tasks::wake(Task& task) {
  task.waits = false;
  schedule();
}

bool Tasks::any() const {
  return tasks_.size() > (current_ != nullptr ? 1 : 0);
}

void Tasks::schedule() {
  if (timer_ != nullptr) timer_->start(0);
}

void Tasks::resume(Task& task) {
  server_.enter();
  current_ = &task;
  slice_began_ = base::CycleClock::ticks();
  if (task.body) {
    auto call = [&task] { std::exchange(task.body, nullptr)(); };
    left(task, task.fiber.run(call));
  } else {
    left(task, task.fiber.resume());
  }
}

void Tasks::resume_ready() {
  if (current_ != nullptr) return;
  std::vector<Task*> ready;
  for (const auto& task : tasks_) {
    if (!task->waits) ready.push_back(task.get());
  }
  for (Task* task : ready) {
    // One may have woken another, none ends another.
    resume(*task);
    server_.refresh_clock();
  }
}

void Tasks::finish() {
  finishing_ = true;
  while (!tasks_.empty()) resume(*tasks_.front());
  finishing_ = false;
}

}  // namespace latchkey::server
