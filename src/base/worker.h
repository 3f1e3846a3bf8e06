// A thread for what would make the loop wait. Jobs run one after another, in the order in which
// they were given. The thread starts with the first job; where there can be none, jobs are run at
// once by who gives them.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace latchkey::base {

class Worker {
 public:
  using Job = std::function<void()>;

  // `name`: the thread's (base/thread.h). `prepare`, which may be empty, is run by the thread
  // before its first job.
  explicit Worker(std::string name, Job prepare = {});
  // Waits for all jobs.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void run(Job job);
  // Waits until all jobs given so far are done.
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
