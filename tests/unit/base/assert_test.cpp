#include "base/assert.h"

#include <stdexcept>
#include <string>

#include "unit/catch.h"

namespace latchkey::base {

namespace {

void tell(const char* expression, const char* file, int line) {
  throw std::runtime_error(std::string(expression) + " in " + file +
                           (line > 0 ? " at a line" : ""));
}

}  // namespace

TEST_CASE("An assertion that fails is told with its expression and its place") {
  set_assertion_handler(&tell);
  const bool holds = true;
  std::string told;
  try {
    LK_ASSERT(holds);
    LK_ASSERT(!holds);
  } catch (const std::runtime_error& error) {
    told = error.what();
  }
  set_assertion_handler(nullptr);
  CHECK(told.starts_with("!holds in "));
  CHECK(told.ends_with("assert_test.cpp at a line"));
}

}  // namespace latchkey::base
