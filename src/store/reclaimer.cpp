#include "store/reclaimer.h"

#include <csignal>
#include <system_error>
#include <utility>

namespace latchkey::store {

Reclaimer::~Reclaimer() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Reclaimer::free_later(size_t objects, std::function<void()> free_it) {
  ++handed_over_;
  pending_.fetch_add(objects, std::memory_order_relaxed);
  {
    std::lock_guard lock(mutex_);
    if (thread_.joinable() || start_thread()) {
      jobs_.push_back({objects, std::move(free_it)});
      wake_.notify_one();
      return;
    }
  }
  run_job({objects, std::move(free_it)});
}

bool Reclaimer::start_thread() {
  // Signals are the server thread's business.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    // No thread to be had: thread_ stays empty.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread_.joinable();
}

void Reclaimer::drain() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return jobs_.empty() && !busy_; });
}

void Reclaimer::run_job(Job job) {
  job.free_it();
  job.free_it = nullptr;
  pending_.fetch_sub(job.objects, std::memory_order_relaxed);
  freed_.fetch_add(job.objects, std::memory_order_relaxed);
}

void Reclaimer::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    run_job(std::move(job));
    lock.lock();
    busy_ = false;
    if (jobs_.empty()) idle_.notify_all();
  }
}

}  // namespace latchkey::store
