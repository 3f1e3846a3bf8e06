#include "resp/take_line.h"

#include "unit/catch.h"

namespace latchkey::resp {

TEST_CASE("Lines are taken one after the other, without their ends", "[take_line]") {
  std::string_view bytes = "+OK\r\n-ERR no\n\n\r\na\rb\r\r\nrest";
  CHECK(take_line(&bytes) == "+OK");
  CHECK(take_line(&bytes) == "-ERR no");
  CHECK(take_line(&bytes) == "");
  CHECK(take_line(&bytes) == "");
  CHECK(take_line(&bytes) == "a\rb\r");
  CHECK(bytes == "rest");
}

TEST_CASE("A line whose end has not come stays where it is", "[take_line]") {
  for (const std::string_view begun : {"", "+O", "+OK\r"}) {
    std::string_view bytes = begun;
    CHECK_FALSE(take_line(&bytes));
    CHECK(bytes == begun);
  }
}

}  // namespace latchkey::resp
