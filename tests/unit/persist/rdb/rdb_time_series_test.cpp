// Time series as payloads: of the reference, and damaged ones.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"
#include "commands/groups.h"
#include "persist/rdb/dump_payload.h"
#include "persist/rows.h"
#include "unit/catch.h"
#include "unit/persist/rdb/rdb_bytes.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct SeriesServer : ServerFixture {
  SeriesServer()
      : ServerFixture({commands::time_series_rows(), commands::key_rows(),
                       commands::database_rows(), persist::dump_rows()}) {}
};

// Of Redis 8.6: TS.CREATE one CHUNK_SIZE 48 LABELS a b,
// TS.MADD one 100 1.5 one 103 2.5 one 109 2.5 one 120 2.5.
constexpr std::string_view kCompressed =
    "07814d20c1f9360f100905036f6e650200023002020240780400000000000004400204020102000200040000000000"
    "00000002010501610501620200020102300204023102813ff8000000000000024064024078020b0281400400000000"
    "00000201023205c30e30068d03f3ff1b2a00e01e0001000000";
// TS.CREATE two CHUNK_SIZE 48 ENCODING UNCOMPRESSED, TS.MADD two 5 1 two 6 2 two 7 3.
constexpr std::string_view kPlain =
    "07814d20c1f9360f1009050374776f0200023002010207040000000000000840020302010200020004000000000000"
    "000002000200020102050203023005c31a30010500e0030002f03f06e0030e03000040072004e0010001084000";

std::string restore(TestClient& client, std::string_view key, const std::string& body) {
  return client.run_words({"RESTORE", key, "0", rdb_dump(body), "REPLACE"});
}

// The body of what DUMP replies, without version and checksum.
std::string dumped(TestClient& client, std::string_view key) {
  const std::string reply = client.run("DUMP " + std::string(key));
  const size_t start = reply.find("\r\n") + 2;
  constexpr size_t kFooter = 10;
  return reply.substr(start, reply.size() - start - 2 - kFooter);
}

// A payload with the links between series, as files have them and DUMP leaves them out.
std::string linked(SeriesServer& server, std::string_view key) {
  return persist::make_dump(*server.database().find(key), /*compress=*/false, persist::kRdbVersion);
}
std::string restore_linked(TestClient& client, std::string_view key, const std::string& dump) {
  return client.run_words({"RESTORE", key, "0", dump});
}

// The parts of a payload.
std::string part(uint64_t number) {
  std::string bytes = byte(2) + byte(0x81);
  for (int shift = 56; shift >= 0; shift -= 8)
    bytes += byte(static_cast<int>(number >> shift & 255));
  return bytes;
}
std::string real_part(double number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return byte(4) + bytes;
}
std::string text_part(std::string_view text) {
  return byte(5) + rdb_string(text);
}

constexpr uint64_t kNegative = ~uint64_t{0};

// A series of Redis 8.6 with one plain chunk, part by part.
struct Payload {
  int version = 9;
  uint64_t retention = 0;
  uint64_t chunk_size = 48;
  uint64_t policy = 1;
  std::string source = part(0);
  uint64_t ignored_ms = 0;
  // Their number, and each of them.
  std::vector<std::string> rules;
  uint64_t told_size = 48;
  uint64_t told_count = 1;
  std::string chunk = number(5, 8) + number(0x4000000000000000, 8) + std::string(32, '\0');
  uint64_t labels = 0;

  std::string body() const {
    std::string body = byte(7) + from_hex("814d20c1f9360f10") + byte(version);
    body += text_part("k") + part(retention) + part(chunk_size) + part(0) + part(5);
    body += real_part(2) + part(1) + part(policy) + source + part(ignored_ms) + real_part(0);
    body += part(labels) + part(rules.size());
    for (const std::string& rule : rules) body += rule;
    body += part(1) + part(5) + part(told_count) + part(told_size) + text_part(chunk);
    return body + byte(0);
  }
};

// A rule into the series "to" up to what is special to its aggregation.
std::string rule_part(uint64_t bucket_ms, uint64_t align, uint64_t kind, uint64_t open_bucket) {
  return text_part("to") + part(bucket_ms) + part(align) + part(kind) + part(open_bucket);
}

