#include <string>

#include "unit/catch.h"
#include "unit/commands/string_server.h"

namespace latchkey::tests {

namespace {
constexpr std::string_view kNotInteger = "-ERR value is not an integer or out of range\r\n";
constexpr std::string_view kOverflow = "-ERR increment or decrement would overflow\r\n";
constexpr std::string_view kNotFloat = "-ERR value is not a valid float\r\n";
}  // namespace

TEST_CASE("Counters start at zero and count both ways", "[counters]") {
  StringServer server;
  TestClient client(server);
  CHECK(client.run("INCR n") == integer(1));
  CHECK(client.run("INCRBY n 41") == integer(42));
  CHECK(client.run("DECR n") == integer(41));
  CHECK(client.run("DECRBY n 50") == integer(-9));
  CHECK(client.run("DECRBY n -9") == integer(0));
  CHECK(client.run("GET n") == bulk("0"));
  CHECK(server.events() == "incrby n, incrby n, incrby n, incrby n, incrby n");
  CHECK(server.changes() == 5);
}

TEST_CASE("Counting leaves the deadline alone", "[counters]") {
  StringServer server;
  TestClient client(server);
  client.run("SET n 1 EX 10");
  client.run("INCR n");
  CHECK(server.ttl_ms("n") == 10'000);
  client.run("INCRBYFLOAT n 0.5");
  CHECK(server.ttl_ms("n") == 10'000);
  server.advance_ms(10'000);
  CHECK(client.run("INCR n") == integer(1));
  CHECK(server.ttl_ms("n") == -1);
}

TEST_CASE("Counters stop at the ends of 64 bits", "[counters]") {
  StringServer server;
  TestClient client(server);
  client.run("SET n 9223372036854775807");
  CHECK(client.run("INCR n") == kOverflow);
  CHECK(client.run("DECRBY n -1") == kOverflow);
  client.run("SET n -9223372036854775808");
  CHECK(client.run("DECR n") == kOverflow);
  CHECK(client.run("INCRBY n -1") == kOverflow);
  CHECK(client.run("DECRBY n -9223372036854775808") == error("ERR decrement would overflow"));
  CHECK(client.run("INCRBY n 9223372036854775807") == integer(-1));
  CHECK(client.run("GET n") == bulk("-1"));
}

TEST_CASE("Only canonical integers count", "[counters]") {
  StringServer server;
  TestClient client(server);
  for (const char* const text :
       {" 12", "12 ", "0012", "+1", "-0", "", "abc", "1.0", "9223372036854775808"}) {
    CAPTURE(text);
    client.run_words({"SET", "n", text});
    CHECK(client.run("INCR n") == kNotInteger);
    CHECK(client.run_words({"INCRBY", "other", text}) == kNotInteger);
    CHECK(client.run_words({"DECRBY", "n", text}) == kNotInteger);
  }
  client.run("SET n 1");
  client.run("APPEND n 2");
  CHECK(client.run("INCR n") == integer(13));
  CHECK(server.encoding("n") == "int");
  server.put_list("list");
  CHECK(client.run("INCR list") == kWrongType);
  CHECK(client.run("INCRBY list x") == kNotInteger);
}

TEST_CASE("INCRBYFLOAT adds with seventeen decimals and stores text", "[counters]") {
  StringServer server;
  TestClient client(server);
  CHECK(client.run("INCRBYFLOAT n 10.50") == bulk("10.5"));
  CHECK(client.run("INCRBYFLOAT n 0.1") == bulk("10.6"));
  CHECK(client.run("INCRBYFLOAT n -5") == bulk("5.6"));
  CHECK(client.run("INCRBYFLOAT n 5.0e3") == bulk("5005.60000000000000009"));
  client.run("SET n 3.0");
  CHECK(client.run("INCRBYFLOAT n 1.000000000000000005") == bulk("4.00000000000000001"));
  client.run("SET n 5");
  CHECK(client.run("INCRBYFLOAT n 1") == bulk("6"));
  CHECK(server.encoding("n") == "embstr");
  CHECK(client.run("INCR n") == integer(7));
  CHECK(client.run("INCRBYFLOAT zero -0.0") == bulk("0"));
  CHECK(server.events() ==
        "incrbyfloat n, incrbyfloat n, incrbyfloat n, incrbyfloat n, set n, incrbyfloat n, set n, "
        "incrbyfloat n, "
        "incrby n, incrbyfloat zero");
}

TEST_CASE("INCRBYFLOAT refuses what is no finite number", "[counters]") {
  StringServer server;
  TestClient client(server);
  for (const char* const text : {"", " 1", "1 ", "x", "nan", "1e5000"}) {
    CAPTURE(text);
    client.run_words({"SET", "n", text});
    CHECK(client.run("INCRBYFLOAT n 1") == kNotFloat);
    CHECK(client.run_words({"INCRBYFLOAT", "none", text}) == kNotFloat);
  }
  const std::string infinite = error("ERR increment would produce NaN or Infinity");
  CHECK(client.run("INCRBYFLOAT none inf") == infinite);
  client.run("SET n -inf");
  CHECK(client.run("INCRBYFLOAT n inf") == infinite);
  client.run("SET n 1.1e4932");
  CHECK(client.run("INCRBYFLOAT n 1.1e4932") == infinite);
  server.put_list("list");
  CHECK(client.run("INCRBYFLOAT list x") == kWrongType);
}

}  // namespace latchkey::tests
