#include "persist/disk_worker.h"

#include <pthread.h>

#include <csignal>
#include <system_error>
#include <utility>

#include "server/process.h"

namespace latchkey::persist {

DiskWorker::~DiskWorker() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void DiskWorker::run(std::function<void()> job) {
  {
    std::lock_guard lock(mutex_);
    if (thread_.joinable() || start_thread()) {
      jobs_.push_back(std::move(job));
      wake_.notify_one();
      return;
    }
  }
  job();
}

void DiskWorker::drain() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return jobs_.empty() && !busy_; });
}

bool DiskWorker::start_thread() {
  // Signals are the server thread's business.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error&) {
    // No thread to be had: thread_ stays empty.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread_.joinable();
}

void DiskWorker::work() {
  pthread_setname_np(pthread_self(), "bio_aof");
  server::pin_to_cpus(cpus_);
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const auto job = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    job();
    lock.lock();
    busy_ = false;
    if (jobs_.empty()) idle_.notify_all();
  }
}

}  // namespace latchkey::persist
