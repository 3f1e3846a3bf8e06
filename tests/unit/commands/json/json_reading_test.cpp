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
  // A document that is named again is not walked again.
  std::string mget = "JSON.MGET";
  std::string found = "*20\r\n";
  for (int i = 0; i < 20; ++i) {
    mget += " deep";
    found += bulk("[]");
  }
  CHECK(document.run(mget + " $..*..*..*..a") == found);
  CHECK(document.run("JSON.MGET deep k none $..a") ==
        array({bulk("[]"), bulk("[1,2]"), std::string(kNull)}));
  CHECK(document.run("JSON.MGET k none deep k none k deep $..a") ==
        array({bulk("[1,2]"), std::string(kNull), bulk("[]"), bulk("[1,2]"), std::string(kNull),
               bulk("[1,2]"), bulk("[]")}));
}

TEST_CASE("What a reply tells of one place again and again is bounded", "[json]") {
  Document document;
  constexpr size_t kSize = 10'000;
  const auto again = [](size_t times) {
    std::string path = "$['a'";
    for (size_t i = 1; i < times; ++i) path += ",'a'";
    return path + "]";
  };
  const std::string too_many = error("ERR the path leads to too many values");
  std::string array_text = R"({"a":[0)";
  std::string object_text = R"({"a":{"0":0)";
  for (size_t i = 1; i < kSize; ++i) {
    array_text += ",0";
    object_text += ",\"" + std::to_string(i) + "\":0";
  }
  REQUIRE(document.client.run_words({"JSON.SET", "k", "$", array_text + "]}"}) == kOk);
  CHECK(document.client.run_words({"JSON.ARRINDEX", "k", again(2000), "1"}) == too_many);
  CHECK(document.client.run_words({"JSON.ARRINDEX", "k", again(2), "1"}) ==
        array({integer(-1), integer(-1)}));
  // Looked at is the first element only.
  CHECK(document.client.run_words({"JSON.ARRINDEX", "k", again(2000), "0"}).starts_with("*2000"));
  CHECK(document.client.run_words({"JSON.ARRLEN", "k", again(2000)}).starts_with("*2000\r\n"));
  REQUIRE(document.client.run_words({"JSON.SET", "k", "$", object_text + "}}"}) == kOk);
  CHECK(document.client.run_words({"JSON.OBJKEYS", "k", again(2000)}) == too_many);
  CHECK(document.client.run_words({"JSON.OBJKEYS", "k", again(2)}).starts_with("*2\r\n*10000"));
  CHECK(document.client.run_words({"JSON.OBJLEN", "k", again(2000)}).starts_with("*2000\r\n"));
  // Long texts count by their size.
  const std::string long_text = "\"" + std::string(1 << 20, 'x') + "\"";
  const std::string texts = "{\"a\":{" + long_text + ":" + long_text + "}}";
  REQUIRE(document.client.run_words({"JSON.SET", "k", "$", texts}) == kOk);
  CHECK(document.client.run_words({"JSON.OBJKEYS", "k", again(1200)}) == too_many);
  CHECK(document.client.run_words({"JSON.RESP", "k", again(600)}) == too_many);
  const std::string list = "{\"a\":[" + long_text + "]}";
  REQUIRE(document.client.run_words({"JSON.SET", "k", "$", list}) == kOk);
  CHECK(document.client.run_words({"JSON.ARRINDEX", "k", again(1200), long_text}) == too_many);
}

TEST_CASE("JSON.OBJKEYS ends when its reply is more than the client may get", "[json]") {
  Document document;
  CHECK(document.client.run_words(
            {"CONFIG", "SET", "client-output-buffer-limit", "normal 1000000 0 0"}) == kOk);
  const std::string key = "\"" + std::string(1 << 20, 'x') + "\"";
  const std::string text = "{\"a\":{" + key + ":1}}";
  REQUIRE(document.client.run_words({"JSON.SET", "k", "$", text}) == kOk);
  const std::string reply =
      document.client.run_words({"JSON.OBJKEYS", "k", "$['a','a','a','a','a','a','a','a']"});
  CHECK(reply.size() < 3 * key.size());
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
  CHECK(document.client.run_words({"JSON.ARRINSERT", "k", "$[*]", "0", large}) == too_large);
  // Nothing has been changed before that was known.
  CHECK(document.run("JSON.GET k $[0,19999]") == bulk("[[],[]]"));
  CHECK(document.client.run_words({"JSON.ARRAPPEND", "lists", "$[*]", large}) ==
        array({integer(1), integer(1)}));
  // Of 600 copies of a megabyte.
  std::string texts = "[\"\"";
  for (size_t i = 1; i < 600; ++i) texts += ",\"\"";
  REQUIRE(document.client.run_words({"JSON.SET", "k", "$", texts + "]"}) == kOk);
  const std::string long_text = "\"" + std::string(1 << 20, 'x') + "\"";
  CHECK(document.client.run_words({"JSON.STRAPPEND", "k", "$[*]", long_text}) == too_large);
  CHECK(document.run("JSON.GET k $[0]") == bulk(R"([""])"));
  CHECK(document.client.run_words({"JSON.STRAPPEND", "k", "$[0,1]", "\"y\""}) ==
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
