// Threads that share a batch of system calls with the thread that runs the loop (fork-join).
//
// Every item of a batch belongs to one of the threads. It is done by that thread, or by the
// caller, which does what is left instead of waiting. run() returns when all items are done, so
// that no other thread runs a job while the loop serves requests.
//
// Between batches a thread spins for some microseconds, then it sleeps: a loop without work costs
// no time. run() costs a system call if threads sleep, and an atomic operation for each item.
//
// Where processors are scarce, a thread may be interrupted in the middle of an item, and the caller
// has to wait for it. If that took longer than the caller's own work, the next batches are done by
// the caller alone: one at first, and up to kMaxAlone while it goes on like that.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

namespace latchkey::net {

class IoThreads {
 public:
  // Including the caller's thread, as the directive io-threads counts them.
  static constexpr int kMaxThreads = 128;
  // The most items of one batch.
  static constexpr size_t kMaxItems = 1024;
  static constexpr uint32_t kMaxAlone = 255;

  // Processes an item. `thread`: 0 in the caller of run(), else the number of the thread. Called by
  // several threads at once, for different items.
  using Job = void (*)(void* context, size_t item, int thread);

  // Starts threads 1 to `threads` - 1, named io_thd_<number>. What belongs to a thread that the
  // system did not start is done by the caller. REQUIRES: 2 <= threads <= kMaxThreads.
  explicit IoThreads(int threads);
  // Ends the threads, and waits for them.
  ~IoThreads();
  IoThreads(const IoThreads&) = delete;
  IoThreads& operator=(const IoThreads&) = delete;

  // Including the caller's.
  int size() const { return static_cast<int>(shares_.size()) + 1; }
  // How many of them the system did not start.
  int missing() const { return missing_; }

  // Calls `job` once for each item of 0 to owners.size() - 1, of which item i belongs to thread
  // owners[i] (at least 1). A batch with fewer than two items for each thread is done by the
  // caller alone. What the caller has written is visible to the jobs, and what they write is
  // visible to the caller. REQUIRES: at most kMaxItems; not called by a job.
  void run(std::span<const uint8_t> owners, Job job, void* context);

 private:
  // The items of one thread in the present batch.
  struct alignas(64) Share {
    // The number of the batch (32 bits), the number of items and the next item (16 bits each).
    // The thread that increments it takes the item. The number of the batch makes the increment
    // fail for a thread that has read the ticket of an earlier batch.
    std::atomic<uint64_t> ticket{0};
    std::vector<uint16_t> items;
    std::thread thread;
  };
  static constexpr size_t kNone = static_cast<size_t>(-1);
  // Takes the next item of the share; kNone when there is none left.
  static size_t claim(Share& share);
  // Does what is left of the share. Returns how many items that were.
  uint32_t work(Share& share, int thread);
  void serve(int thread);
  void publish(std::span<const uint8_t> owners);
  void wait_for_all();
  void adapt(uint64_t worked_ticks, uint64_t waited_ticks);

  std::vector<std::unique_ptr<Share>> shares_;  // of thread 1 and so on
  Job job_ = nullptr;
  void* context_ = nullptr;
  uint32_t batch_ = 0;
  int missing_ = 0;
  uint32_t alone_ = 0;       // batches that the caller is still to do alone
  uint32_t last_alone_ = 0;  // how many those were the last time
  std::atomic<bool> stopping_{false};
  // Changes with every batch; threads sleep on it.
  alignas(64) std::atomic<int> epoch_{0};
  // Items that are not done; the caller sleeps on it.
  alignas(64) std::atomic<int> left_{0};
};

}  // namespace latchkey::net
