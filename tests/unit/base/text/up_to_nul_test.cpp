#include "base/text/up_to_nul.h"

#include "unit/catch.h"

namespace latchkey::base {

using namespace std::string_view_literals;

TEST_CASE("text ends at its first NUL", "[text]") {
  CHECK(up_to_nul("seven\0eleven\0"sv) == "seven");
  CHECK(up_to_nul("\0seven"sv).empty());
  CHECK(up_to_nul("seven\0"sv) == "seven");
}

TEST_CASE("text without a NUL is left whole", "[text]") {
  CHECK(up_to_nul("seven") == "seven");
  CHECK(up_to_nul("").empty());
}

}  // namespace latchkey::base
