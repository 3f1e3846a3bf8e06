#include "server/client/pause.h"

#include "commands/groups.h"
#include "server/memory_limit.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

using namespace latchkey;
using tests::ServerFixture;
using tests::TestClient;

namespace {

struct PausedServer : ServerFixture {
  explicit PausedServer(std::string_view settings = {})
      : ServerFixture({commands::client_rows(), commands::string_rows(), commands::key_rows(),
                       commands::config_rows()},
                      settings) {}
};

}  // namespace

TEST_CASE("No key is evicted while clients are paused") {
  PausedServer server("maxmemory-policy allkeys-random\n");
  TestClient client(server);
  client.run("SET a 1");
  client.run("CLIENT PAUSE 1000 WRITE");
  client.run("CONFIG SET maxmemory 1");
  CHECK(server.server.memory_limit().make_room());
  CHECK(server.database().size() == 1);
  client.run("CLIENT UNPAUSE");
  CHECK_FALSE(server.server.memory_limit().make_room());
  CHECK(server.database().size() == 0);
}

TEST_CASE("RANDOMKEY gives a key that has expired when a pause keeps all there are") {
  PausedServer server;
  TestClient client(server);
  client.run("SET a 1 PX 10");
  client.run("CLIENT PAUSE 1000 WRITE");
  server.advance_ms(20);
  CHECK(client.run("GET a") == tests::kNull);
  CHECK(client.run("RANDOMKEY") == tests::bulk("a"));
  client.run("CLIENT UNPAUSE");
  CHECK(client.run("RANDOMKEY") == tests::kNull);
}