std::string sample(int64_t timestamp, std::string_view value) {
  return array({integer(timestamp), status(value)});
}

constexpr std::string_view kBad = "-ERR Bad data format\r\n";

// What the series "to", which the rule leads to, shows as its newest.
std::string latest_by(const Payload& from) {
  SeriesServer server;
  TestClient client(server);
  Payload to;
  to.source = part(1) + text_part("from");
  CHECK(restore(client, "to", to.body()) == kOk);
  CHECK(restore(client, "from", from.body()) == kOk);
  return client.run("TS.GET to LATEST");
}

}  // namespace

TEST_CASE("Time series of the reference are read, and written as it writes them", "[time series]") {
  SeriesServer server;
  TestClient client(server);
  REQUIRE(restore(client, "one", from_hex(kCompressed)) == kOk);
  REQUIRE(restore(client, "two", from_hex(kPlain)) == kOk);
  CHECK(client.run("TS.REVRANGE one - + COUNT 2") ==
        array({array({integer(120), status("2.5")}), array({integer(109), status("2.5")})}));
  CHECK(client.run("TS.GET two") == array({integer(7), status("3")}));
  CHECK(client.run("TS.QUERYINDEX a=b") == bulks({"one"}));
  CHECK(dumped(client, "one") == from_hex(kCompressed));
  CHECK(dumped(client, "two") == from_hex(kPlain));
  CHECK(client.run("TS.ADD one 130 7") == integer(130));
  CHECK(client.run("TS.GET one") == array({integer(130), status("7")}));
}

TEST_CASE("A time series is refused or whole, whichever byte is another", "[time series]") {
  SeriesServer server;
  TestClient client(server);
  for (const std::string_view hex : {kCompressed, kPlain}) {
    const std::string body = from_hex(hex);
    for (size_t at = 10; at < body.size(); ++at) {
      for (const int changed : {0, 1, 0x7f, 0x80, 0xff}) {
        std::string damaged = body;
        damaged[at] = static_cast<char>(changed);
        if (restore(client, "k", damaged) != kOk) continue;
        // It can be used.
        client.run("TS.ADD k 5000 1 ON_DUPLICATE LAST");
        CHECK_FALSE(client.run("TS.RANGE k - + AGGREGATION twa 7 COUNT 5").starts_with("-"));
        client.run("TS.DEL k 0 110");
        CHECK(restore(client, "l", dumped(client, "k")) == kOk);
      }
      CHECK(restore(client, "k", body.substr(0, at)) != kOk);
    }
  }
}

TEST_CASE("The open bucket of every compaction goes with its series to another server",
          "[time series]") {
  struct Compaction {
    std::string aggregation;
    std::string open;    // of the samples before, as LATEST shows it
    std::string closed;  // with one more
  };
  // The bucket from 10 on has 3 and 7 when it is saved, and gets 5.
  const std::vector<Compaction> compactions = {{"min", "3", "3"},
                                               {"max", "7", "7"},
                                               {"sum", "10", "15"},
                                               {"avg", "5", "5"},
                                               {"count", "2", "3"},
                                               {"first", "3", "3"},
                                               {"last", "7", "5"},
                                               {"range", "4", "4"},
                                               {"std.p", "2", "1.632993161855452"},
                                               {"std.s", "2.8284271247461903", "2"},
                                               {"var.p", "4", "2.6666666666666665"},
                                               {"var.s", "8", "4"},
                                               {"countnan", "", ""},
                                               {"countall", "2", "3"}};
  SeriesServer server;
  TestClient client(server);
  REQUIRE(client.run("TS.CREATE from") == kOk);
  for (const Compaction& each : compactions) {
    REQUIRE(client.run("TS.CREATE " + each.aggregation) == kOk);
    REQUIRE(client.run("TS.CREATERULE from " + each.aggregation + " AGGREGATION " +
                       each.aggregation + " 10") == kOk);
  }
  REQUIRE(client.run("TS.MADD from 1 100 from 11 3 from 13 7").starts_with("*3\r\n:1\r\n"));
  std::vector<std::string> names = {"from"};
  for (const Compaction& each : compactions) names.push_back(each.aggregation);
  std::vector<std::string> bodies;
  for (const std::string& name : names) bodies.push_back(linked(server, name));

  // Whichever end of the links comes first.
  for (const bool source_first : {true, false}) {
    CAPTURE(source_first);
    SeriesServer other;
    TestClient reader(other);
    for (size_t i = 0; i < names.size(); ++i) {
      const size_t at = source_first ? i : names.size() - 1 - i;
      REQUIRE(restore_linked(reader, names[at], bodies[at]) == kOk);
    }
    for (const Compaction& each : compactions) {
      CAPTURE(each.aggregation);
      if (!each.open.empty())
        CHECK(reader.run("TS.GET " + each.aggregation + " LATEST") == sample(10, each.open));
      // What is open is not there without LATEST.
      CHECK(reader.run("TS.GET " + each.aggregation).find(integer(10)) == std::string::npos);
    }
    // As it is dumped again, before anything has changed.
    CHECK(linked(other, "from") == bodies[0]);
    CHECK(reader.run("TS.ADD from 16 5") == integer(16));
    CHECK(reader.run("TS.ADD from 21 1") == integer(21));
    for (const Compaction& each : compactions) {
      CAPTURE(each.aggregation);
      if (!each.closed.empty())
        CHECK(reader.run("TS.GET " + each.aggregation) == sample(10, each.closed));
    }
  }
}

