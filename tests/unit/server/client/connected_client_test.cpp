// Clients with connections: what becomes of those who read slowly, stop, or go in the middle.
#include <cstdint>
#include <string>
#include <string_view>

#include "commands/groups.h"
#include "server/client/authentication.h"
#include "server/client/client.h"
#include "unit/catch.h"
#include "unit/net/wire.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

class NetServer : public ServerFixture {
 public:
  explicit NetServer(std::string_view settings = {})
      : ServerFixture(
            {commands::string_rows(), commands::string_range_rows(), commands::counter_rows(),
             commands::list_rows(), commands::list_wait_rows(), commands::pubsub_rows(),
             commands::connection_rows(), commands::client_rows()},
            settings) {}
};

struct User {
  User(net::Loop& used_loop, NetServer& used_server)
      : loop(used_loop),
        server(used_server),
        wire(loop),
        client(server.server.clients().add(wire.connection)),
        id(client.id) {
    server::assume_default_user(client);
    // The least that the system lets be under way.
    const int size = 1;
    REQUIRE(setsockopt(wire.connection->descriptor(), SOL_SOCKET, SO_SNDBUF, &size, sizeof size) ==
            0);
    wire.connection->start(client, 0);
  }
  ~User() {
    if (is_there()) client.close();
  }

  // Also does what waits for the end of a turn.
  void turn() {
    tests::turn(loop);
    server.tick();
    tests::turn(loop);
  }
  bool is_there() const { return server.server.clients().find(id) != nullptr; }
  std::string ask(std::string_view request) {
    wire.peer.send(request);
    turn();
    return wire.peer.receive();
  }
  // All that arrives until nothing does.
  std::string receive_all() {
    std::string text;
    for (int idle = 0; idle < 3;) {
      const std::string piece = wire.peer.receive();
      text += piece;
      idle = piece.empty() ? idle + 1 : 0;
      tests::turn(loop, 1);
    }
    return text;
  }

  net::Loop& loop;
  NetServer& server;
  Wire wire;
  server::Client& client;
  uint64_t id;
};

// More than the sockets take.
const std::string kMuch(300'000, 'm');

}  // namespace

