#include "base/result.h"

#include <memory>
#include <string>
#include <vector>

#include "unit/catch.h"

namespace latchkey::tests {

namespace {

using base::fail;
using base::Result;

struct Shape {
  virtual ~Shape() = default;
};
struct Square : Shape {};

struct Position {
  int line = 0;
  std::string message;
};

Result<int> half(int number) {
  if (number % 2 != 0) return fail("odd");
  return number / 2;
}

Result<> check_halves(int number) {
  Result<int> once = half(number);
  if (!once) return once.failure();
  Result<int> twice = half(*once);
  if (!twice) return twice.failure();
  return {};
}

Result<std::unique_ptr<Shape>> make_shape(bool possible) {
  if (!possible) return fail("impossible");
  return std::make_unique<Square>();
}

Result<void, Position> parse(bool good) {
  if (!good) return base::fail_with(Position{7, "wrong"});
  return {};
}

}  // namespace

TEST_CASE("a result holds the value that was returned", "[base]") {
  Result<int> result = half(8);
  REQUIRE(result);
  CHECK(*result == 4);
  *result = 5;
  CHECK(*result == 5);
}

TEST_CASE("a result holds the error that was returned", "[base]") {
  const Result<int> result = half(7);
  REQUIRE_FALSE(result);
  CHECK(result.error() == "odd");
}

TEST_CASE("an error is passed on through functions of other values", "[base]") {
  CHECK(check_halves(4));
  CHECK(check_halves(6).error() == "odd");
  CHECK(check_halves(7).error() == "odd");
}

TEST_CASE("a result is made from what converts to its value, and gives it away", "[base]") {
  Result<std::unique_ptr<Shape>> shape = make_shape(true);
  REQUIRE(shape);
  const std::unique_ptr<Shape> owned = *std::move(shape);
  CHECK(owned != nullptr);
  CHECK(make_shape(false).error() == "impossible");
}

TEST_CASE("a text is a value and not an error", "[base]") {
  const Result<std::string> text = "fine";
  REQUIRE(text);
  CHECK(text->size() == 4);
}

TEST_CASE("an error may be more than a sentence", "[base]") {
  CHECK(parse(true));
  const Result<void, Position> result = parse(false);
  REQUIRE_FALSE(result);
  CHECK(result.error().line == 7);
  CHECK(result.error().message == "wrong");
}

}  // namespace latchkey::tests
