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

TEST_CASE("While writes are paused, all else is answered as ever") {
  PausedServer server;
  TestClient client(server);
  client.run("SET a 1");
  CHECK(client.run("CLIENT PAUSE 1000 WRITE") == tests::kOk);
  CHECK(client.run("GET a") == tests::bulk("1"));
  CHECK(client.run("EXISTS a") == tests::integer(1));
  CHECK(client.run("CONFIG SET maxmemory 0") == tests::kOk);
  CHECK(client.run("GET") == tests::error("ERR wrong number of arguments for 'get' command"));
  CHECK(client.run("CLIENT UNPAUSE") == tests::kOk);
  CHECK(client.run("SET a 2") == tests::kOk);
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

TEST_CASE("In import-mode what has expired stays, and only an import source sees it") {
  PausedServer server;
  TestClient client(server);
  TestClient source(server);
  CHECK(source.run("CLIENT IMPORT-SOURCE ON") == tests::error("ERR Server is not in import mode"));
  client.run("CONFIG SET import-mode yes");
  CHECK(source.run("CLIENT IMPORT-SOURCE MAYBE") == tests::error("ERR syntax error"));
  CHECK(source.run("CLIENT IMPORT-SOURCE ON") == tests::kOk);
  client.run("SET a 1 PX 10");
  client.run("SET b 1 PX 10");
  server.advance_ms(20);
  server.tick();
  CHECK(client.run("GET a") == tests::kNull);
  CHECK(server.database().size() == 2);
  CHECK(source.run("GET a") == tests::bulk("1"));
  // A new key takes the hidden one's place.
  CHECK(client.run("SETNX b 2") == tests::integer(1));
  CHECK(client.run("GET b") == tests::bulk("2"));
  client.run("CONFIG SET import-mode no");
  CHECK(source.run("GET a") == tests::kNull);
  CHECK(server.database().size() == 1);
  CHECK(source.run("CLIENT IMPORT-SOURCE OFF") == tests::kOk);
  CHECK_FALSE(source->has(server::kClientImportSource));
}

TEST_CASE("In import-mode nothing is evicted, and what does not fit is refused") {
  PausedServer server("maxmemory-policy allkeys-random\nimport-mode yes\n");
  TestClient client(server);
  client.run("SET a 1");
  client.run("CONFIG SET maxmemory 1");
  CHECK(client.run("SET b 1").starts_with("-OOM "));
  CHECK(server.database().size() == 1);
  client.run("CONFIG SET import-mode no");
  CHECK_FALSE(server.server.memory_limit().make_room());
  CHECK(server.database().size() == 0);
}

TEST_CASE("A replica sends clients that say CAPA REDIRECT to its master") {
  PausedServer server("replicaof 10.0.0.1 7000\n");
  TestClient client(server);
  client.run("SET a 1");
  CHECK(client.run("CLIENT CAPA other REDIRECT") == tests::kOk);
  CHECK(client.run("GET a") == tests::bulk("1"));
  server.server.set_role(true, true);
  CHECK(client.run("GET a") == tests::error("REDIRECT 10.0.0.1:7000"));
  CHECK(client.run("SET a 2") == tests::error("REDIRECT 10.0.0.1:7000"));
  CHECK(client.run("CLIENT GETNAME") == tests::kNull);
  client->set(server::kClientReadsAnywhere);
  CHECK(client.run("GET a") == tests::bulk("1"));
  CHECK(client.run("SET a 2") == tests::error("REDIRECT 10.0.0.1:7000"));
  TestClient plain(server);
  CHECK(plain.run("GET a") == tests::bulk("1"));
}
