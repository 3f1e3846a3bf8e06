#include "base/fiber.h"

#include <string>
#include <vector>

#include "unit/catch.h"

namespace latchkey::base {

namespace {

// As deep as asked, with something of its own at each depth.
size_t descend(size_t depth, Fiber& fiber) {
  volatile char room[512];
  room[0] = static_cast<char>(depth);
  if (depth == 0) {
    fiber.suspend();
    return 0;
  }
  return descend(depth - 1, fiber) + (room[0] == static_cast<char>(depth) ? 1 : 0);
}

}  // namespace

TEST_CASE("A fiber's body runs to its end, or up to where it suspends itself", "[fiber]") {
  Fiber fiber;
  std::string steps;
  auto ends = [&] { steps += "whole "; };
  CHECK(fiber.run(ends));
  CHECK(fiber.idle());
  auto waits = [&] {
    steps += "first ";
    fiber.suspend();
    steps += "second ";
    fiber.suspend();
    steps += "third";
  };
  CHECK_FALSE(fiber.run(waits));
  CHECK_FALSE(fiber.idle());
  steps += "- ";
  CHECK_FALSE(fiber.resume());
  steps += "- ";
  CHECK(fiber.resume());
  CHECK(fiber.idle());
  CHECK(steps == "whole first - second - third");
}

TEST_CASE("A fiber that is suspended deep down keeps its whole stack", "[fiber]") {
  Fiber fiber;
  size_t sum = 0;
  auto body = [&] { sum = descend(500, fiber); };
  CHECK_FALSE(fiber.run(body));
  Fiber other;
  auto other_body = [&] { descend(500, other); };
  CHECK_FALSE(other.run(other_body));
  CHECK(fiber.resume());
  CHECK(other.resume());
  CHECK(sum == 500);
}

TEST_CASE("Exceptions that a fiber's body catches itself do no harm", "[fiber]") {
  Fiber fiber;
  bool caught = false;
  auto body = [&] {
    try {
      fiber.suspend();
      throw std::string("thrown");
    } catch (const std::string& text) {
      caught = text == "thrown";
    }
  };
  CHECK_FALSE(fiber.run(body));
  CHECK(fiber.resume());
  CHECK(caught);
}

TEST_CASE("A fiber's stack ends below all that its body uses", "[fiber]") {
  Fiber fiber;
  const void* used = nullptr;
  auto body = [&] { used = __builtin_frame_address(0); };
  CHECK(fiber.run(body));
  CHECK(used > fiber.stack_end());
  CHECK(used < static_cast<const char*>(fiber.stack_end()) + Fiber::kStackSize);
}

}  // namespace latchkey::base
