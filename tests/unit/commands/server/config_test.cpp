
#include "commands/groups.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

using namespace latchkey;
using tests::ServerFixture;
using tests::TestClient;

TEST_CASE("CONFIG GET gives names and values, as a map in RESP3") {
  ServerFixture server({commands::config_rows()}, "hz 25\n");
  TestClient client(server);
  CHECK(client.run("CONFIG GET hz") == tests::bulks({"hz", "25"}));
  CHECK(client.run("CONFIG GET nonsense") == "*0\r\n");
  TestClient modern(server, 3);
  CHECK(modern.run("CONFIG GET hz") == "%1\r\n$2\r\nhz\r\n$2\r\n25\r\n");
}

TEST_CASE("CONFIG SET is all or nothing") {
  ServerFixture server({commands::config_rows()});
  TestClient client(server);
  CHECK(client.run("CONFIG SET hz 20 timeout 7") == tests::kOk);
  CHECK(client.run("CONFIG SET timeout 8 hz nonsense").starts_with("-ERR CONFIG SET failed"));
  CHECK(server.server.settings().timeout == 7);
  CHECK(client.run("CONFIG SET hz 20 timeout") == tests::error("ERR syntax error"));
}

TEST_CASE("CONFIG REWRITE needs a file") {
  ServerFixture server({commands::config_rows()});
  TestClient client(server);
  CHECK(client.run("CONFIG REWRITE") ==
        tests::error("ERR The server is running without a config file"));
}
