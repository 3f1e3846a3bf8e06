#include <string>

#include "unit/catch.h"
#include "unit/commands/string_server.h"

namespace latchkey::tests {

namespace {
// Of "hello", as DIGEST's public documentation and client libraries give it.
constexpr std::string_view kHelloDigest = "9555e8555c62dcfd";
}  // namespace

TEST_CASE("DIGEST is XXH3 in sixteen hexadecimal digits", "[conditions]") {
  StringServer server;
  TestClient client(server);
  const auto digest_of = [&](std::string_view value) {
    client.run_words({"SET", "name", value});
    return client.run("DIGEST name");
  };
  CHECK(digest_of("hello") == bulk(kHelloDigest));
  CHECK(digest_of("Hello world") == bulk("b6acb9d84a38ff74"));
  CHECK(digest_of("") == bulk("2d06800538d394c2"));
  CHECK(digest_of("123") == bulk("404a763b3f4c8c9a"));
  CHECK(digest_of("v8lf0c11xh8ymlqztfd3eeq16kfn4sspw7fqmnuuq3k3t75em5wdizgcdw7uc26nnf961u2jkfzkjytl"
                  "s2kwlj7626sd") == bulk("00006c38adf31777"));
  CHECK(client.run("DIGEST none") == kNull);
  server.put_list("list");
  CHECK(client.run("DIGEST list") == kWrongType);
}

TEST_CASE("SET with IFEQ or IFNE compares the old value", "[conditions]") {
  StringServer server;
  TestClient client(server);
  CHECK(client.run("SET name new IFEQ hello") == kNull);
  CHECK(client.run("GET name") == kNull);
  CHECK(client.run("SET name hello IFNE hello") == kOk);
  CHECK(client.run("SET name new IFNE hello") == kNull);
  CHECK(client.run("SET name new IFEQ other") == kNull);
  CHECK(client.run("SET name new ifeq hello EX 10") == kOk);
  CHECK(server.ttl_ms("name") == 10'000);
  CHECK(client.run("SET name new IFNE x") == kOk);
  CHECK(client.run("GET name") == bulk("new"));
  client.run("SET number 12");
  CHECK(client.run("SET number 13 IFEQ 12") == kOk);
  CHECK(client.run("SET number 13 IFEQ 013") == kNull);
}

TEST_CASE("SET with IFDEQ or IFDNE compares the old value's digest", "[conditions]") {
  StringServer server;
  TestClient client(server);
  const std::string digest(kHelloDigest);
  CHECK(client.run("SET name hello IFDEQ " + digest) == kNull);
  CHECK(client.run("SET name hello IFDNE " + digest) == kOk);
  CHECK(client.run("SET name new IFDNE " + digest) == kNull);
  CHECK(client.run("SET name hello IFDEQ 9555E8555C62DCFD") == kOk);
  CHECK(client.run("SET name new IFDEQ 0000000000000000") == kNull);
  CHECK(client.run("SET name new IFDEQ zzzzzzzzzzzzzzzz") == kNull);
  CHECK(client.run("GET name") == bulk("hello"));
  const std::string refused = error("ERR must be exactly 16 hexadecimal characters");
  CHECK(client.run("SET name new IFDEQ 123") == refused);
  CHECK(client.run("SET name new IFDNE 0" + digest + " GET") == refused);
  CHECK(client.run("SET none new IFDEQ 123") == kNull);
  CHECK(client.run("SET name new IFDEQ " + digest) == kOk);
}

TEST_CASE("SET with a condition and GET answers the old value either way", "[conditions]") {
  StringServer server;
  TestClient client(server);
  CHECK(client.run("SET name new IFEQ x GET") == kNull);
  client.run("SET name hello");
  CHECK(client.run("SET name new IFEQ x GET") == bulk("hello"));
  CHECK(client.run("SET name new GET IFEQ hello") == bulk("hello"));
  CHECK(client.run("GET name") == bulk("new"));
}

TEST_CASE("Conditions on a value need a string", "[conditions]") {
  StringServer server;
  TestClient client(server);
  server.put_list("list");
  for (const char* const condition : {"IFEQ a", "IFNE a", "IFDEQ 1", "IFDNE 1"}) {
    CAPTURE(condition);
    CHECK(client.run(std::string("SET list v ") + condition) == kWrongType);
    CHECK(client.run(std::string("DELEX list ") + condition) ==
          error("ERR Key should be of string type if conditions are specified"));
  }
  CHECK(client.run("DELIFEQ list a") == kWrongType);
  CHECK(client.run("DELEX list") == integer(1));
}

TEST_CASE("DELEX removes a key whose value fits the condition", "[conditions]") {
  StringServer server;
  TestClient client(server);
  const std::string digest(kHelloDigest);
  const auto removes = [&](const std::string& condition) {
    client.run("SET name hello");
    const std::string reply = client.run("DELEX name " + condition);
    const bool gone = client.run("GET name") == kNull;
    CHECK(reply == integer(gone ? 1 : 0));
    return gone;
  };
  CHECK(removes("IFEQ hello"));
  CHECK_FALSE(removes("IFEQ other"));
  CHECK_FALSE(removes("IFNE hello"));
  CHECK(removes("ifne other"));
  CHECK(removes("IFDEQ " + digest));
  CHECK_FALSE(removes("IFDNE " + digest));
  CHECK(removes("IFDNE 0000000000000000"));
  server.events();
  client.run("SET name hello");
  CHECK(client.run("DELEX name") == integer(1));
  CHECK(client.run("DELEX name") == integer(0));
  CHECK(client.run("DELEX name IFNE x") == integer(0));
  CHECK(server.events() == "set name, del name");
}

TEST_CASE("DELEX refuses what is no condition", "[conditions]") {
  StringServer server;
  TestClient client(server);
  client.run("SET name hello");
  CHECK(client.run("DELEX name IFEQ") ==
        error("ERR wrong number of arguments for 'delex' command"));
  CHECK(client.run("DELEX name IFEQ a b") ==
        error("ERR wrong number of arguments for 'delex' command"));
  CHECK(client.run("DELEX name IF a") ==
        error("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE"));
  CHECK(client.run("DELEX name IFDEQ a") == error("ERR must be exactly 16 hexadecimal characters"));
  CHECK(client.run("DELEX none IF a") == integer(0));
}

TEST_CASE("DELIFEQ removes a lock only for its owner", "[conditions]") {
  StringServer server;
  TestClient client(server);
  client.run("SET lock token NX PX 30000");
  CHECK(client.run("DELIFEQ lock other") == integer(0));
  CHECK(client.run("DELIFEQ lock token") == integer(1));
  CHECK(client.run("DELIFEQ lock token") == integer(0));
  client.run("SET lock 12");
  CHECK(client.run("DELIFEQ lock 12") == integer(1));
}

TEST_CASE("SET with a condition on the value and one on the key needs both", "[conditions]") {
  StringServer server;
  TestClient client(server);
  const std::string digest(kHelloDigest);
  const struct {
    std::string conditions;
    bool holds;          // for a key with the value "hello"
    bool holds_without;  // a key
  } cases[] = {
      {"IFEQ hello NX", false, false},
      {"IFEQ hello XX", true, false},
      {"IFEQ z NX", false, false},
      {"IFEQ z XX", false, false},
      {"IFNE hello NX", false, true},
      {"IFNE hello XX", false, false},
      {"IFNE z NX", false, true},
      {"IFNE z XX", true, false},
      {"IFDEQ " + digest + " NX", false, false},
      {"IFDEQ " + digest + " XX", true, false},
      {"IFDNE " + digest + " NX", false, true},
      {"IFDNE " + digest + " XX", false, false},
      {"IFEQ hello XX XX", true, false},
      {"IFNE z EX 5 NX NX", false, true},
  };
  for (const auto& [conditions, holds, holds_without] : cases) {
    CAPTURE(conditions);
    client.run("SET name hello");
    client.run("GETDEL none");
    CHECK(client.run("SET name new " + conditions) == (holds ? kOk : kNull));
    CHECK(client.run("GET name") == bulk(holds ? "new" : "hello"));
    CHECK(client.run("SET none new " + conditions) == (holds_without ? kOk : kNull));
    CHECK(client.run("GET none") == (holds_without ? bulk("new") : std::string(kNull)));
  }
  CHECK(client.run("SET name c IFEQ hello GET XX") == bulk("hello"));
  CHECK(client.run("GET name") == bulk("c"));
}

TEST_CASE("SET asks for the key before it looks at the value", "[conditions]") {
  StringServer server;
  TestClient client(server);
  server.put_list("list");
  client.run("SET name hello");
  CHECK(client.run("SET list v IFEQ x NX") == kNull);
  CHECK(client.run("SET list v IFEQ x XX") == kWrongType);
  CHECK(client.run("SET list v IFEQ x NX GET") == kWrongType);
  CHECK(client.run("SET name v IFDEQ bad NX") == kNull);
  CHECK(client.run("SET name v IFDEQ bad XX") ==
        error("ERR must be exactly 16 hexadecimal characters"));
  CHECK(client.run("SET none v IFDEQ bad XX") == kNull);
}

TEST_CASE("SET refuses conditions that exclude each other or come in the wrong order",
          "[conditions]") {
  StringServer server;
  TestClient client(server);
  client.run("SET name hello");
  for (const char* conditions :
       {"NX XX", "XX NX", "NX IFEQ hello", "XX IFEQ hello", "IFEQ hello IFNE z",
        "IFNE z IFEQ hello", "IFEQ hello NX XX", "IFEQ hello XX NX", "IFEQ hello XX IFEQ hello",
        // The reference takes these, and forgets the first of the two.
        "IFEQ hello IFEQ hello", "IFNE z IFNE x"}) {
    CAPTURE(conditions);
    CHECK(client.run(std::string("SET name new ") + conditions) == error("ERR syntax error"));
  }
  StringServer valkey("emulate \"valkey 8.1\"");
  TestClient other(valkey);
  other.run("SET name hello");
  CHECK(other.run("SET name new IFEQ hello XX") == error("ERR syntax error"));
  CHECK(other.run("SET name new IFEQ hello NX") == error("ERR syntax error"));
  CHECK(other.run("SET name new IFEQ hello") == kOk);
}

}  // namespace latchkey::tests
