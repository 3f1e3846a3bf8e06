// What JSON.GET and JSON.DEBUG tell of documents.
#include <string>

#include "unit/catch.h"
#include "unit/server_fixture.h"
#include "unit/testing/tested_server.h"

namespace latchkey::tests {

namespace {

struct Document : TestedServer {
  Document() : client(*this) {
    CHECK(client.run_words({"JSON.SET", "k", "$", R"({"a":1,"b":[1,2],"c":{"a":2}})"}) == kOk);
  }
  std::string run(std::string_view line) { return client.run(line); }
  TestClient client;
};

}  // namespace

TEST_CASE("JSON.GET of several paths is an object of them, each once", "[json]") {
  Document document;
  CHECK(document.run("JSON.GET k $.a $.b") == bulk(R"({"$.a":[1],"$.b":[[1,2]]})"));
  CHECK(document.run("JSON.GET k $.a $..a $.a") == bulk(R"({"$.a":[1],"$..a":[1,2]})"));
  CHECK(document.run("JSON.GET k .a .b") == bulk(R"({".a":1,".b":[1,2]})"));
  // One path of the new kind has all be lists.
  CHECK(document.run("JSON.GET k .a $.b") == bulk(R"({".a":[1],"$.b":[[1,2]]})"));
  CHECK(document.run("JSON.GET k $.nosuch $.a") == bulk(R"({"$.nosuch":[],"$.a":[1]})"));
  CHECK(document.run("JSON.GET k .nosuch .a").starts_with("-ERR"));
  CHECK(document.run("JSON.GET none $.a $.b") == kNull);
}

TEST_CASE("What a request asks for again and again in a document is bounded for all of it",
          "[json]") {
  Document document;
  const std::string nested = std::string(110, '[') + "1" + std::string(110, ']');
  REQUIRE(document.client.run_words({"JSON.SET", "deep", "$", nested}) == kOk);
  const std::string too_many = error("ERR the path leads to too many values");
  std::string path = "$";
  for (int i = 0; i < 20; ++i) path += "..*";
  CHECK(document.run("JSON.GET deep " + path) == too_many);
  CHECK(document.run("JSON.MGET deep k deep " + path) == too_many);
  CHECK(document.run("JSON.RESP deep " + path) == too_many);
  document.run("HELLO 3");
  CHECK(document.run("JSON.GET deep FORMAT EXPAND " + path) == too_many);
  document.run("HELLO 2");
  // None of these is too much alone.
  std::string get = "JSON.GET deep";
  for (int i = 0; i < 20; ++i) get += " $..*..*..*..a" + std::to_string(i);
  CHECK(document.run(get) == too_many);
  CHECK(document.run("JSON.GET deep $..*..*..*..a") == bulk("[]"));
  CHECK(document.run("JSON.MGET deep k none $..a") ==
        array({bulk("[]"), bulk("[1,2]"), std::string(kNull)}));
}

TEST_CASE("A value is not copied into a document without limit", "[json]") {
  Document document;
  const auto list_of = [](size_t count) {
    std::string text = "[0";
    for (size_t i = 1; i < count; ++i) text += ",0";
    return text + "]";
  };
  const std::string large = list_of(20'000);
  REQUIRE(document.client.run_words({"JSON.SET", "k", "$", list_of(20'000)}) == kOk);
  REQUIRE(document.client.run_words({"JSON.SET", "lists", "$", "[[],[]]"}) == kOk);
  const std::string too_large = error("ERR the document would be too large");
  CHECK(document.client.run_words({"JSON.SET", "k", "$[*]", large}) == too_large);
  CHECK(document.client.run_words({"JSON.MERGE", "k", "$[*]", large}) == too_large);
  CHECK(document.run("JSON.GET k $[0]") == bulk("[0]"));
  CHECK(document.client.run_words({"JSON.SET", "k", "$[*]", "[]"}) == kOk);
  CHECK(document.client.run_words({"JSON.ARRAPPEND", "k", "$[*]", large}) == too_large);
  CHECK(document.client.run_words({"JSON.ARRAPPEND", "lists", "$[*]", large}) ==
        array({integer(1), integer(1)}));
}

TEST_CASE("JSON.DEBUG MEMORY counts bytes for each value of a path", "[json]") {
  Document document;
  CHECK(document.run("JSON.DEBUG MEMORY k $..a").starts_with("*2\r\n:"));
  CHECK(document.run("JSON.DEBUG MEMORY k .a").starts_with(":"));
  CHECK(document.run("JSON.DEBUG MEMORY k").starts_with(":"));
  CHECK(document.run("JSON.DEBUG MEMORY k $.nosuch") == "*0\r\n");
  CHECK(document.run("JSON.DEBUG MEMORY k .nosuch").starts_with("-ERR"));
  CHECK(document.run("JSON.DEBUG MEMORY none .a") == integer(0));
  CHECK(document.run("JSON.DEBUG MEMORY none $.a") == "*0\r\n");
  // A value that holds another takes more.
  const auto bytes = [&](const std::string& path) {
    return std::stoll(document.run("JSON.DEBUG MEMORY k " + path).substr(1));
  };
  CHECK(bytes(".") > bytes(".b"));
  CHECK(bytes(".b") > bytes(".a"));
}

TEST_CASE("The key of JSON.DEBUG MEMORY is one that access rules see", "[json]") {
  Document document;
  CHECK(document.run("COMMAND GETKEYS JSON.DEBUG memory k") == bulks({"k"}));
  CHECK(document.run("COMMAND GETKEYS JSON.DEBUG HELP").starts_with("-ERR"));
  document.run("ACL SETUSER u on nopass ~a* +@all");
  document.run("AUTH u x");
  CHECK(document.run("JSON.DEBUG MEMORY k").starts_with("-NOPERM"));
  CHECK(document.run("JSON.DEBUG MEMORY a") == integer(0));
}

}  // namespace latchkey::tests
