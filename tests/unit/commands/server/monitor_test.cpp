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

struct MonitoredServer : ServerFixture {
  MonitoredServer()
      : ServerFixture({commands::monitor_rows(), commands::string_rows(), commands::key_rows(),
                       commands::connection_rows(), commands::config_rows(),
                       commands::transaction_rows(), commands::list_rows(),
                       commands::list_wait_rows(), commands::client_rows(),
                       commands::database_rows()}),
        listener(*this) {
    CHECK(listener.run("MONITOR") == tests::kOk);
  }

  // A request as a monitor sees it from a client without a connection.
  std::string line(std::string_view words, int database = 0) {
    const std::string us = std::to_string(clock.wall_us() % 1'000'000);
    return "+" + std::to_string(clock.wall_us() / 1'000'000) + "." +
           std::string(6 - us.size(), '0') + us + " [" + std::to_string(database) + " ?:0] " +
           std::string(words) + "\r\n";
  }

  TestClient listener;
};

}  // namespace

TEST_CASE("MONITOR shows requests as they came, each when it has run") {
  MonitoredServer server;
  TestClient client(server);
  client.run("SeT name value");
  CHECK(server.listener.take_output() == server.line(R"("SeT" "name" "value")"));
  client.run("SELECT 3");
  CHECK(server.listener.take_output() == server.line(R"("SELECT" "3")", 3));
  server.advance_ms(1234);
  client.run_words({"GET", "a\"b\\c\r\n\t\x01\xff"});
  CHECK(server.listener.take_output() == server.line(R"("GET" "a\"b\\c\r\n\t\x01\xff")", 3));
}

TEST_CASE("MONITOR does not show what is refused, nor what is for operators") {
  MonitoredServer server;
  TestClient client(server);
  client.run("NOSUCH command");
  client.run("GET");
  client.run("CONFIG GET port");
  CHECK(server.listener.take_output().empty());
}

TEST_CASE("A monitor that wants no replies is shown nothing") {
  MonitoredServer server;
  TestClient client(server);
  CHECK(server.listener.run("CLIENT REPLY OFF").empty());
  client.run("SET name value");
  CHECK(server.listener.take_output().empty());
  server.listener.run("CLIENT REPLY ON");
  server.listener.take_output();
  client.run("GET name");
  CHECK(server.listener.take_output() == server.line(R"("GET" "name")"));
}

TEST_CASE("MONITOR shows a transaction's requests when they run, before EXEC") {
  MonitoredServer server;
  TestClient client(server);
  client.run("MULTI");
  client.run("SET a 1");
  CHECK(server.listener.take_output() == server.line(R"("MULTI")"));
  client.run("EXEC");
  CHECK(server.listener.take_output() ==
        server.line(R"("SET" "a" "1")") + server.line(R"("EXEC")"));
}

TEST_CASE("MONITOR shows a request that waits once") {
  MonitoredServer server;
  TestClient waiting(server);
  TestClient client(server);
  waiting.run("BLPOP list 0");
  client.run("RPUSH list a");
  CHECK(waiting.take_output() == tests::bulks({"list", "a"}));
  CHECK(server.listener.take_output() ==
        server.line(R"("BLPOP" "list" "0")") + server.line(R"("RPUSH" "list" "a")"));
}

TEST_CASE("MONITOR hides what logs in") {
  MonitoredServer server;
  TestClient client(server);
  client.run("AUTH secret");
  client.run("AUTH name secret");
  client.run("HELLO 2 SETNAME auth AUTH name secret");
  CHECK(server.listener.take_output() ==
        server.line(R"~("AUTH" "(redacted)")~") +
            server.line(R"~("AUTH" "(redacted)" "(redacted)")~") +
            server.line(R"~("HELLO" "2" "SETNAME" "auth" "AUTH" "(redacted)" "(redacted)")~"));
}

TEST_CASE("Who monitors may not use keys, and may stop with RESET") {
  MonitoredServer server;
  CHECK(server.listener.run("GET name") == "-ERR Replica can't interact with the keyspace\r\n");
  // A second MONITOR is not answered.
  CHECK(server.listener.run("MONITOR").empty());
  CHECK(server.listener.run("PING") == "+PONG\r\n" + server.line(R"("PING")"));
  CHECK((server.server.state() & server::kStateMonitored) != 0);
  CHECK(server.listener.run("RESET") == "+RESET\r\n");
  CHECK(server.server.state() == 0);
  CHECK(server.listener.run("GET name") == tests::kNull);
}

TEST_CASE("MONITOR is refused in a transaction") {
  MonitoredServer server;
  TestClient client(server);
  client.run("MULTI");
  client.run("MONITOR");
  CHECK(client.run("EXEC") ==
        tests::array({tests::error("ERR MONITOR isn't allowed for DENY BLOCKING client")}));
}

TEST_CASE("A monitor that quits is shown nothing more, others are") {
  MonitoredServer server;
  TestClient other(server);
  CHECK(other.run("MONITOR") == tests::kOk);
  server.listener.take_output();
  CHECK(server.listener.run("QUIT") == tests::kOk);
  CHECK(other.take_output().find("\"QUIT\"") != std::string::npos);
}

TEST_CASE("A monitor that leaves is forgotten") {
  MonitoredServer server;
  server.listener->close();
  CHECK(server.server.state() == 0);
}

TEST_CASE("MONITOR shows the path of a unix socket in place of an address") {
  net::Loop loop;
  MonitoredServer server;
  tests::Wire wire(loop);
  server::Client& connected = server.server.clients().add(wire.connection);
  server::assume_default_user(connected);
  wire.connection->start(connected, 0);
  std::string request = "GET a\r\n";
  connected.on_input(request);
  CHECK(server.listener.take_output().ends_with(" [0 " + wire.path() + ":0] \"GET\" \"a\"\r\n"));
  connected.set(server::kClientUnixSocket);
  request = "GET b\r\n";
  connected.on_input(request);
  CHECK(server.listener.take_output().ends_with(" [0 unix:" + wire.path() + "] \"GET\" \"b\"\r\n"));
  connected.close();
}
