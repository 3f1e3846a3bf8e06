#include "base/text/split.h"

#include "unit/catch.h"

using namespace latchkey::base;

namespace {

using Parts = std::vector<std::string_view>;

}  // namespace

TEST_CASE("Fields may be empty, and are one more than there are separators", "[split]") {
  CHECK(split_fields("", ',') == Parts{""});
  CHECK(split_fields("a", ',') == Parts{"a"});
  CHECK(split_fields("a,b c", ',') == Parts{"a", "b c"});
  CHECK(split_fields(",a,,b,", ',') == Parts{"", "a", "", "b", ""});
}

TEST_CASE("Words are not empty, however many separators lie around them", "[split]") {
  CHECK(split_words("", ' ').empty());
  CHECK(split_words("  ", ' ').empty());
  CHECK(split_words("a", ' ') == Parts{"a"});
  CHECK(split_words("  a b\tc   d ", ' ') == Parts{"a", "b\tc", "d"});
  CHECK(split_words("a b,,c,", ',') == Parts{"a b", "c"});
}

TEST_CASE("A word is taken with the separators before it", "[split]") {
  std::string_view text = "  one two ";
  CHECK(take_word(&text) == "one");
  CHECK(text == " two ");
  CHECK(take_word(&text) == "two");
  CHECK(text == " ");
  CHECK(take_word(&text).empty());
  CHECK(text.empty());
  CHECK(take_word(&text).empty());

  text = "a b;c";
  CHECK(take_word(&text, ';') == "a b");
  CHECK(text == ";c");
}
