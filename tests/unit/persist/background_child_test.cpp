#include "persist/background_child.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>

#include "unit/catch.h"
#include "unit/server_fixture.h"
#include "unit/temporary_directory.h"

namespace latchkey::persist {

namespace {

using tests::ServerFixture;

// Waits for the child in the kernel, without taking its status, so that poll() finds it.
void wait_until_over(const BackgroundChild& child) {
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT);
}

struct Fixture {
  ServerFixture server{{}};
  BackgroundChild child{server.server, {}};
  std::optional<ChildEnd> end;

  bool start(std::function<bool(ChildProgress&)> work, std::vector<int> keep_open = {}) {
    return bool(child.start({.kind = ChildKind::kRdbToDisk,
                             .keys_total = 10,
                             .work = std::move(work),
                             .ended = [this](const ChildEnd& how) { end = how; },
                             .keep_open = std::move(keep_open)}));
  }
  void finish() {
    wait_until_over(child);
    child.poll();
  }
};

bool sleep_for_ever(ChildProgress&) {
  for (;;) pause();
}

}  // namespace

TEST_CASE("A child that has done its work is found by the next poll") {
  Fixture f;
  REQUIRE(f.start([](ChildProgress&) { return true; }));
  CHECK(f.child.running(ChildKind::kRdbToDisk));
  CHECK_FALSE(f.child.running(ChildKind::kAofRewrite));
  CHECK(f.child.forks() == 1);
  const pid_t pid = f.child.pid();
  f.finish();
  REQUIRE(f.end);
  CHECK(f.end->pid == pid);
  CHECK(f.end->done);
  CHECK(f.end->signal == 0);
  CHECK(f.end->copied_bytes > 0);
  CHECK_FALSE(f.child.running());
}

TEST_CASE("A child whose work fails says so by its exit") {
  Fixture f;
  REQUIRE(f.start([](ChildProgress&) { return false; }));
  f.finish();
  REQUIRE(f.end);
  CHECK_FALSE(f.end->done);
  CHECK(f.end->signal == 0);
  CHECK(f.end->copied_bytes == 0);
}

TEST_CASE("A child stops at once when it is told to, and the server knows that it did so itself") {
  Fixture f;
  REQUIRE(f.start(sleep_for_ever));
  f.child.poll();
  CHECK_FALSE(f.end);
  f.child.kill();
  f.finish();
  REQUIRE(f.end);
  CHECK(f.end->signal == SIGUSR1);
  CHECK_FALSE(f.end->done);
}

TEST_CASE("A child that somebody else kills ends by that signal") {
  Fixture f;
  REQUIRE(f.start(sleep_for_ever));
  ::kill(f.child.pid(), SIGKILL);
  f.finish();
  REQUIRE(f.end);
  CHECK(f.end->signal == SIGKILL);
}

TEST_CASE("A child is found to be over in a process that was started with SIGCHLD ignored") {
  std::signal(SIGCHLD, SIG_IGN);
  Fixture f;
  REQUIRE(f.start([](ChildProgress&) { return true; }));
  f.finish();
  REQUIRE(f.end);
  CHECK(f.end->done);
}

TEST_CASE("A child whose status somebody else has taken has failed") {
  Fixture f;
  SECTION("when it is found to be over") {
    REQUIRE(f.start([](ChildProgress&) { return true; }));
    REQUIRE(waitpid(f.child.pid(), nullptr, 0) == f.child.pid());
    f.child.poll();
  }
  SECTION("when it is told to stop") {
    REQUIRE(f.start([](ChildProgress&) { return true; }));
    REQUIRE(waitpid(f.child.pid(), nullptr, 0) == f.child.pid());
    f.child.kill_and_wait();
  }
  REQUIRE(f.end);
  CHECK_FALSE(f.end->done);
  CHECK(f.end->signal == 0);
  CHECK_FALSE(f.child.running());
}

TEST_CASE("A child that is waited for is over when the wait is") {
  Fixture f;
  REQUIRE(f.start(sleep_for_ever));
  f.child.kill_and_wait();
  REQUIRE(f.end);
  CHECK(f.end->signal == SIGUSR1);
  CHECK_FALSE(f.child.running());
  // There is nothing left to be told twice.
  f.child.kill_and_wait();
}

TEST_CASE("The next child can be started from where the last one is told to be over") {
  Fixture f;
  int ended = 0;
  REQUIRE(f.child.start({.kind = ChildKind::kRdbToDisk,
                         .work = [](ChildProgress&) { return true; },
                         .ended =
                             [&](const ChildEnd&) {
                               ++ended;
                               f.start([](ChildProgress&) { return true; });
                             }}));
  f.finish();
  CHECK(ended == 1);
  REQUIRE(f.child.running());
  f.finish();
  CHECK(f.end->done);
  CHECK(f.child.forks() == 2);
}

TEST_CASE("A child holds no descriptor but those it was told to keep") {
  Fixture f;
  int kept[2];
  int closed[2];
  REQUIRE(pipe(kept) == 0);
  REQUIRE(pipe(closed) == 0);
  REQUIRE(f.start(
      [&](ChildProgress&) {
        const bool others_gone = fcntl(kept[0], F_GETFD) < 0 && fcntl(closed[0], F_GETFD) < 0 &&
                                 fcntl(closed[1], F_GETFD) < 0;
        return others_gone && write(kept[1], "x", 1) == 1;
      },
      {kept[1]}));
  f.finish();
  REQUIRE(f.end);
  CHECK(f.end->done);
  char byte = 0;
  CHECK(read(kept[0], &byte, 1) == 1);
  CHECK(byte == 'x');
  for (const int descriptor : {kept[0], kept[1], closed[0], closed[1]}) close(descriptor);
}

TEST_CASE("A child does not die of the signals that end the server") {
  Fixture f;
  REQUIRE(f.start([](ChildProgress&) {
    raise(SIGINT);
    raise(SIGTERM);
    return true;
  }));
  f.finish();
  REQUIRE(f.end);
  CHECK(f.end->done);
}

TEST_CASE("A server that goes takes its child along") {
  pid_t pid = 0;
  {
    Fixture f;
    REQUIRE(f.start(sleep_for_ever));
    pid = f.child.pid();
  }
  CHECK(::kill(pid, 0) != 0);
}

TEST_CASE("A child whose server has gone removes what it was writing, and ends") {
  tests::TemporaryDirectory directory;
  directory.write("temp", "half");
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t server = fork();
  if (server == 0) {
    Fixture f;
    const pid_t self = getpid();
    f.start(
        [&](ChildProgress& progress) {
          progress.remove_if_orphaned(directory.path() / "temp");
          while (getppid() == self) usleep(1000);
          progress.report_end();
          return false;
        },
        {ends[1]});
    _exit(0);
  }
  close(ends[1]);
  waitpid(server, nullptr, 0);
  // Ends when the child does.
  char byte = 0;
  CHECK(read(ends[0], &byte, 1) == 0);
  close(ends[0]);
  CHECK_FALSE(directory.exists("temp"));
}

}  // namespace latchkey::persist
