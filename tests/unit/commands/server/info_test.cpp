#include "server/observe/info.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>

#include "base/random.h"
#include "commands/groups.h"
#include "server/client/pause.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"
#include "unit/testing/tested_server.h"

using namespace latchkey;
using tests::ServerFixture;
using tests::TestClient;

namespace {

class InfoServer {
 public:
  explicit InfoServer(std::string_view settings = {})
      : server({commands::info_rows(), commands::config_rows(), commands::string_rows(),
                commands::string_range_rows(), commands::key_rows(), commands::list_rows(),
                commands::hash_rows(), commands::set_rows(), commands::sorted_set_rows(),
                commands::database_rows()},
               settings),
        client(server) {}

  std::string info(std::string_view sections = {}) {
    return client.run(sections.empty() ? "INFO" : "INFO " + std::string(sections));
  }
  // The value of a field; empty when it is not told.
  std::string field(std::string_view name, std::string_view sections = "everything") {
    const std::string text = info(sections);
    const std::string start = "\r\n" + std::string(name) + ":";
    const size_t found = text.find(start);
    if (found == std::string::npos) return {};
    const size_t value = found + start.size();
    return text.substr(value, text.find("\r\n", value) - value);
  }
  bool tells(std::string_view sections, std::string_view what) {
    return info(sections).find(what) != std::string::npos;
  }

  ServerFixture server;
  TestClient client;
};

}  // namespace

TEST_CASE("INFO names the reference's version and its own") {
  InfoServer server;
  CHECK(server.field("redis_version") == "8.6.3");
  CHECK(server.field("server_name") == "latchkey");
}

TEST_CASE("INFO tells command statistics only when asked for more than the default") {
  InfoServer server;
  server.client.run("SET name value");
  CHECK_FALSE(server.tells("", "# Commandstats"));
  CHECK_FALSE(server.tells("default", "# Commandstats"));
  CHECK(server.tells("all", "cmdstat_set:calls=1"));
  CHECK(server.tells("COMMANDstats", "cmdstat_set:calls=1"));
  CHECK_FALSE(server.tells("everything", "# Debug"));
  CHECK(server.tells("debug", "# Debug"));
}

TEST_CASE("INFO tells each of several sections once, in its own order") {
  InfoServer server;
  const std::string text = server.info("cpu Memory cpu nonsense");
  const size_t memory = text.find("# Memory");
  const size_t cpu = text.find("# CPU");
  CHECK(memory < cpu);
  CHECK(text.find("# CPU", cpu + 1) == std::string::npos);
  CHECK(server.info("nonsense") == tests::bulk(""));
}

TEST_CASE("INFO counts keys, deadlines, hits and misses") {
  InfoServer server;
  server.client.run("SET one 1");
  store::KeyRef two = server.server.database().find_for_write("two");
  server.server.database().set_string(two, "2", server.server.now_ms() + 5000);
  server.client.run("GET one");
  server.client.run("GET missing");
  CHECK(server.field("db0") == "keys=2,expires=1,avg_ttl=5000,subexpiry=0");
  CHECK(server.field("keyspace_hits") == "1");
  CHECK(server.field("keyspace_misses") == "1");
  server.server.advance_ms(5000);
  CHECK(server.client.run("GET two") == tests::kNull);
  CHECK(server.field("expired_keys") == "1");
}

TEST_CASE("CONFIG RESETSTAT starts the counters anew") {
  InfoServer server;
  server.client.run("SET one 1");
  server.client.run("GET missing");
  server.client.run("NOSUCH");
  CHECK(server.field("errorstat_ERR") == "count=1");
  CHECK(server.client.run("CONFIG RESETSTAT") == tests::kOk);
  CHECK(server.field("errorstat_ERR").empty());
  CHECK(server.field("total_error_replies") == "0");
  CHECK(server.field("keyspace_misses") == "0");
  CHECK(server.field("cmdstat_set").empty());
  CHECK(server.field("db0") == "keys=1,expires=0,avg_ttl=0,subexpiry=0");
}

