#include "script/watchdog.h"

#include <atomic>
#include <chrono>
#include <future>

#include "unit/catch.h"

namespace latchkey::script {

TEST_CASE("The watchdog speaks once of a script that runs too long", "[watchdog][threads]") {
  std::atomic<int> calls{0};
  std::promise<void> spoken;
  Watchdog watchdog([&] {
    if (++calls == 1) spoken.set_value();
  });
  watchdog.begin(1);
  spoken.get_future().wait();
  CHECK(watchdog.end());
  CHECK(calls == 1);
}

TEST_CASE("The watchdog says nothing of scripts that end in time, or have no limit",
          "[watchdog][threads]") {
  std::atomic<int> calls{0};
  Watchdog watchdog([&] { ++calls; });
  constexpr int64_t kHourMs = 3'600'000;
  for (int i = 0; i < 1'000; ++i) {
    watchdog.begin(i % 2 == 0 ? kHourMs : 0);
    CHECK_FALSE(watchdog.end());
  }
  CHECK(calls == 0);
}

TEST_CASE("Each script that runs too long is spoken of, also one that follows at once",
          "[watchdog][threads]") {
  std::atomic<int> calls{0};
  Watchdog watchdog([&] {
    ++calls;
    calls.notify_one();
  });
  constexpr int kScripts = 5;
  for (int i = 0; i < kScripts; ++i) {
    watchdog.begin(1);
    calls.wait(i);
    CHECK(watchdog.end());
    watchdog.begin(0);
    CHECK_FALSE(watchdog.end());
  }
  CHECK(calls == kScripts);
}

TEST_CASE("Scripts that end just at their limit are told what the watchdog has said of them",
          "[watchdog][threads]") {
  using Clock = std::chrono::steady_clock;
  std::atomic<int> calls{0};
  Watchdog watchdog([&] { ++calls; });
  constexpr int kScripts = 300;
  int told = 0;
  for (int i = 0; i < kScripts; ++i) {
    const auto limit = Clock::now() + std::chrono::milliseconds(1);
    watchdog.begin(1);
    while (Clock::now() < limit) {
    }
    told += watchdog.end() ? 1 : 0;
    watchdog.begin(0);
    CHECK_FALSE(watchdog.end());
  }
  CHECK(calls == told);
}

TEST_CASE("Its lock, held, keeps the watchdog from speaking", "[watchdog][threads]") {
  std::atomic<int> calls{0};
  Watchdog watchdog([&] { ++calls; });
  {
    const std::lock_guard lock(watchdog.lock());
    watchdog.begin(1);
    CHECK_FALSE(watchdog.end());
    CHECK(calls == 0);
  }
}

}  // namespace latchkey::script
