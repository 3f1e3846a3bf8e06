#include "base/take_turns.h"

#include <string>

#include "unit/catch.h"

namespace latchkey::tests {

TEST_CASE("each element comes first in its turn, and all come each time", "[base]") {
  base::TakeTurns turns;
  std::string names = "abc";
  const auto visited = [&] {
    std::string order;
    turns.each(std::span(names), [&](char name) { order += name; });
    return order;
  };
  CHECK(visited() == "abc");
  CHECK(visited() == "bca");
  CHECK(visited() == "cab");
  CHECK(visited() == "abc");
  names = "x";
  CHECK(visited() == "x");
  names.clear();
  CHECK(visited().empty());
}

}  // namespace latchkey::tests
