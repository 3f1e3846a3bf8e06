// Requests that take long: the task that runs one is suspended, others are served, and nothing of
// the one gets into the way of the others.
#include "server/tasks.h"

#include <string>
#include <vector>

#include "commands/groups.h"
#include "script/engine.h"
#include "script/rows.h"
#include "server/command/propagation.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

using namespace server;

// STEPS text...: replies with each text as a bulk, and is suspended before each.
void steps(CommandContext& ctx) {
  ctx.reply.array(ctx.args.size() - 1);
  for (const std::string_view text : ctx.args.subspan(1)) {
    ctx.server.tasks().yield();
    ctx.reply.bulk(text);
  }
}

// SLOWPUSH key element: RPUSH, and is suspended behind it.
void slow_push(CommandContext& ctx) {
  const std::string_view words[] = {"RPUSH", ctx.args[1], ctx.args[2]};
  ctx.server.dispatcher().run_queued(ctx.client, *ctx.server.dispatcher().lookup(words), words);
  ctx.propagate_nothing();
  ctx.server.tasks().yield();
}

// SLOWTIME: the time that a command sees, before and behind a suspension.
void slow_time(CommandContext& ctx) {
  ctx.reply.array(2);
  ctx.reply.integer(ctx.now_ms());
  ctx.server.tasks().yield();
  ctx.reply.integer(ctx.now_ms());
}

constexpr CommandRow kSlowRows[] = {
    {"SLOWPUSH", slow_push, "key element", kWrite | kMayTakeLong, keys(1).rw().insert(), kAclList,
     Group::kList, "1.0.0", "O(1)", "Pushes and rests."},
    {"SLOWTIME",
     slow_time,
     "",
     kMayTakeLong,
     {},
     0,
     Group::kServer,
     "1.0.0",
     "O(1)",
     "Tells time."},
    {"STEPS",
     steps,
     "text...",
     kMayTakeLong,
     {},
     0,
     Group::kServer,
     "1.0.0",
     "O(N)",
     "Replies bit by bit."},
};

struct Server : ServerFixture {
  explicit Server(std::string_view settings = {})
      : ServerFixture(
            {kSlowRows, commands::string_rows(), commands::connection_rows(), commands::list_rows(),
             commands::list_wait_rows(), commands::transaction_rows(), commands::pubsub_rows(),
             commands::client_rows(), commands::server_rows(), script::script_rows()},
            settings) {
    server.add_layer(std::make_shared<script::Engine>(server));
  }
  void next_turn() { server.tasks().resume_ready(); }
};

// Keeps the replication stream as text, a line each unit.
struct StreamReader final : PropagationSink {
  explicit StreamReader(server::Server& of) : server(of) { server.propagation().add_sink(*this); }
  ~StreamReader() override { server.propagation().remove_sink(*this); }
  void on_propagated(std::span<const PropagatedCommand> unit) override {
    for (const PropagatedCommand& effect : unit) {
      // "*3\r\n$5\r\nRPUSH\r\n...": the words alone.
      bool is_word = false;
      for (size_t at = effect.request.find('$'); at != std::string_view::npos;) {
        const size_t end = effect.request.find("\r\n", at);
        if (is_word) text += std::string(effect.request.substr(at, end - at)) + " ";
        is_word = !is_word;
        at = end + 2 < effect.request.size() ? end + 2 : std::string_view::npos;
      }
    }
    text += "| ";
  }
  server::Server& server;
  std::string text;
};

}  // namespace

TEST_CASE("A request that is suspended keeps its place among its client's replies", "[tasks]") {
  Server server;
  TestClient client(server);
  TestClient other(server);
  CHECK(client.send("PING first\r\nSTEPS a b\r\n") == bulk("first") + "*2\r\n");
  CHECK(client->has(kClientSuspended));
  CHECK(other.run("PING") == "+PONG\r\n");
  // What it sends meanwhile is not consumed.
  std::string more = "PING last\r\n";
  CHECK(client->on_input(more) == 0);
  server.next_turn();
  server.next_turn();
  CHECK_FALSE(client->has(kClientSuspended));
  CHECK(client.take_output() == bulk("a") + bulk("b"));
  CHECK(client.send(more) == bulk("last"));
  CHECK_FALSE(server.server.tasks().any());
}

TEST_CASE("A request that is suspended outlives the buffer that it came in", "[tasks]") {
  Server server;
  TestClient client(server);
  // Words as they stand in the request, and words that the parser has put together.
  const std::string form = GENERATE("*3\r\n$5\r\nSTEPS\r\n$5\r\nfirst\r\n$6\r\nsecond\r\n",
                                    "STEPS \"fi\\x72st\" 'second'\r\n");
  std::string buffer = form;
  CHECK(client->on_input(buffer) == buffer.size());
  std::fill(buffer.begin(), buffer.end(), '!');
  TestClient other(server);
  other.send("PING \"\\x41\\x42\\x43\\x44\"\r\n");
  server.next_turn();
  server.next_turn();
  CHECK(client.take_output() == bulks({"first", "second"}));
}

TEST_CASE("What is behind a suspended request in its pipeline runs when that has ended",
          "[tasks]") {
  Server server;
  TestClient client(server);
  std::string requests = "STEPS a\r\nSET key value\r\n";
  const size_t consumed = client->on_input(requests);
  CHECK(consumed == requests.find("SET"));
  TestClient other(server);
  CHECK(other.run("GET key") == kNull);
  server.next_turn();
  CHECK(client.send(requests.substr(consumed)) == bulks({"a"}) + std::string(kOk));
}

