#include "base/worker.h"

#include <pthread.h>

#include <array>
#include <string>

#include "base/thread.h"
#include "unit/catch.h"

namespace latchkey::base {

TEST_CASE("A worker prepares itself before its first job, once", "[worker]") {
  std::string steps;
  Worker worker("worker", [&] { steps += "prepared"; });
  worker.run([&] { steps += " one"; });
  worker.run([&] { steps += " two"; });
  worker.drain();
  CHECK(steps == "prepared one two");
}

TEST_CASE("A worker's thread has its name, as far as there is room for it", "[worker]") {
  std::array<char, 16> name{};
  Worker worker("name_that_is_too_long");
  worker.run([&] { pthread_getname_np(pthread_self(), name.data(), name.size()); });
  worker.drain();
  CHECK(std::string(name.data()) == "name_that_is_to");
}

TEST_CASE("A worker leaves signals to others, but for the one that asks where it stands",
          "[worker]") {
  sigset_t held_back;
  Worker worker("worker");
  worker.run([&] { pthread_sigmask(SIG_SETMASK, nullptr, &held_back); });
  worker.drain();
  CHECK(sigismember(&held_back, SIGTERM) == 1);
  CHECK(sigismember(&held_back, SIGALRM) == 1);
  CHECK(sigismember(&held_back, kTraceSignal) == 0);
}

}  // namespace latchkey::base
