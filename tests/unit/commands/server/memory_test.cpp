#include <string>

#include "all_commands.h"
#include "base/jemalloc.h"
#include "unit/catch.h"
#include "unit/commands/server/debug_server.h"
#include "unit/server_fixture.h"

using namespace latchkey;
using tests::DebugServer;
using tests::ServerFixture;
using tests::TestClient;

TEST_CASE("MEMORY USAGE counts the bytes of a key and its value") {
  DebugServer server;
  TestClient client(server);
  client.run("SET name value");
  CHECK(client.run("MEMORY USAGE missing") == tests::kNull);
  CHECK(client.run("MEMORY USAGE name").starts_with(":"));
  CHECK(client.run("MEMORY USAGE name SAMPLES -1") == tests::error("ERR syntax error"));
}

TEST_CASE("A small value of any type takes some bytes, and not many") {
  ServerFixture server({});
  add_all_commands(server.server);
  TestClient client(server);
  const std::vector<std::string> words = {"SET k 1",
                                          "SET k text",
                                          "RPUSH k a 1",
                                          "SADD k 1 2",
                                          "SADD k a",
                                          "HSET k f v",
                                          "ZADD k 1 a",
                                          "XADD k 1-1 f v",
                                          "PFADD k a",
                                          "VADD k VALUES 1 1 a",
                                          "JSON.SET k $ {\"a\":1}",
                                          "TS.ADD k 1 1",
                                          "ARSET k 0 a"};
  for (const std::string& word : words) {
    INFO(word);
    client.run("DEL k");
    REQUIRE_FALSE(client.run(word).starts_with("-"));
    const int64_t bytes = std::stoll(client.run("MEMORY USAGE k").substr(1));
    CHECK(bytes > 0);
    CHECK(bytes < 20'000);
  }
}

TEST_CASE("MEMORY STATS tells of each database that holds keys") {
  DebugServer server;
  TestClient client(server, 3);
  client.run("SET name value");
  const std::string told = client.run("MEMORY STATS");
  CHECK(told.starts_with("%"));
  CHECK(told.find("$4\r\ndb.0\r\n%2\r\n") != std::string::npos);
  CHECK(told.find("$10\r\nkeys.count\r\n:1\r\n") != std::string::npos);
  // Tables have no second one beside them while they grow.
  for (const std::string name : {"aof.buffer", "overhead.db.hashtable.rehashing",
                                 "db.dict.rehashing.count", "cluster.links"}) {
    INFO(name);
    CHECK(told.find(tests::bulk(name) + ":0\r\n") != std::string::npos);
  }
}

TEST_CASE("MEMORY USAGE takes a number of samples that is not negative") {
  DebugServer server;
  TestClient client(server);
  client.run("SET name value");
  const std::string bytes = client.run("MEMORY USAGE name");
  CHECK(client.run("MEMORY USAGE name SAMPLES 0") == bytes);
  CHECK(client.run("MEMORY USAGE name SAMPLES 5") == bytes);
  CHECK(client.run("MEMORY USAGE name SAMPLES x") ==
        tests::error("ERR value is not an integer or out of range"));
  CHECK(client.run("MEMORY USAGE name SAMPLES") == tests::error("ERR syntax error"));
  CHECK(client.run("MEMORY USAGE name SAMPLE 5") == tests::error("ERR syntax error"));
}

TEST_CASE("MEMORY DOCTOR tells of memory that was needed once, and of clients that take much") {
  DebugServer server;
  TestClient client(server);
  TestClient slow(server);
  constexpr size_t kMegabyte = size_t{1} << 20;
  client.run_words({"SET", "kept", std::string(8 * kMegabyte, 'x')});
  client.run_words({"SET", "gone", std::string(64 * kMegabyte, 'x')});
  server.tick();
  client.run("DEL gone");
  slow->out().append(std::string(kMegabyte, 'x'));
  server.tick();
  const std::string told = client.run("MEMORY DOCTOR");
  INFO(told);
  CHECK(told.find("\r\nWorth a look:\n\n * ") != std::string::npos);
  CHECK(told.find(" * Peak memory: the server once used ") != std::string::npos);
  CHECK(told.find(" are resident. MEMORY PURGE gives back pages that are empty.\n\n") !=
        std::string::npos);
  CHECK(told.find(" * Clients: the buffers of 2 take ") != std::string::npos);
  slow.take_output();
  CHECK(client.run("MEMORY DOCTOR").find(" * Clients: ") == std::string::npos);
}

TEST_CASE("MEMORY MALLOC-STATS and PURGE say when the allocator has neither") {
  DebugServer server;
  TestClient client(server);
  if (mallctl == nullptr) {
    CHECK(client.run("MEMORY MALLOC-STATS") ==
          tests::bulk("Stats not supported for the current allocator"));
    CHECK(client.run("MEMORY PURGE") == tests::error("ERR Error purging dirty pages"));
    return;
  }
  CHECK(client.run("MEMORY MALLOC-STATS").find("jemalloc statistics") != std::string::npos);
  CHECK(client.run("MEMORY PURGE") == tests::kOk);
}