TEST_CASE("The open bucket of a compaction by time-weighted average goes with its series",
          "[time series]") {
  SeriesServer server;
  TestClient client(server);
  REQUIRE(client.run("TS.CREATE from") == kOk);
  REQUIRE(client.run("TS.CREATE to") == kOk);
  REQUIRE(client.run("TS.CREATERULE from to AGGREGATION twa 10") == kOk);
  SECTION("the first of all") {
    client.run("TS.MADD from 2 4 from 6 8");
    SeriesServer other;
    TestClient reader(other);
    REQUIRE(restore_linked(reader, "to", linked(server, "to")) == kOk);
    REQUIRE(restore_linked(reader, "from", linked(server, "from")) == kOk);
    // Weighed from 2 on: 4 * 6 up to 6, and from there 2 * 8 up to 8, then 2 * 8 up to 10.
    CHECK(reader.run("TS.ADD from 8 8") == integer(8));
    CHECK(reader.run("TS.ADD from 14 8") == integer(14));
    CHECK(reader.run("TS.GET to") == sample(0, "7"));
  }
  SECTION("a later one") {
    client.run("TS.MADD from 5 10 from 15 10 from 17 20");
    SeriesServer other;
    TestClient reader(other);
    REQUIRE(restore_linked(reader, "from", linked(server, "from")) == kOk);
    REQUIRE(restore_linked(reader, "to", linked(server, "to")) == kOk);
    CHECK(linked(other, "from") == linked(server, "from"));
    // 5 * 10 up to 15, 2 * 15 up to 17, 3 * 20 up to 20.
    CHECK(reader.run("TS.ADD from 23 20") == integer(23));
    CHECK(reader.run("TS.GET to") == sample(10, "14"));
  }
}

