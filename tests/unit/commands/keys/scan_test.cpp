
#include <map>
#include <set>
#include <string>

#include "base/random.h"
#include "commands/groups.h"
#include "commands/keys/scan_cursor.h"
#include "server/expiry.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct ScanFixture : ServerFixture {
  ScanFixture()
      : ServerFixture({commands::database_rows(), commands::expire_rows(), commands::key_rows(),
                       commands::scan_rows(), commands::string_rows()}) {}

  void populate(TestClient& client, int count, const std::string& prefix = "key:") {
    for (int i = 0; i < count; ++i) client.run_words({"SET", prefix + std::to_string(i), "value"});
  }
};

// The bulk strings of a reply, in order.
std::vector<std::string> bulks_of(const std::string& reply) {
  std::vector<std::string> found;
  for (size_t at = reply.find('$'); at != std::string::npos; at = reply.find('$', at)) {
    const size_t size = std::stoul(reply.substr(at + 1));
    const size_t start = reply.find("\r\n", at) + 2;
    found.push_back(reply.substr(start, size));
    at = start + size;
  }
  return found;
}

// Goes through all keys; `between` runs after each call.
template <typename Between>
std::map<std::string, int> scan_all(TestClient& client, const std::string& options,
                                    Between&& between) {
  std::map<std::string, int> seen;
  std::string cursor = "0";
  do {
    const auto words = bulks_of(client.run("SCAN " + cursor + options));
    cursor = words.at(0);
    for (size_t i = 1; i < words.size(); ++i) ++seen[words[i]];
    between();
  } while (cursor != "0");
  return seen;
}
std::map<std::string, int> scan_all(TestClient& client, const std::string& options = "") {
  return scan_all(client, options, [] {});
}

}  // namespace

TEST_CASE("SCAN gives every key once while nothing changes", "[scan]") {
  ScanFixture server;
  TestClient client(server);
  CHECK(client.run("SCAN 0") == array({bulk("0"), array({})}));
  server.populate(client, 1000);
  for (const char* options :
       {"", " COUNT 1", " COUNT 7", " COUNT 5000", " MATCH *", " TYPE string", " TYPE STRING"}) {
    const auto seen = scan_all(client, options);
    CHECK(seen.size() == 1000);
    for (const auto& [key, times] : seen) CHECK(times == 1);
  }
}

TEST_CASE("SCAN asks for about COUNT keys a call", "[scan]") {
  ScanFixture server;
  TestClient client(server);
  server.populate(client, 2000);
  const auto words = bulks_of(client.run("SCAN 0 COUNT 100"));
  CHECK(words.size() > 100);
  CHECK(words.size() < 130);
}

TEST_CASE("SCAN gives what was there all the time, whatever comes and goes", "[scan]") {
  ScanFixture server;
  TestClient client(server);
  const bool growing = GENERATE(true, false);
  server.populate(client, 500, "lasting:");
  if (!growing) server.populate(client, 5000, "passing:");
  int step = 0;
  const auto seen = scan_all(client, " COUNT 5", [&] {
    for (int i = 0; i < 40; ++i, ++step) {
      const std::string key = "passing:" + std::to_string(step);
      if (growing) {
        if (step < 5000) client.run_words({"SET", key, "1"});
      } else {
        client.run_words({"DEL", key});
      }
    }
  });
  for (int i = 0; i < 500; ++i) CHECK(seen.count("lasting:" + std::to_string(i)) == 1);
}

TEST_CASE("SCAN keeps its guarantee while the table breathes at random", "[scan]") {
  ScanFixture server;
  TestClient client(server);
  base::Random random(7);
  server.populate(client, 200, "lasting:");
  for (int round = 0; round < 20; ++round) {
    const auto seen = scan_all(client, " COUNT 3", [&] {
      const uint64_t changes = random.below(200);
      const bool adds = random.below(2) == 0;
      for (uint64_t i = 0; i < changes; ++i) {
        const std::string key = "passing:" + std::to_string(random.below(3000));
        adds ? client.run_words({"SET", key, "1"}) : client.run_words({"DEL", key});
      }
    });
    for (int i = 0; i < 200; ++i) REQUIRE(seen.count("lasting:" + std::to_string(i)) == 1);
  }
}

TEST_CASE("SCAN filters by pattern and by type", "[scan]") {
  ScanFixture server;
  TestClient client(server);
  server.populate(client, 100, "a:");
  server.populate(client, 100, "b:");
  CHECK(scan_all(client, " MATCH a:*").size() == 100);
  CHECK(scan_all(client, " MATCH a:7").size() == 1);
  CHECK(scan_all(client, " MATCH b:?").size() == 10);
  CHECK(scan_all(client, " TYPE list").empty());
  CHECK(scan_all(client, " TYPE nonsense").empty());
  CHECK(scan_all(client, " MATCH a:* MATCH b:* TYPE list TYPE string").size() == 100);
}

