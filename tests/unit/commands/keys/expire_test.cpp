
#include "commands/groups.h"
#include "server/expiry.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct ExpireFixture : ServerFixture {
  ExpireFixture()
      : ServerFixture({commands::database_rows(), commands::expire_rows(), commands::key_rows(),
                       commands::string_rows()}) {}
};

std::string invalid(std::string_view command) {
  return error("ERR invalid expire time in '" + std::string(command) + "' command");
}

}  // namespace

TEST_CASE("A key lives up to its deadline and not longer", "[expire]") {
  ExpireFixture server;
  TestClient client(server);
  client.run("SET a 1");
  server.events();
  server.changes();
  CHECK(client.run("EXPIRE a 2") == integer(1));
  CHECK(server.events() == "expire a");
  CHECK(server.changes() == 1);
  server.advance_ms(1999);
  CHECK(client.run("GET a") == bulk("1"));
  server.advance_ms(1);
  CHECK(client.run("GET a") == kNull);
  CHECK(server.events() == "expired a");
  CHECK(server.changes() == 0);
  CHECK(client.run("EXPIRE a 2") == integer(0));
}

TEST_CASE("Active expiry removes what nobody asks for", "[expire]") {
  ExpireFixture server;
  TestClient client(server);
  for (int i = 0; i < 5000; ++i) {
    const std::string key = std::to_string(i);
    client.run_words({"SET", key, "1"});
    client.run_words({"PEXPIRE", key, std::to_string(1 + i % 1000)});
  }
  // At most one turn of the wheel's tick later than the deadline.
  for (int elapsed = 100; elapsed <= 1000; elapsed += 100) {
    server.advance_ms(100);
    server.tick();
    const auto due = static_cast<size_t>((elapsed - 16) * 5);
    CHECK(server.database().environment().figures.expired_keys >= due);
    CHECK(server.database().environment().figures.expired_keys <= due + 16 * 5);
  }
  server.advance_ms(100);
  server.tick();
  CHECK(server.database().size() == 0);
}

TEST_CASE("No key expires by itself when active expiry is off", "[expire]") {
  ExpireFixture server;
  TestClient client(server);
  server.server.expiry().enable(false);
  client.run("SET a 1");
  client.run("PEXPIRE a 1");
  server.advance_ms(1000);
  server.tick();
  CHECK(server.database().size() == 1);
  CHECK(client.run("EXISTS a") == integer(0));
  CHECK(server.database().size() == 0);
}

TEST_CASE("Keys that have expired can be seen where that is allowed", "[expire]") {
  ExpireFixture server;
  TestClient client(server);
  server.server.expiry().enable(false);
  server.server.expiry().show_expired(true);
  client.run("SET a 1");
  client.run("PEXPIRE a 1");
  server.advance_ms(1000);
  CHECK(client.run("GET a") == bulk("1"));
  CHECK(client.run("EXISTS a") == integer(1));
  CHECK(client.run("PTTL a") == integer(0));
  SECTION("until it is not any more") {
    server.server.expiry().show_expired(false);
    CHECK(client.run("GET a") == kNull);
  }
  SECTION("until active expiry comes by") {
    server.server.expiry().enable(true);
    server.tick();
    CHECK(client.run("GET a") == kNull);
    CHECK(server.server.expiry().shows_expired());
  }
}

TEST_CASE("A deadline that has passed deletes the key", "[expire]") {
  ExpireFixture server;
  TestClient client(server);
  for (const char* request :
       {"EXPIRE a 0", "EXPIRE a -1", "PEXPIRE a 0", "EXPIREAT a 1", "PEXPIREAT a -5",
        "PEXPIREAT a 0", "PEXPIRE a -9223372036854775808", "EXPIRE a -1 LT", "EXPIRE a -1 NX"}) {
    INFO(request);
    client.run("SET a 1");
    server.events();
    CHECK(client.run(request) == integer(1));
    CHECK(server.events() == "del a");
    CHECK(client.run("EXISTS a") == integer(0));
  }
  client.run("SET a 1");
  CHECK(client.run("EXPIRE a -1 XX") == integer(0));
  CHECK(client.run("EXPIRE a -1 GT") == integer(0));
  CHECK(client.run("EXISTS a") == integer(1));
}

TEST_CASE("NX, XX, GT and LT set a deadline only in place of certain others", "[expire]") {
  ExpireFixture server;
  TestClient client(server);
  client.run("SET a 1");
  CHECK(client.run("EXPIRE a 100 XX") == integer(0));
  CHECK(client.run("EXPIRE a 100 GT") == integer(0));
  CHECK(client.run("EXPIRE a 100 NX") == integer(1));
  CHECK(client.run("EXPIRE a 200 NX") == integer(0));
  CHECK(client.run("EXPIRE a 100 GT") == integer(0));
  CHECK(client.run("EXPIRE a 200 gt") == integer(1));
  CHECK(client.run("EXPIRE a 200 LT") == integer(0));
  CHECK(client.run("EXPIRE a 150 LT XX") == integer(1));
  CHECK(client.run("EXPIRE a 300 XX GT GT") == integer(1));
  CHECK(client.run("TTL a") == integer(300));
  client.run("PERSIST a");
  CHECK(client.run("EXPIRE a 300 LT") == integer(1));
}