TEST_CASE("A link whose other end is not there, or is something else, is left alone",
          "[time series]") {
  SeriesServer server;
  TestClient client(server);
  client.run("TS.CREATE from");
  client.run("TS.CREATE to");
  client.run("TS.CREATERULE from to AGGREGATION sum 10");
  client.run("TS.ADD from 1 1");
  const std::string from = linked(server, "from");
  const std::string to = linked(server, "to");
  SECTION("DUMP leaves links out") {
    const std::string unlinked = dumped(client, "from");
    client.run("FLUSHALL");
    REQUIRE(restore(client, "from", unlinked) == kOk);
    REQUIRE(restore_linked(client, "to", to) == kOk);
    client.run("TS.ADD from 11 1");
    CHECK(client.run("TS.GET to") == array({}));
    CHECK(client.run("TS.CREATERULE from to AGGREGATION sum 10") == kOk);
  }
  SECTION("the destination is a series that knows nothing of the rule") {
    client.run("FLUSHALL");
    client.run("TS.CREATE to");
    REQUIRE(restore_linked(client, "from", from) == kOk);
    CHECK(client.run("TS.ADD from 11 1") == integer(11));
    CHECK(client.run("TS.GET to") == array({}));
  }
  SECTION("the source is another series, without the rule") {
    client.run("FLUSHALL");
    client.run("TS.CREATE from");
    REQUIRE(restore_linked(client, "to", to) == kOk);
    client.run("TS.MADD from 1 1 from 11 1");
    CHECK(client.run("TS.GET to") == array({}));
    // So there is room for another rule.
    CHECK(client.run("TS.CREATERULE from to AGGREGATION sum 10") == kOk);
  }
  SECTION("the series has another name here") {
    client.run("FLUSHALL");
    REQUIRE(restore_linked(client, "from", from) == kOk);
    REQUIRE(restore_linked(client, "other", to) == kOk);
    CHECK(client.run("TS.ADD from 11 1") == integer(11));
    CHECK(client.run("TS.GET other") == array({}));
  }
  SECTION("a series is restored under the name of the other end") {
    client.run("FLUSHALL");
    REQUIRE(restore_linked(client, "to", from) == kOk);
    CHECK(client.run("TS.ADD to 11 1") == integer(11));
    CHECK(client.run("TS.GET to") == sample(11, "1"));
  }
}

TEST_CASE("A mean that was kept in place of a sum goes on as one", "[time series]") {
  SeriesServer server;
  TestClient client(server);
  Payload from;
  // Four samples have the mean 3; and where it is no mean the sum 3.
  const bool is_mean = GENERATE(true, false);
  from.rules = {rule_part(10, 0, 4, 10) + part(1) + real_part(3) + real_part(4) +
                part(is_mean ? 1 : 0)};
  Payload to;
  to.source = part(1) + text_part("from");
  REQUIRE(restore(client, "from", from.body()) == kOk);
  REQUIRE(restore(client, "to", to.body()) == kOk);
  CHECK(client.run("TS.GET to LATEST") == sample(10, is_mean ? "3" : "7.5E-1"));
  CHECK(client.run("TS.ADD from 19 8") == integer(19));
  CHECK(client.run("TS.GET to LATEST") == sample(10, is_mean ? "4" : "2.2"));
}

TEST_CASE("Versions 8 and 9 of a series are read, and in version 8 an open bucket has a value",
          "[time series]") {
  SeriesServer server;
  TestClient client(server);
  Payload payload;
  for (const int version : {7, 10}) {
    payload.version = version;
    CHECK(restore(client, "from", payload.body()) == kBad);
  }
  payload.version = 8;
  payload.rules = {rule_part(10, 0, 3, 10) + real_part(6)};
  CHECK(latest_by(payload) == sample(10, "6"));
  payload.rules = {rule_part(10, 0, 3, kNegative) + real_part(6)};
  CHECK(latest_by(payload) == sample(5, "2"));
  // In version 9 it says so itself.
  payload.version = 9;
  payload.rules = {rule_part(10, 0, 3, 10) + part(1) + real_part(6)};
  CHECK(latest_by(payload) == sample(10, "6"));
  payload.rules = {rule_part(10, 0, 3, 10) + part(0) + real_part(6)};
  CHECK(latest_by(payload) == sample(5, "2"));
}

TEST_CASE("A series with impossible parts is refused", "[time series]") {
  SeriesServer server;
  TestClient client(server);
  const auto reply = [&](auto change) {
    Payload payload;
    change(payload);
    return restore(client, "k", payload.body());
  };
  CHECK(reply([](Payload&) {}) == kOk);
  CHECK(client.run("TS.RANGE k - +") == array({sample(5, "2")}));

  CHECK(reply([](Payload& p) { p.retention = INT64_MAX; }) == kOk);
  CHECK(reply([](Payload& p) { p.retention = uint64_t{1} << 63; }) == kBad);
  CHECK(reply([](Payload& p) { p.ignored_ms = kNegative; }) == kBad);
  CHECK(reply([](Payload& p) { p.labels = 1; }) == kBad);
  for (const uint64_t size : {40, 47, 49, 1'048'584, 0})
    CHECK(reply([&](Payload& p) { p.chunk_size = size; }) == kBad);
  for (const uint64_t size : {48, 56, 1'048'576})
    CHECK(reply([&](Payload& p) { p.chunk_size = size; }) == kOk);
  // From "none" to "sum".
  for (const uint64_t policy : {0, 6}) CHECK(reply([&](Payload& p) { p.policy = policy; }) == kOk);
  CHECK(reply([](Payload& p) { p.policy = 7; }) == kBad);

  for (const uint64_t size : {40, 56})
    CHECK(reply([&](Payload& p) { p.told_size = size; }) == kBad);
  CHECK(reply([](Payload& p) {
          p.chunk += "12";
          p.told_size += 2;
        }) == kBad);
  CHECK(reply([](Payload& p) { p.told_count = 4; }) == kBad);
}