TEST_CASE("INFO keysizes counts values by their sizes") {
  InfoServer server;
  TestClient& client = server.client;
  const auto sizes = [&](std::string_view name) { return server.field(name, "keysizes"); };
  CHECK(server.info("keysizes") == tests::bulk("# Keysizes\r\n"));
  client.run_words({"SET", "empty", ""});
  client.run("SET three abc");
  client.run("SET number 1234");
  client.run_words({"SET", "long", std::string(1024, 'x')});
  CHECK(sizes("db0_distrib_strings_sizes") == "0=1,2=1,4=1,1K=1");
  client.run("APPEND three defgh");
  client.run("SET number 12");
  client.run("DEL long");
  CHECK(sizes("db0_distrib_strings_sizes") == "0=1,2=1,8=1");

  client.run("RPUSH list a b c d e");
  client.run("HSET hash a 1 b 2");
  client.run("SADD set a");
  client.run("ZADD zset 1 a 2 b 3 c");
  CHECK(sizes("db0_distrib_lists_items") == "4=1");
  CHECK(sizes("db0_distrib_hashes_items") == "2=1");
  CHECK(sizes("db0_distrib_sets_items") == "1=1");
  CHECK(sizes("db0_distrib_zsets_items") == "2=1");
  client.run("RPUSH list f g h");
  client.run("SREM set a");
  client.run("RENAME zset other");
  client.run("ZADD other 4 d");
  client.run("COPY list copied");
  CHECK(sizes("db0_distrib_lists_items") == "8=2");
  CHECK(sizes("db0_distrib_sets_items").empty());
  CHECK(sizes("db0_distrib_zsets_items") == "4=1");
  client.run("SWAPDB 0 3");
  CHECK(sizes("db0_distrib_lists_items").empty());
  CHECK(sizes("db3_distrib_lists_items") == "8=2");
  client.run("FLUSHALL");
  CHECK(server.info("keysizes") == tests::bulk("# Keysizes\r\n"));
}

TEST_CASE("latencies are told per command while they are tracked") {
  InfoServer server;
  server.client.run("CONFIG SET latency-tracking no");
  server.client.run("SET one 1");
  CHECK(server.field("latency_percentiles_usec_set").empty());
  server.client.run("CONFIG SET latency-tracking yes");
  server.client.run_words({"CONFIG", "SET", "latency-tracking-info-percentiles", "50 99.9"});
  server.client.run("SET one 1");
  const std::string told = server.field("latency_percentiles_usec_set");
  CHECK(told.starts_with("p50="));
  CHECK(told.find(",p99.9=") != std::string::npos);
}

TEST_CASE("a server that meets too many error codes stops telling them apart") {
  server::Stats stats;
  size_t gone = 0;
  stats.on_errors_overflow = [&](server::Stats::ErrorCounts errors) { gone = errors.size(); };
  for (size_t i = 0; i <= server::Stats::kMaxErrorCodes; ++i)
    stats.count_error("E" + std::to_string(i) + " text");
  CHECK(gone == server::Stats::kMaxErrorCodes);
  CHECK(stats.errors.size() == 1);
  CHECK(stats.errors.begin()->first == "ERRORSTATS_DISABLED");
  stats.reset();
  stats.count_error("ERR text");
  CHECK(stats.errors.begin()->first == "ERR");
}

TEST_CASE("error codes that scripts make up may be bounded by themselves") {
  server::Stats stats;
  stats.bounds_script_errors = true;
  for (size_t i = 0; i < server::Stats::kMaxErrorCodes + 3; ++i)
    stats.count_error("E" + std::to_string(i) + " text", /*by_script=*/true);
  stats.count_error("ERR text");
  stats.count_error("E1 text", /*by_script=*/true);
  CHECK(stats.errors.at("ERRORSTATS_OVERFLOW") == 3);
  CHECK(stats.errors.at("ERR") == 1);
  CHECK(stats.errors.at("E1") == 2);
  CHECK(stats.errors.size() == server::Stats::kMaxErrorCodes + 2);
  stats.reset();
  CHECK(stats.bounds_script_errors);
}

