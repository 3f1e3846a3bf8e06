// HOTKEYS: which keys cost most.
#include <string>

#include "commands/groups.h"
#include "server/observe/hot_keys.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct HotServer : ServerFixture {
  HotServer()
      : ServerFixture({commands::hotkeys_rows(), commands::string_batch_rows(),
                       commands::string_rows(), commands::transaction_rows()}),
        client(*this) {}
  std::string run(std::string_view line) { return client.run(line); }
  TestClient client;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("HOTKEYS counts the bytes of each key's requests and replies", "[hotkeys]") {
  HotServer server;
  CHECK(server.run("HOTKEYS GET") == kNull);
  REQUIRE(server.run("HOTKEYS START METRICS 1 NET") == kOk);
  server.run("SET key value");  // 33 bytes, and 5 of the reply
  server.run("SET key value");
  server.run("MSET other 1 third 2");  // 50 bytes and 5, for two keys
  const std::string told = server.run("HOTKEYS GET");
  CHECK(has(told, bulk("tracking-active") + integer(1)));
  CHECK(has(told, bulk("by-net-bytes") + "*6\r\n" + bulk("key") + integer(76)));
  CHECK(has(told, bulk("other") + integer(27)));
  CHECK(has(told, bulk("third") + integer(27)));
  CHECK(has(told, bulk("net-bytes-all-commands-all-slots") + integer(131)));
  CHECK(has(told, bulk("selected-slots") + array({array({integer(0), integer(16383)})})));
  CHECK_FALSE(has(told, "by-cpu-time-us"));
}

TEST_CASE("HOTKEYS counts the commands of a transaction one by one", "[hotkeys]") {
  HotServer server;
  server.run("HOTKEYS START METRICS 1 NET");
  server.run("MULTI");
  server.run("SET a 1");
  server.run("SET b 1");
  server.run("SET a 1");
  server.run("EXEC");
  CHECK(
      has(server.run("HOTKEYS GET"), "*4\r\n" + bulk("a") + integer(64) + bulk("b") + integer(32)));
}

TEST_CASE("HOTKEYS ends when it is stopped or its time is over", "[hotkeys]") {
  HotServer server;
  CHECK(server.run("HOTKEYS STOP") == kNull);
  server.run("HOTKEYS START METRICS 1 NET DURATION 2");
  server.run("SET a 1");
  CHECK(server.run("HOTKEYS START METRICS 1 NET") ==
        error("ERR hotkey tracking session already in progress"));
  CHECK(server.run("HOTKEYS RESET") ==
        error("ERR hotkey tracking session in progress, stop tracking first"));
  server.advance_ms(3000);
  server.run("SET late 1");
  const std::string told = server.run("HOTKEYS GET");
  CHECK(has(told, bulk("tracking-active") + integer(0)));
  CHECK(has(told, bulk("collection-duration-ms") + integer(2000)));
  CHECK(has(told, bulk("a")));
  CHECK_FALSE(has(told, bulk("late")));
  CHECK(server.run("HOTKEYS STOP") == kNull);
  CHECK(server.run("HOTKEYS RESET") == kOk);
  CHECK(server.run("HOTKEYS GET") == kNull);
}

TEST_CASE("HOTKEYS START says what is wrong with its words", "[hotkeys]") {
  HotServer server;
  const auto refused = [&](const std::string& words, const std::string& text) {
    return server.run("HOTKEYS START " + words) == error("ERR " + text);
  };
  CHECK(refused("COUNT 5", "METRICS parameter is required"));
  CHECK(refused("METRICS 0 CPU", "METRICS count must be > 0 and <= 2"));
  CHECK(refused("METRICS 1 GPU", "METRICS no valid metrics passed. Supported: CPU|NET"));
  CHECK(refused("METRICS 2 GPU COUNT 5", "METRICS no valid metrics passed. Supported: CPU|NET"));
  CHECK(refused("METRICS 2 CPU COUNT 5", "syntax error"));
  CHECK(refused("METRICS 2 CPU", "METRICS count does not match number of metric types provided"));
  CHECK(refused("METRICS 2 CPU CPU", "METRICS CPU defined more than once!"));
  CHECK(refused("METRICS 1 CPU NET", "syntax error"));
  CHECK(refused("METRICS 1 CPU COUNT 65", "COUNT must be between 1 and 64"));
  CHECK(refused("METRICS 1 CPU DURATION 0", "DURATION must be between 1 and 1000000"));
  CHECK(refused("METRICS 1 CPU SAMPLE 0", "SAMPLE ratio must be positive"));
  CHECK(refused("METRICS 1 CPU SLOTS 1 0", "SLOTS parameter cannot be used in non-cluster mode"));
}

TEST_CASE("HOTKEYS forgets the cheap keys when there are too many", "[hotkeys]") {
  HotServer server;
  server.run("HOTKEYS START METRICS 1 NET COUNT 1");
  for (int i = 0; i < 50; ++i) server.run("SET hot 1");
  for (size_t i = 0; i < 3 * server::HotKeys::kMaxKeys; ++i)
    server.run("SET key" + std::to_string(i) + " 1");
  CHECK(has(server.run("HOTKEYS GET"), bulk("by-net-bytes") + "*2\r\n" + bulk("hot")));
}

}  // namespace latchkey::tests