TEST_CASE("A client that goes while its request is suspended leaves nothing to others", "[tasks]") {
  Server server;
  const bool in_transaction = GENERATE(false, true);
  CAPTURE(in_transaction);
  auto leaving = std::make_unique<TestClient>(server);
  if (in_transaction) leaving->send("MULTI\r\nSTEPS secret\r\nPING also\r\n");
  leaving->send(in_transaction ? "EXEC\r\n" : "STEPS secret\r\n");
  const uint64_t id = (*leaving)->id;
  (*leaving)->close();
  CHECK(server.server.clients().find(id) == nullptr);
  server.tick();
  TestClient next(server);
  CHECK(next.run("PING") == "+PONG\r\n");
  server.next_turn();
  server.tick();
  CHECK(next.take_output().empty());
  CHECK_FALSE(server.server.tasks().any());
}

TEST_CASE("What a suspended request writes stands in the stream when it has ended, by itself",
          "[tasks]") {
  Server server;
  StreamReader stream(server.server);
  TestClient client(server);
  TestClient other(server);
  client.send("MULTI\r\nSLOWPUSH list a\r\nSLOWPUSH list b\r\nEXEC\r\n");
  server.next_turn();
  other.run("SET key value");
  CHECK(stream.text == "SET key value | ");
  server.next_turn();
  CHECK(stream.text == "SET key value | RPUSH list a RPUSH list b | ");
}

TEST_CASE("Who waits for a key is served when the request that made it ready has ended",
          "[tasks]") {
  Server server;
  TestClient client(server);
  TestClient waiting(server);
  TestClient other(server);
  waiting.send("BLPOP list 0\r\n");
  client.send("SLOWPUSH list a\r\n");
  other.run("SET key value");
  server.tick();
  CHECK(waiting.take_output() == bulks({"list", "a"}));
}

TEST_CASE("Keys that a suspended request has made ready are not served by what others do",
          "[tasks]") {
  Server server;
  TestClient client(server);
  TestClient waiting(server);
  TestClient other(server);
  waiting.send("BLPOP list 0\r\n");
  client.send("SLOWPUSH list a\r\n");
  other.run("SET key value");
  CHECK(waiting.take_output().empty());
  server.next_turn();
  CHECK(waiting.take_output() == bulks({"list", "a"}));
}

TEST_CASE("Time stands still for a request that is suspended, and for nobody else", "[tasks]") {
  Server server;
  TestClient client(server);
  TestClient other(server);
  const std::string before = std::to_string(server.now_ms());
  CHECK(client.send("SLOWTIME\r\n") == "*2\r\n:" + before + "\r\n");
  server.advance_ms(1000);
  CHECK(other.run("SET key value PX 100") == kOk);
  server.advance_ms(200);
  server.next_turn();
  CHECK(client.take_output() == ":" + before + "\r\n");
  CHECK(other.run("GET key") == kNull);
}

TEST_CASE("Messages for a client whose request is suspended come behind its reply", "[tasks]") {
  Server server;
  TestClient client(server, 3);
  TestClient other(server);
  client.send("SUBSCRIBE news\r\n");
  CHECK(client.send("STEPS a\r\n") == "*1\r\n");
  other.run("PUBLISH news today");
  CHECK(client.take_output().empty());
  server.next_turn();
  CHECK(client.take_output() ==
        bulk("a") + ">3\r\n" + bulk("message") + bulk("news") + bulk("today"));
}

TEST_CASE("A request whose reply nobody wants is suspended like others", "[tasks]") {
  Server server;
  TestClient client(server);
  client.send("CLIENT REPLY OFF\r\n");
  std::string requests = "STEPS a b\r\nPING\r\n";
  const size_t consumed = client->on_input(requests);
  server.next_turn();
  server.next_turn();
  CHECK_FALSE(client->has(kClientSuspended));
  CHECK(client.send(requests.substr(consumed) + "CLIENT REPLY ON\r\n") == kOk);
}

TEST_CASE("A server that ends has its suspended requests end first", "[tasks]") {
  auto server = std::make_unique<Server>();
  auto client = std::make_unique<TestClient>(*server);
  client->send("STEPS a b c d\r\n");
  CHECK(server->server.tasks().any());
  server.reset();
}

TEST_CASE("While a script is busy others hear so, and may stop it", "[tasks][threads]") {
  Server server("busy-reply-threshold 1");
  TestClient client(server);
  TestClient other(server);
  CHECK(client.send("EVAL \"while true do end\" 0\r\n").empty());
  CHECK(client->has(kClientSuspended));
  CHECK(other.run("GET key").starts_with("-BUSY "));
  CHECK(other.run("SCRIPT KILL") == kOk);
  while (server.server.tasks().any()) server.next_turn();
  CHECK(client.take_output().find("Script killed by user with SCRIPT KILL") != std::string::npos);
  CHECK(other.run("GET key") == kNull);
  CHECK(client.send("EVAL \"return 1\" 0\r\n") == integer(1));
}

TEST_CASE("A script that is busy goes on when its client has gone, and may be stopped",
          "[tasks][threads]") {
  Server server("busy-reply-threshold 1");
  auto client = std::make_unique<TestClient>(server);
  TestClient other(server);
  client->send("EVAL \"redis.call('SET', 'key', 'begun') while true do end\" 0\r\n");
  (*client)->close();
  server.tick();
  CHECK(other.run("GET key").starts_with("-BUSY "));
  // It has written, so only the end of the server ends it.
  CHECK(other.run("SCRIPT KILL").starts_with("-UNKILLABLE "));
  server.next_turn();
  CHECK(other.run("PING").starts_with("-BUSY "));
}

}  // namespace latchkey::tests