TEST_CASE("Requests and replies go through a connection, however they are split", "[client]") {
  net::Loop loop;
  NetServer server;
  User user(loop, server);
  const std::string request = bulks({"SET", "key", kMuch}) + "STRLEN key\r\nGET key\r\n";
  std::string_view left = request;
  for (int i = 0; i < 10'000 && !left.empty(); ++i) {
    left.remove_prefix(user.wire.peer.send_some(left.substr(0, 1'234)));
    tests::turn(loop, 1);
  }
  CHECK(user.receive_all() == std::string(kOk) + integer(300'000) + bulk(kMuch));
}

TEST_CASE("A client over the soft output limit goes when its time is over", "[client]") {
  net::Loop loop;
  NetServer server("client-output-buffer-limit normal 0 100000 10");
  TestClient(server).run_words({"SET", "key", kMuch});
  User user(loop, server);
  user.wire.peer.send("GET key\r\n");
  user.turn();
  REQUIRE(user.client.pending_output() > 100'000);
  server.advance_ms(10'000);
  user.turn();
  CHECK(user.is_there());
  SECTION("it has not read") {
    server.advance_ms(1);
    user.turn();
    CHECK_FALSE(user.is_there());
    CHECK(server.server.stats().output_buffer_limit_disconnections == 1);
  }
  SECTION("it has read, and has all the time again") {
    CHECK(user.receive_all() == bulk(kMuch));
    server.advance_ms(60'000);
    user.turn();
    CHECK(user.is_there());
    user.wire.peer.send("GET key\r\n");
    user.turn();
    server.advance_ms(10'000);
    user.turn();
    CHECK(user.is_there());
    server.advance_ms(1);
    user.turn();
    CHECK_FALSE(user.is_there());
  }
}

TEST_CASE("A client of Valkey that has once logged in may leave replies unread", "[client]") {
  for (const bool logs_in : {false, true}) {
    INFO(logs_in);
    net::Loop loop;
    NetServer server("emulate \"valkey 9.1\"\nrequirepass secret\n");
    User user(loop, server);
    if (logs_in) CHECK(user.ask("AUTH secret\r\nRESET\r\n") == "+OK\r\n+RESET\r\n");
    CHECK(user.ask("GET key\r\n").starts_with("-NOAUTH"));
    server.server.debug_settings().enforce_reply_list = true;
    user.ask("GET key\r\n");
    CHECK(user.is_there() == logs_in);
  }
}

TEST_CASE("A client that has come below the soft output limit has all the time again", "[client]") {
  net::Loop loop;
  NetServer server("client-output-buffer-limit normal 0 100000 10");
  TestClient(server).run_words({"SET", "key", kMuch});
  User user(loop, server);
  user.wire.peer.send("GET key\r\n");
  user.turn();
  // Below it, and above what is not looked at.
  while (user.client.pending_output() > 90'000) {
    user.wire.peer.receive(4096);
    tests::turn(loop, 1);
  }
  REQUIRE(user.client.pending_output() > 50'000);
  user.turn();
  server.advance_ms(60'000);
  user.wire.peer.send("GET key\r\n");
  user.turn();
  REQUIRE(user.client.pending_output() > 100'000);
  user.turn();
  CHECK(user.is_there());
  server.advance_ms(10'001);
  user.turn();
  CHECK_FALSE(user.is_there());
}

TEST_CASE("A client over the hard output limit goes at once, one under it stays", "[client]") {
  net::Loop loop;
  NetServer server("client-output-buffer-limit normal 500000 0 0");
  TestClient(server).run_words({"SET", "key", kMuch});
  User user(loop, server);
  user.wire.peer.send("GET key\r\n");
  user.turn();
  CHECK(user.is_there());
  user.wire.peer.send("GET key\r\n");
  user.turn();
  CHECK_FALSE(user.is_there());
  CHECK(server.server.stats().output_buffer_limit_disconnections == 1);
}

TEST_CASE("A subscriber that does not read goes, and the others hear everything", "[client]") {
  net::Loop loop;
  NetServer server("client-output-buffer-limit pubsub 500000 0 0");
  TestClient publisher(server);
  User slow(loop, server);
  User quick(loop, server);
  slow.ask("SUBSCRIBE news\r\n");
  quick.ask("SUBSCRIBE news\r\n");
  const std::string message = bulks({"message", "news", kMuch});
  for (int i = 0; i < 3; ++i) {
    publisher.run_words({"PUBLISH", "news", kMuch});
    server.tick();
    CHECK(quick.receive_all() == message);
  }
  CHECK_FALSE(slow.is_there());
  CHECK(quick.is_there());
}

TEST_CASE("A client that quits gets all replies before it goes", "[client]") {
  net::Loop loop;
  NetServer server;
  TestClient(server).run_words({"SET", "key", kMuch});
  User user(loop, server);
  SECTION("by QUIT") {
    user.wire.peer.send("GET key\r\nQUIT\r\nGET key\r\n");
  }
  SECTION("by sending no more") {
    user.wire.peer.send("GET key\r\nPING\r\n");
    user.wire.peer.send_no_more();
  }
  user.turn();
  CHECK(user.is_there());
  const std::string received = user.receive_all();
  const std::string last = received.substr(std::min(bulk(kMuch).size(), received.size()));
  CHECK(received.starts_with(bulk(kMuch)));
  CHECK((last == kOk || last == status("PONG")));
  CHECK(user.wire.peer.is_at_end());
  CHECK_FALSE(user.is_there());
}

TEST_CASE("A client that goes with replies pending takes nothing with it", "[client]") {
  net::Loop loop;
  NetServer server;
  TestClient other(server);
  other.run_words({"SET", "key", kMuch});
  User user(loop, server);
  user.wire.peer.send("INCR n\r\nGET key\r\nINCR n\r\n");
  user.turn();
  REQUIRE(user.is_there());
  user.wire.peer.close();
  user.turn();
  CHECK_FALSE(user.is_there());
  CHECK(other.run("GET n") == bulk("2"));
  CHECK(other.run("STRLEN key") == integer(300'000));
}

TEST_CASE("Requests behind one that waits are kept, and run when it is served", "[client]") {
  net::Loop loop;
  NetServer server;
  TestClient other(server);
  User user(loop, server);
  CHECK(user.ask("PING\r\nBLPOP list 0\r\nINCR n\r\nINC") == status("PONG"));
  CHECK(user.ask("R n\r\n").empty());
  CHECK(other.run("GET n") == kNull);
  other.run("RPUSH list element");
  user.turn();
  CHECK(user.wire.peer.receive() == bulks({"list", "element"}) + integer(1) + integer(2));
}

TEST_CASE("A client that waits may not send more than the limit of its query buffer", "[client]") {
  net::Loop loop;
  NetServer server("client-query-buffer-limit 1mb");
  User user(loop, server);
  user.wire.peer.send("BLPOP list 0\r\n");
  user.turn();
  const std::string ping(100'000, '\n');
  size_t sent = 0;
  for (int i = 0; i < 100 && user.is_there(); ++i) {
    sent += user.wire.peer.send_some(ping);
    tests::turn(loop);
    if (sent < 1'000'000) REQUIRE(user.is_there());
  }
  CHECK_FALSE(user.is_there());
  CHECK(server.server.stats().query_buffer_limit_disconnections == 1);
}

TEST_CASE("A client whose wait ends by its timeout goes on with what it has sent", "[client]") {
  net::Loop loop;
  NetServer server;
  User user(loop, server);
  CHECK(user.ask("BLPOP list 5\r\nPING\r\n").empty());
  server.advance_ms(5'000);
  user.turn();
  CHECK(user.wire.peer.receive() == std::string(kNullArray) + status("PONG"));
}

TEST_CASE("Waits and pauses last as long when the machine's clock is set", "[client]") {
  net::Loop loop;
  NetServer server;
  User waiting(loop, server);
  User pausing(loop, server);
  User paused(loop, server);
  const int64_t step_ms = GENERATE(3'600'000, -3'600'000);
  CHECK(waiting.ask("BLPOP list 5\r\n").empty());
  CHECK(pausing.ask("CLIENT PAUSE 4000 WRITE\r\n") == kOk);
  CHECK(paused.ask("SET key value\r\n").empty());
  server.step_ms(step_ms);
  paused.turn();
  server.advance_ms(3'999);
  paused.turn();
  CHECK(paused.wire.peer.receive().empty());
  server.advance_ms(1);
  paused.turn();
  CHECK(paused.wire.peer.receive() == kOk);
  server.advance_ms(999);
  waiting.turn();
  CHECK(waiting.wire.peer.receive().empty());
  server.advance_ms(1);
  waiting.turn();
  CHECK(waiting.wire.peer.receive() == kNullArray);
}

TEST_CASE("Waits and pauses that begin behind a step of the clock last no longer for it",
          "[client]") {
  net::Loop loop;
  NetServer server;
  User waiting(loop, server);
  User pausing(loop, server);
  // No tick in between.
  const auto say = [&](User& user, std::string_view request) {
    user.wire.peer.send(request);
    tests::turn(loop);
    return user.wire.peer.receive();
  };
  server.clock.step_ms(GENERATE(3'600'000, -3'600'000));
  CHECK(say(waiting, "BLPOP list 5\r\n").empty());
  CHECK(say(pausing, "CLIENT PAUSE 5000 WRITE\r\n") == kOk);
  CHECK(say(pausing, "SET key value\r\n").empty());
  server.advance_ms(4'999);
  waiting.turn();
  CHECK(waiting.wire.peer.receive().empty());
  CHECK(pausing.wire.peer.receive().empty());
  server.advance_ms(1);
  waiting.turn();
  CHECK(waiting.wire.peer.receive() == kNullArray);
  CHECK(pausing.wire.peer.receive() == kOk);
}

TEST_CASE("A client that does nothing for longer than timeout goes, unless it waits or listens",
          "[client]") {
  net::Loop loop;
  NetServer server("timeout 5");
  User idle(loop, server);
  User waiting(loop, server);
  User listening(loop, server);
  User busy(loop, server);
  CHECK(idle.ask("PING\r\n") == status("PONG"));
  CHECK(waiting.ask("BLPOP list 0\r\n").empty());
  CHECK(listening.ask("SUBSCRIBE news\r\n").starts_with("*3\r\n"));
  server.advance_ms(3'000);
  CHECK(busy.ask("PING\r\n") == status("PONG"));
  idle.turn();
  server.advance_ms(2'000);
  idle.turn();
  CHECK(idle.is_there());
  server.advance_ms(1);
  // Some clients are looked at in each tick.
  for (int i = 0; i < 50; ++i) busy.turn();
  CHECK_FALSE(idle.is_there());
  CHECK(waiting.is_there());
  CHECK(listening.is_there());
  CHECK(busy.is_there());
}

TEST_CASE("Replies to a long pipeline are sent before all of it has run", "[client]") {
  net::Loop loop;
  NetServer server;
  TestClient(server).run_words({"SET", "key", kMuch});
  User user(loop, server);
  std::string requests;
  std::string replies;
  for (int i = 0; i < 12; ++i) {
    requests += "GET key\r\n";
    replies += bulk(kMuch);
  }
  user.wire.peer.send(requests + "PING\r\n");
  user.turn();
  CHECK(user.receive_all() == replies + status("PONG"));
}

}  // namespace latchkey::tests
