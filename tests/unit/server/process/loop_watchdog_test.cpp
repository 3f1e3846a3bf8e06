#include "server/process/loop_watchdog.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <string>

#include "base/thread.h"
#include "base/worker.h"
#include "server/config/config_values.h"
#include "unit/catch.h"

namespace latchkey::server {

namespace {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;

struct Fixture {
  Fixture() {
    std::string pattern = fs::temp_directory_path() / "latchkey-watchdog-XXXXXX";
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    directory = pattern;
    logger.set_file(directory / "log");
  }
  ~Fixture() { fs::remove_all(directory); }

  std::string log() const {
    std::ifstream file(directory / "log");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path directory;
  base::Logger logger;
};

// Waits for SIGALRM, which `begin` makes come.
template <typename Begin>
void wait_for_alarm(Begin begin) {
  sigset_t alarm, before;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarm, &before);
  begin();
  sigsuspend(&before);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

TEST_CASE("A loop that does not turn is reported with where it stands", "[watchdog]") {
  Fixture f;
  LoopWatchdog watchdog(f.logger);
  wait_for_alarm([&] { watchdog.set_period(5); });
  CHECK_THAT(f.log(), ContainsSubstring(
                          "--- WATCHDOG TIMER EXPIRED ---\n\n------ STACK TRACE ------\nEIP:"));
  CHECK_THAT(f.log(), ContainsSubstring("\n" + std::to_string(getpid()) + " "));
  CHECK_THAT(f.log(),
             ContainsSubstring(" expected stacktraces.\n\n------ STACK TRACE DONE ------\n"));
}

TEST_CASE("The watchdog waits anew from each time that it is put off", "[watchdog]") {
  Fixture f;
  LoopWatchdog watchdog(f.logger);
  wait_for_alarm([&] { watchdog.set_period(5); });
  wait_for_alarm([&] { watchdog.postpone(); });
  const std::string log = f.log();
  const size_t first = log.find("TIMER EXPIRED");
  CHECK(log.find("TIMER EXPIRED", first + 1) != std::string::npos);
}

// Not under ThreadSanitizer, which holds signals back from threads that wait.
TEST_CASE("Who asks by SIGALRM is told where every thread stands", "[watchdog][signals]") {
  Fixture f;
  LoopWatchdog watchdog(f.logger);
  // They outlive the worker, which may still be in one when the test is over.
  std::promise<void> started;
  std::promise<void> end;
  base::Worker worker("busy_worker");
  worker.run([&] {
    started.set_value();
    end.get_future().wait();
  });
  started.get_future().wait();
  raise(SIGALRM);
  end.set_value();
  CHECK_THAT(f.log(), ContainsSubstring("Received SIGALRM\n"));
  CHECK_THAT(f.log(), ContainsSubstring(" busy_worker\n"));
  CHECK_THAT(f.log(), !ContainsSubstring("\n1/"));
}

TEST_CASE("A thread that cannot be asked is not waited for", "[watchdog]") {
  Fixture f;
  LoopWatchdog watchdog(f.logger);
  std::promise<void> end;
  std::promise<void> started;
  base::Worker worker("deaf_worker");
  worker.run([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    started.set_value();
    end.get_future().wait();
  });
  started.get_future().wait();
  raise(SIGALRM);
  end.set_value();
  CHECK_THAT(f.log(), !ContainsSubstring(" deaf_worker\n"));
  CHECK_THAT(f.log(), ContainsSubstring("------ STACK TRACE DONE ------"));
}

TEST_CASE("watchdog-period is no shorter than two ticks", "[watchdog]") {
  ConfigValues values;
  values.hz = 10;
  CHECK(watchdog_period_ms(values) == 0);
  values.watchdog_period = 5;
  CHECK(watchdog_period_ms(values) == 200);
  values.watchdog_period = 500;
  CHECK(watchdog_period_ms(values) == 500);
  values.watchdog_period = 5;
  values.hz = 100;
  CHECK(watchdog_period_ms(values) == 20);
}

}  // namespace latchkey::server
