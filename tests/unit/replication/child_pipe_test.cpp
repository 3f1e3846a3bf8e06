#include "replication/child_pipe.h"

#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

namespace latchkey::replication {

namespace {

class Passed {
 public:
  explicit Passed(ChildPipe& pipe) : pipe_(pipe) {}
  bool forward(size_t most = SIZE_MAX) {
    return pipe_.forward([&] { return bytes.size() >= most; },
                         [&](std::string_view piece) { bytes.append(piece); });
  }
  std::string bytes;

 private:
  ChildPipe& pipe_;
};

void write_all(int to, std::string_view bytes) {
  REQUIRE(write(to, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
}

}  // namespace

TEST_CASE("what a child writes is passed on until its end", "[child-pipe]") {
  const auto pipe = ChildPipe::open(nullptr);
  REQUIRE(pipe != nullptr);
  const int end = dup(pipe->child_end());
  pipe->close_child_end();
  Passed passed(*pipe);
  CHECK(passed.forward());
  CHECK(passed.bytes.empty());
  write_all(end, "one");
  CHECK(passed.forward());
  write_all(end, "two");
  close(end);
  // The end is told once everything was handed over, and again whenever it is asked for.
  CHECK_FALSE(passed.forward());
  CHECK(passed.bytes == "onetwo");
  CHECK_FALSE(passed.forward());
}

TEST_CASE("nothing is read from a child while a receiver is full", "[child-pipe]") {
  const auto pipe = ChildPipe::open(nullptr);
  REQUIRE(pipe != nullptr);
  write_all(pipe->child_end(), std::string(100'000, 'x'));
  Passed passed(*pipe);
  CHECK(passed.forward(0));
  CHECK(passed.bytes.empty());
  CHECK(passed.forward(1));
  CHECK(passed.bytes.size() < 100'000);
  CHECK(passed.forward());
  CHECK(passed.bytes == std::string(100'000, 'x'));
}

TEST_CASE("a child that ends its pipe waits until all was read", "[child-pipe]") {
  const auto pipe = ChildPipe::open(nullptr);
  REQUIRE(pipe != nullptr);
  write_all(pipe->child_end(), "last");
  // Read already when it ends, so that this thread need not wait.
  Passed passed(*pipe);
  CHECK(passed.forward());
  shutdown(pipe->child_end(), SHUT_WR);
  CHECK_FALSE(passed.forward());
  ChildPipe::end(pipe->child_end());
  CHECK(passed.bytes == "last");
}

}  // namespace latchkey::replication
