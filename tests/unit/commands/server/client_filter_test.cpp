#include <string>

#include "commands/groups.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

using namespace latchkey;
using tests::ServerFixture;
using tests::TestClient;

namespace {

struct Clients : ServerFixture {
  explicit Clients(std::string_view settings = "")
      : ServerFixture({commands::client_rows(), commands::connection_rows(),
                       commands::transaction_rows(), commands::string_rows()},
                      settings) {}
};

// How many clients CLIENT LIST shows, or its error.
std::string listed(TestClient& client, const std::string& filter) {
  const std::string reply = client.run("CLIENT LIST " + filter);
  if (reply.starts_with("-")) return reply;
  size_t lines = 0;
  for (size_t at = reply.find("id="); at != std::string::npos; at = reply.find("\nid=", at + 1))
    ++lines;
  return std::to_string(lines);
}

}  // namespace

TEST_CASE("CLIENT LIST shows the clients that all options hold for") {
  Clients server;
  TestClient one(server);
  TestClient two(server);
  one.run("CLIENT SETNAME one");
  one.run("CLIENT SETINFO LIB-NAME library");
  one.run("CLIENT SETINFO LIB-VER 1.2");
  two.run("CLIENT NO-EVICT ON");
  two.run("CLIENT CAPA redirect");
  CHECK(listed(one, "NAME one") == "1");
  CHECK(listed(one, "NOT-NAME one") == "1");
  CHECK(listed(one, "NAME one NOT-NAME one") == "0");
  CHECK(listed(one, "NAME two NAME one") == "1");
  CHECK(listed(one, "LIB-NAME library LIB-VER 1.2 DB 0") == "1");
  CHECK(listed(one, "NOT-DB 0") == "0");
  CHECK(listed(one, "FLAGS e") == "1");
  CHECK(listed(one, "FLAGS eN") == "0");
  CHECK(listed(one, "NOT-FLAGS e") == "1");
  CHECK(listed(one, "CAPA r") == "1");
  CHECK(listed(one, "NOT-CAPA r NAME one") == "1");
  CHECK(listed(one, "TYPE normal USER default") == "2");
  CHECK(listed(one, "NOT-TYPE normal") == "0");
  CHECK(listed(one, "ID 1 2 NAME one") == "1");
  CHECK(listed(one, "NOT-ID 1 2") == "0");
  CHECK(listed(one, "IDLE 1000") == "0");
}

TEST_CASE("CLIENT LIST and CLIENT KILL refuse options that mean nothing") {
  Clients server;
  TestClient client(server);
  CHECK(listed(client, "FLAGS qq") == "-ERR Unknown flags found in the provided filter: qq\r\n");
  CHECK(listed(client, "CAPA x") == "-ERR Unknown capa found in the provided filter: x\r\n");
  CHECK(listed(client, "DB 16") == "-ERR DB number should be between 0 and 15\r\n");
  CHECK(listed(client, "DB -1") == "-ERR DB number should be between 0 and 15\r\n");
  CHECK(listed(client, "DB x") == "-ERR DB is not an integer or out of range\r\n");
  CHECK(listed(client, "IDLE 0") == "-ERR idle should be greater than 0\r\n");
  CHECK(listed(client, "ID") == "-ERR syntax error\r\n");
  CHECK(listed(client, "ID x") == "-ERR Invalid client ID\r\n");
  CHECK(listed(client, "ID 1 x") == "-ERR Invalid client ID\r\n");
  for (const char* option : {"NOT-IDLE 1", "NOT-MAXAGE 1", "NOT-SKIPME no", "NOT- x", "NOT x"})
    CHECK(listed(client, option) == "-ERR syntax error\r\n");
  CHECK(client.run("CLIENT KILL ID 0") == "-ERR client-id should be greater than 0\r\n");
}

TEST_CASE("CLIENT KILL closes the clients that an option does not hold for") {
  Clients server;
  TestClient one(server);
  TestClient two(server);
  one.run("CLIENT SETNAME one");
  CHECK(one.run("CLIENT KILL NOT-NAME one") == tests::integer(1));
}

TEST_CASE("An emulated release has the options of its own only") {
  Clients server("emulate \"redis 8.6\"\n");
  TestClient client(server);
  CHECK(listed(client, "NAME one") == "-ERR syntax error\r\n");
  CHECK(listed(client, "NOT-USER default") == "-ERR syntax error\r\n");
  CHECK(listed(client, "ID 1 NOT-USER default") == "-ERR Invalid client ID\r\n");
  CHECK(listed(client, "MAXAGE 1") == "0");
}
