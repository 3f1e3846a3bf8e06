#include <string>

#include "commands/groups.h"
#include "persist/rows.h"
#include "unit/catch.h"
#include "unit/persist/rdb/rdb_bytes.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct DumpServer : ServerFixture {
  explicit DumpServer(std::string_view settings = {})
      : ServerFixture(
            {commands::hash_deadline_rows(), commands::hash_rows(), commands::key_rows(),
             commands::list_rows(), commands::set_rows(), commands::sorted_set_rows(),
             commands::stream_group_rows(), commands::stream_read_rows(), commands::stream_rows(),
             commands::expire_rows(), commands::sorted_set_range_rows(), commands::string_rows(),
             commands::object_rows(), commands::debug_rows(), persist::dump_rows()},
            settings) {}
};

// The bytes of a reply that is a bulk string.
std::string payload(const std::string& reply) {
  const size_t start = reply.find("\r\n") + 2;
  return reply.substr(start, reply.size() - start - 2);
}

std::string restore(TestClient& client, std::string_view key, const std::string& dump) {
  return client.run_words({"RESTORE", key, "0", dump});
}

}  // namespace

TEST_CASE("A value of any size can be dumped and restored", "[dump]") {
  DumpServer server;
  TestClient client(server);
  const size_t members = GENERATE(1, 300, 2000, 30'000);
  for (size_t i = 0; i < members; ++i)
    client.run_words({"ZADD", "set", std::to_string(i), "member-" + std::to_string(i * 7)});
  const std::string dump = payload(client.run("DUMP set"));
  CHECK(restore(client, "again", dump) == kOk);
  CHECK(client.run("ZRANGE again 0 -1 WITHSCORES") == client.run("ZRANGE set 0 -1 WITHSCORES"));
  CHECK(client.run("DUMP again") == bulk(dump));
}

TEST_CASE("DUMP gives the bytes that the reference gives", "[dump]") {
  DumpServer server;
  TestClient client(server);
  const auto dumped = [&](std::string_view key) {
    return payload(client.run_words({"DUMP", key}));
  };
  client.run("SET text hello");
  CHECK(dumped("text") == from_hex("000568656c6c6f0c00a804ebb69f1ebe43"));
  client.run("SET byte 12");
  CHECK(dumped("byte") == from_hex("00c00c0c00f75ccc91a62e229c"));
  client.run("SET word 300");
  CHECK(dumped("word") == from_hex("00c12c010c005e345532"
                                   "9fa8c259"));
  client.run("SET negative -70000");
  CHECK(dumped("negative") == from_hex("00c290eefeff0c00e303eabbe9c1b649"));
  client.run("SET large 12345678901");
  CHECK(dumped("large") == from_hex("000b31323334353637383930310c00fb386617dd3dfb59"));
  client.run("SET repeated " + std::string(100, 'a'));
  CHECK(dumped("repeated") == from_hex("00c30940640161"
                                       "61e0570001"
                                       "61610c0023d581c74a476c38"));
  client.run("RPUSH list a b 3");
  CHECK(dumped("list") == from_hex("1201020f0f0000000300816102816202"
                                   "0301ff0c0017d7d2bdaa2fce01"));
  client.run("HSET hash a 1 b 2");
  CHECK(dumped("hash") == from_hex("10111100000004008161020101816202"
                                   "0201ff0c00f53657ac7577e8d3"));
  client.run("SADD set a b");
  CHECK(dumped("set") == from_hex("140d0d000000020081610281"
                                  "6202ff0c00a84583074e16a194"));
  client.run("SADD integers 1 2 3");
  CHECK(dumped("integers") == from_hex("0b0e02000000030000000100020003000c006e7468229744d352"));
  client.run("ZADD sorted 1 a 2.5 b");
  CHECK(dumped("sorted") ==
        from_hex("1114140000000400816102010181620283322e3504ff0c001f3a5a640c6e479e"));
  CHECK(client.run("DUMP missing") == kNull);
}

TEST_CASE("RESTORE makes the key that was dumped", "[dump]") {
  DumpServer server;
  TestClient client(server);
  client.run("ZADD sorted 1 a 2.5 b");
  const std::string dump = payload(client.run("DUMP sorted"));
  server.events();
  server.changes();
  CHECK(restore(client, "copy", dump) == kOk);
  CHECK(client.run("ZRANGE copy 0 -1 WITHSCORES") == bulks({"a", "1", "b", "2.5"}));
  CHECK(server.events() == "restore copy");
  CHECK(server.changes() == 1);
  CHECK(client.run("PTTL copy") == integer(-1));
}

TEST_CASE("RESTORE leaves a key alone unless it may replace it", "[dump]") {
  DumpServer server;
  TestClient client(server);
  client.run("SET name value");
  const std::string dump = payload(client.run("DUMP name"));
  client.run("RPUSH list a");
  CHECK(restore(client, "list", dump) == error("BUSYKEY Target key name already exists."));
  CHECK(client.run_words({"RESTORE", "list", "0", dump, "REPLACE"}) == kOk);
  CHECK(client.run("GET list") == bulk("value"));
}

TEST_CASE("RESTORE takes time to live and absolute deadline", "[dump]") {
  DumpServer server;
  TestClient client(server);
  client.run("SET name value");
  const std::string dump = payload(client.run("DUMP name"));
  CHECK(client.run_words({"RESTORE", "a", "1000", dump}) == kOk);
  CHECK(client.run("PTTL a") == integer(1000));
  const std::string later = std::to_string(server.now_ms() + 5000);
  CHECK(client.run_words({"RESTORE", "b", later, dump, "ABSTTL"}) == kOk);
  CHECK(client.run("PTTL b") == integer(5000));
  CHECK(client.run_words({"RESTORE", "c", "-1", dump}) ==
        error("ERR Invalid TTL value, must be >= 0"));
}

TEST_CASE("RESTORE with a deadline that has passed removes what was there", "[dump]") {
  DumpServer server;
  TestClient client(server);
  client.run("SET name value");
  const std::string dump = payload(client.run("DUMP name"));
  server.events();
  server.changes();
  CHECK(client.run_words({"RESTORE", "other", "1", dump, "ABSTTL"}) == kOk);
  CHECK(server.changes() == 0);
  CHECK(server.database().environment().figures.expired_keys == 1);
  CHECK(client.run_words({"RESTORE", "name", "1", dump, "ABSTTL", "REPLACE"}) == kOk);
  CHECK(server.database().environment().figures.expired_keys == 2);
  CHECK(server.events() == "del name");
  CHECK(client.run("EXISTS name other") == integer(0));
}

TEST_CASE("RESTORE sets idle time or frequency, whichever is kept", "[dump]") {
  DumpServer server;
  TestClient client(server);
  client.run("SET name value");
  const std::string dump = payload(client.run("DUMP name"));
  CHECK(client.run_words({"RESTORE", "idle", "0", dump, "IDLETIME", "5000"}) == kOk);
  CHECK(client.run("OBJECT IDLETIME idle") == integer(5000));
  CHECK(client.run_words({"RESTORE", "used", "0", dump, "FREQ", "7"}) == kOk);
  CHECK(client.run("OBJECT IDLETIME used") == integer(0));
  CHECK(client.run_words({"RESTORE", "x", "0", dump, "FREQ", "256"}) ==
        error("ERR Invalid FREQ value, must be >= 0 and <= 255"));
  CHECK(client.run_words({"RESTORE", "x", "0", dump, "IDLETIME", "-1"}) ==
        error("ERR Invalid IDLETIME value, must be >= 0"));
  CHECK(client.run_words({"RESTORE", "x", "0", dump, "FREQ", "1", "IDLETIME", "1"}) ==
        error("ERR syntax error"));

  DumpServer counting("maxmemory-policy allkeys-lfu");
  TestClient other(counting);
  CHECK(other.run_words({"RESTORE", "used", "0", dump, "FREQ", "7"}) == kOk);
  CHECK(other.run("OBJECT FREQ used") == integer(7));
}

TEST_CASE("RESTORE refuses payloads that are not intact", "[dump]") {
  DumpServer server;
  TestClient client(server);
  client.run("SET name value");
  const std::string dump = payload(client.run("DUMP name"));
  const std::string wrong = error("ERR DUMP payload version or checksum are wrong");
  CHECK(restore(client, "a", "") == wrong);
  CHECK(restore(client, "a", "short") == wrong);
  for (size_t i = 0; i < dump.size(); ++i) {
    std::string damaged = dump;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    CHECK(restore(client, "a", damaged) == wrong);
  }
  CHECK(client.run("EXISTS a") == integer(0));
}

TEST_CASE("DEBUG turns off the check of a payload's checksum, and on again", "[dump]") {
  DumpServer server("enable-debug-command yes");
  server.server.add_debug_subcommands(persist::dump_debug_subcommands());
  TestClient client(server);
  client.run("SET name value");
  std::string dump = payload(client.run("DUMP name"));
  dump.back() = static_cast<char>(dump.back() ^ 1);
  const std::string wrong = error("ERR DUMP payload version or checksum are wrong");
  CHECK(restore(client, "a", dump) == wrong);
  CHECK(client.run("DEBUG SET-SKIP-CHECKSUM-VALIDATION 1") == kOk);
  CHECK(restore(client, "a", dump) == kOk);
  CHECK(client.run("GET a") == bulk("value"));
  CHECK(client.run("DEBUG SET-SKIP-CHECKSUM-VALIDATION x") ==
        error("ERR value is not an integer or out of range"));
  CHECK(client.run("DEBUG SET-SKIP-CHECKSUM-VALIDATION 0") == kOk);
  CHECK(restore(client, "b", dump) == wrong);
}

}  // namespace latchkey::tests
