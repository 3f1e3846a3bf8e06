#include <string>

#include "commands/groups.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

class HyperLogLogServer : public ServerFixture {
 public:
  explicit HyperLogLogServer(std::string_view settings = {})
      : ServerFixture({commands::hyperloglog_rows(), commands::expire_rows(), commands::list_rows(),
                       commands::string_rows(), commands::transaction_rows()},
                      settings) {}
  std::string encoding(std::string_view key) {
    return std::string(database().find(key, store::Keyspace::kPeek)->encoding_name());
  }
};

constexpr std::string_view kNotOne = "-WRONGTYPE Key is not a valid HyperLogLog string value.\r\n";
constexpr std::string_view kCorrupt = "-INVALIDOBJ Corrupted HLL object detected\r\n";
constexpr std::string_view kEmpty("HYLL\1\0\0\0\0\0\0\0\0\0\0\0\x7f\xff", 18);

}  // namespace

TEST_CASE("PFADD makes a key, and says whether anything has changed", "[hyperloglog]") {
  HyperLogLogServer server;
  TestClient client(server);
  CHECK(client.run("PFADD key") == integer(1));
  CHECK(client.run("PFADD key") == integer(0));
  CHECK(client.run("PFADD key a b c") == integer(1));
  CHECK(client.run("PFADD key a b c") == integer(0));
  CHECK(server.events() == "pfadd key, pfadd key");
  CHECK(server.changes() == 4);
  CHECK(server.encoding("key") == "raw");
  CHECK(client.run("PFCOUNT key") == integer(3));
}

TEST_CASE("PFCOUNT keeps its count with the key, which is a change without an event",
          "[hyperloglog]") {
  HyperLogLogServer server;
  TestClient client(server);
  TestClient other(server);
  client.run("PFADD key a");
  server.changes();
  server.events();
  client.run("WATCH key");
  CHECK(other.run("PFCOUNT key") == integer(1));
  CHECK(server.changes() == 1);
  CHECK(other.run("PFCOUNT key") == integer(1));
  CHECK(server.changes() == 0);
  client.run("MULTI");
  CHECK(client.run("EXEC") == kNullArray);
  CHECK(server.events().empty());
  CHECK(client.run("GET key").substr(5 + 8, 8) == std::string_view("\1\0\0\0\0\0\0\0", 8));
}

TEST_CASE("A string that has been used as a HyperLogLog is one that changes", "[hyperloglog]") {
  HyperLogLogServer server;
  TestClient client(server);
  for (const std::string_view request :
       {"PFADD key", "PFCOUNT key", "PFMERGE key", "PFDEBUG ENCODING key"}) {
    client.run_words({"SET", "key", kEmpty});
    CHECK(server.encoding("key") == "embstr");
    client.run(request);
    CHECK(server.encoding("key") == "raw");
  }
}