TEST_CASE("bytes are told to people in the largest fitting unit") {
  CHECK(server::human_bytes(0) == "0B");
  CHECK(server::human_bytes(1023) == "1023B");
  CHECK(server::human_bytes(1024) == "1.00K");
  CHECK(server::human_bytes(1025) == "1.00K");
  CHECK(server::human_bytes(1536) == "1.50K");
  CHECK(server::human_bytes(1 << 20) == "1.00M");
  CHECK(server::human_bytes(3ull << 30) == "3.00G");
  CHECK(server::human_bytes(1ull << 40) == "1.00T");
  CHECK(server::human_bytes(1ull << 50) == "1.00P");
  CHECK(server::human_bytes(1ull << 60) == "1024.00P");
}

TEST_CASE("Fractions in INFO are rounded as printf() rounds them") {
  base::Random random(1);
  const auto check = [](double value, int decimals) {
    char expected[400];
    std::snprintf(expected, sizeof expected, "share:%.*f\r\n", decimals, value);
    server::InfoText text;
    text.field("share", value, decimals);
    REQUIRE(text.take() == expected);
  };
  for (const double value : {0.0, -0.0, 0.005, 0.015, 0.125, 0.375, 2.5, 99.995, 1e22, -1.005,
                             std::numeric_limits<double>::max()}) {
    check(value, 2);
  }
  for (int i = 0; i < 20'000; ++i) {
    const auto part = static_cast<double>(random.below(1'000'000));
    check(part / static_cast<double>(1 + random.below(1'000'000)), 2);
    check(part / 1000, 2);
    check(static_cast<double>(random.below(1 << 30)) + part / 1e6, 6);
  }
}

TEST_CASE("The time that commands have taken only grows") {
  InfoServer server;
  uint64_t before = 0;
  for (int i = 0; i < 20; ++i) {
    server.client.run("SET key value");
    const uint64_t ticks = server.server.server.stats().command_ticks;
    CHECK(ticks >= before);
    before = ticks;
  }
  CHECK(before > 0);
}

