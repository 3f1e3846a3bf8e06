#include "server/observe/memory.h"

#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "base/blob.h"
#include "base/heap_use.h"
#include "base/thread.h"
#include "server/client/client_info.h"
#include "server/observe/memory_report.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::server {

namespace {

constexpr size_t kLarge = size_t{1} << 20;

std::unique_ptr<char[]> some() {
  return std::make_unique<char[]>(kLarge);
}

bool is_about(size_t bytes, size_t wanted) {
  constexpr size_t kSlack = kLarge / 8;
  return bytes + kSlack > wanted && bytes < wanted + kSlack;
}

}  // namespace

TEST_CASE("A meter of its own counts what its server is billed for, and no other") {
  // A sanitizer's allocator does not count by thread.
  if (!base::ThreadHeapUse().is_known()) return;
  size_t freed_elsewhere = 0;
  MemoryMeter process;
  MemoryMeter one;
  MemoryMeter two;
  one.count_own(5 * kLarge, [&] { return freed_elsewhere; });
  two.count_own(0, [] { return size_t{0}; });
  const size_t before = process.used();

  one.bill();
  auto first = some();
  CHECK(is_about(one.used(), 6 * kLarge));
  two.bill();
  const auto second = some();
  const auto third = some();
  CHECK(is_about(one.used(), 6 * kLarge));
  CHECK(is_about(two.used(), 2 * kLarge));
  process.bill();
  const auto fourth = some();
  CHECK(is_about(one.used(), 6 * kLarge));
  CHECK(is_about(two.used(), 2 * kLarge));
  CHECK(is_about(process.used() - before, 4 * kLarge));

  one.bill();
  first.reset();
  CHECK(is_about(one.used(), 5 * kLarge));
  freed_elsewhere = 2 * kLarge;
  CHECK(is_about(one.used(), 3 * kLarge));
  freed_elsewhere = 9 * kLarge;
  CHECK(one.used() == 0);
}

TEST_CASE("An idle meter asks no more until something is allocated or freed again") {
  if (!base::ThreadHeapUse().is_known()) return;
  constexpr int kManyTicks = 100;
  MemoryMeter meter;
  const auto tick = [&](int times) {
    for (int i = 0; i < times; ++i) meter.tick();
  };
  // By a thread that is not counted, as those of libraries are.
  const auto free_elsewhere = [](std::unique_ptr<char[]>& memory) {
    std::thread([&] { memory.reset(); }).join();
  };

  auto first = some();
  auto second = some();
  auto third = some();
  auto fourth = some();
  tick(1);
  meter.refresh();
  const size_t before = meter.used();
  free_elsewhere(first);
  tick(1);
  CHECK(is_about(before - meter.used(), kLarge));

  // What is not counted is not seen by one that is idle.
  tick(kManyTicks);
  free_elsewhere(second);
  tick(kManyTicks);
  CHECK(is_about(before - meter.used(), kLarge));
  // A background thread is counted, and spares the allocator's statistics while it works.
  base::start_thread("frees", [&] { third.reset(); }).join();
  tick(1);
  CHECK(is_about(before - meter.used(), 2 * kLarge));
  tick(1);
  CHECK(is_about(before - meter.used(), 3 * kLarge));

  tick(kManyTicks);
  free_elsewhere(fourth);
  const std::unique_ptr<char> own(new char);
  tick(1);
  CHECK(is_about(before - meter.used(), 4 * kLarge));
}

TEST_CASE("A meter asks after a minute although background threads are always at work") {
  if (!base::ThreadHeapUse().is_known()) return;
  MemoryMeter meter;
  auto unknown = some();
  meter.refresh();
  const size_t before = meter.used();
  std::thread([&] { unknown.reset(); }).join();
  int ticks = 0;
  std::vector<std::unique_ptr<char[]>> held;
  const auto work_and_tick = [&] {
    ++ticks;
    base::start_thread("works", [&] { held.push_back(std::make_unique<char[]>(64)); }).join();
    meter.tick();
  };
  while (ticks < 600) work_and_tick();
  CHECK(is_about(meter.used(), before));
  work_and_tick();
  CHECK(is_about(before - meter.used(), kLarge));
}

TEST_CASE("What background threads allocate and free is known when it is noted") {
  if (!base::ThreadHeapUse().is_known()) return;
  MemoryMeter meter;
  auto held = some();
  meter.refresh();
  const size_t before = meter.used();
  base::start_thread("frees", [&] { held.reset(); }).join();
  CHECK(is_about(meter.used(), before));
  meter.note_others();
  CHECK(is_about(before - meter.used(), kLarge));
  base::start_thread("allocates", [&] { held = some(); }).join();
  meter.note_others();
  CHECK(is_about(meter.used(), before));
}

TEST_CASE("Background threads count while they run, and after they have ended") {
  if (!base::ThreadHeapUse().is_known()) return;
  const uint64_t before = base::BackgroundHeapUse::balance();
  std::unique_ptr<char[]> held;
  std::promise<void> allocated, noted;
  std::thread thread = base::start_thread("holds", [&] {
    held = some();
    allocated.set_value();
    noted.get_future().wait();
    held.reset();
  });
  allocated.get_future().wait();
  CHECK(is_about(base::BackgroundHeapUse::balance() - before, kLarge));
  noted.set_value();
  thread.join();
  CHECK(is_about(base::BackgroundHeapUse::balance() - before + kLarge, kLarge));
}

TEST_CASE("Who is billed may go before others are") {
  if (!base::ThreadHeapUse().is_known()) return;
  MemoryMeter stays;
  stays.count_own(0, [] { return size_t{0}; });
  {
    MemoryMeter goes;
    goes.bill();
  }
  stays.bill();
  const auto held = some();
  CHECK(is_about(stays.used(), kLarge));
}

TEST_CASE("A thread's use is its own") {
  const base::ThreadHeapUse here;
  if (!here.is_known()) return;
  const uint64_t before = here.balance();
  std::unique_ptr<char[]> given;
  std::thread([&] { given = some(); }).join();
  CHECK(is_about(here.balance() - before + kLarge, kLarge));
  given.reset();
  // What it frees counts, whoever had allocated it.
  CHECK(is_about(before - here.balance(), kLarge));
}

TEST_CASE("Values that wait to be sent take no memory beside the dataset's, and count by limits") {
  tests::ServerFixture server({});
  tests::TestClient client(server);
  const size_t before = measure_memory(server.server).clients;
  const size_t counted_before = memory_usage(*client);
  base::Blob* const value = base::Blob::create(std::string(kLarge, 'v'));
  for (int i = 0; i < 20; ++i) client->out().append_shared(value);
  value->release();
  CHECK(measure_memory(server.server).clients - before < kLarge);
  CHECK(memory_usage(*client) - counted_before >= 20 * kLarge);
  client->out().append(std::string(kLarge, 'x'));
  CHECK(measure_memory(server.server).clients - before >= kLarge);
  // A replica is told with all that waits for it.
  client->set(kClientReplica);
  CHECK(measure_memory(server.server).clients - before >= 20 * kLarge);
  client->set(kClientReplica, false);
}

}  // namespace latchkey::server
