// What JSON.MERGE does where a path leads to places within one another.
#include <string>

#include "unit/catch.h"
#include "unit/server_fixture.h"
#include "unit/testing/tested_server.h"

namespace latchkey::tests {

TEST_CASE("JSON.MERGE finds places within one another by their keys", "[json]") {
  TestedServer server;
  TestClient client(server);
  const auto merged = [&](std::string_view document, std::string_view path,
                          std::string_view patch) {
    CHECK(client.run_words({"JSON.SET", "k", "$", document}) == kOk);
    CHECK(client.run_words({"JSON.MERGE", "k", path, patch}) == kOk);
    return client.run("JSON.GET k");
  };
  const std::string_view nested = R"({"a":{"x":1,"b":{"x":3},"a":{"x":2}}})";
  // The place of the inner one has become an array.
  CHECK(merged(R"({"x":{"x":1}})", "$..x", "[[1]]") == bulk(R"({"x":[[1]]})"));
  // What is removed from the outer one moves its last member.
  CHECK(merged(nested, "$..a", R"({"x":null})") == bulk(R"({"a":{"a":{},"b":{"x":3}}})"));
  CHECK(merged(nested, "$..a", R"({"x":null,"z":{}})") ==
        bulk(R"({"a":{"a":{"z":{}},"b":{"x":3},"z":{}}})"));
  // The inner one is gone.
  CHECK(merged(nested, "$..a", R"({"a":null})") == bulk(R"({"a":{"x":1,"b":{"x":3}}})"));
  CHECK(merged(nested, "$..a", "5") == bulk(R"({"a":5})"));
  // Elements are found by their indexes.
  CHECK(merged(R"([{"x":1},[{"x":2}]])", "$..*", R"({"x":null})") == bulk("[{},{}]"));
  CHECK(merged(R"({"a":[{"a":1},{"a":2}]})", "$..a", "[1,[2]]") == bulk(R"({"a":[1,[2]]})"));
  CHECK(merged(R"({"a":[{"a":1},{"b":2}]})", "$.a[*]", R"({"c":1,"a":null})") ==
        bulk(R"({"a":[{"c":1},{"b":2,"c":1}]})"));
}

}  // namespace latchkey::tests