TEST_CASE("The text of INFO is whole, however long its fields are") {
  server::InfoText text;
  std::string expected = "# Sizes\r\n";
  text.title("Sizes");
  for (const size_t size : {0, 1, 8191, 8192, 100, 50'000, 3}) {
    const std::string value(size, 'v');
    text.field("size", size);
    text.field("value", value);
    expected += "size:" + std::to_string(size) + "\r\nvalue:" + value + "\r\n";
  }
  text.title("Numbers");
  text.field("lowest", std::numeric_limits<int64_t>::min());
  text.field("highest", std::numeric_limits<uint64_t>::max());
  text.percent("half", 50);
  text.bytes("used", 1536);
  expected +=
      "\r\n# Numbers\r\nlowest:-9223372036854775808\r\nhighest:18446744073709551615\r\n"
      "half:50.00%\r\nused:1536\r\nused_human:1.50K\r\n";
  CHECK(text.take() == expected);
}

TEST_CASE("INFO keysizes counts the bytes of collections where they are asked for") {
  InfoServer server("key-memory-histograms yes\n");
  TestClient& client = server.client;
  client.run("RPUSH list a");
  client.run_words({"RPUSH", "long", std::string(5000, 'x')});
  client.run("SET text abc");
  const std::string lists = server.field("db0_distrib_lists_sizes", "keysizes");
  CHECK(lists.find("4K=1") != std::string::npos);
  CHECK(std::count(lists.begin(), lists.end(), '=') == 2);
  CHECK(server.field("db0_distrib_strings_sizes", "keysizes") == "2=1");
  CHECK(server.field("db0_distrib_sets_sizes", "keysizes").empty());
  InfoServer plain;
  plain.client.run("RPUSH list a");
  CHECK(plain.field("db0_distrib_lists_sizes", "keysizes").empty());
  CHECK(plain.field("db0_distrib_lists_items", "keysizes") == "1=1");
}

TEST_CASE("INFO names who supervises the server, and where it listens") {
  InfoServer server(
      "supervised systemd\nport 6380\nbind 127.0.0.1 ::1\nunixsocket /tmp/no-such-socket\n");
  CHECK(server.field("process_supervised") == "systemd");
  CHECK(server.field("listener0") == "name=tcp,bind=127.0.0.1,bind=::1,port=6380");
  CHECK(server.field("listener1") == "name=unix,bind=/tmp/no-such-socket");
  CHECK(server.field("tcp_port") == "6380");
  CHECK(InfoServer("supervised upstart\n").field("process_supervised") == "upstart");
  CHECK(InfoServer("supervised auto\n").field("process_supervised") == "no");
  InfoServer none("port 0\n");
  CHECK(none.field("process_supervised") == "no");
  CHECK(none.field("listener0").empty());
  CHECK(none.field("listener1").empty());
}

TEST_CASE("INFO tells why clients are paused, and for how long") {
  using server::PauseControl;
  InfoServer server;
  PauseControl& pauses = server.server.server.pauses();
  CHECK(server.field("paused_reason") == "none");
  CHECK(server.field("paused_actions") == "none");
  CHECK(server.field("paused_timeout_milliseconds") == "0");
  const struct {
    PauseControl::Reason reason;
    const char* name;
  } rows[] = {{PauseControl::Reason::kClient, "client_pause"},
              {PauseControl::Reason::kShutdown, "shutdown_in_progress"},
              {PauseControl::Reason::kFailover, "failover_in_progress"},
              {PauseControl::Reason::kSlotHandoff, "slot_migration_in_progress"}};
  for (const auto& row : rows) {
    INFO(row.name);
    const int64_t now_ms = server.server.server.machine_ms();
    pauses.pause(row.reason, PauseControl::Kind::kWrites, now_ms + 1500);
    CHECK(server.field("paused_reason") == row.name);
    CHECK(server.field("paused_actions") == "write");
    CHECK(server.field("paused_timeout_milliseconds") == "1500");
    pauses.unpause(row.reason);
    CHECK(server.field("paused_reason") == "none");
  }
  // What holds more counts, and among the same what holds longer.
  const int64_t now_ms = server.server.server.machine_ms();
  pauses.pause(PauseControl::Reason::kClient, PauseControl::Kind::kWrites, now_ms + 3000);
  pauses.pause(PauseControl::Reason::kFailover, PauseControl::Kind::kWrites, now_ms + 2000);
  CHECK(server.field("paused_reason") == "client_pause");
  CHECK(server.field("paused_timeout_milliseconds") == "3000");
  // While all wait, nobody gets a reply.
  pauses.pause(PauseControl::Reason::kFailover, PauseControl::Kind::kAll, now_ms + 2000);
  CHECK(pauses.active().reason == PauseControl::Reason::kFailover);
  CHECK(pauses.active().kind == PauseControl::Kind::kAll);
  CHECK(pauses.active().left_ms == 2000);
}

TEST_CASE("INFO keyspace counts elements with deadlines as each release does") {
  tests::TestedServer valkey("emulate \"valkey 9.1\"\n");
  TestClient client(valkey);
  client.run("HSET h a 1 b 2");
  client.run("HEXPIRE h 100 FIELDS 1 a");
  CHECK(client.run("INFO keyspace")
            .find("db0:keys=1,expires=0,avg_ttl=0,keys_with_volatile_items=1\r\n") !=
        std::string::npos);
}
