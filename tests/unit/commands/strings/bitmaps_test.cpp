#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "unit/catch.h"
#include "unit/commands/string_server.h"

namespace latchkey::tests {

namespace {

constexpr std::string_view kBadOffset = "-ERR bit offset is not an integer or out of range\r\n";
constexpr std::string_view kBadBit = "-ERR bit is not an integer or out of range\r\n";
constexpr std::string_view kNoInteger = "-ERR value is not an integer or out of range\r\n";
constexpr std::string_view kSyntaxError = "-ERR syntax error\r\n";

// Strings under names that the tests speak of.
struct BitServer : StringServer {
  explicit BitServer(std::string_view settings = {}) : StringServer(settings) {
    server.commands().add(commands::bitmap_rows());
    put_list("list");
  }
};

}  // namespace

TEST_CASE("SETBIT lengthens the string and says what the bit was", "[bitmaps]") {
  BitServer server;
  TestClient client(server);
  CHECK(client.run("SETBIT row 7 1") == integer(0));
  CHECK(client.run("GET row") == bulk("\x01"));
  CHECK(client.run("SETBIT row 7 1") == integer(1));
  CHECK(client.run("SETBIT row 17 0") == integer(0));
  CHECK(client.run("STRLEN row") == integer(3));
  CHECK(client.run("SETBIT row 7 0") == integer(1));
  CHECK(client.run_words({"GET", "row"}) == bulk(std::string(3, '\0')));
  CHECK(server.encoding("row") == "raw");
}

TEST_CASE("SETBIT tells of a change only when there is one", "[bitmaps]") {
  BitServer server;
  TestClient client(server);
  client.run("SETBIT row 0 0");
  CHECK(server.events() == "setbit row");
  server.changes();
  client.run("SETBIT row 5 0");
  CHECK(server.events().empty());
  CHECK(server.changes() == 0);
  client.run("SETBIT row 5 1");
  client.run("SETBIT row 8 0");
  CHECK(server.events() == "setbit row, setbit row");
  CHECK(server.changes() == 2);
}

TEST_CASE("SETBIT keeps the deadline, and works on integers as on their text", "[bitmaps]") {
  BitServer server;
  TestClient client(server);
  client.run("SET number 12345 EX 10");
  CHECK(client.run("SETBIT number 6 1") == integer(0));
  CHECK(client.run("GET number") == bulk("32345"));
  CHECK(server.encoding("number") == "raw");
  CHECK(server.ttl_ms("number") == 10'000);
}

TEST_CASE("SETBIT leaves alone what is still on its way to a client", "[bitmaps]") {
  BitServer server;
  TestClient client(server);
  const std::string large(100'000, 'x');
  client.run_words({"SET", "row", large});
  (*client).out().clear();
  const std::string reply = client.send("GET row\r\nSETBIT row 4 0\r\nGET row\r\n");
  CHECK(reply == bulk(large) + integer(1) + bulk("p" + large.substr(1)));
}

TEST_CASE("SETBIT and GETBIT look at the offset, the bit and the type in this order", "[bitmaps]") {
  BitServer server;
  TestClient client(server);
  for (const std::string offset : {"x", "-1", "4294967296", "1.0", "01", "#1"}) {
    CHECK(client.run("SETBIT list " + offset + " 2") == kBadOffset);
    CHECK(client.run("GETBIT list " + offset) == kBadOffset);
  }
  for (const std::string bit : {"2", "-1", "x"})
    CHECK(client.run("SETBIT list 0 " + bit) == kBadBit);
  CHECK(client.run("SETBIT list 0 1") == kWrongType);
  CHECK(client.run("GETBIT list 0") == kWrongType);
}

TEST_CASE("Strings of bits grow as far as proto-max-bulk-len allows", "[bitmaps]") {
  BitServer server("proto-max-bulk-len 1mb\n");
  TestClient client(server);
  CHECK(client.run("SETBIT row 8388607 1") == integer(0));
  CHECK(client.run("SETBIT row 8388608 1") == kBadOffset);
  CHECK(client.run("GETBIT row 8388608") == kBadOffset);
  CHECK(client.run("STRLEN row") == integer(1024 * 1024));
}

TEST_CASE("GETBIT finds zeros where there is nothing", "[bitmaps]") {
  BitServer server;
  TestClient client(server);
  client.run("SET number 1");
  CHECK(client.run("GETBIT number 2") == integer(1));
  CHECK(server.encoding("number") == "int");
  CHECK(client.run("GETBIT number 0") == integer(0));
  CHECK(client.run("GETBIT number 800") == integer(0));
  CHECK(client.run("GETBIT none 0") == integer(0));
}

TEST_CASE("BITCOUNT counts in ranges of bytes and bits, from either end", "[bitmaps]") {
  BitServer server;
  TestClient client(server);
  client.run("SET number 12345");
  CHECK(client.run("BITCOUNT number") == integer(17));
  CHECK(client.run("BITCOUNT number 0 1") == integer(6));
  CHECK(client.run("BITCOUNT number -2 -1") == integer(7));
  CHECK(client.run("BITCOUNT number -100 100 BYTE") == integer(17));
  CHECK(client.run("BITCOUNT number 3 5 BIT") == integer(1));
  CHECK(client.run("BITCOUNT number -3 -1 bit") == integer(2));
  CHECK(client.run("BITCOUNT number 1 0") == integer(0));
  CHECK(client.run("BITCOUNT number -100 -200") == integer(0));
  CHECK(client.run("BITCOUNT number 9223372036854775807 9223372036854775807 BIT") == integer(0));
  CHECK(client.run("BITCOUNT number -9223372036854775808 9223372036854775807 BIT") == integer(17));
  client.run_words({"SET", "empty", ""});
  CHECK(client.run("BITCOUNT empty 0 -1") == integer(0));
  CHECK(client.run("BITCOUNT none") == integer(0));
}

TEST_CASE("BITCOUNT reads its whole range before it looks for the key", "[bitmaps]") {
  BitServer server;
  TestClient client(server);
  CHECK(client.run("BITCOUNT list") == kWrongType);
  CHECK(client.run("BITCOUNT list 0") == kSyntaxError);
  CHECK(client.run("BITCOUNT none x 1") == kNoInteger);
  CHECK(client.run("BITCOUNT none 0 x y") == kNoInteger);
  CHECK(client.run("BITCOUNT none 0 1 y") == kSyntaxError);
  CHECK(client.run("BITCOUNT none 0 1 BIT 2") == kSyntaxError);
}

TEST_CASE("BITPOS takes what is behind a string for zeros unless told where to end", "[bitmaps]") {
  BitServer server;
  TestClient client(server);
  client.run_words({"SET", "ones", "\xff\xff\xff"});
  CHECK(client.run("BITPOS ones 0") == integer(24));
  CHECK(client.run("BITPOS ones 0 -1") == integer(24));
  CHECK(client.run("BITPOS ones 0 0 -1") == integer(-1));
  CHECK(client.run("BITPOS ones 0 5") == integer(-1));
  CHECK(client.run("BITPOS ones 1 2") == integer(16));
  CHECK(client.run("BITPOS ones 1 7 15 BIT") == integer(7));
  CHECK(client.run("BITPOS ones 1 -50 -100") == integer(0));
  CHECK(client.run("BITPOS none 0") == integer(0));
  CHECK(client.run("BITPOS none 1") == integer(-1));
  client.run_words({"SET", "empty", ""});
  CHECK(client.run("BITPOS empty 0") == integer(-1));
}

TEST_CASE("BITPOS stops at the last bit of its range", "[bitmaps]") {
  BitServer server;
  TestClient client(server);
  client.run_words({"SET", "row", std::string("\0\xff\xf0", 3)});
  CHECK(client.run("BITPOS row 0 20 -1 BIT") == integer(20));
  CHECK(client.run("BITPOS row 0 8 19 BIT") == integer(-1));
  CHECK(client.run("BITPOS row 1 0 7 BIT") == integer(-1));
  CHECK(client.run("BITPOS row 1 0 8 BIT") == integer(8));
  CHECK(client.run("BITPOS row 1 19 22 BIT") == integer(19));
}

TEST_CASE("BITPOS looks at the bit, the range, the unit and the type in this order", "[bitmaps]") {
  BitServer server;
  TestClient client(server);
  CHECK(client.run("BITPOS list x") == kNoInteger);
  CHECK(client.run("BITPOS list 2 x") == error("ERR The bit argument must be 1 or 0."));
  CHECK(client.run("BITPOS list 1 x 1 y") == kNoInteger);
  CHECK(client.run("BITPOS list 1 0 x y") == kSyntaxError);
  CHECK(client.run("BITPOS list 1 0 x BIT") == kNoInteger);
  CHECK(client.run("BITPOS list 1 0 1 BIT 2") == kSyntaxError);
  CHECK(client.run("BITPOS list 1") == kWrongType);
}

TEST_CASE("BITOP stores what its operation makes of the sources", "[bitmaps]") {
  BitServer server;
  TestClient client(server);
  client.run_words({"SET", "x", "\x0f\xff"});
  client.run_words({"SET", "y", "\x3c"});
  client.run_words({"SET", "z", "\x55"});
  const auto combine = [&](const std::string& words) {
    CHECK(client.run("BITOP " + words) == integer(2));
    return client.run("GET result");
  };
  const auto bytes = [](char first, char second) { return bulk(std::string{first, second}); };
  CHECK(combine("AND result x y z") == bytes('\x04', '\0'));
  CHECK(combine("or result x y z none") == bytes('\x7f', '\xff'));
  CHECK(combine("XOR result x y z") == bytes('\x66', '\xff'));
  CHECK(combine("NOT result x") == bytes('\xf0', '\0'));
  CHECK(combine("DIFF result x y z") == bytes('\x02', '\xff'));
  CHECK(combine("DIFF1 result x y z") == bytes('\x70', '\0'));
  CHECK(combine("ANDOR result x y z") == bytes('\x0d', '\0'));
  CHECK(combine("ONE result x y z") == bytes('\x62', '\xff'));
  CHECK(server.encoding("result") == "raw");
}

TEST_CASE("BITOP of strings that are named many times is that of as many copies", "[bitmaps]") {
  BitServer server;
  TestClient client(server);
  base::Random random(5);
  constexpr uint64_t kMost = 30;
  const std::vector<std::string> names = {"x", "y", "z", "number", "none"};
  const std::vector<std::string> texts = {"\x0f\xff\x11", "\x3c", "\x55\xaa", "7"};
  for (size_t i = 0; i < texts.size(); ++i) {
    client.run_words({"SET", names[i], texts[i]});
    for (uint64_t copy = 0; copy < kMost; ++copy)
      client.run_words({"SET", names[i] + std::to_string(copy), texts[i]});
  }
  for (int round = 0; round < 300; ++round) {
    std::string repeated = "x";
    std::string copied = "x0";
    const uint64_t kinds = 1 + random.below(names.size());
    for (uint64_t i = 1, count = 8 + random.below(kMost - 8); i < count; ++i) {
      const std::string& name = names[random.below(kinds)];
      repeated += " " + name;
      copied += " " + name + std::to_string(i);
    }
    for (const char* operation : {"AND", "OR", "XOR", "DIFF", "DIFF1", "ANDOR", "ONE"}) {
      CAPTURE(operation, repeated);
      const auto result = [&](const std::string& keys) {
        return client.run("BITOP " + std::string(operation) + " result " + keys) +
               client.run("GET result");
      };
      CHECK(result(repeated) == result(copied));
    }
  }
}

TEST_CASE("BITOP may store over its sources, and over keys of any type", "[bitmaps]") {
  BitServer server;
  TestClient client(server);
  const std::string large(5000, 'a');
  client.run_words({"SET", "x", large});
  client.run("SET y 12345 EX 100");
  CHECK(client.run("BITOP XOR x x x") == integer(5000));
  CHECK(client.run("GET x") == bulk(std::string(5000, '\0')));
  CHECK(client.run("BITOP OR y y y") == integer(5));
  CHECK(client.run("GET y") == bulk("12345"));
  CHECK(server.encoding("y") == "raw");
  CHECK(server.ttl_ms("y") == -1);
  CHECK(client.run("BITOP NOT list y") == integer(5));
  CHECK(client.run("STRLEN list") == integer(5));
}

TEST_CASE("BITOP writes over a large result of the same size, but not while it is being sent",
          "[bitmaps]") {
  BitServer server;
  TestClient client(server);
  client.run_words({"SET", "x", std::string(100'000, 'x')});
  client.run_words({"SET", "result", std::string(100'000, 'r'), "EX", "100"});
  CHECK(client.run("BITOP OR result x none") == integer(100'000));
  CHECK(client.run("GET result") == bulk(std::string(100'000, 'x')));
  CHECK(server.ttl_ms("result") == -1);
  (*client).out().clear();
  CHECK(client.send("GET result\r\nBITOP XOR result x x\r\nGET result\r\n") ==
        bulk(std::string(100'000, 'x')) + integer(100'000) + bulk(std::string(100'000, '\0')));
}

TEST_CASE("BITOP removes the destination when all sources are empty", "[bitmaps]") {
  BitServer server;
  TestClient client(server);
  CHECK(client.run("BITOP AND result none") == integer(0));
  CHECK(server.events().empty());
  client.run("SET result old");
  CHECK(client.run("BITOP AND result none none") == integer(0));
  CHECK(client.run("GET result") == kNull);
  CHECK(server.events() == "set result, del result");
}

TEST_CASE("BITOP refuses what it cannot combine, and changes nothing then", "[bitmaps]") {
  BitServer server;
  TestClient client(server);
  client.run("SET x 1");
  client.run("SET result old");
  server.events();
  CHECK(client.run("BITOP NAND result list") == kSyntaxError);
  CHECK(client.run("BITOP NOT result list x") ==
        error("ERR BITOP NOT must be called with a single source key."));
  for (const std::string name : {"DIFF", "DIFF1", "ANDOR"}) {
    CHECK(client.run("BITOP " + name + " result x") ==
          error("ERR BITOP " + name + " must be called with at least two source keys."));
  }
  CHECK(client.run("BITOP AND result x list") == kWrongType);
  CHECK(client.run("GET result") == bulk("old"));
  CHECK(server.events().empty());
}

}  // namespace latchkey::tests
