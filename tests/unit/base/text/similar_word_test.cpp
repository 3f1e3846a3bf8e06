#include "base/text/similar_word.h"

#include <array>
#include <string>

#include "unit/catch.h"

using latchkey::base::edit_distance;
using latchkey::base::most_similar;

TEST_CASE("The distance of words counts insertions, deletions, changes and swaps", "[similar]") {
  CHECK(edit_distance("", "", 9) == 0);
  CHECK(edit_distance("port", "port", 9) == 0);
  CHECK(edit_distance("PORT", "port", 9) == 0);
  CHECK(edit_distance("prot", "port", 9) == 1);
  CHECK(edit_distance("pot", "port", 9) == 1);
  CHECK(edit_distance("porrt", "port", 9) == 1);
  CHECK(edit_distance("part", "port", 9) == 1);
  CHECK(edit_distance("", "port", 9) == 4);
  CHECK(edit_distance("kitten", "sitting", 9) == 3);
  // No part is edited twice: "ca" to "abc" would be 2 otherwise.
  CHECK(edit_distance("ca", "abc", 9) == 3);
}

TEST_CASE("A distance beyond the limit is the limit and one", "[similar]") {
  CHECK(edit_distance("kitten", "sitting", 2) == 3);
  CHECK(edit_distance("kitten", "sitting", 3) == 3);
  CHECK(edit_distance("a", "abcdefgh", 2) == 3);
}

TEST_CASE("The word that was meant is the nearest one, if any is near", "[similar]") {
  constexpr std::array<std::string_view, 4> kWords = {"port", "maxmemory", "maxmemory-policy",
                                                      "hz"};
  CHECK(most_similar("prot", kWords) == "port");
  CHECK(most_similar("maxmemroy", kWords) == "maxmemory");
  CHECK(most_similar("maxmemory-polcy", kWords) == "maxmemory-policy");
  CHECK(most_similar("h", kWords) == "hz");
  CHECK(most_similar("appendonly", kWords).empty());
  CHECK(most_similar("", kWords).empty());
  CHECK(most_similar("port", {}).empty());
  CHECK(most_similar(std::string(65, 'x'), std::array<std::string_view, 1>{"x"}).empty());
  // The first of equals.
  CHECK(most_similar("cat", std::array<std::string_view, 2>{"bat", "rat"}) == "bat");
}
