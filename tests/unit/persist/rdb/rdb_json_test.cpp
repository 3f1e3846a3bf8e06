// JSON documents as payloads: of the reference, and damaged ones.
#include <string>

#include "commands/groups.h"
#include "persist/rows.h"
#include "unit/catch.h"
#include "unit/persist/rdb/rdb_bytes.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct JsonServer : ServerFixture {
  JsonServer()
      : ServerFixture({commands::json_rows(), commands::json_reading_rows(), commands::key_rows(),
                       commands::database_rows(), persist::dump_rows()}) {}
};

// The module's id without its version.
constexpr std::string_view kId = "078145e25238df912c";

// A payload with one text.
std::string body(std::string_view version, std::string_view text) {
  return from_hex(std::string(kId) + std::string(version)) + byte(5) + rdb_string(text) + byte(0);
}

std::string restore(TestClient& client, const std::string& payload) {
  return client.run_words({"RESTORE", "k", "0", rdb_dump(payload), "REPLACE"});
}

}  // namespace

TEST_CASE("A document is dumped as text, and restored", "[json][rdb]") {
  JsonServer server;
  TestClient client(server);
  const std::string text = R"({"a":[1,2.5,null,true],"b":{"c":"text"}})";
  client.run_words({"JSON.SET", "k", "$", text});
  const std::string reply = client.run("DUMP k");
  CHECK(reply.find(from_hex(std::string(kId) + "03") + byte(5) + rdb_string(text) + byte(0)) !=
        std::string::npos);
  CHECK(restore(client, body("03", text)) == kOk);
  CHECK(client.run("JSON.GET k") == bulk(text));
  CHECK(restore(client, body("02", text)) == kOk);
}

TEST_CASE("Documents that the reference dumped are read", "[json][rdb]") {
  JsonServer server;
  TestClient client(server);
  // Of Redis 8.6 with RedisJSON 8.8.
  CHECK(restore(client, body("04", from_hex("a26161d848430102036162a161636164"))) == kOk);
  CHECK(client.run("JSON.GET k") == bulk(R"({"a":[1,2,3],"b":{"c":"d"}})"));
  CHECK(restore(client, body("04", from_hex("d856509a9999999999b93f9a9999999999c93f"))) == kOk);
  CHECK(client.run("JSON.GET k") == bulk("[0.1,0.2]"));
}

TEST_CASE("Damaged documents are refused", "[json][rdb]") {
  JsonServer server;
  TestClient client(server);
  const std::string bad = error("ERR Bad data format");
  for (const char* text : {"", "{\"a\":", "[1] x", "1e999", "[\"\xff\"]", "{\"a\":1}}"})
    CHECK(restore(client, body("03", text)) == bad);
  for (const char* version : {"00", "01", "05"}) CHECK(restore(client, body(version, "1")) == bad);
  for (const char* bytes : {"d8", "9bffffffffffffffff", "6161ff", "0000"})
    CHECK(restore(client, body("04", from_hex(bytes))) == bad);
  CHECK(restore(client, body("03", std::string(5000, '[') + std::string(5000, ']'))) == bad);
  CHECK(restore(client, from_hex(std::string(kId) + "03") + byte(2) + byte(1) + byte(0)) == bad);
  CHECK(restore(client, from_hex(std::string(kId) + "03") + byte(5) + rdb_string("1")) == bad);
  CHECK(client.run("EXISTS k") == integer(0));
}

}  // namespace latchkey::tests
