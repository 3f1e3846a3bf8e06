#include <string>

#include "commands/groups.h"
#include "commands/server/latency_report.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

using namespace latchkey;
using server::LatencyMonitor;
using tests::ServerFixture;
using tests::TestClient;

namespace {

struct WatchedServer : ServerFixture {
  explicit WatchedServer(std::string_view settings = "latency-monitor-threshold 10\n")
      : ServerFixture({commands::latency_rows(), commands::string_rows(), commands::config_rows(),
                       commands::client_rows(), commands::debug_rows()},
                      settings) {}
  LatencyMonitor& monitor() { return server.latency_monitor(); }
};

}  // namespace

TEST_CASE("The latency monitor keeps the worst sample of a second, from the threshold on") {
  LatencyMonitor monitor;
  monitor.add("command", 1000, 1);
  CHECK(monitor.events().empty());
  monitor.set_threshold_ms(10);
  monitor.add("command", 9, 1);
  CHECK(monitor.find("command") == nullptr);
  monitor.add("command", 10, 1);
  monitor.add("command", 30, 1);
  monitor.add("command", 20, 1);
  monitor.add("command", 15, 2);
  const server::LatencyEvent& event = *monitor.find("command");
  REQUIRE(event.samples.size() == 2);
  CHECK(event.samples[0].latency_ms == 30);
  CHECK(event.samples[1].latency_ms == 15);
  CHECK(event.worst_ms == 30);
  for (int64_t second = 3; second < 300; ++second) monitor.add("command", 11, second);
  CHECK(event.samples.size() == LatencyMonitor::kMaxSamples);
  CHECK(event.samples.back().time_s == 299);
  CHECK(event.worst_ms == 30);
}

TEST_CASE("LATENCY LATEST, HISTORY and RESET tell and forget samples") {
  WatchedServer server;
  TestClient client(server);
  server.monitor().add("fork", 50, 7);
  server.monitor().add("command", 20, 5);
  server.monitor().add("command", 12, 6);
  using tests::array;
  using tests::bulk;
  using tests::integer;
  CHECK(client.run("LATENCY LATEST") ==
        array({array({bulk("command"), integer(6), integer(12), integer(20)}),
               array({bulk("fork"), integer(7), integer(50), integer(50)})}));
  CHECK(client.run("LATENCY HISTORY command") ==
        array({array({integer(5), integer(20)}), array({integer(6), integer(12)})}));
  CHECK(client.run("LATENCY HISTORY nothing") == array({}));
  CHECK(client.run("LATENCY RESET nothing fork") == integer(1));
  CHECK(client.run("LATENCY RESET") == integer(1));
  CHECK(client.run("LATENCY LATEST") == array({}));
}

TEST_CASE("A slow call is a sample of its kind of command") {
  WatchedServer server("latency-monitor-threshold 1\nenable-debug-command yes\n");
  TestClient client(server);
  client.run("GET key");
  CHECK(server.monitor().events().empty());
  client.run("DEBUG SLEEP 0.002");
  REQUIRE(server.monitor().find("command") != nullptr);
  CHECK(server.monitor().find("command")->worst_ms >= 2);
  CHECK(server.monitor().find("fast-command") == nullptr);
}

TEST_CASE("LATENCY GRAPH draws a column for each sample, with its age below") {
  LatencyMonitor monitor;
  monitor.set_threshold_ms(1);
  monitor.add("command", 5, 100);
  monitor.add("command", 20, 160);
  monitor.add("command", 10, 165);
  CHECK(commands::draw_latency("command", *monitor.find("command"), 170) ==
        "command - high 20 ms, low 5 ms (all time high 20 ms)\n" + std::string(80, '-') +
            "\n"
            " # \n"
            " | \n"
            " |o\n"
            "_||\n"
            "\n"
            "115\n"
            "m0s\n"
            " s \n");
  monitor.reset("command");
  constexpr int64_t kNow = 1'000'000;
  for (const int64_t age : {86'400, 86'399, 3'600, 3'599, 60, 59})
    monitor.add("command", 5, kNow - age);
  CHECK(commands::draw_latency("command", *monitor.find("command"), kNow)
            .ends_with("\n121515\nd3h9m9\n h m s\n"));
  WatchedServer server;
  TestClient client(server);
  CHECK(client.run("LATENCY GRAPH command") ==
        tests::error("ERR No samples available for event 'command'"));
}

TEST_CASE("LATENCY DOCTOR tells what was seen, and what can be done") {
  WatchedServer server;
  TestClient client(server);
  CHECK(client.run("LATENCY DOCTOR").find("Nothing took 10 ms or more") != std::string::npos);
  server.monitor().add("command", 20, 5);
  server.monitor().add("command", 10, 15);
  const std::string told = client.run("LATENCY DOCTOR");
  CHECK(
      told.find("1. command: 2 spikes, 15.0 ms on average (mean deviation 5.0 ms), one in 10.0 s; "
                "the worst ever took 20 ms.") != std::string::npos);
  CHECK(told.find("SLOWLOG GET") != std::string::npos);
  client.run("LATENCY RESET");
  client.run("CONFIG SET latency-monitor-threshold 0");
  CHECK(client.run("LATENCY DOCTOR").find("not being monitored") != std::string::npos);
}

TEST_CASE("LATENCY HISTOGRAM counts calls of the commands asked for") {
  WatchedServer server;
  TestClient client(server);
  client.run("SET a 1");
  client.run("SET b 1");
  client.run("CLIENT ID");
  client.run("CLIENT GETNAME");
  const std::string set = client.run("LATENCY HISTOGRAM nosuch SET");
  CHECK(set.starts_with("*2\r\n" + tests::bulk("set") + "*4\r\n" + tests::bulk("calls") +
                        tests::integer(2) + tests::bulk("histogram_usec")));
  CHECK(set.ends_with(tests::integer(2)));
  CHECK(client.run("LATENCY HISTOGRAM client").starts_with("*4\r\n"));
  CHECK(client.run("LATENCY HISTOGRAM client|id").starts_with("*2\r\n"));
  CHECK(client.run("LATENCY HISTOGRAM get") == "*0\r\n");
}
