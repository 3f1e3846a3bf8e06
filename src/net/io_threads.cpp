#include "net/io_threads.h"

#include <algorithm>
#include <string>

#include "base/assert.h"
#include "base/cycle_clock.h"
#include "base/thread.h"

namespace latchkey::net {

namespace {

// How often a thread looks for the next batch, or the caller for the end of one, before it sleeps:
// some microseconds. More would take time from others where threads outnumber processors.
constexpr int kSpins = 200;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spinning for what another thread does is of use only if that one can run meanwhile.
int spins() {
  static const int count = std::thread::hardware_concurrency() > 1 ? kSpins : 0;
  return count;
}

uint64_t ticket_of(uint32_t batch, size_t items) {
  return uint64_t{batch} << 32 | uint64_t{items} << 16;
}

}  // namespace

IoThreads::IoThreads(int threads) {
  LK_ASSERT(threads >= 2 && threads <= kMaxThreads);
  for (int i = 1; i < threads; ++i) shares_.push_back(std::make_unique<Share>());
  for (int i = 1; i < threads; ++i) {
    Share& share = *shares_[static_cast<size_t>(i) - 1];
    share.thread = base::start_thread("io_thd_" + std::to_string(i), [this, i] { serve(i); });
    if (!share.thread.joinable()) ++missing_;
  }
}

IoThreads::~IoThreads() {
  stopping_.store(true);
  epoch_.fetch_add(1);
  epoch_.notify_all();
  for (const auto& share : shares_) {
    if (share->thread.joinable()) share->thread.join();
  }
}

void IoThreads::run(std::span<const uint8_t> owners, Job job, void* context) {
  LK_ASSERT(owners.size() <= kMaxItems);
  const bool small = owners.size() < 2 * static_cast<size_t>(size());
  if (small || alone_ > 0) {
    if (!small) --alone_;
    for (size_t item = 0; item < owners.size(); ++item) job(context, item, 0);
    return;
  }
  job_ = job;
  context_ = context;
  publish(owners);
  const uint64_t begun = base::CycleClock::ticks();
  uint32_t done = 0;
  for (const auto& share : shares_) done += work(*share, 0);
  left_.fetch_sub(static_cast<int>(done), std::memory_order_acq_rel);
  const uint64_t worked = base::CycleClock::ticks();
  wait_for_all();
  adapt(worked - begun, base::CycleClock::ticks() - worked);
}

// Whether the threads are to take part in the next batch.
void IoThreads::adapt(uint64_t worked_ticks, uint64_t waited_ticks) {
  last_alone_ = waited_ticks > worked_ticks ? std::min(2 * last_alone_ + 1, kMaxAlone) : 0;
  alone_ = last_alone_;
}

void IoThreads::publish(std::span<const uint8_t> owners) {
  for (const auto& share : shares_) share->items.clear();
  for (size_t item = 0; item < owners.size(); ++item) {
    LK_ASSERT(owners[item] >= 1 && owners[item] < size());
    shares_[owners[item] - size_t{1}]->items.push_back(static_cast<uint16_t>(item));
  }
  left_.store(static_cast<int>(owners.size()), std::memory_order_relaxed);
  ++batch_;
  for (const auto& share : shares_)
    share->ticket.store(ticket_of(batch_, share->items.size()), std::memory_order_release);
  epoch_.fetch_add(1);
  epoch_.notify_all();
}

size_t IoThreads::claim(Share& share) {
  uint64_t ticket = share.ticket.load(std::memory_order_acquire);
  for (;;) {
    const auto next = static_cast<uint16_t>(ticket);
    if (next >= static_cast<uint16_t>(ticket >> 16)) return kNone;
    if (share.ticket.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel,
                                           std::memory_order_acquire))
      return share.items[next];
  }
}

uint32_t IoThreads::work(Share& share, int thread) {
  uint32_t done = 0;
  for (size_t item = claim(share); item != kNone; item = claim(share)) {
    job_(context_, item, thread);
    ++done;
  }
  return done;
}

void IoThreads::serve(int thread) {
  Share& share = *shares_[static_cast<size_t>(thread) - 1];
  int seen = 0;
  for (;;) {
    for (int i = spins(); i > 0 && epoch_.load(std::memory_order_acquire) == seen; --i) relax();
    epoch_.wait(seen);
    seen = epoch_.load();
    if (stopping_.load()) return;
    const auto done = static_cast<int>(work(share, thread));
    if (done > 0 && left_.fetch_sub(done, std::memory_order_acq_rel) == done) left_.notify_one();
  }
}

void IoThreads::wait_for_all() {
  for (int i = spins(); i > 0 && left_.load(std::memory_order_acquire) != 0; --i) relax();
  for (int left = left_.load(std::memory_order_acquire); left != 0;
       left = left_.load(std::memory_order_acquire))
    left_.wait(left, std::memory_order_acquire);
}

}  // namespace latchkey::net
