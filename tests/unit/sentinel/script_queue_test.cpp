#include "sentinel/script_queue.h"

#include <string>
#include <vector>

#include "unit/catch.h"

namespace latchkey::sentinel {
namespace {

struct Fixture : ScriptQueue::Launcher {
  Periods periods;
  int64_t now_ms = 1'000'000;
  int64_t next_pid = 1;
  std::vector<int64_t> killed;
  std::vector<std::string> failures;
  ScriptQueue queue{*this, periods, [this](std::string_view type, const std::string& message) {
                      failures.push_back(std::string(type) + ' ' + message);
                    }};

  bool can_start = true;

  int64_t start(const std::vector<std::string>&) override { return can_start ? next_pid++ : 0; }
  void kill(int64_t pid) override { killed.push_back(pid); }
  void pass(int64_t ms) {
    now_ms += ms;
    queue.tick(now_ms);
  }
};

TEST_CASE("Sixteen scripts run at a time, the others wait", "[sentinel]") {
  Fixture f;
  for (int i = 0; i < 20; ++i) f.queue.add({"/bin/script", std::to_string(i)});
  f.pass(0);
  CHECK(f.queue.running() == ScriptQueue::kMaxRunning);
  f.queue.ended(1, 0, 0, f.now_ms);
  f.pass(100);
  CHECK(f.queue.running() == ScriptQueue::kMaxRunning);
  CHECK(f.queue.jobs().size() == 19);
}

TEST_CASE("A script that fails with status 1 is run again, later each time", "[sentinel]") {
  Fixture f;
  f.queue.add({"/bin/script"});
  int64_t delay_ms = f.periods.script_retry_delay;
  for (int attempt = 1; attempt < ScriptQueue::kMaxAttempts; ++attempt) {
    f.pass(0);
    REQUIRE(f.queue.running() == 1);
    f.queue.ended(attempt, 1, 0, f.now_ms);
    f.pass(delay_ms - 1);
    CHECK(f.queue.running() == 0);
    f.pass(1);
    CHECK(f.queue.running() == 1);
    delay_ms *= 2;
  }
  CHECK(f.failures.empty());
  f.queue.ended(ScriptQueue::kMaxAttempts, 1, 0, f.now_ms);
  CHECK(f.queue.jobs().empty());
  CHECK(f.failures == std::vector<std::string>{"-script-error /bin/script 0 1"});
}

TEST_CASE("Another status is final", "[sentinel]") {
  Fixture f;
  f.queue.add({"/bin/script"});
  f.pass(0);
  f.queue.ended(1, 2, 0, f.now_ms);
  CHECK(f.queue.jobs().empty());
  CHECK(f.failures.size() == 1);
}

TEST_CASE("A script that runs too long is killed, and run again", "[sentinel]") {
  Fixture f;
  f.queue.add({"/bin/script"});
  f.pass(0);
  f.pass(f.periods.script_max_runtime);
  CHECK(f.killed.empty());
  f.pass(1);
  f.pass(100);
  CHECK(f.killed == std::vector<int64_t>{1});
  f.queue.ended(1, 0, 9, f.now_ms);
  f.pass(f.periods.script_retry_delay);
  CHECK(f.queue.running() == 1);
}

TEST_CASE("When many wait the oldest is dropped", "[sentinel]") {
  Fixture f;
  for (size_t i = 0; i <= ScriptQueue::kMaxWaiting; ++i)
    f.queue.add({"/bin/script", std::to_string(i)});
  CHECK(f.queue.jobs().size() == ScriptQueue::kMaxWaiting);
  CHECK(f.queue.jobs().front().words[1] == "1");
}

TEST_CASE("A script that cannot be started is told of, and dropped", "[sentinel]") {
  Fixture f;
  f.can_start = false;
  f.queue.add({"/bin/script", "one"});
  f.queue.add({"/bin/script", "two"});
  f.pass(0);
  CHECK(f.queue.jobs().empty());
  CHECK(f.queue.running() == 0);
  CHECK(f.failures == std::vector<std::string>{"-script-error /bin/script 99 0",
                                               "-script-error /bin/script 99 0"});
}

}  // namespace
}  // namespace latchkey::sentinel