TEST_CASE("PFADD leaves the deadline alone", "[hyperloglog]") {
  HyperLogLogServer server;
  TestClient client(server);
  client.run("PFADD key a");
  client.run("EXPIRE key 100");
  for (int i = 0; i < 3'000; ++i) client.run("PFADD key " + std::to_string(i));
  CHECK(client.run("PFDEBUG ENCODING key") == status("dense"));
  CHECK(client.run("TTL key") == integer(100));
}

TEST_CASE("PFCOUNT of several keys counts their union", "[hyperloglog]") {
  HyperLogLogServer server;
  TestClient client(server);
  client.run("PFADD one a b c");
  client.run("PFADD two c d");
  client.run("PFDEBUG TODENSE two");
  CHECK(client.run("PFCOUNT one two none") == integer(4));
  CHECK(client.run("PFCOUNT none") == integer(0));
}

TEST_CASE("PFMERGE makes the union of its keys, dense if one of them is", "[hyperloglog]") {
  HyperLogLogServer server;
  TestClient client(server);
  client.run("PFADD one a b c");
  client.run("PFADD two c d");
  server.events();
  CHECK(client.run("PFMERGE to one two none") == kOk);
  CHECK(client.run("PFCOUNT to") == integer(4));
  CHECK(client.run("PFDEBUG ENCODING to") == status("sparse"));
  client.run("PFDEBUG TODENSE two");
  CHECK(client.run("PFMERGE one two") == kOk);
  CHECK(client.run("PFDEBUG ENCODING one") == status("dense"));
  CHECK(client.run("PFCOUNT one") == integer(4));
  CHECK(client.run("PFMERGE new") == kOk);
  CHECK(client.run("PFCOUNT new") == integer(0));
  CHECK(server.events() == "pfadd to, pfadd one, pfadd new");
}

TEST_CASE("Merging gives the same with and without eight registers at a time", "[hyperloglog]") {
  HyperLogLogServer server("hll-sparse-max-bytes 0");
  TestClient client(server);
  for (int i = 0; i < 2'000; ++i) {
    client.run("PFADD one " + std::to_string(i));
    client.run("PFADD two " + std::to_string(i * 2));
  }
  CHECK(client.run("PFDEBUG SIMD OFF") == status("disabled"));
  client.run("PFMERGE slowly one two");
  CHECK(client.run("PFDEBUG SIMD on") == status("enabled"));
  client.run("PFMERGE quickly one two");
  CHECK(client.run("GET slowly") == client.run("GET quickly"));
  CHECK(client.run("PFDEBUG SIMD maybe") == error("ERR Argument must be ON or OFF"));
}

TEST_CASE("hll-sparse-max-bytes says when a key becomes dense", "[hyperloglog]") {
  HyperLogLogServer server("hll-sparse-max-bytes 20");
  TestClient client(server);
  client.run("PFADD key");
  CHECK(client.run("PFDEBUG ENCODING key") == status("sparse"));
  client.run("PFADD key a b c");
  CHECK(client.run("PFDEBUG ENCODING key") == status("dense"));
  CHECK(client.run("PFDEBUG DECODE key") == error("ERR HLL encoding is not sparse"));
}

TEST_CASE("What is no HyperLogLog is refused", "[hyperloglog]") {
  HyperLogLogServer server;
  TestClient client(server);
  client.run("SET text abc");
  client.run("SET number 12345");
  client.run("RPUSH list a");
  client.run("PFADD key a");
  for (const std::string key : {"text", "number"}) {
    CHECK(client.run("PFADD " + key + " a") == kNotOne);
    CHECK(client.run("PFCOUNT " + key) == kNotOne);
    CHECK(client.run("PFCOUNT key " + key) == kNotOne);
    CHECK(client.run("PFMERGE " + key + " key") == kNotOne);
    CHECK(client.run("PFDEBUG ENCODING " + key) == kNotOne);
  }
  CHECK(client.run("PFADD list a") == kWrongType);
  CHECK(client.run("PFMERGE key list") == kWrongType);
  CHECK(client.run("PFDEBUG FOO none") == error("ERR The specified key does not exist"));
  CHECK(client.run("PFDEBUG foo key") == error("ERR Unknown PFDEBUG subcommand 'foo'"));
}

TEST_CASE("Corrupt values are found out", "[hyperloglog]") {
  HyperLogLogServer server;
  TestClient client(server);
  std::string bytes(kEmpty.substr(0, kEmpty.size() - 1));
  bytes[15] = '\x80';
  client.run_words({"SET", "key", bytes});
  client.run("PFADD good a");
  CHECK(client.run("PFADD key a") == kCorrupt);
  CHECK(client.run("PFCOUNT key") == kCorrupt);
  CHECK(client.run("PFCOUNT good key") == kCorrupt);
  CHECK(client.run("PFMERGE good key") == kCorrupt);
  CHECK(client.run("PFDEBUG GETREG key") == kCorrupt);
  CHECK(client.run("PFDEBUG DECODE key") == kCorrupt);
  CHECK(client.run("PFDEBUG TODENSE key") == kCorrupt);
  CHECK(client.run("GET key") == bulk(bytes));
}

TEST_CASE("PFDEBUG shows runs and registers", "[hyperloglog]") {
  HyperLogLogServer server;
  TestClient client(server);
  client.run("PFADD key a b c");
  CHECK(client.run("PFDEBUG DECODE key") == bulk("Z:8436 v:1,1 Z:4274 v:2,1 Z:3068 v:1,1 Z:603"));
  const std::string registers = client.run("PFDEBUG GETREG key");
  CHECK(registers.substr(0, 8) == "*16384\r\n");
  CHECK(registers.find(":2\r\n") == 8 + 4 * (8436 + 1 + 4274));
  CHECK(client.run("PFDEBUG ENCODING key") == status("dense"));
  CHECK(client.run("PFDEBUG TODENSE key") == integer(0));
}

TEST_CASE("PFSELFTEST passes", "[hyperloglog]") {
  HyperLogLogServer server;
  TestClient client(server);
  CHECK(client.run("PFSELFTEST") == kOk);
}

}  // namespace latchkey::tests
