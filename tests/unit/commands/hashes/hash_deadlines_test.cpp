#include <initializer_list>
#include <string>

#include "commands/groups.h"
#include "server/expiry.h"
#include "unit/catch.h"
#include "unit/propagation_recorder.h"
#include "unit/server_fixture.h"
#include "unit/testing/tested_server.h"

namespace latchkey::tests {

namespace {

constexpr const char* kSmall = "hash-max-listpack-entries 512\n";
constexpr const char* kLarge = "hash-max-listpack-entries 0\n";

struct DeadlineServer : ServerFixture {
  explicit DeadlineServer(std::string_view settings = kSmall)
      : ServerFixture(
            {commands::hash_rows(), commands::hash_counter_rows(), commands::hash_random_rows(),
             commands::hash_deadline_rows(), commands::string_rows(), commands::key_rows(),
             commands::database_rows(), commands::expire_rows()},
            settings) {}
  std::string encoding(std::string_view key) {
    return std::string(database().find(key)->encoding_name());
  }
};

std::string integers(std::initializer_list<int64_t> values) {
  std::string text = "*" + std::to_string(values.size()) + "\r\n";
  for (const int64_t value : values) text += integer(value);
  return text;
}

}  // namespace

TEST_CASE("A field lives up to its deadline and not longer", "[hash_deadlines]") {
  for (const char* const settings : {kSmall, kLarge}) {
    DeadlineServer server(settings);
    TestClient client(server);
    client.run("HSET h a 1 b 2");
    server.events();
    server.changes();
    CHECK(client.run("HPEXPIRE h 1500 FIELDS 2 a none") == integers({1, -2}));
    CHECK(server.events() == "hexpire h");
    CHECK(server.changes() == 1);
    CHECK(client.run("HPTTL h FIELDS 3 a b none") == integers({1500, -1, -2}));
    CHECK(client.run("HTTL h FIELDS 1 a") == integers({2}));
    server.advance_ms(1499);
    CHECK(client.run("HGET h a") == bulk("1"));
    server.advance_ms(1);
    CHECK(client.run("HTTL h FIELDS 1 a") == integers({-2}));
    CHECK(client.run("HLEN h") == integer(2));
    CHECK(client.run("HGETALL h") == bulks({"b", "2"}));
    CHECK(server.events().empty());
    CHECK(client.run("HGET h a") == kNull);
    CHECK(server.events() == "hexpired h");
    CHECK(client.run("HLEN h") == integer(1));
    CHECK(server.changes() == 0);
  }
}

TEST_CASE("Whoever comes by the last field past its deadline removes the hash",
          "[hash_deadlines]") {
  for (const char* const settings : {kSmall, kLarge}) {
    for (const char* const line :
         {"HGET h a", "HMGET h a b", "HEXISTS h a", "HSTRLEN h a", "HGETDEL h FIELDS 1 a",
          "HGETEX h FIELDS 1 a", "HRANDFIELD h", "HRANDFIELD h 3"}) {
      INFO(line);
      DeadlineServer server(settings);
      TestClient client(server);
      client.run("HSET h a 1");
      client.run("HPEXPIRE h 1 FIELDS 1 a");
      server.advance_ms(1);
      server.events();
      client.run(line);
      CHECK(server.events() == "hexpired h, del h");
      CHECK(server.database().size() == 0);
      CHECK(server.database().volatile_elements_size() == 0);
    }
  }
}

TEST_CASE("A counter begins anew when its field has expired, and keeps a deadline else",
          "[hash_deadlines]") {
  DeadlineServer server;
  TestClient client(server);
  client.run("HSET h n 5");
  client.run("HPEXPIRE h 100 FIELDS 1 n");
  CHECK(client.run("HINCRBY h n 2") == integer(7));
  CHECK(client.run("HINCRBYFLOAT h n 0.5") == bulk("7.5"));
  CHECK(client.run("HPTTL h FIELDS 1 n") == integers({100}));
  server.advance_ms(100);
  server.events();
  CHECK(client.run("HINCRBY h n 2") == integer(2));
  CHECK(server.events() == "hexpired h, del h, hincrby h");
  CHECK(client.run("HPTTL h FIELDS 1 n") == integers({-1}));
}

TEST_CASE("HSET drops a field's deadline", "[hash_deadlines]") {
  for (const char* const settings : {kSmall, kLarge}) {
    DeadlineServer server(settings);
    TestClient client(server);
    client.run("HSET h a 1");
    client.run("HEXPIRE h 100 FIELDS 1 a");
    CHECK(server.database().volatile_elements_size() == 1);
    CHECK(client.run("HSET h a 2") == integer(0));
    CHECK(client.run("HTTL h FIELDS 1 a") == integers({-1}));
    CHECK(server.database().volatile_elements_size() == 0);
  }
}

TEST_CASE("NX, XX, GT and LT choose among the fields", "[hash_deadlines]") {
  for (const char* const settings : {kSmall, kLarge}) {
    DeadlineServer server(settings);
    TestClient client(server);
    const auto answer = [&](const std::string& line) {
      client.run("DEL h");
      client.run("HSET h without 1 with 1");
      client.run("HEXPIRE h 100 FIELDS 1 with");
      return client.run(line + " FIELDS 3 without with none");
    };
    CHECK(answer("HEXPIRE h 10 NX") == integers({1, 0, -2}));
    CHECK(answer("HEXPIRE h 10 XX") == integers({0, 1, -2}));
    CHECK(answer("HEXPIRE h 10 GT") == integers({0, 0, -2}));
    CHECK(answer("HEXPIRE h 1000 GT") == integers({0, 1, -2}));
    CHECK(answer("HEXPIRE h 10 LT") == integers({1, 1, -2}));
    CHECK(answer("HEXPIRE h 1000 LT") == integers({1, 0, -2}));
  }
}

TEST_CASE("A deadline that has passed deletes the field at once", "[hash_deadlines]") {
  for (const char* const settings : {kSmall, kLarge}) {
    DeadlineServer server(settings);
    TestClient client(server);
    client.run("HSET h a 1 b 2 c 3 d 4");
    server.events();
    server.changes();
    CHECK(client.run("HPEXPIREAT h 1 FIELDS 2 a a") == integers({2, -2}));
    CHECK(server.events() == "hdel h");
    CHECK(client.run("HGETEX h EXAT 0 FIELDS 2 b none") ==
          "*2\r\n" + bulk("2") + std::string(kNull));
    CHECK(server.events() == "hdel h");
    CHECK(client.run("HSETEX h PX 0 FIELDS 1 c 9") == integer(1));
    CHECK(server.events() == "hset h, hdel h");
    CHECK(server.changes() == 3);
    CHECK(client.run("HEXPIRE h 0 FIELDS 1 d") == integers({2}));
    CHECK(server.events() == "hdel h, del h");
    CHECK(server.database().environment().figures.expired_elements == 4);
    CHECK(client.run("EXISTS h") == integer(0));
  }
}

TEST_CASE("HPERSIST drops deadlines, and tells of it when it did", "[hash_deadlines]") {
  DeadlineServer server;
  TestClient client(server);
  client.run("HSET h a 1 b 2");
  client.run("HEXPIRE h 100 FIELDS 1 a");
  server.events();
  CHECK(client.run("HPERSIST h FIELDS 4 a a b none") == integers({1, -1, -1, -2}));
  CHECK(server.events() == "hpersist h");
  CHECK(client.run("HPERSIST h FIELDS 1 b") == integers({-1}));
  CHECK(server.events().empty());
  CHECK(client.run("HPERSIST none FIELDS 2 a b") == integers({-2, -2}));
}

TEST_CASE("HGETDEL gives values and deletes their fields", "[hash_deadlines]") {
  DeadlineServer server;
  TestClient client(server);
  client.run("HSET h a 1 b 2");
  server.events();
  server.changes();
  CHECK(client.run("HGETDEL h FIELDS 3 a a none") ==
        "*3\r\n" + bulk("1") + std::string(kNull) + std::string(kNull));
  CHECK(server.events() == "hdel h");
  CHECK(client.run("HGETDEL h FIELDS 1 b") == bulks({"2"}));
  CHECK(server.events() == "hdel h, del h");
  CHECK(server.changes() == 2);
  CHECK(client.run("HGETDEL h FIELDS 1 b") == "*1\r\n" + std::string(kNull));
}

TEST_CASE("HGETEX gives values, and deadlines or none", "[hash_deadlines]") {
  DeadlineServer server;
  TestClient client(server);
  client.run("HSET h a 1 b 2");
  server.events();
  CHECK(client.run("HGETEX h FIELDS 1 a") == bulks({"1"}));
  CHECK(server.encoding("h") == "listpack");
  CHECK(server.events().empty());
  CHECK(client.run("HGETEX h PX 500 FIELDS 2 a b") == bulks({"1", "2"}));
  CHECK(server.events() == "hexpire h");
  CHECK(client.run("HPTTL h FIELDS 2 a b") == integers({500, 500}));
  CHECK(client.run("HGETEX h PERSIST FIELDS 1 a") == bulks({"1"}));
  CHECK(server.events() == "hpersist h");
  CHECK(client.run("HPTTL h FIELDS 2 a b") == integers({-1, 500}));
}

TEST_CASE("Fields that HSETEX gives no time do not make a hash large", "[hash_deadlines]") {
  DeadlineServer server("hash-max-listpack-entries 2\n");
  TestClient client(server);
  client.run("HSET h a 1");
  client.run("HSETEX h PX 0 FIELDS 2 b 2 c 3");
  CHECK(client.run("HLEN h") == integer(1));
  CHECK(server.encoding("h") == "listpackex");
}

TEST_CASE("HSETEX sets when its condition holds, with a deadline or the old one",
          "[hash_deadlines]") {
  DeadlineServer server;
  TestClient client(server);
  CHECK(client.run("HSETEX h FXX FIELDS 1 a 1") == integer(0));
  CHECK(client.run("EXISTS h") == integer(0));
  CHECK(client.run("HSETEX h FNX PX 500 FIELDS 2 a 1 b 2") == integer(1));
  CHECK(server.events() == "hset h, hexpire h");
  CHECK(server.changes() == 2);
  CHECK(client.run("HSETEX h FNX FIELDS 2 b 3 c 3") == integer(0));
  CHECK(client.run("HSETEX h FXX FIELDS 2 b 3 c 3") == integer(0));
  CHECK(client.run("HSETEX h FXX KEEPTTL FIELDS 1 b 3") == integer(1));
  CHECK(client.run("HPTTL h FIELDS 2 a b") == integers({500, 500}));
  CHECK(client.run("HSETEX h FIELDS 1 b 4") == integer(1));
  CHECK(client.run("HPTTL h FIELDS 2 a b") == integers({500, -1}));
  CHECK(client.run("HGETALL h") == bulks({"a", "1", "b", "4"}));
  server.advance_ms(500);
  CHECK(client.run("HSETEX h FXX FIELDS 1 a 5") == integer(0));
  CHECK(client.run("HSETEX h FNX FIELDS 1 a 5") == integer(1));
}

TEST_CASE("A hash whose last field has expired stays when HSETEX FNX gives it others",
          "[hash_deadlines]") {
  for (const char* const settings : {kSmall, kLarge}) {
    DeadlineServer server(settings);
    TestClient client(server);
    const auto expire_all = [&] {
      client.run("DEL h");
      client.run("HSET h a 1 b 2");
      client.run("HPEXPIRE h 1 FIELDS 2 a b");
      server.advance_ms(1);
      server.events();
    };
    expire_all();
    CHECK(client.run("HSETEX h FNX FIELDS 2 a 5 b 6") == integer(1));
    CHECK(server.events() == "hexpired h, hset h");
    CHECK(client.run("HGETALL h") == bulks({"a", "5", "b", "6"}));
    CHECK(client.run("HPTTL h FIELDS 2 a b") == integers({-1, -1}));
    expire_all();
    CHECK(client.run("HSETEX h FNX PXAT 1 FIELDS 2 a 5 b 6") == integer(1));
    CHECK(server.events() == "hexpired h, hset h, hdel h, del h");
    // What was found to have expired is gone, also when another field is there.
    expire_all();
    client.run("HSET h c 3");
    server.events();
    CHECK(client.run("HSETEX h FNX FIELDS 2 a 5 c 6") == integer(0));
    CHECK(server.events() == "hexpired h");
    CHECK(client.run("HLEN h") == integer(2));
    expire_all();
    CHECK(client.run("HSETEX h FXX FIELDS 1 a 5") == integer(0));
    CHECK(server.events() == "hexpired h");
    CHECK(client.run("HSETEX h FXX FIELDS 1 b 5") == integer(0));
    CHECK(server.events() == "hexpired h, del h");
  }
}

TEST_CASE("What has expired can be seen where that is allowed, and is counted on",
          "[hash_deadlines]") {
  for (const char* const settings : {kSmall, kLarge}) {
    DeadlineServer server(settings);
    TestClient client(server);
    server.server.expiry().enable(false);
    server.server.expiry().show_expired(true);
    client.run("HSET h a 1");
    client.run("HPEXPIRE h 1 FIELDS 1 a");
    server.advance_ms(10);
    CHECK(client.run("HGETALL h") == bulks({"a", "1"}));
    CHECK(client.run("HEXISTS h a") == integer(1));
    CHECK(client.run("HINCRBY h a 1") == integer(2));
    CHECK(client.run("HRANDFIELD h") == bulk("a"));
    server.server.expiry().show_expired(false);
    CHECK(client.run("HGET h a") == kNull);
  }
}

TEST_CASE("Options of field deadlines may stand behind the fields", "[hash_deadlines]") {
  DeadlineServer server;
  TestClient client(server);
  client.run("HSET h a 1 b 2");
  PropagationRecorder stream(server);
  const std::string in_a_second = std::to_string(server.now_ms() + 1000);
  CHECK(client.run("HPEXPIRE h 1000 FIELDS 1 a NX") == integers({1}));
  CHECK(stream.take() == "SELECT 0; HPEXPIREAT h " + in_a_second + " NX FIELDS 1 a");
  CHECK(client.run("HPEXPIREAT h " + in_a_second + " FIELDS 2 a b NX") == integers({0, 1}));
  CHECK(stream.take() == "HPEXPIREAT h " + in_a_second + " NX FIELDS 1 b");
  CHECK(client.run("HGETEX h FIELDS 2 a b PERSIST") == bulks({"1", "2"}));
  CHECK(stream.take() == "HPERSIST h FIELDS 2 a b");
  CHECK(client.run("HSETEX h FIELDS 1 a 3 PX 1000 FXX") == integer(1));
  CHECK(stream.take() == "HSETEX h FXX PXAT " + in_a_second + " FIELDS 1 a 3");
  CHECK(client.run("HSETEX h FIELDS 1 a 4 KEEPTTL") == integer(1));
  CHECK(stream.take() == "HSETEX h KEEPTTL FIELDS 1 a 4");
  CHECK(client.run("HPTTL h FIELDS 2 a b") == integers({1000, -1}));
  // Fields may be named like options.
  CHECK(client.run("HSETEX h FIELDS 2 EX 10 FIELDS 1") == integer(1));
  CHECK(client.run("HGET h FIELDS") == bulk("1"));
}

TEST_CASE("Requests about field deadlines are read with care", "[hash_deadlines]") {
  const std::string no_integer = error("ERR value is not an integer or out of range");
  const std::string negative = error("ERR invalid expire time, must be >= 0");
  const std::string no_fields =
      error("ERR Mandatory argument FIELDS is missing or not at the right position");
  const std::string no_match =
      error("ERR The `numfields` parameter must match the number of arguments");
  const std::string no_count = error("ERR Number of fields must be a positive integer");
  const struct {
    std::string_view line;
    std::string reply;
  } cases[] = {
      {"HEXPIRE h x FIELDS 1 a", no_integer},
      {"HEXPIRE h -1 YY 0 a", negative},
      {"HEXPIRE h 70368744178 FIELDS 1 a", error("ERR invalid expire time in 'hexpire' command")},
      {"HPEXPIREAT h 70368744177664 FIELDS 1 a",
       error("ERR invalid expire time in 'hpexpireat' command")},
      {"HPEXPIREAT h 70368744177663 FIELDS 1 a", integers({1})},
      {"HEXPIRE h 10 NX XX FIELDS 1 a", error("ERR Multiple condition flags specified")},
      {"HEXPIRE h 10 FIELDS 1 a GT XX", error("ERR Multiple condition flags specified")},
      {"HEXPIRE h 10 NX XX FIELDS 0 a",
       error("ERR Parameter `numFields` should be greater than 0")},
      {"HEXPIRE h 10 NX XX b FIELDS 1 a", error("ERR unknown argument: b")},
      {"HEXPIRE h 10 NX GT LT NX", error("ERR missing FIELDS argument")},
      {"HEXPIRE h 10 FIELDS 0 a", error("ERR Parameter `numFields` should be greater than 0")},
      {"HEXPIRE h 10 NX FIELDS 1",
       error("ERR FIELDS requires at least numfields and one field argument")},
      {"HEXPIRE h 10 FIELDS 1 a FIELDS", error("ERR FIELDS keyword specified multiple times")},
      {"HEXPIRE h 10 NX NX FIELDS",
       error("ERR FIELDS requires at least numfields and one field argument")},
      {"HEXPIRE h 10 FIELDS 1 a b", error("ERR unknown argument: b")},
      {"HEXPIRE h 10 FIELDS 2 a", error("ERR wrong number of arguments")},
      {"HEXPIRE h 10 FIELDS 1 a FIELDS 1 b", error("ERR FIELDS keyword specified multiple times")},
      {"HEXPIRE h 10 NX NX NX", error("ERR missing FIELDS argument")},
      {"HEXPIRE s x YY 0 a", std::string(kWrongType)},
      {"HTTL h FIELDS 0 a", no_count},
      {"HTTL h FIELDX 0 a", no_fields},
      {"HTTL none FIELDS 2 a", no_match},
      {"HTTL s FIELDX 2 a", std::string(kWrongType)},
      {"HPERSIST h FIELDS x a", no_count},
      {"HGETDEL h FIELDS 2 a", no_match},
      {"HGETEX h EX 10 PX 10 FIELDS 1 a",
       error("ERR Only one of EX, PX, EXAT, PXAT or PERSIST arguments can be specified")},
      {"HGETEX h FIELDS 1 a EX", error("ERR missing expire time")},
      {"HGETEX h KEEPTTL FIELDS 1 a", error("ERR unknown argument")},
      {"HGETEX h FOO FIELDS 1 a", error("ERR unknown argument: FOO")},
      // What only HSETEX has is refused last.
      {"HGETEX h KEEPTTL FIELDS +1 a", error("ERR invalid number of fields")},
      {"HGETEX h KEEPTTL FOO FIELDS 1 a", error("ERR unknown argument: FOO")},
      {"HGETEX h KEEPTTL PERSIST FIELDS 1 a", error("ERR unknown argument")},
      {"HGETEX h PERSIST KEEPTTL FIELDS 1 a", error("ERR unknown argument")},
      {"HGETEX h KEEPTTL PERSIST FNX", error("ERR missing FIELDS argument")},
      {"HGETEX h FNX FIELDS 1 a", error("ERR unknown argument")},
      {"HGETEX h FNX FXX FIELDS 1 a",
       error("ERR Only one of FXX or FNX arguments can be specified")},
      {"HGETEX h KEEPTTL KEEPTTL FIELDS 1 a",
       error("ERR Only one of EX, PX, EXAT, PXAT or PERSIST arguments can be specified")},
      {"HGETEX h KEEPTTL EX 1 FIELDS 1 a",
       error("ERR Only one of EX, PX, EXAT, PXAT or PERSIST arguments can be specified")},
      {"HGETEX h EX 1 KEEPTTL FIELDS 1 a",
       error("ERR Only one of EX, PX, EXAT, PXAT or PERSIST arguments can be specified")},
      {"HGETEX h FIELDS 0 a", error("ERR invalid number of fields")},
      {"HGETEX h PERSIST FIELDS 1", error("ERR wrong number of arguments")},
      {"HGETEX h EX -1 FIELDX 1 a", negative},
      {"HGETEX s EX -1 FIELDX 1 a", std::string(kWrongType)},
      {"HSETEX h FNX FXX FIELDS 1 a 1",
       error("ERR Only one of FXX or FNX arguments can be specified")},
      {"HSETEX h EX 10 KEEPTTL FIELDS 1 a 1",
       error("ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified")},
      {"HSETEX s PERSIST FIELDS 1 a 1", error("ERR unknown argument")},
      {"HSETEX h PERSIST FIELDS abc a 1", error("ERR invalid number of fields")},
      {"HSETEX h FXX PERSIST FIELDS 3 a b c d e f z", error("ERR unknown argument: z")},
      {"HSETEX h FXX PERSIST FIELDS 3 a b c d e f", error("ERR unknown argument")},
      {"HSETEX h FNX PERSIST FIELDS 1 a", error("ERR wrong number of arguments")},
      {"HSETEX h PERSIST FNX FNX FIELDS 1 a b",
       error("ERR Only one of FXX or FNX arguments can be specified")},
      {"HSETEX h PERSIST EX 1 FIELDS 1 a b",
       error("ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified")},
      {"HSETEX h KEEPTTL PERSIST FIELDS 1 a b", error("ERR unknown argument")},
      {"HSETEX s FIELDS 0 a 1", error("ERR invalid number of fields")},
      {"HSETEX h FIELDS 2147483648 a 1", error("ERR invalid number of fields")},
      {"HSETEX h FIELDS 2 a 1", error("ERR wrong number of arguments")},
      {"HSETEX h FIELDS 1 a 1 b", error("ERR unknown argument: b")},
      {"HSETEX h FNX EX 10 FIELDS", error("ERR wrong number of arguments for 'hsetex' command")},
      {"HSETEX s FIELDS 1 a 1", std::string(kWrongType)},
  };
  DeadlineServer server;
  TestClient client(server);
  client.run("SET s text");
  client.run("HSET h a 1");
  for (const auto& [line, reply] : cases) {
    INFO(line);
    CHECK(client.run(line) == reply);
  }
}

TEST_CASE("Deadlines go with their hash wherever it goes", "[hash_deadlines]") {
  for (const char* const settings : {kSmall, kLarge}) {
    DeadlineServer server(settings);
    TestClient client(server);
    client.run("HSET h a 1 b 2");
    client.run("HPEXPIRE h 1000 FIELDS 1 a");
    client.run("RENAME h r");
    client.run("COPY r c");
    client.run("EXPIRE r 100");  // moves the entry
    CHECK(server.database().volatile_elements_size() == 2);
    client.run("HPEXPIRE c 2000 FIELDS 1 a");
    client.run("MOVE r 1");
    CHECK(server.database(0).volatile_elements_size() == 1);
    CHECK(server.database(1).volatile_elements_size() == 1);
    client.run("SWAPDB 0 1");
    CHECK(client.run("HPTTL r FIELDS 1 a") == integers({1000}));
    client.run("SET r text");
    CHECK(server.database(0).volatile_elements_size() == 0);
    server.events();
    server.advance_ms(2100);
    server.tick();
    CHECK(server.events() == "hexpired c");
    CHECK(server.database(1).volatile_elements_size() == 0);
    client.run("SELECT 1");
    CHECK(client.run("HLEN c") == integer(1));
    client.run("HEXPIRE c 10 FIELDS 1 b");
    client.run("FLUSHALL");
    CHECK(server.database(1).volatile_elements_size() == 0);
    CHECK_FALSE(server.database(1).has_deadlines());
  }
}

TEST_CASE("Fields nobody asks for go by themselves, and the hash with the last",
          "[hash_deadlines]") {
  for (const char* const settings : {kSmall, kLarge}) {
    DeadlineServer server(settings);
    TestClient client(server);
    for (int hash = 0; hash < 50; ++hash) {
      const std::string key = "h" + std::to_string(hash);
      for (int field = 1; field <= 20; ++field) {
        const std::string name = std::to_string(field);
        client.run_words({"HSET", key, name, "v"});
        client.run_words({"HPEXPIRE", key, std::to_string(field * 100), "FIELDS", "1", name});
      }
    }
    CHECK(server.database().volatile_elements_size() == 50);
    for (int elapsed = 100; elapsed <= 2000; elapsed += 100) {
      server.advance_ms(100);
      server.tick();
      // What is due at this very moment may wait for the wheel's next step.
      const auto gone = server.database().environment().figures.expired_elements;
      CHECK(gone >= static_cast<uint64_t>(elapsed / 100 - 1) * 50);
      CHECK(gone <= static_cast<uint64_t>(elapsed / 100) * 50);
    }
    server.advance_ms(100);
    server.tick();
    CHECK(server.database().empty());
    CHECK_FALSE(server.database().has_deadlines());
  }
}

TEST_CASE("A hash whose own deadline passes takes its fields' along", "[hash_deadlines]") {
  DeadlineServer server;
  TestClient client(server);
  client.run("HSET h a 1");
  client.run("HPEXPIRE h 100 FIELDS 1 a");
  client.run("PEXPIRE h 50");
  server.events();
  server.advance_ms(200);
  server.tick();
  CHECK(server.events() == "expired h");
  CHECK(server.database().environment().figures.expired_elements == 0);
}

TEST_CASE("No field goes by itself when active expiry is off", "[hash_deadlines]") {
  DeadlineServer server;
  TestClient client(server);
  server.server.expiry().enable(false);
  client.run("HSET h a 1 b 2");
  client.run("HPEXPIRE h 1 FIELDS 1 a");
  server.advance_ms(1000);
  server.tick();
  CHECK(client.run("HLEN h") == integer(2));
  CHECK(client.run("HRANDFIELD h 5") == bulks({"b"}));
  CHECK(client.run("HLEN h") == integer(1));
}

TEST_CASE("One huge hash expires in bounded steps, and others get their turn", "[hash_deadlines]") {
  DeadlineServer server(kLarge);
  TestClient client(server);
  for (int field = 0; field < 2000; ++field) {
    const std::string name = std::to_string(field);
    client.run_words({"HSETEX", "huge", "PX", "100", "FIELDS", "1", name, "v"});
  }
  client.run("HSETEX small PX 100 FIELDS 1 a 1");
  server.advance_ms(200);
  constexpr size_t kBudget = 32;
  store::Keyspace& database = server.database();
  const auto expired = [&] { return database.environment().figures.expired_elements; };
  uint64_t before = expired();
  int rounds = 0;
  while (!database.expire_due(kBudget)) {
    CHECK(expired() - before <= 2 * kBudget);
    before = expired();
    if (++rounds == 3) CHECK(database.size() == 1);
  }
  CHECK(database.empty());
  CHECK(rounds >= 2000 / 64);
}

TEST_CASE("Hash field deadlines in RESP3", "[hash_deadlines]") {
  DeadlineServer server;
  TestClient client(server, 3);
  client.run("HSET h a 1");
  CHECK(client.run("HGETEX h EX 5 FIELDS 2 a x") == "*2\r\n" + bulk("1") + std::string(kNull3));
  CHECK(client.run("HGETDEL none FIELDS 1 x") == "*1\r\n" + std::string(kNull3));
  server.advance_ms(5000);
  CHECK(client.run("HGETALL h") == "%0\r\n");
}

const char* const kValkey = "emulate \"valkey 9.1\"\n";

TEST_CASE("Valkey reads FIELDS at the end of the request alone", "[hash_deadlines]") {
  DeadlineServer server(kValkey);
  TestClient client(server);
  const std::string bad_number =
      error("ERR numfields should be greater than 0 and match the provided number of fields");
  const std::string syntax = error("ERR syntax error");
  client.run("HSET h a 1 b 2");
  for (const char* request :
       {"HEXPIRE h 10 FIELDS 2 a", "HEXPIRE h 10 FIELDS 1 a NX", "HEXPIRE h 10 FIELDS 0 a",
        "HEXPIRE h 10 x y z", "HGETEX h FIELDS 1 a EX 10", "HSETEX h FIELDS 1 a 1 b",
        "HPERSIST h FIELDS 1 a b", "HGETDEL h FIELDS 3 a"}) {
    INFO(request);
    CHECK(client.run(request) == bad_number);
  }
  for (const char* request :
       {"HTTL h FIELDS 2 a", "HTTL h WHAT 1 a", "HGETEX h EX 1 PX 1 FIELDS 1 a",
        "HSETEX h NX XX FIELDS 1 a 1", "HSETEX h FNX FXX FIELDS 1 a 1",
        "HSETEX h KEEPTTL EX 5 FIELDS 1 a 1", "HSETEX h PERSIST FIELDS 1 a 1"}) {
    INFO(request);
    CHECK(client.run(request) == syntax);
  }
  CHECK(client.run("HEXPIRE h -1 FIELDS 1 a") ==
        error("ERR invalid expire time in 'hexpire' command"));
  CHECK(client.run("HEXPIRE h 10 WHAT FIELDS 1 a") == error("ERR Unsupported option WHAT"));
  CHECK(client.run("HEXPIRE h 10 GT LT FIELDS 1 a") ==
        error("ERR GT and LT options at the same time are not compatible"));
  // Options come first, then the number of fields, the time, and the key.
  CHECK(client.run("HEXPIRE h x NX GT FIELDS 2 a") ==
        error("ERR NX and XX, GT or LT options at the same time are not compatible"));
  CHECK(client.run("HEXPIRE h x NX FIELDS 2 a") == bad_number);
  CHECK(client.run("HGETEX h EX x PX 5 FIELDS 2 a") == syntax);
  CHECK(client.run("HGETEX h EX x FIELDS 2 a") == bad_number);
  CHECK(client.run("HSETEX h KEEPTTL EX 5 FIELDS 3 a 1") == syntax);
  CHECK(client.run("HSETEX h EX -5 FIELDS 2 a 1") == bad_number);
  CHECK(client.run("HSETEX h EX -5 FIELDS 1 a 1") ==
        error("ERR invalid expire time in 'hsetex' command"));
  client.run("SET text x");
  CHECK(client.run("HEXPIRE text x FIELDS 1 a") ==
        error("ERR value is not an integer or out of range"));
  CHECK(client.run("HEXPIRE text 10 FIELDS 1 a") == kWrongType);
  CHECK(client.run("HPERSIST text FIELDS 2 a") == bad_number);
  CHECK(client.run("HGETDEL text FIELDS 2 a") == bad_number);
  CHECK(client.run("HTTL text FIELDS 2 a") == syntax);
  CHECK(client.run("HTTL text FIELDS 1 a") == kWrongType);
  CHECK(client.run("HTTL h FIELDS 2 a b") == integers({-1, -1}));
}

TEST_CASE("HSETEX of Valkey asks about the key with NX and XX", "[hash_deadlines]") {
  DeadlineServer server(kValkey);
  TestClient client(server);
  PropagationRecorder stream(server);
  CHECK(client.run("HSETEX h XX FIELDS 1 a 1") == integer(0));
  CHECK(client.run("HSETEX h NX FIELDS 1 a 1") == integer(1));
  CHECK(client.run("HSETEX h NX FIELDS 1 a 2") == integer(0));
  CHECK(client.run("HSETEX h XX FXX FIELDS 1 a 3") == integer(1));
  CHECK(stream.take() == "SELECT 0; HSETEX h FIELDS 1 a 1; HSETEX h FIELDS 1 a 3");
  CHECK(client.run("HGET h a") == bulk("3"));
}

TEST_CASE("Fields that expire at once are deleted by one request in Valkey", "[hash_deadlines]") {
  DeadlineServer server(kValkey);
  TestClient client(server);
  PropagationRecorder stream(server);
  client.run("HSET h a 1 b 2 c 3");
  stream.take();
  CHECK(client.run("HEXPIRE h 0 FIELDS 3 a b x") == "*3\r\n:2\r\n:2\r\n:-2\r\n");
  CHECK(stream.take() == "HDEL h a b");
  CHECK(client.run("HLEN h") == integer(1));
}

TEST_CASE("Reading leaves expired fields where Valkey is emulated, writing does not",
          "[hash_deadlines]") {
  DeadlineServer server(kValkey);
  TestClient client(server);
  client.run("HSETEX h PX 10 FIELDS 1 a 1");
  PropagationRecorder stream(server);
  server.advance_ms(20);
  CHECK(client.run("HGET h a") == kNull);
  CHECK(client.run("HGETEX h FIELDS 1 a") == "*1\r\n" + std::string(kNull));
  CHECK(client.run("HEXPIRE h 100 FIELDS 1 a") == integers({-2}));
  CHECK(client.run("HLEN h") == integer(1));
  // A new field of a hash that stays.
  CHECK(client.run("HSET h a 2") == integer(1));
  CHECK(client.run("HTTL h FIELDS 1 a") == integers({-1}));
  client.run("HSETEX h PX 10 FIELDS 1 a 1");
  server.advance_ms(20);
  stream.take();
  CHECK(client.run("HINCRBY h a 5") == integer(5));
  // Replicas may still have the old value.
  CHECK(stream.take() == "HSET h a 5");
  CHECK(client.run("HGETALL h") == bulks({"a", "5"}));
}

TEST_CASE("Valkey writes the fields that expire together as one removal", "[hash_deadlines]") {
  for (const bool valkey : {true, false}) {
    INFO(valkey);
    TestedServer server(valkey ? "emulate \"valkey 9.1\"\n" : "");
    TestClient client(server);
    client.run("HSET h a 1 b 2 c 3");
    client.run("HPEXPIRE h 50 FIELDS 1 a");
    client.run("HPEXPIRE h 100 FIELDS 1 b");
    PropagationRecorder stream(server);
    server.events();
    server.advance_ms(200);
    server.tick();
    CHECK(server.events() == "hexpired h");
    CHECK(client.run("HKEYS h") == bulks({"c"}));
    const std::string written = stream.take();
    INFO(written);
    CHECK(written.find(valkey ? "HDEL h a b" : "HDEL h a; HDEL h b") != std::string::npos);
  }
}

TEST_CASE("Before Redis 8.4 HSETEX does not know HGETEX's word", "[hash_deadlines]") {
  DeadlineServer server("emulate \"redis 8.0\"");
  TestClient client(server);
  CHECK(client.run("HSETEX h PERSIST FIELDS 1 a b") == error("ERR unknown argument: PERSIST"));
  CHECK(client.run("HSETEX h PERSIST EX 1 FIELDS 1 a b") == error("ERR unknown argument: PERSIST"));
}

}  // namespace latchkey::tests
