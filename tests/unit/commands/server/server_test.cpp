#include <string>

#include "base/version.h"
#include "commands/groups.h"
#include "server/process/shutdown.h"
#include "unit/catch.h"
#include "unit/commands/server/debug_server.h"
#include "unit/server_fixture.h"

using namespace latchkey;
using tests::DebugServer;
using tests::ServerFixture;
using tests::TestClient;

TEST_CASE("MODULE lists what is built in and loads none, whether that is allowed or not") {
  constexpr std::string_view kRefused =
      "ERR MODULE command not allowed. If the enable-module-command option is set to \"local\", "
      "you "
      "can run it from a local connection, otherwise you need to set this option in the "
      "configuration file, and then restart the server.";
  ServerFixture careful({commands::module_rows()});
  TestClient stranger(careful);
  const auto module = [](std::string_view name, int version) {
    return tests::array({tests::bulk("name"), tests::bulk(name), tests::bulk("ver"),
                         tests::integer(version), tests::bulk("path"), tests::bulk(""),
                         tests::bulk("args"), tests::array({})});
  };
  // Their version is that of the Redis that this server says it is.
  const std::string version(base::kReferenceVersion);
  const size_t dot = version.find('.');
  const int number = 10'000 * std::stoi(version) + 100 * std::stoi(version.substr(dot + 1));
  CHECK(stranger.run("MODULE LIST") ==
        tests::array({module("vectorset", 1), module("bf", number), module("timeseries", number),
                      module("ReJSON", number)}));
  CHECK(stranger.run("MODULE LOAD /a.so") == tests::error(kRefused));
  ServerFixture open({commands::module_rows()}, "enable-module-command yes\n");
  TestClient client(open);
  CHECK(client.run("MODULE LOADEX /a.so ARGS a") ==
        tests::error("ERR Error loading the extension. Please check the server logs."));
  CHECK(client.run("MODULE UNLOAD vectorset") ==
        tests::error("ERR Error unloading module: the module can't be unloaded"));
  CHECK(client.run("MODULE UNLOAD a") ==
        tests::error("ERR Error unloading module: no such module with that name"));
}

TEST_CASE("SHUTDOWN takes the steps of those who asked, and replies nothing") {
  DebugServer server;
  int steps = 0;
  server.server.shutdown().on_exit([&] { ++steps; });
  TestClient client(server);
  CHECK(client.run("SHUTDOWN NOSAVE NOW").empty());
  CHECK(steps == 1);
  CHECK(client->has(server::kClientCloseAfterReply));
}

TEST_CASE("SHUTDOWN refuses what contradicts itself and what it cannot do") {
  DebugServer server;
  TestClient client(server);
  CHECK(client.run("SHUTDOWN SAVE NOSAVE") == tests::error("ERR syntax error"));
  CHECK(client.run("SHUTDOWN ABORT NOW") == tests::error("ERR syntax error"));
  CHECK(client.run("SHUTDOWN ABORT") == tests::error("ERR No shutdown in progress."));
}

TEST_CASE("While a script runs SHUTDOWN is refused, unless it saves nothing") {
  DebugServer server;
  TestClient client(server);
  constexpr std::string_view kBusy =
      "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
  server.server.set_busy(kBusy);
  for (const char* request : {"SHUTDOWN", "SHUTDOWN SAVE", "SHUTDOWN NOW", "SHUTDOWN FORCE"})
    CHECK(client.run(request) == tests::error(kBusy));
  CHECK(client.run("SHUTDOWN ABORT") == tests::error("ERR No shutdown in progress."));
  for (const char* request : {"SHUTDOWN x", "SHUTDOWN NOSAVE x", "SHUTDOWN NOSAVE SAVE"})
    CHECK(client.run(request) == tests::error("ERR syntax error"));
  CHECK(client.run("SHUTDOWN NOSAVE NOW").empty());
  CHECK(client->has(server::kClientCloseAfterReply));
}