TEST_CASE("SCAN removes the expired keys it meets and does not give them", "[scan]") {
  ScanFixture server;
  TestClient client(server);
  server.server.expiry().enable(false);
  server.populate(client, 100, "lasting:");
  server.populate(client, 100, "passing:");
  for (int i = 0; i < 100; ++i) client.run_words({"PEXPIRE", "passing:" + std::to_string(i), "1"});
  server.advance_ms(1);
  // Keys that the pattern leaves out are not looked at.
  CHECK(scan_all(client, " MATCH lasting:*").size() == 100);
  CHECK(server.database().size() == 200);
  const auto seen = scan_all(client, GENERATE("", " TYPE string", " TYPE list"));
  CHECK(seen.count("passing:1") == 0);
  CHECK(server.database().size() == 100);
  CHECK(server.database().environment().figures.expired_keys == 100);
}

TEST_CASE("SCAN tells what is wrong with a request", "[scan]") {
  ScanFixture server;
  TestClient client(server);
  CHECK(client.run("SCAN abc COUNT x") == error("ERR invalid cursor"));
  CHECK(client.run("SCAN 0 COUNT x") == error("ERR value is not an integer or out of range"));
  CHECK(client.run("SCAN 0 COUNT 0") == error("ERR syntax error"));
  CHECK(client.run("SCAN 0 COUNT") == error("ERR syntax error"));
  CHECK(client.run("SCAN 0 MATCH") == error("ERR syntax error"));
  CHECK(client.run("SCAN 0 SOMETHING") == error("ERR syntax error"));
  CHECK(client.run("SCAN 0 NOVALUES") == error("ERR NOVALUES option can only be used in HSCAN"));
}

TEST_CASE("A cursor is read as the reference reads it", "[scan]") {
  using commands::parse_cursor;
  uint64_t cursor = 0;
  CHECK((parse_cursor("18446744073709551615", &cursor) && cursor == UINT64_MAX));
  CHECK((parse_cursor(" \t+7", &cursor) && cursor == 7));
  CHECK((parse_cursor("007", &cursor) && cursor == 7));
  CHECK((parse_cursor(" -1", &cursor) && cursor == UINT64_MAX));
  CHECK((parse_cursor(std::string_view("5\0x", 3), &cursor) && cursor == 5));
  for (const char* text :
       {"", " ", "-", "+", "-1", "1 ", "1x", "0x10", "18446744073709551616", "- 1"}) {
    INFO(text);
    CHECK_FALSE(parse_cursor(text, &cursor));
  }
}

TEST_CASE("Cursors of older releases may be negative or empty, but not after white space",
          "[scan]") {
  using commands::parse_cursor;
  const server::Edition old = *server::Edition::parse("redis 7.2");
  uint64_t cursor = 1;
  CHECK((parse_cursor("", &cursor, old) && cursor == 0));
  CHECK((parse_cursor("-1", &cursor, old) && cursor == UINT64_MAX));
  CHECK((parse_cursor("+7", &cursor, old) && cursor == 7));
  for (const char* text : {" 7", "-", "+", "7 ", "-18446744073709551616"}) {
    INFO(text);
    CHECK_FALSE(parse_cursor(text, &cursor, old));
  }
}

TEST_CASE("KEYS gives the keys that match, with or without wildcards", "[scan]") {
  ScanFixture server;
  TestClient client(server);
  CHECK(client.run("KEYS *") == array({}));
  client.run("SET one 1");
  client.run("SET two 2");
  client.run_words({"SET", "", "empty"});
  client.run_words({"SET", "on*", "star"});
  CHECK(bulks_of(client.run("KEYS *")).size() == 4);
  CHECK(client.run("KEYS one") == bulks({"one"}));
  CHECK(client.run("KEYS three") == array({}));
  CHECK(client.run("KEYS t?o") == bulks({"two"}));
  CHECK(client.run("KEYS t[a-z]o") == bulks({"two"}));
  CHECK(client.run("KEYS on\\*") == bulks({"on*"}));
  CHECK(client.run_words({"KEYS", ""}) == bulks({""}));
}

TEST_CASE("KEYS passes over expired keys and leaves them where they are", "[scan]") {
  ScanFixture server;
  TestClient client(server);
  server.server.expiry().enable(false);
  client.run("SET one 1");
  client.run("SET two 2");
  client.run("PEXPIRE one 1");
  server.advance_ms(1);
  CHECK(client.run("KEYS *") == bulks({"two"}));
  CHECK(client.run("KEYS one") == array({}));
  CHECK(server.database().size() == 2);
}

}  // namespace latchkey::tests
