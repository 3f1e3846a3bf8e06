#include "base/worker.h"

#include <utility>

#include "base/thread.h"

namespace latchkey::base {

Worker::Worker(std::string name, Job prepare)
    : name_(std::move(name)), prepare_(std::move(prepare)) {}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Worker::run(Job job) {
  {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) thread_ = start_thread(name_, [this] { work(); });
    if (thread_.joinable()) {
      jobs_.push_back(std::move(job));
      wake_.notify_one();
      return;
    }
  }
  job();
}

void Worker::drain() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return jobs_.empty() && !busy_; });
}

void Worker::work() {
  if (prepare_) prepare_();
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    job();
    // Destroys what the job holds before anyone is notified that it is done.
    job = nullptr;
    lock.lock();
    busy_ = false;
    if (jobs_.empty()) idle_.notify_all();
  }
}

}  // namespace latchkey::base
