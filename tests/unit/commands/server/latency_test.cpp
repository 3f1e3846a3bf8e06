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

TEST_CASE("LATENCY LATEST of Valkey tells sums and counts, too") {
  WatchedServer server("latency-monitor-threshold 10\nemulate \"valkey 8.1\"\n");
  TestClient client(server);
  server.monitor().add("command", 20, 5);
  server.monitor().add("command", 12, 5);
  server.monitor().add("command", 9, 5);
  server.monitor().add("command", 11, 6);
  using tests::array;
  using tests::bulk;
  using tests::integer;
  CHECK(client.run("LATENCY LATEST") == array({array({bulk("command"), integer(6), integer(11),
                                                      integer(20), integer(43), integer(3)})}));
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
            "   \n"
            "115\n"
            "m0s\n"
            " s \n");
  // Heights are rounded down: 7 of 9 ms are 9.3 of the 12 steps.
  monitor.reset("command");
  monitor.add("command", 10, 150);
  monitor.add("command", 17, 155);
  monitor.add("command", 19, 160);
  CHECK(commands::draw_latency("command", *monitor.find("command"), 170) ==
        "command - high 19 ms, low 10 ms (all time high 19 ms)\n" + std::string(80, '-') +
            "\n"
            " _#\n"
            " ||\n"
            " ||\n"
            "_||\n"
            "   \n"
            "211\n"
            "050\n"
            "sss\n");
  // Half of the span begins the third row, and a little less does not.
  monitor.reset("command");
  monitor.add("command", 10, 150);
  monitor.add("command", 109, 155);
  monitor.add("command", 110, 160);
  monitor.add("command", 210, 165);
  CHECK(commands::draw_latency("command", *monitor.find("command"), 170) ==
        "command - high 210 ms, low 10 ms (all time high 210 ms)\n" + std::string(80, '-') +
            "\n"
            "   #\n"
            "  _|\n"
            " #||\n"
            "_|||\n"
            "    \n"
            "2115\n"
            "050s\n"
            "sss \n");
  monitor.reset("command");
  monitor.add("command", 10, 165);
  CHECK(commands::draw_latency("command", *monitor.find("command"), 170) ==
        "command - high 10 ms, low 10 ms (all time high 10 ms)\n" + std::string(80, '-') +
            "\n \n \n \n_\n \n5\ns\n");
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

TEST_CASE("LATENCY DOCTOR has advice for each kind of event, and each once") {
  WatchedServer server(
      "latency-monitor-threshold 10\nslowlog-log-slower-than 10001\nhz 10\nmaxmemory 1000000\n"
      "maxmemory-eviction-tenacity 20\nappendfsync everysec\n");
  TestClient client(server);
  const auto told = [&](const char* event) {
    client.run("LATENCY RESET");
    server.monitor().add(event, 20, 5);
    const std::string text = client.run("LATENCY DOCTOR");
    const std::string start = "\nWhat can be done:\n\n";
    return text.substr(text.find(start) + start.size());
  };
  const auto has = [](const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  };
  const std::string leaves_out =
      "- The slow log leaves out some of these calls; CONFIG SET slowlog-log-slower-than 10000 has "
      "it show them.\n";
  const std::string elements = "- Values of very many elements take long to free.";
  CHECK(has(told("fast-command"), leaves_out + "- SLOWLOG GET names"));
  CHECK_FALSE(has(told("fast-command"), elements));
  CHECK(has(told("command"), elements));
  CHECK(has(told("command"), leaves_out));
  client.run("CONFIG SET slowlog-log-slower-than 10000");
  CHECK_FALSE(has(told("command"), leaves_out));
  client.run("CONFIG SET slowlog-log-slower-than -1");
  CHECK(has(told("command"), leaves_out));
  CHECK(has(told("expire-cycle"),
            "CONFIG SET hz 50 looks for them more often, in smaller "
            "portions; it is 10 now."));
  CHECK(has(told("expire-cycle"), elements));
  client.run("CONFIG SET hz 101");
  CHECK(has(told("expire-cycle"), "CONFIG SET hz 500 looks"));
  for (const char* const event : {"eviction-cycle", "eviction-del"}) {
    CHECK(has(told(event), "- Memory is at maxmemory, 1000000 bytes, so"));
    CHECK(has(told(event), "maxmemory-eviction-tenacity, 20 now"));
  }
  CHECK_FALSE(has(told("eviction-cycle"), elements));
  CHECK(has(told("eviction-del"), elements));
  client.run(
      "CONFIG SET lazyfree-lazy-user-del yes lazyfree-lazy-eviction yes lazyfree-lazy-expire yes");
  CHECK_FALSE(has(told("eviction-del"), elements));
  client.run("CONFIG SET lazyfree-lazy-expire no");
  CHECK(has(told("eviction-del"), elements));
  CHECK(told("fork").starts_with("- A fork copies the page tables"));
  CHECK(has(told("aof-fsync-always"), "- Writing or syncing the append-only file waited"));
  CHECK(has(told("aof-write"), "- CONFIG SET no-appendfsync-on-rewrite yes leaves the disk"));
  client.run("CONFIG SET no-appendfsync-on-rewrite yes");
  CHECK_FALSE(has(told("aof-write"), "no-appendfsync-on-rewrite"));
  client.run("CONFIG SET appendfsync always");
  CHECK(has(told("aof-write"), "- appendfsync is always: each request waits for the disk."));
  server.monitor().add("aof-fsync-always", 20, 5);
  const std::string both = client.run("LATENCY DOCTOR");
  CHECK(both.find("appendfsync is always") == both.rfind("appendfsync is always"));
}

TEST_CASE("LATENCY GRAPH draws what the monitor has seen") {
  WatchedServer server;
  TestClient client(server);
  server.monitor().add("command", 10, server.now_ms() / 1000 - 1);
  server.monitor().add("command", 30, server.now_ms() / 1000);
  const std::string graph = client.run("LATENCY GRAPH command");
  CHECK(graph.find("command - high 30 ms, low 10 ms (all time high 30 ms)\n" +
                   std::string(80, '-') + "\n #\n |\n |\n_|\n  \n10\nss\n") != std::string::npos);
}

TEST_CASE("LATENCY HISTOGRAM without names tells of all commands that were called") {
  WatchedServer server;
  TestClient client(server);
  client.run("SET a 1");
  client.run("CLIENT ID");
  const std::string all = client.run("LATENCY HISTOGRAM");
  CHECK(all.starts_with("*4\r\n"));
  CHECK(all.find(tests::bulk("set")) != std::string::npos);
  CHECK(all.find(tests::bulk("client|id")) != std::string::npos);
}
