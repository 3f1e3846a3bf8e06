#include <string>

#include "unit/catch.h"
#include "unit/commands/string_server.h"
#include "unit/propagation_recorder.h"

namespace latchkey::tests {

namespace {

std::string integers(int64_t value, int64_t change) {
  return array({integer(value), integer(change)});
}

}  // namespace

TEST_CASE("INCREX counts by one, by an integer and by a float", "[increx]") {
  StringServer server;
  TestClient client(server);
  CHECK(client.run("INCREX n") == integers(1, 1));
  CHECK(client.run("INCREX n BYINT 41") == integers(42, 41));
  CHECK(client.run("INCREX n BYINT -2") == integers(40, -2));
  CHECK(client.run("INCREX n BYFLOAT 0.25") == bulks({"40.25", "0.25"}));
  CHECK(client.run("GET n") == bulk("40.25"));
  CHECK(server.events() == "incrby n, incrby n, incrby n, incrbyfloat n");
  CHECK(server.changes() == 4);
  CHECK(client.run("INCREX n") == error("ERR value is not an integer or out of range"));
  TestClient third(server, 3);
  CHECK(third.run("INCREX n BYFLOAT 0.5") == "*2\r\n,40.75\r\n,0.5\r\n");
  // What no client could read as a double is text in both protocols.
  CHECK(third.run("INCREX large BYFLOAT 1e400").starts_with("*2\r\n$401\r\n"));
}

TEST_CASE("INCREX beyond a bound changes nothing and says so", "[increx]") {
  StringServer server;
  TestClient client(server);
  client.run("SET n 99 EX 10");
  server.events();
  server.changes();
  CHECK(client.run("INCREX n BYINT 5 UBOUND 100 EX 500") == integers(99, 0));
  CHECK(client.run("INCREX n BYINT -5 LBOUND 95 PERSIST") == integers(99, 0));
  CHECK(client.run("INCREX n BYFLOAT 1.5 UBOUND 100.25") == bulks({"99", "0"}));
  CHECK(client.run("INCREX new BYINT 10 UBOUND 5") == integers(0, 0));
  CHECK(server.ttl_ms("n") == 10'000);
  CHECK(server.ttl_ms("new") == -2);
  CHECK(server.events().empty());
  CHECK(server.changes() == 0);
}

TEST_CASE("INCREX SATURATE stops at a bound and tells how far it came", "[increx]") {
  StringServer server;
  TestClient client(server);
  client.run("SET n 99");
  CHECK(client.run("INCREX n BYINT 5 UBOUND 100 SATURATE") == integers(100, 1));
  CHECK(client.run("INCREX n BYINT 5 UBOUND 100 SATURATE") == integers(100, 0));
  CHECK(client.run("INCREX n BYINT -500 LBOUND -3 SATURATE") == integers(-3, -103));
  CHECK(client.run("INCREX new BYINT 10 UBOUND 5 SATURATE") == integers(5, 5));
  client.run("SET r 5");
  CHECK(client.run("INCREX r BYFLOAT 2.5 UBOUND 7.4 SATURATE") == bulks({"7.4", "2.4"}));
  // A value that is outside already comes back to the bound, whatever the sign of the increment.
  client.run("SET far 200");
  CHECK(client.run("INCREX far BYINT -10 UBOUND 100 SATURATE") == integers(100, -100));
}

TEST_CASE("INCREX takes the ends of 64 bits for bounds", "[increx]") {
  StringServer server;
  TestClient client(server);
  client.run("SET n 9223372036854775806");
  CHECK(client.run("INCREX n BYINT 5") == integers(9223372036854775806, 0));
  CHECK(client.run("INCREX n BYINT 5 SATURATE") == integers(INT64_MAX, 1));
  client.run("SET n -9223372036854775808");
  CHECK(client.run("INCREX n BYINT -1") == integers(INT64_MIN, 0));
  CHECK(client.run("INCREX n LBOUND 1 SATURATE") == error("ERR applied increment would overflow"));
  CHECK(client.run("GET n") == bulk("-9223372036854775808"));
}

TEST_CASE("INCREX takes infinity for a bound, and for nothing else", "[increx]") {
  StringServer server;
  TestClient client(server);
  constexpr std::string_view kTooFar = "ERR applied increment would be Infinity";
  for (const char* number : {"inf", "+inf", "-inf"}) {
    CHECK(client.run("INCREX n BYFLOAT " + std::string(number)) ==
          error("ERR BYFLOAT increment cannot be Infinity"));
  }
  CHECK(client.run("INCREX n BYFLOAT nan") == error("ERR Increment is not a valid float"));
  CHECK(server.ttl_ms("n") == -2);
  client.run("SET n inf");
  CHECK(client.run("INCREX n BYFLOAT 1") == error("ERR value cannot be Infinity"));
  client.run("SET n 10");
  CHECK(client.run("INCREX n BYFLOAT 1.5 LBOUND -inf UBOUND inf") == bulks({"11.5", "1.5"}));
  CHECK(client.run("INCREX n BYFLOAT 1 UBOUND -inf") ==
        error("ERR LBOUND can't be greater than UBOUND"));
  CHECK(client.run("INCREX n BYFLOAT 1 LBOUND inf UBOUND inf") == bulks({"11.5", "0"}));
  CHECK(client.run("INCREX n BYFLOAT 1 LBOUND inf UBOUND inf SATURATE") == error(kTooFar));
  CHECK(client.run("INCREX n BYFLOAT 1 LBOUND -inf UBOUND -inf SATURATE") == error(kTooFar));
}

TEST_CASE("INCREX stops at the ends of the floats", "[increx]") {
  StringServer server;
  TestClient client(server);
  const std::string large = "1" + std::string(4932, '0');
  client.run("SET n " + large);
  client.run("INCREX n BYFLOAT 0");
  const std::string before = client.run("GET n");
  for (const char* bound : {"", " UBOUND inf"}) {
    CHECK(client.run("INCREX n BYFLOAT " + large + bound) == array({before, bulk("0")}));
  }
  CHECK(client.run("INCREX n BYFLOAT " + large + " UBOUND " + large) == array({before, bulk("0")}));
  // What is saturated comes to the largest number, and what is added to reach it is told.
  const std::string reply = client.run("INCREX n BYFLOAT " + large + " SATURATE");
  CHECK(reply.starts_with("*2\r\n" + client.run("GET n")));
  CHECK(client.run("GET n") != before);
  client.run("SET n -" + large);
  CHECK(client.run("INCREX n BYFLOAT 1 LBOUND " + large + " SATURATE") ==
        error("ERR applied increment would be Infinity"));
}

TEST_CASE("INCREX sets, keeps and removes the deadline", "[increx]") {
  StringServer server;
  TestClient client(server);
  PropagationRecorder stream(server);
  client.run("INCREX n EX 100");
  CHECK(server.ttl_ms("n") == 100'000);
  CHECK(stream.take().ends_with("SET n 1 PXAT " + std::to_string(server.now_ms() + 100'000)));
  client.run("INCREX n");
  CHECK(server.ttl_ms("n") == 100'000);
  CHECK(stream.take() == "SET n 2 KEEPTTL");
  client.run("INCREX n PX 5 ENX");
  CHECK(server.ttl_ms("n") == 100'000);
  CHECK(stream.take() == "SET n 3 KEEPTTL");
  server.events();
  client.run("INCREX n PERSIST");
  CHECK(server.ttl_ms("n") == -1);
  CHECK(stream.take() == "SET n 4");
  CHECK(server.events() == "incrby n, persist n");
  client.run("INCREX n PX 5 ENX");
  CHECK(server.ttl_ms("n") == 5);
  CHECK(server.events() == "incrby n, expire n");
  stream.take();
  CHECK(client.run("INCREX n BYINT 9 UBOUND 1") == integers(5, 0));
  CHECK(stream.take().empty());
}

TEST_CASE("INCREX with a Unix time in the past removes the key", "[increx]") {
  StringServer server;
  TestClient client(server);
  PropagationRecorder stream(server);
  client.run("SET n 7");
  server.events();
  stream.take();
  CHECK(client.run("INCREX n PXAT 1") == integers(8, 1));
  CHECK(server.ttl_ms("n") == -2);
  CHECK(server.events() == "del n");
  CHECK(stream.take() == "DEL n");
  // Where there is no key there is none afterwards, and nothing has happened.
  CHECK(client.run("INCREX n EXAT 1") == integers(1, 1));
  CHECK(server.ttl_ms("n") == -2);
  CHECK(server.events().empty());
  CHECK(stream.take().empty());
  client.run("SET n 7 EX 100");
  server.events();
  CHECK(client.run("INCREX n EXAT 1 ENX") == integers(8, 1));
  CHECK(server.ttl_ms("n") == 100'000);
  CHECK(server.events() == "incrby n");
}

TEST_CASE("INCREX refuses what makes no sense", "[increx]") {
  StringServer server;
  TestClient client(server);
  client.run("SET n 5");
  constexpr std::string_view kSyntax = "ERR syntax error";
  const std::pair<const char*, std::string_view> kRequests[] = {
      {"BYINT 1 LBOUND 10 UBOUND 5", "ERR LBOUND can't be greater than UBOUND"},
      {"BYINT 1 ENX", "ERR ENX flag requires an expiration"},
      {"BYINT 1 PERSIST ENX", kSyntax},
      {"BYINT 1 BYFLOAT 2.5", kSyntax},
      {"BYINT 1 EX 5 PX 500", kSyntax},
      {"BYINT", kSyntax},
      {"KEEPTTL", kSyntax},
      {"EX -5", "ERR invalid expire time in 'increx' command"},
      {"EX a", "ERR value is not an integer or out of range"},
      {"BYINT 1.5", "ERR Increment is not an integer or out of range"},
      {"BYFLOAT abc", "ERR Increment is not a valid float"},
      {"BYINT 1 BYINT 1", kSyntax},
      {"BYFLOAT 1 BYFLOAT 1", kSyntax},
      {"LBOUND 1 LBOUND 1", kSyntax},
      {"UBOUND 1 UBOUND 1", kSyntax},
      {"SATURATE SATURATE", kSyntax},
      {"ENX ENX EX 10", kSyntax},
      {"PERSIST PERSIST", kSyntax},
      {"EX 10 EX 10", kSyntax},
      {"LBOUND 1.5", "ERR LBOUND is not an integer or out of range"},
      {"UBOUND x", "ERR UBOUND is not an integer or out of range"},
      {"BYFLOAT 1.5 LBOUND abc", "ERR LBOUND is not a valid float"}};
  for (const auto& [options, text] : kRequests) {
    CAPTURE(options);
    CHECK(client.run("INCREX n " + std::string(options)) == error(text));
  }
  CHECK(client.run("GET n") == bulk("5"));
  server.put_list("l");
  CHECK(client.run("INCREX l") == kWrongType);
}

}  // namespace latchkey::tests