TEST_CASE("A rule with impossible parts is refused", "[time series]") {
  SeriesServer server;
  TestClient client(server);
  const auto reply = [&](const std::string& rule) {
    Payload payload;
    payload.rules = {rule};
    return restore(client, "k", payload.body());
  };
  const std::string sum = part(1) + real_part(6);
  CHECK(reply(rule_part(10, 3, 3, 0) + sum) == kOk);
  CHECK(reply(rule_part(1, 0, 3, 0) + sum) == kOk);
  CHECK(reply(rule_part(0, 0, 3, 0) + sum) == kBad);
  CHECK(reply(rule_part(kNegative, 0, 3, 0) + sum) == kBad);
  CHECK(reply(rule_part(10, kNegative, 3, 0) + sum) == kBad);
  CHECK(reply(rule_part(10, 0, 0, 0) + sum) == kBad);
  CHECK(reply(rule_part(10, 0, 15, 0) + sum) == kOk);
  CHECK(reply(rule_part(10, 0, 16, 0) + sum) == kBad);
  // -1 is no bucket, -2 nothing.
  CHECK(reply(rule_part(10, 0, 3, kNegative) + sum) == kOk);
  CHECK(reply(rule_part(10, 0, 3, kNegative - 1) + sum) == kBad);
  // Each aggregation has parts of its own.
  const std::string value = part(1) + real_part(6);
  CHECK(reply(rule_part(10, 0, 1, 0) + value + real_part(1)) == kOk);
  CHECK(reply(rule_part(10, 0, 1, 0) + value) == kBad);
  CHECK(reply(rule_part(10, 0, 4, 0) + value + real_part(1) + part(0)) == kOk);
  CHECK(reply(rule_part(10, 0, 4, 0) + value + real_part(1)) == kBad);
  CHECK(reply(rule_part(10, 0, 6, 0) + value + part(0)) == kOk);
  CHECK(reply(rule_part(10, 0, 6, 0) + value) == kBad);
  CHECK(reply(rule_part(10, 0, 9, 0) + value + real_part(1) + part(1)) == kOk);
  CHECK(reply(rule_part(10, 0, 9, 0) + value + real_part(1)) == kBad);
  const std::string weighted =
      value + part(5) + real_part(1) + part(0) + part(10) + part(0) + part(5) + part(1) + part(1);
  CHECK(reply(rule_part(10, 0, 13, 0) + weighted + part(0)) == kOk);
  CHECK(reply(rule_part(10, 0, 13, 0) + weighted) == kBad);
}

TEST_CASE("A mean whose sum is too large goes with its series to another server", "[time series]") {
  SeriesServer server;
  TestClient client(server);
  client.run("TS.CREATE from");
  client.run("TS.CREATE to");
  client.run("TS.CREATERULE from to AGGREGATION avg 10");
  const std::string large = "1.7976931348623157E308";
  client.run("TS.MADD from 1 " + large + " from 2 " + large);
  SeriesServer other;
  TestClient reader(other);
  REQUIRE(restore_linked(reader, "to", linked(server, "to")) == kOk);
  REQUIRE(restore_linked(reader, "from", linked(server, "from")) == kOk);
  CHECK(linked(other, "from") == linked(server, "from"));
  CHECK(reader.run("TS.GET to LATEST") == sample(0, large));
  CHECK(reader.run("TS.ADD from 3 " + large) == integer(3));
  CHECK(reader.run("TS.ADD from 11 1") == integer(11));
  CHECK(reader.run("TS.GET to") == sample(0, large));
}

}  // namespace latchkey::tests
