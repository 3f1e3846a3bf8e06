
#include "net/loop.h"

#include <memory>
#include <string>
#include <utility>

#include "unit/catch.h"

using namespace latchkey::net;

TEST_CASE("Who starts a timer without delay again and again lets others be served in between") {
  constexpr int kMax = 1000;
  Loop loop;
  int calls = 0;
  int calls_before_wake = 0;
  Waker waker(loop, [&] { calls_before_wake = calls; });
  Timer* again = nullptr;
  Timer timer(loop, [&] {
    if (calls == 0) waker.wake();
    if (++calls == kMax) {
      loop.stop();
    } else {
      again->start(0);
    }
  });
  again = &timer;
  timer.start(0);
  loop.run();
  CHECK(calls == kMax);
  CHECK(calls_before_wake >= 1);
  CHECK(calls_before_wake < kMax);
}

TEST_CASE("A timer that was stopped is not called") {
  Loop loop;
  bool called = false;
  Timer stopped(loop, [&] { called = true; });
  Timer last(loop, [&] { loop.stop(); });
  stopped.start(0);
  stopped.stop();
  last.start(1);
  loop.run();
  CHECK_FALSE(called);
}

TEST_CASE("One that is called before waits when it is asked for is called once for all who ask") {
  Loop loop;
  std::string calls;
  BeforeWait* late = nullptr;
  BeforeWait asked(
      loop,
      [&] {
        calls += 'a';
        if (late != nullptr) std::exchange(late, nullptr)->ask();
      },
      BeforeWait::When::kAsked);
  BeforeWait other(
      loop, [&] { calls += 'o'; }, BeforeWait::When::kAsked);
  auto gone = std::make_unique<BeforeWait>(
      loop, [&] { calls += 'g'; }, BeforeWait::When::kAsked);
  const BeforeWait each(loop, [&] { calls += '.'; });
  loop.run_once();
  CHECK(calls == ".");
  asked.ask();
  asked.ask();
  gone->ask();
  gone.reset();
  // One that is asked for meanwhile is called in the same turn.
  late = &other;
  loop.run_once();
  CHECK(calls == "..ao");
  loop.run_once();
  CHECK(calls == "..ao.");
  asked.ask();
  loop.run_once();
  CHECK(calls == "..ao..a");
}