TEST_CASE("SHUTDOWN goes no further than a preparation that fails, unless by force") {
  DebugServer server;
  std::vector<unsigned> asked;
  int steps = 0;
  server.server.shutdown().before_exit([&](unsigned flags) {
    asked.push_back(flags);
    return false;
  });
  server.server.shutdown().on_exit([&] { ++steps; });
  TestClient client(server);
  CHECK(client.run("SHUTDOWN SAVE") == tests::error("ERR Errors trying to SHUTDOWN. Check logs."));
  CHECK(steps == 0);
  CHECK_FALSE(server.server.stop_requested());
  CHECK(client.run("SHUTDOWN FORCE").empty());
  CHECK(steps == 1);
  CHECK(asked == std::vector<unsigned>{server::kShutdownSave, server::kShutdownForce});
}

TEST_CASE("SHUTDOWN saves nothing while the dataset is being loaded") {
  DebugServer server;
  std::vector<unsigned> asked;
  server.server.shutdown().before_exit([&](unsigned flags) {
    asked.push_back(flags);
    return true;
  });
  server.server.set_state(server::kStateLoading, true);
  TestClient client(server);
  client.run("SHUTDOWN SAVE");
  CHECK(asked == std::vector<unsigned>{server::kShutdownNosave});
}

TEST_CASE("TIME tells the clock's seconds and microseconds") {
  DebugServer server;
  server.clock.advance_us(1'000'042 - server.clock.wall_us() % 1'000'000);
  TestClient client(server);
  const int64_t seconds = server.clock.wall_us() / 1'000'000;
  CHECK(client.run("TIME") == tests::bulks({std::to_string(seconds), "42"}));
}

TEST_CASE("LOLWUT ends with the version, whatever it draws") {
  DebugServer server;
  TestClient client(server);
  CHECK(client.run("LOLWUT").ends_with("\nRedis ver. 8.6.3\n\r\n"));
  CHECK(client.run("LOLWUT VERSION 5 10 2").ends_with("\nRedis ver. 8.6.3\n\r\n"));
  CHECK(client.run("LOLWUT VERSION x") ==
        tests::error("ERR value is not an integer or out of range"));
}

TEST_CASE("DEBUG RESTART ends the server, which is to begin anew after the time that is said") {
  DebugServer server;
  TestClient client(server);
  int steps = 0;
  server.server.shutdown().on_exit([&] { ++steps; });
  CHECK(client.run("DEBUG RESTART -1").starts_with("-ERR value is out of range"));
  CHECK(client.run("DEBUG RESTART 2147483648").starts_with("-ERR value is out of range"));
  CHECK(client.run("DEBUG RESTART x") ==
        tests::error("ERR value is not an integer or out of range"));
  CHECK_FALSE(server.server.shutdown().restart_delay_ms());
  CHECK_FALSE(server.server.stop_requested());
  CHECK(steps == 0);
  CHECK(client.run("DEBUG RESTART 2147483647").empty());
  CHECK(server.server.shutdown().restart_delay_ms() == 2147483647);
  CHECK(server.server.stop_requested());
  CHECK(steps == 1);
}

TEST_CASE("DEBUG RESTART without a time is to begin anew at once") {
  DebugServer server;
  TestClient client(server);
  CHECK(client.run("DEBUG RESTART").empty());
  CHECK(server.server.shutdown().restart_delay_ms() == 0);
}

TEST_CASE("DEBUG RESTART goes no further than a shutdown that is refused") {
  DebugServer server;
  TestClient client(server);
  server.server.shutdown().before_exit([](unsigned) { return false; });
  CHECK(client.run("DEBUG RESTART") == tests::error("ERR Errors trying to SHUTDOWN. Check logs."));
  CHECK_FALSE(server.server.shutdown().restart_delay_ms());
  CHECK_FALSE(server.server.stop_requested());
}
