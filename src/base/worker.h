// A thread for jobs that would block the loop. Jobs run one after another in the order of run()
// calls. The thread starts with the first job; if it cannot be started, run() executes jobs itself.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/assert.h"

namespace latchkey::base {

class Worker {
 public:
  using Job = std::function<void()>;

  // `name`: the thread's name (base/thread.h). The thread runs `prepare`, which may be empty,
  // before its first job.
  explicit Worker(std::string name, Job prepare = {});
  // Waits until all jobs are done.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // REQUIRES: no job has been given yet.
  void set_prepare(Job prepare) {
    LK_ASSERT(!thread_.joinable());
    prepare_ = std::move(prepare);
  }
  void run(Job job);
  // Waits until all jobs queued so far are done.
  void drain();

 private:
  void work();

  std::string name_;
  Job prepare_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::deque<Job> jobs_;
  bool busy_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace latchkey::base