TEST_CASE("EXPIRE understands its options before its number", "[expire]") {
  ExpireFixture server;
  TestClient client(server);
  CHECK(client.run("EXPIRE a x foo") == error("ERR Unsupported option foo"));
  CHECK(client.run("EXPIRE a 10 NX XX") ==
        error("ERR NX and XX, GT or LT options at the same time are not compatible"));
  CHECK(client.run("EXPIRE a 10 NX LT") ==
        error("ERR NX and XX, GT or LT options at the same time are not compatible"));
  CHECK(client.run("EXPIRE a 10 GT LT") ==
        error("ERR GT and LT options at the same time are not compatible"));
  CHECK(client.run("EXPIRE a x") == error("ERR value is not an integer or out of range"));
}

TEST_CASE("Deadlines beyond the range of milliseconds are refused", "[expire]") {
  ExpireFixture server;
  TestClient client(server);
  client.run("SET a 1");
  CHECK(client.run("EXPIRE a 9223372036854776") == invalid("expire"));
  CHECK(client.run("EXPIRE a -9223372036854776") == invalid("expire"));
  CHECK(client.run("EXPIRE a 9223372036854775") == invalid("expire"));
  CHECK(client.run("PEXPIRE a 9223372036854775807") == invalid("pexpire"));
  CHECK(client.run("EXPIREAT a 9223372036854776") == invalid("expireat"));
  CHECK(client.run("TTL a") == integer(-1));
  CHECK(client.run("PEXPIREAT a 9223372036854775807") == integer(1));
  CHECK(client.run("PEXPIRETIME a") == integer(9223372036854775807));
  CHECK(client.run("EXPIRETIME a") == integer(9223372036854776));
  server.advance_ms(60'000);
  server.tick();
  CHECK(client.run("EXISTS a") == integer(1));
}

TEST_CASE("TTL and its kin tell the deadline, rounding to the nearest second", "[expire]") {
  ExpireFixture server;
  TestClient client(server);
  for (const char* command : {"TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"}) {
    CHECK(client.run_words({command, "a"}) == integer(-2));
    client.run("SET a 1");
    CHECK(client.run_words({command, "a"}) == integer(-1));
    client.run("DEL a");
  }
  client.run("SET a 1");
  client.run("PEXPIREAT a 4102444800499");
  CHECK(client.run("EXPIRETIME a") == integer(4102444800));
  CHECK(client.run("PEXPIRETIME a") == integer(4102444800499));
  client.run("PEXPIREAT a 4102444800500");
  CHECK(client.run("EXPIRETIME a") == integer(4102444801));
  client.run("PEXPIRE a 1499");
  CHECK(client.run("TTL a") == integer(1));
  CHECK(client.run("PTTL a") == integer(1499));
  client.run("PEXPIRE a 499");
  CHECK(client.run("TTL a") == integer(0));
}

TEST_CASE("PERSIST takes the deadline away", "[expire]") {
  ExpireFixture server;
  TestClient client(server);
  CHECK(client.run("PERSIST a") == integer(0));
  client.run("SET a 1");
  CHECK(client.run("PERSIST a") == integer(0));
  client.run("PEXPIRE a 10");
  server.events();
  CHECK(client.run("PERSIST a") == integer(1));
  CHECK(server.events() == "persist a");
  server.advance_ms(1000);
  server.tick();
  CHECK(client.run("GET a") == bulk("1"));
}

TEST_CASE("While a dataset is loaded a deadline of the past is kept", "[expire]") {
  ExpireFixture server;
  TestClient client(server);
  server.server.environment().expired = store::Environment::Expired::kShow;
  client.run("SET a 1");
  CHECK(client.run("PEXPIREAT a -5") == integer(1));
  CHECK(client.run("PEXPIRETIME a") == integer(0));
  server.server.environment().expired = store::Environment::Expired::kRemove;
  CHECK(client.run("EXISTS a") == integer(0));
}

TEST_CASE("A writable replica leaves the removal of an expired key to its master", "[expire]") {
  ExpireFixture server;
  TestClient client(server);
  server.server.environment().expired = store::Environment::Expired::kHide;
  client.run("SET a 1");
  server.events();
  CHECK(client.run("PEXPIREAT a 1") == integer(1));
  CHECK(server.events() == "expire a");
  CHECK(client.run("EXISTS a") == integer(0));
  CHECK(server.database().size() == 1);
}

}  // namespace latchkey::tests
