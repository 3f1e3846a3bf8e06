#include "server/observe/memory.h"

#include <memory>
#include <thread>

#include "base/heap_use.h"
#include "unit/catch.h"

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

TEST_CASE(
    "An idle meter goes on to ask while other threads may free memory, and after the next change") {
  if (!base::ThreadHeapUse().is_known()) return;
  constexpr int kManyTicks = 100;
  MemoryMeter meter;
  const auto tick = [&](int times, bool others_free) {
    for (int i = 0; i < times; ++i) meter.refresh_unless_idle(others_free);
  };
  const auto free_elsewhere = [](std::unique_ptr<char[]>& memory) {
    std::thread([&] { memory.reset(); }).join();
  };

  auto first = some();
  auto second = some();
  auto third = some();
  meter.refresh();
  const size_t before = meter.used();
  free_elsewhere(first);
  tick(1, /*others_free=*/false);
  CHECK(is_about(before - meter.used(), kLarge));

  // Idle: what nobody has announced is not seen.
  tick(kManyTicks, /*others_free=*/false);
  free_elsewhere(second);
  tick(kManyTicks, /*others_free=*/false);
  CHECK(is_about(before - meter.used(), kLarge));
  tick(1, /*others_free=*/true);
  CHECK(is_about(before - meter.used(), 2 * kLarge));

  tick(kManyTicks, /*others_free=*/false);
  free_elsewhere(third);
  const std::unique_ptr<char> own(new char);
  tick(1, /*others_free=*/false);
  CHECK(is_about(before - meter.used(), 3 * kLarge));
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

}  // namespace latchkey::server
