// Commands that would not do in a cluster are counted on a server that is no node of one.
#include "server/command/cluster_audit.h"

#include <string>
#include <string_view>

#include "unit/catch.h"
#include "unit/server_fixture.h"
#include "unit/testing/tested_server.h"

namespace latchkey::tests {

namespace {

struct AuditedServer : TestedServer {
  explicit AuditedServer(std::string_view ratio = "100")
      : TestedServer("cluster-compatibility-sample-ratio " + std::string(ratio) + "\n"),
        client(*this) {}
  // The count since the last call.
  uint64_t counted() {
    const uint64_t count = server.cluster_audit().count();
    server.cluster_audit().reset();
    return count;
  }
  TestClient client;
};

}  // namespace

TEST_CASE("A command whose keys are in several slots is not fit for a cluster", "[audit]") {
  AuditedServer server;
  TestClient& client = server.client;
  client.run("MSET a 1 b 2");
  CHECK(server.counted() == 1);
  client.run("MSET {a}1 1 {a}2 2");
  client.run("SET a 1");
  client.run("PING");
  CHECK(server.counted() == 0);
  client.run("MGET a b");
  client.run("DEL a b c");
  CHECK(client.run("INFO stats").find("\r\ncluster_incompatible_ops:2\r\n") != std::string::npos);
  client.run("CONFIG RESETSTAT");
  CHECK(client.run("INFO stats").find("\r\ncluster_incompatible_ops:0\r\n") != std::string::npos);
}

TEST_CASE("A transaction counts once, by the slots of all that it holds", "[audit]") {
  AuditedServer server;
  TestClient& client = server.client;
  for (const char* const second : {"b", "a"}) {
    client.run("MULTI");
    client.run("SET a 1");
    client.run("SET " + std::string(second) + " 1");
    client.run("SET " + std::string(second) + " 2");
    client.run("EXEC");
    CHECK(server.counted() == (second == std::string_view("b") ? 1 : 0));
  }
}

TEST_CASE("A script counts once, by the slots of all that it touches", "[audit]") {
  AuditedServer server;
  TestClient& client = server.client;
  const auto eval = [&](std::string_view script) {
    client.run_words({"EVAL", script, "1", "a"});
    return server.counted();
  };
  CHECK(eval("redis.call('set', KEYS[1], 1) redis.call('get', 'a')") == 0);
  CHECK(eval("redis.call('mget', 'a', 'b')") == 1);
  CHECK(eval("redis.call('mget', 'a', 'b') redis.call('mget', 'c', 'd')") == 1);
  // One that says nothing of itself may touch one slot after the other.
  CHECK(eval("redis.call('get', 'a') redis.call('get', 'b')") == 0);
  CHECK(eval("#!lua\nredis.call('get', 'a') redis.call('get', 'b')") == 1);
  CHECK(eval("#!lua\nredis.call('get', 'a') redis.call('ping') redis.call('set', 'a', 1)") == 0);
  CHECK(eval("redis.call('get', 'b')") == 0);
  CHECK(eval("redis.call('ping')") == 0);
}

TEST_CASE("Nothing is counted where nothing is looked at", "[audit]") {
  AuditedServer server("0");
  server.client.run("MSET a 1 b 2");
  CHECK(server.counted() == 0);
  CHECK(server.client.run("INFO stats").find("cluster_incompatible_ops") == std::string::npos);
}

}  // namespace latchkey::tests
