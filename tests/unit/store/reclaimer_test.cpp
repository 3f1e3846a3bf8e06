#include "store/reclaimer.h"

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/heap_use.h"
#include "unit/catch.h"

namespace latchkey::store {

TEST_CASE("Jobs are done on another thread, in order", "[reclaimer]") {
  Reclaimer reclaimer;
  std::thread::id worker;
  std::string order;
  reclaimer.free_later(1, [&] {
    worker = std::this_thread::get_id();
    order += 'a';
  });
  reclaimer.free_later(1, [&] { order += 'b'; });
  reclaimer.free_later(1, [&] { order += 'c'; });
  reclaimer.drain();
  CHECK(worker != std::this_thread::get_id());
  CHECK(order == "abc");
}

TEST_CASE("Objects are pending until they are freed, then counted", "[reclaimer]") {
  Reclaimer reclaimer;
  CHECK(reclaimer.pending_objects() == 0);
  std::promise<void> gate;
  std::shared_future<void> opened(gate.get_future());
  reclaimer.free_later(5, [opened] { opened.wait(); });
  reclaimer.free_later(7, [] {});
  CHECK(reclaimer.pending_objects() == 12);
  CHECK(reclaimer.freed_objects() == 0);
  gate.set_value();
  reclaimer.drain();
  CHECK(reclaimer.pending_objects() == 0);
  CHECK(reclaimer.freed_objects() == 12);
  reclaimer.reset_freed();
  CHECK(reclaimer.freed_objects() == 0);
}

TEST_CASE("A container is freed by the thread, and counted, only if it is large", "[reclaimer]") {
  Reclaimer reclaimer;
  const auto held = std::make_shared<int>(1);
  constexpr size_t kMost = Reclaimer::kMaxFreedAtOnce;

  reclaimer.free_container(std::vector(kMost, held));
  CHECK(held.use_count() == 1);
  CHECK(reclaimer.jobs() == 0);
  CHECK(reclaimer.freed_objects() == 0);

  reclaimer.free_container(std::vector(kMost + 1, held));
  CHECK(reclaimer.jobs() == 1);
  reclaimer.drain();
  CHECK(held.use_count() == 1);
  CHECK(reclaimer.freed_objects() == kMost + 1);
}

TEST_CASE("What is destroyed later counts as the objects that its owner says", "[reclaimer]") {
  Reclaimer reclaimer;
  const auto held = std::make_shared<int>(1);
  reclaimer.destroy_later(9, std::make_unique<std::shared_ptr<int>>(held));
  reclaimer.drain();
  CHECK(held.use_count() == 1);
  CHECK(reclaimer.freed_objects() == 9);
}

TEST_CASE("Bytes that the thread has freed are counted", "[reclaimer]") {
  if (!base::ThreadHeapUse().is_known()) return;
  constexpr size_t kLarge = size_t{1} << 20;
  Reclaimer reclaimer;
  auto held = std::make_shared<std::string>(kLarge, 'x');
  reclaimer.free_later(1, [held = std::move(held)] {});
  reclaimer.drain();
  CHECK(reclaimer.freed_bytes() >= kLarge);
  CHECK(reclaimer.freed_bytes() < 2 * kLarge);
}

TEST_CASE("drain() of a reclaimer that never had work returns", "[reclaimer]") {
  Reclaimer reclaimer;
  reclaimer.drain();
  CHECK(reclaimer.freed_objects() == 0);
}

TEST_CASE("What a job holds is gone when drain() returns", "[reclaimer]") {
  Reclaimer reclaimer;
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watcher = held;
  reclaimer.free_later(1, [held = std::move(held)] {});
  reclaimer.drain();
  CHECK(watcher.expired());
}

TEST_CASE("Destruction waits for every job handed over", "[reclaimer]") {
  std::atomic<int> done{0};
  {
    Reclaimer reclaimer;
    for (int i = 0; i < 1'000; ++i) {
      reclaimer.free_later(1, [&] { ++done; });
    }
  }
  CHECK(done == 1'000);
}

}  // namespace latchkey::store
