#include <string>

#include "unit/catch.h"
#include "unit/commands/string_server.h"

namespace latchkey::tests {

TEST_CASE("SET stores a value and GET returns it", "[strings]") {
  StringServer server;
  TestClient client(server);
  CHECK(client.run("GET name") == kNull);
  CHECK(client.run("SET name value") == kOk);
  CHECK(client.run("GET name") == bulk("value"));
  CHECK(server.events() == "set name");
  CHECK(server.changes() == 1);
}

TEST_CASE("Keys and values are any bytes", "[strings]") {
  StringServer server;
  TestClient client(server);
  const std::string key("\0\r\n \xff", 5);
  for (const std::string& value : {std::string(), std::string("\0", 1), std::string("*1\r\n$4\r\n"),
                                   std::string(100'000, '\0')}) {
    CHECK(client.run_words({"SET", key, value}) == kOk);
    CHECK(client.run_words({"GET", key}) == bulk(value));
  }
}

TEST_CASE("SET replaces a value of another type and forgets the deadline", "[strings]") {
  StringServer server;
  TestClient client(server);
  server.put_list("list");
  CHECK(client.run("GET list") == kWrongType);
  CHECK(client.run("SET list 1") == kOk);
  CHECK(client.run("SET list 2 EX 10") == kOk);
  CHECK(client.run("SET list 3") == kOk);
  CHECK(server.ttl_ms("list") == -1);
}

TEST_CASE("SET with NX or XX answers null when the condition fails", "[strings]") {
  StringServer server;
  TestClient client(server);
  CHECK(client.run("SET name 1 XX") == kNull);
  CHECK(client.run("SET name 1 NX") == kOk);
  CHECK(client.run("SET name 2 nx") == kNull);
  CHECK(client.run("SET name 3 xx") == kOk);
  CHECK(client.run("GET name") == bulk("3"));
  CHECK(server.changes() == 2);
  TestClient third(server, 3);
  CHECK(third.run("SET name 2 NX") == kNull3);
  server.put_list("list");
  CHECK(client.run("SET list 1 NX") == kNull);
  CHECK(client.run("SET list 1 XX") == kOk);
}

TEST_CASE("SET with GET answers the old value, whether it was replaced or not", "[strings]") {
  StringServer server;
  TestClient client(server);
  CHECK(client.run("SET name 1 GET") == kNull);
  CHECK(client.run("SET name 2 GET") == bulk("1"));
  CHECK(client.run("SET name 3 NX GET") == bulk("2"));
  CHECK(client.run("SET other 3 XX GET") == kNull);
  CHECK(client.run("GET name") == bulk("2"));
  CHECK(client.run("GET other") == kNull);
  server.put_list("list");
  CHECK(client.run("SET list 1 GET") == kWrongType);
  CHECK(client.run("SET list 1 NX GET") == kWrongType);
}

TEST_CASE("SET with GET answers a large old value whole though it is replaced", "[strings]") {
  StringServer server;
  TestClient client(server);
  const std::string large(1'000'000, 'x');
  client.run_words({"SET", "name", large});
  CHECK(client.run("SET name small GET") == bulk(large));
  CHECK(client.run("GET name") == bulk("small"));
}

TEST_CASE("SET takes a deadline in four forms", "[strings]") {
  StringServer server;
  TestClient client(server);
  const int64_t now_ms = server.now_ms();
  CHECK(client.run("SET name 1 EX 10") == kOk);
  CHECK(server.ttl_ms("name") == 10'000);
  CHECK(client.run("SET name 1 px 10") == kOk);
  CHECK(server.ttl_ms("name") == 10);
  CHECK(client.run("SET name 1 EXAT " + std::to_string(now_ms / 1000 + 3)) == kOk);
  CHECK(server.ttl_ms("name") == (now_ms / 1000 + 3) * 1000 - now_ms);
  CHECK(client.run("SET name 1 PXAT " + std::to_string(now_ms + 7)) == kOk);
  CHECK(server.ttl_ms("name") == 7);
  CHECK(client.run("SET name 1 EX 10 EX 20") == kOk);
  CHECK(server.ttl_ms("name") == 20'000);
}

TEST_CASE("SET with a deadline is one change and two events", "[strings]") {
  StringServer server;
  TestClient client(server);
  client.run("SET name 1 EX 10");
  CHECK(server.changes() == 1);
  CHECK(server.events() == "set name, expire name");
  server.advance_ms(9'999);
  CHECK(client.run("GET name") == bulk("1"));
  server.advance_ms(1);
  CHECK(client.run("GET name") == kNull);
  CHECK(server.events() == "expired name");
}

TEST_CASE("SET with a deadline that has passed sets a key that is gone", "[strings]") {
  StringServer server;
  TestClient client(server);
  client.run("SET name 1");
  CHECK(client.run("SET name 2 PXAT 1") == kOk);
  CHECK(client.run("GET name") == kNull);
  CHECK(server.events() == "set name, set name, expire name, expired name");
}

TEST_CASE("SET with KEEPTTL leaves the deadline alone", "[strings]") {
  StringServer server;
  TestClient client(server);
  for (const char* const value :
       {"text", "12", "13", "other", "a text that is longer than the one before it"}) {
    client.run("SET name 1 PX 5000");
    CHECK(client.run_words({"SET", "name", value, "KEEPTTL"}) == kOk);
    CHECK(server.ttl_ms("name") == 5000);
    CHECK(client.run("GET name") == bulk(value));
  }
  CHECK(client.run("SET new 1 KEEPTTL") == kOk);
  CHECK(server.ttl_ms("new") == -1);
}

TEST_CASE("SET refuses options that contradict each other before anything else", "[strings]") {
  StringServer server;
  TestClient client(server);
  for (const char* const request :
       {"SET k v NX XX", "SET k v EX 1 PX 1", "SET k v EX 1 KEEPTTL", "SET k v KEEPTTL PX 1",
        "SET k v EX", "SET k v PERSIST", "SET k v EX 0 nonsense", "SET k v EX nonsense NX XX",
        "SET k v IFEQ", "SET k v NX IFEQ x", "SET k v XX IFNE x", "SET k v IFEQ x IFEQ x",
        "SET k v "}) {
    CAPTURE(request);
    CHECK(client.run(request) == error("ERR syntax error"));
  }
  CHECK(client.run("SET k v NX NX") == kOk);
  CHECK(client.run("SET k v GET GET KEEPTTL KEEPTTL XX XX") == bulk("v"));
}

TEST_CASE("Times of expiry are checked to the last millisecond", "[strings]") {
  StringServer server;
  TestClient client(server);
  const std::string latest_ms = "9223372036854775807";
  const std::string latest_px = std::to_string(INT64_MAX - server.now_ms());
  const std::string too_long_px = std::to_string(INT64_MAX - server.now_ms() + 1);
  const std::string invalid = error("ERR invalid expire time in 'set' command");
  for (const std::string& option :
       {std::string("EX 0"), std::string("EX -1"), "EX " + latest_ms,
        std::string("EX 9223372036854775"), "PX " + latest_ms, "PX " + too_long_px,
        std::string("EXAT 9223372036854776"), std::string("PXAT 0"),
        std::string("PXAT -9223372036854775808")}) {
    CAPTURE(option);
    CHECK(client.run("SET k v " + option) == invalid);
  }
  CHECK(client.run("GET k") == kNull);
  for (const std::string& option :
       {"PX " + latest_px, "PXAT " + latest_ms, std::string("EXAT 9223372036854775"),
        std::string("EX 9223370000000000")}) {
    CAPTURE(option);
    CHECK(client.run("SET k v " + option) == kOk);
    CHECK(client.run("GET k") == bulk("v"));
  }
  CHECK(client.run("SET k v EX 1.5") == error("ERR value is not an integer or out of range"));
  server.put_list("list");
  CHECK(client.run("SET list v GET EX 0") == invalid);
}

TEST_CASE("SETNX sets a key that is not there", "[strings]") {
  StringServer server;
  TestClient client(server);
  CHECK(client.run("SETNX lock 1") == integer(1));
  CHECK(client.run("SETNX lock 2") == integer(0));
  server.put_list("list");
  CHECK(client.run("SETNX list 2") == integer(0));
  CHECK(client.run("GET lock") == bulk("1"));
  CHECK(server.events() == "set lock");
}

TEST_CASE("SETNX takes over a key that has expired", "[strings]") {
  StringServer server;
  TestClient client(server);
  client.run("PSETEX lock 100 1");
  server.advance_ms(100);
  CHECK(client.run("SETNX lock 2") == integer(1));
  CHECK(server.ttl_ms("lock") == -1);
  CHECK(server.events() == "set lock, expire lock, expired lock, set lock");
}

TEST_CASE("SETEX and PSETEX set a value and its deadline", "[strings]") {
  StringServer server;
  TestClient client(server);
  server.put_list("name");
  CHECK(client.run("SETEX name 5 a") == kOk);
  CHECK(server.ttl_ms("name") == 5000);
  CHECK(client.run("PSETEX name 5 b") == kOk);
  CHECK(server.ttl_ms("name") == 5);
  CHECK(client.run("SETEX name 0 c") == error("ERR invalid expire time in 'setex' command"));
  CHECK(client.run("PSETEX name -1 c") == error("ERR invalid expire time in 'psetex' command"));
  CHECK(client.run("SETEX name x c") == error("ERR value is not an integer or out of range"));
  CHECK(client.run("GET name") == bulk("b"));
  CHECK(server.events() == "set name, expire name, set name, expire name");
}

TEST_CASE("GETSET answers the old value and forgets the deadline", "[strings]") {
  StringServer server;
  TestClient client(server);
  CHECK(client.run("GETSET name 1") == kNull);
  client.run("SET name 1 EX 10");
  CHECK(client.run("GETSET name 2") == bulk("1"));
  CHECK(server.ttl_ms("name") == -1);
  server.put_list("list");
  CHECK(client.run("GETSET list 2") == kWrongType);
}

TEST_CASE("GETDEL answers the value and removes the key", "[strings]") {
  StringServer server;
  TestClient client(server);
  client.run("SET name 1");
  server.events();
  CHECK(client.run("GETDEL name") == bulk("1"));
  CHECK(client.run("GETDEL name") == kNull);
  CHECK(server.events() == "del name");
  server.put_list("list");
  CHECK(client.run("GETDEL list") == kWrongType);
}

TEST_CASE("GETEX changes the deadline only when it is asked to", "[strings]") {
  StringServer server;
  TestClient client(server);
  client.run("SET name 1");
  server.events();
  server.changes();
  CHECK(client.run("GETEX name") == bulk("1"));
  CHECK(client.run("GETEX name PERSIST") == bulk("1"));
  CHECK(server.changes() == 0);
  CHECK(client.run("GETEX name EX 10") == bulk("1"));
  CHECK(server.ttl_ms("name") == 10'000);
  CHECK(client.run("GETEX name") == bulk("1"));
  CHECK(server.ttl_ms("name") == 10'000);
  CHECK(client.run("GETEX name PERSIST") == bulk("1"));
  CHECK(server.ttl_ms("name") == -1);
  CHECK(server.events() == "expire name, persist name");
  CHECK(server.changes() == 2);
}

TEST_CASE("GETEX with a time that has passed removes the key", "[strings]") {
  StringServer server;
  TestClient client(server);
  client.run("SET name 1");
  server.events();
  CHECK(client.run("GETEX name EXAT 1") == bulk("1"));
  CHECK(client.run("GETEX name") == kNull);
  CHECK(server.events() == "del name");
}

TEST_CASE("GETEX looks at the words first, at the key next and at the time last", "[strings]") {
  StringServer server;
  TestClient client(server);
  for (const char* const options :
       {"KEEPTTL", "NX", "GET", "EX", "EX 1 PX 1", "PERSIST EX 1", "EX 1 PERSIST"}) {
    CAPTURE(options);
    CHECK(client.run(std::string("GETEX none ") + options) == error("ERR syntax error"));
  }
  CHECK(client.run("GETEX none EX 0") == kNull);
  server.put_list("list");
  CHECK(client.run("GETEX list EX 0") == kWrongType);
  client.run("SET name 1");
  CHECK(client.run("GETEX name EX 0") == error("ERR invalid expire time in 'getex' command"));
  CHECK(client.run("GETEX name EX x") == error("ERR value is not an integer or out of range"));
  CHECK(client.run("GETEX name PERSIST PERSIST") == bulk("1"));
}

TEST_CASE("Commands that read count hits and misses, those that write do not", "[strings]") {
  StringServer server;
  TestClient client(server);
  const auto counted = [&](std::string_view request) {
    store::Environment& environment = server.server.environment();
    environment.figures.hits = environment.figures.misses = 0;
    client.run(request);
    return std::to_string(environment.figures.hits) + " " +
           std::to_string(environment.figures.misses);
  };
  CHECK(counted("SET name 1") == "0 0");
  CHECK(counted("GET name") == "1 0");
  CHECK(counted("GET none") == "0 1");
  CHECK(counted("SET name 1 GET") == "1 0");
  CHECK(counted("SET name 1 NX") == "0 0");
  CHECK(counted("INCR name") == "0 0");
  CHECK(counted("APPEND name 1") == "0 0");
  CHECK(counted("MGET name none name") == "2 1");
  CHECK(counted("GETSET name 1") == "1 0");
  CHECK(counted("LCS name none") == "1 1");
  CHECK(counted("GETDEL name") == "1 0");
}

TEST_CASE("Values take the shortest form", "[strings]") {
  StringServer server;
  TestClient client(server);
  client.run_words({"MSET", "int", "-9223372036854775808", "long", "9223372036854775808", "zeros",
                    "007", "short", std::string(44, 'x'), "raw", std::string(45, 'x')});
  CHECK(server.encoding("int") == "int");
  CHECK(server.encoding("long") == "embstr");
  CHECK(server.encoding("zeros") == "embstr");
  CHECK(server.encoding("short") == "embstr");
  CHECK(server.encoding("raw") == "raw");
}

}  // namespace latchkey::tests
