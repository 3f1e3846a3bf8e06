// A thread for what would make the loop wait for the disk: syncing, closing and removing files.
// Jobs run one after the other, in the order in which they were given. The thread starts with the
// first job.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace latchkey::persist {

class DiskWorker {
 public:
  // `cpus`: bio_cpulist.
  explicit DiskWorker(std::string cpus = {}) : cpus_(std::move(cpus)) {}
  // Waits for all jobs.
  ~DiskWorker();
  DiskWorker(const DiskWorker&) = delete;
  DiskWorker& operator=(const DiskWorker&) = delete;

  // Has `job` run by the thread; at once, by the caller, where there can be no thread.
  void run(std::function<void()> job);
  // Waits until all jobs are done.
  void drain();

 private:
  bool start_thread();
  void work();

  std::string cpus_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::deque<std::function<void()>> jobs_;
  bool busy_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace latchkey::persist
