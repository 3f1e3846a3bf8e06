#include <cstdint>
#include <string>

#include "commands/groups.h"
#include "server/client/authentication.h"
#include "server/client/client.h"
#include "unit/catch.h"
#include "unit/net/wire.h"
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
  // CLIENT LIST takes a type or ids, CLIENT KILL one id.
  for (const char* options : {"MAXAGE 1", "USER default", "SKIPME no", "TYPE normal ID 1"}) {
    INFO(options);
    CHECK(listed(client, options) == "-ERR syntax error\r\n");
  }
  CHECK(listed(client, "ID 1 TYPE normal") == "-ERR Invalid client ID\r\n");
  CHECK(listed(client, "TYPE normal") == "1");
  CHECK(listed(client, "ID 998 999") == "0");
  CHECK(listed(client, "TYPE primary") == "-ERR Unknown client type 'primary'\r\n");
  CHECK(client.run("CLIENT KILL ID 998 999") == tests::error("ERR syntax error"));
  CHECK(client.run("CLIENT KILL ID 998 TYPE pubsub") == tests::integer(0));
  CHECK(client.run("CLIENT KILL ID 1 ID 998 SKIPME no") == tests::integer(0));

  Clients valkey("emulate \"valkey 8.1\"\n");
  TestClient other(valkey);
  CHECK(listed(other, "MAXAGE 1") == "0");
  CHECK(listed(other, "TYPE primary") == "0");
  CHECK(other.run("CLIENT KILL ID 998 999") == tests::integer(0));
}

TEST_CASE("SKIPME with another word than yes and no is wrong, whatever follows") {
  Clients server;
  TestClient client(server);
  CHECK(listed(client, "SKIPME maybe ID 1") == "-ERR syntax error\r\n");
  CHECK(client.run("CLIENT KILL SKIPME maybe ID 998") == tests::error("ERR syntax error"));
}

TEST_CASE("A client is found by the address of its connection, and killed by it") {
  net::Loop loop;
  Clients server;
  tests::Wire wire(loop);
  server::Client& connected = server.server.clients().add(wire.connection);
  server::assume_default_user(connected);
  wire.connection->start(connected, 0);
  const uint64_t id = connected.id;
  const std::string address = wire.path() + ":0";
  TestClient client(server);
  CHECK(listed(client, "ADDR " + address) == "1");
  CHECK(listed(client, "LADDR " + address) == "1");
  CHECK(listed(client, "ADDR " + address + "0") == "0");
  CHECK(listed(client, "NOT-ADDR " + address) == "1");
  CHECK(listed(client, "IP " + wire.path()) == "1");
  CHECK(listed(client, "IP " + address) == "0");
  CHECK(client.run("CLIENT KILL 1.2.3.4:5") == tests::error("ERR No such client"));
  CHECK(client.run("CLIENT KILL") ==
        tests::error("ERR wrong number of arguments for 'client|kill' command"));
  CHECK(server.server.clients().find(id) != nullptr);
  CHECK(client.run("CLIENT KILL " + address) == tests::kOk);
  CHECK(server.server.clients().find(id) == nullptr);
  tests::turn(loop);
  CHECK(wire.peer.receive().empty());
  CHECK(wire.peer.is_at_end());
  CHECK_FALSE(client->has(server::kClientCloseAfterReply));
}

TEST_CASE("A client that kills itself gets the reply first") {
  Clients server;
  TestClient client(server);
  TestClient other(server);
  const std::string id = std::to_string(client->id);
  CHECK(client.run("CLIENT KILL ID " + id) == tests::integer(0));
  CHECK_FALSE(client->has(server::kClientCloseAfterReply));
  CHECK(client.run("CLIENT KILL ID " + id + " SKIPME no") == tests::integer(1));
  CHECK(client->has(server::kClientCloseAfterReply));
  CHECK_FALSE(client->has(server::kClientClosing));
  // Those without a connection are all at "?:0": the first of them is meant.
  CHECK(other.run("CLIENT KILL ?:0") == tests::kOk);
}

TEST_CASE("CLIENT LIST finds clients by their age and by how long they have been idle") {
  Clients server;
  TestClient old(server);
  server.advance_ms(10'000);
  TestClient young(server);
  server.advance_ms(5'000);
  CHECK(listed(young, "MAXAGE 15") == "1");
  CHECK(listed(young, "MAXAGE 16") == "0");
  CHECK(listed(young, "MAXAGE 5") == "2");
  CHECK(listed(young, "MAXAGE 6") == "1");
  CHECK(listed(young, "MAXAGE 0") == "-ERR maxage should be greater than 0\r\n");
  CHECK(listed(young, "MAXAGE x") == "-ERR maxage is not an integer or out of range\r\n");
  CHECK(listed(young, "TYPE nonsense") == "-ERR Unknown client type 'nonsense'\r\n");
  CHECK(listed(young, "USER nobody") == "-ERR No such user 'nobody'\r\n");
  CHECK(listed(young, "SKIPME yes") == "1");
  CHECK(listed(young, "SKIPME no") == "2");
  CHECK(listed(young, "SKIPME maybe") == "-ERR syntax error\r\n");
}

TEST_CASE("CLIENT LIST knows the types of clients by their old names, too") {
  Clients server;
  TestClient client(server);
  for (const char* const type : {"master", "primary", "replica", "slave", "pubsub"})
    CHECK(listed(client, "TYPE " + std::string(type)) == "0");
  CHECK(listed(client, "TYPE NORMAL") == "1");
}
