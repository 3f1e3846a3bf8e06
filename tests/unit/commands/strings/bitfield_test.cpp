#include <optional>
#include <string>

#include "unit/catch.h"
#include "unit/commands/string_server.h"

namespace latchkey::tests {

namespace {

constexpr std::string_view kBadType =
    "-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 "
    "is.\r\n";
constexpr std::string_view kBadOffset = "-ERR bit offset is not an integer or out of range\r\n";
constexpr std::string_view kNoInteger = "-ERR value is not an integer or out of range\r\n";
constexpr std::string_view kSyntaxError = "-ERR syntax error\r\n";

struct FieldServer : StringServer {
  FieldServer() {
    server.commands().add(commands::bitfield_rows());
    put_list("list");
  }
};

// Replies of fields, a missing one standing for one that did not fit.
std::string fields(std::initializer_list<std::optional<int64_t>> values) {
  std::string text = "*" + std::to_string(values.size()) + "\r\n";
  for (const auto& value : values) text += value ? integer(*value) : std::string(kNull);
  return text;
}

}  // namespace

TEST_CASE("BITFIELD reads numbers of any width from any offset", "[bitfield]") {
  FieldServer server;
  TestClient client(server);
  client.run_words({"SET", "row", "\x01\xfe"});
  CHECK(client.run("BITFIELD row GET u16 0 GET i16 0 GET u1 7 GET i1 7 GET i3 6") ==
        fields({510, 510, 1, -1, 3}));
  CHECK(client.run("BITFIELD row GET u8 #1 GET i4 #2 GET u63 0 GET i64 3") ==
        fields({254, -1, 71776119061217280, 1148417904979476480}));
  CHECK(client.run("BITFIELD row GET u8 800") == fields({0}));
  CHECK(client.run("BITFIELD none GET i64 0") == fields({0}));
  CHECK(client.run("BITFIELD none") == fields({}));
  CHECK(client.run("STRLEN none") == integer(0));
}

TEST_CASE("BITFIELD SET replies with the old number and INCRBY with the new", "[bitfield]") {
  FieldServer server;
  TestClient client(server);
  CHECK(client.run("BITFIELD row SET u8 0 255 SET u8 0 7 INCRBY u8 0 3 GET u8 0") ==
        fields({0, 255, 10, 10}));
  CHECK(client.run("BITFIELD row SET i64 5 -1 GET i64 5 GET i8 0") ==
        fields({4611686018427387904, -1, 15}));
  CHECK(client.run("STRLEN row") == integer(9));
}

TEST_CASE("Numbers that do not fit wrap around, saturate or fail", "[bitfield]") {
  FieldServer server;
  TestClient client(server);
  CHECK(client.run("BITFIELD a SET i8 0 128 GET i8 0 SET i8 0 -129 GET i8 0 INCRBY i8 0 1") ==
        fields({0, -128, -128, 127, -128}));
  CHECK(client.run("BITFIELD b SET u8 0 256 INCRBY u8 0 -1 INCRBY u8 0 2") == fields({0, 255, 1}));
  CHECK(client.run("BITFIELD c OVERFLOW SAT SET i8 0 128 SET i8 0 -129 GET i8 0 SET u8 0 -1 "
                   "GET u8 0 INCRBY u8 0 -1000 INCRBY u8 0 1000") ==
        fields({0, 127, -128, 128, 255, 0, 255}));
  CHECK(client.run("BITFIELD d OVERFLOW FAIL SET u4 0 16 SET u4 0 15 INCRBY u4 0 1 SET i4 4 -9 "
                   "INCRBY i4 4 -8 INCRBY i4 4 -1 OVERFLOW WRAP INCRBY i4 4 -1") ==
        fields({std::nullopt, 0, std::nullopt, std::nullopt, -8, std::nullopt, 7}));
}

TEST_CASE("The widest fields keep to their limits", "[bitfield]") {
  FieldServer server;
  TestClient client(server);
  CHECK(client.run("BITFIELD i SET i64 0 9223372036854775807 INCRBY i64 0 1 OVERFLOW SAT "
                   "INCRBY i64 0 -1 OVERFLOW FAIL INCRBY i64 0 -9223372036854775808") ==
        fields({0, INT64_MIN, INT64_MIN, std::nullopt}));
  CHECK(client.run("BITFIELD u SET u63 0 -1 GET u63 0 INCRBY u63 0 1 INCRBY u63 0 "
                   "-9223372036854775808 OVERFLOW SAT INCRBY u63 0 9223372036854775807 "
                   "INCRBY u63 0 9223372036854775807 INCRBY u63 0 -9223372036854775808") ==
        fields({0, INT64_MAX, 0, 0, INT64_MAX, INT64_MAX, 0}));
}

TEST_CASE("BITFIELD counts the fields that change, or all when the string grows", "[bitfield]") {
  FieldServer server;
  TestClient client(server);
  client.run("BITFIELD row SET u8 0 0 SET u8 8 0");
  CHECK(server.events() == "setbit row");
  CHECK(server.changes() == 2);
  client.run("BITFIELD row SET u8 0 0 INCRBY u8 8 0");
  CHECK(server.events().empty());
  client.run("BITFIELD row SET u8 0 5 INCRBY u8 8 0 SET u8 0 6");
  CHECK(server.events() == "setbit row");
  CHECK(server.changes() == 2);
  client.run("BITFIELD row OVERFLOW FAIL SET u8 0 256 SET u8 800 256");
  CHECK(server.events().empty());
  CHECK(server.changes() == 1);
  CHECK(client.run("STRLEN row") == integer(101));
}

TEST_CASE("BITFIELD reads all of its words before it looks for the key", "[bitfield]") {
  FieldServer server;
  TestClient client(server);
  for (const std::string words : {"GET", "GET u8", "SET u8 0", "INCRBY u8 0", "OVERFLOW", "FETCH"})
    CHECK(client.run("BITFIELD list " + words) == kSyntaxError);
  for (const std::string type : {"u0", "u64", "i65", "U8", "u", "8", "u08", "i+8"})
    CHECK(client.run("BITFIELD list GET " + type + " 0") == kBadType);
  for (const std::string offset : {"-1", "x", "#-1", "#", "#x", "4294967296", "#536870912"})
    CHECK(client.run("BITFIELD list GET u8 " + offset) == kBadOffset);
  CHECK(client.run("BITFIELD list SET u8 0 x") == kNoInteger);
  CHECK(client.run("BITFIELD list OVERFLOW NEVER") == error("ERR Invalid OVERFLOW type specified"));
  CHECK(client.run("BITFIELD row SET u8 0 1 GET u8 x") == kBadOffset);
  CHECK(client.run("STRLEN row") == integer(0));
  CHECK(client.run("BITFIELD list") == kWrongType);
  CHECK(client.run("BITFIELD list SET u8 0 1") == kWrongType);
}

TEST_CASE("BITFIELD works on the text of an integer, and leaves it one while it only reads",
          "[bitfield]") {
  FieldServer server;
  TestClient client(server);
  client.run("SET number 12345 EX 10");
  CHECK(client.run("BITFIELD number OVERFLOW SAT GET u8 0") == fields({'1'}));
  CHECK(server.encoding("number") == "int");
  CHECK(client.run("BITFIELD number SET u8 0 65") == fields({'1'}));
  CHECK(client.run("GET number") == bulk("A2345"));
  CHECK(server.encoding("number") == "raw");
  CHECK(server.ttl_ms("number") == 10'000);
}

TEST_CASE("BITFIELD_RO reads only", "[bitfield]") {
  FieldServer server;
  TestClient client(server);
  client.run("SET row 1");
  const std::string refused = error("ERR BITFIELD_RO only supports the GET subcommand");
  CHECK(client.run("BITFIELD_RO row OVERFLOW SAT GET u8 0 GET i4 #0") == fields({'1', 3}));
  CHECK(client.run("BITFIELD_RO row SET u8 0 1") == refused);
  CHECK(client.run("BITFIELD_RO list INCRBY u8 0 1") == refused);
  CHECK(client.run("BITFIELD_RO row SET u8 0 1 GET x 0") == kBadType);
  CHECK(client.run("BITFIELD_RO list GET u8 0") == kWrongType);
  CHECK(client.run("BITFIELD_RO none GET u8 0") == fields({0}));
}

}  // namespace latchkey::tests
