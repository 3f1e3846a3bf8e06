#include "server/client/blocking.h"

#include "commands/groups.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

using namespace latchkey;
using namespace latchkey::server;
using namespace latchkey::tests;

namespace {

int takes_run = 0;

// TAKE key [key ...] timeout: gives the first of the keys that is a string, and removes it.
void take(CommandContext& ctx) {
  ++takes_run;
  int64_t deadline_ms = 0;
  if (!read_wait_timeout(ctx, ctx.args.back(), &deadline_ms)) return;
  const Arguments keys = ctx.args.subspan(1, ctx.args.size() - 2);
  for (const std::string_view key : keys) {
    store::KeyRef ref = ctx.db.find_for_write(key);
    if (!ref) continue;
    reply_string(ctx.reply, *ref);
    ctx.db.erase(ref);
    ctx.removed(key);
    return;
  }
  ctx.server.blocking().wait(
      ctx, {.keys = keys, .type = store::Type::kString, .deadline_ms = deadline_ms});
}

// PASS source destination: renames the source as soon as there is one.
void pass(CommandContext& ctx) {
  store::KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!ref) {
    return ctx.server.blocking().wait(
        ctx, {.keys = ctx.args.subspan(1, 1), .type = store::Type::kString});
  }
  store::DetachedEntry entry = ctx.db.detach(ref);
  ctx.removed(ctx.args[1]);
  store::KeyRef target = ctx.db.find_for_write(ctx.args[2]);
  ctx.db.attach(target, std::move(entry));
  ctx.changed(ctx.args[2], EventClass::kGeneric, "pass");
  ctx.reply.ok();
}

constexpr CommandRow kRows[] = {
    {"TAKE", take, "key... timeout", kWrite | kBlocking, keys(1, -2).rw(), 0, Group::kGeneric,
     "1.0.0", "O(1)", "Takes a string."},
    {"PASS", pass, "source destination", kWrite | kBlocking, keys(1, 2).rw(), 0, Group::kGeneric,
     "1.0.0", "O(1)", "Passes a string on."},
};

struct BlockingServer : ServerFixture {
  BlockingServer()
      : ServerFixture({kRows, commands::string_rows(), commands::transaction_rows(),
                       commands::database_rows(), commands::key_rows(), commands::client_rows()}) {}
};

std::string id_of(TestClient& client) {
  return std::to_string(client->id);
}

}  // namespace

TEST_CASE("Clients that wait for a key are served in the order of arrival") {
  BlockingServer server;
  TestClient first(server);
  TestClient second(server);
  TestClient other(server);
  CHECK(first.run("TAKE a b 0").empty());
  CHECK(second.run("TAKE b 0").empty());
  CHECK(server.server.blocking().keys() == 2);
  CHECK(other.run("SET b 1") == kOk);
  CHECK(first.take_output() == bulk("1"));
  CHECK(second.take_output().empty());
  CHECK(server.server.blocking().keys() == 1);
  CHECK(other.run("SET b 2") == kOk);
  CHECK(second.take_output() == bulk("2"));
  CHECK(server.server.clients().blocked() == 0);
}

TEST_CASE("A transaction ends before anybody is served by it") {
  BlockingServer server;
  TestClient waiting(server);
  TestClient other(server);
  waiting.run("TAKE a 0");
  other.run("MULTI");
  other.run("SET a 1");
  other.run("DEL a");
  other.run("SET a 2");
  CHECK(other.run("EXEC") == array({std::string(kOk), integer(1), std::string(kOk)}));
  CHECK(waiting.take_output() == bulk("2"));
  other.run("MULTI");
  other.run("TAKE a 0");
  CHECK(other.run("EXEC") == array({std::string(kNullArray)}));
}

TEST_CASE("What one that is served changes serves others") {
  BlockingServer server;
  TestClient last(server);
  TestClient passing(server);
  TestClient other(server);
  last.run("TAKE b 0");
  passing.run("PASS a b");
  other.run("SET a x");
  CHECK(passing.take_output() == kOk);
  CHECK(last.take_output() == bulk("x"));
  CHECK(other.run("GET b") == kNull);
}

TEST_CASE("A wait ends in its time, in fractions of seconds") {
  BlockingServer server;
  TestClient client(server);
  client.run("TAKE a 0.25");
  server.advance_ms(249);
  server.tick();
  CHECK(client.take_output().empty());
  server.advance_ms(1);
  server.tick();
  CHECK(client.take_output() == kNullArray);
  CHECK(server.server.blocking().keys() == 0);
  CHECK(client.run("TAKE a -1") == error("ERR timeout is negative"));
  CHECK(client.run("TAKE a x") == error("ERR timeout is not a float or out of range"));
  CHECK(client.run("TAKE a 9223372036854775") == error("ERR timeout is out of range"));
}

TEST_CASE("A client that closes leaves its place to the next") {
  BlockingServer server;
  TestClient gone(server);
  TestClient next(server);
  TestClient other(server);
  gone.run("TAKE a a 0");
  next.run("TAKE a 0");
  gone->close();
  other.run("SET a 1");
  CHECK(next.take_output() == bulk("1"));
}

TEST_CASE("Keys that come by another way than writing serve as well") {
  BlockingServer server;
  TestClient waiting(server);
  TestClient other(server);
  waiting.run("TAKE a 0");
  other.run("SET b 1");
  other.run("RENAME b a");
  CHECK(waiting.take_output() == bulk("1"));

  waiting.run("TAKE a 0");
  other.run("SELECT 1");
  other.run("SET a 2");
  CHECK(waiting.take_output().empty());
  other.run("SWAPDB 0 1");
  CHECK(waiting.take_output() == bulk("2"));
}

TEST_CASE("A wait counts as a call when it ends") {
  BlockingServer server;
  TestClient waiting(server);
  TestClient other(server);
  waiting.run("TAKE a 0");
  const std::string_view words[] = {"take"};
  const Command& command = *server.server.dispatcher().lookup(words);
  CHECK(command.stats.calls == 0);
  other.run("SET a 1");
  CHECK(command.stats.calls == 1);
}

TEST_CASE("Ten thousand waiting clients are each served once") {
  BlockingServer server;
  std::vector<std::unique_ptr<TestClient>> waiting;
  for (int i = 0; i < 10'000; ++i) {
    waiting.push_back(std::make_unique<TestClient>(server));
    waiting.back()->run("TAKE a 0");
  }
  TestClient other(server);
  takes_run = 0;
  other.run("SET b 1");
  CHECK(takes_run == 0);
  for (auto& client : waiting) {
    other.run("SET a 1");
    REQUIRE(client->take_output() == bulk("1"));
  }
  CHECK(takes_run == 10'000);
  CHECK(server.server.blocking().keys() == 0);
}

TEST_CASE("Among ten thousand keys that are waited for only the one written is looked at") {
  BlockingServer server;
  std::vector<std::unique_ptr<TestClient>> waiting;
  for (int i = 0; i < 10'000; ++i) {
    waiting.push_back(std::make_unique<TestClient>(server));
    waiting.back()->run("TAKE key:" + std::to_string(i) + " 0");
  }
  CHECK(server.server.blocking().keys() == 10'000);
  TestClient other(server);
  takes_run = 0;
  other.run("SET key:1234 x");
  CHECK(takes_run == 1);
  CHECK(waiting[1234]->take_output() == bulk("x"));
  CHECK(server.server.blocking().keys() == 9'999);
}

TEST_CASE("CLIENT UNBLOCK ends a wait as its time would, or with an error") {
  BlockingServer server;
  TestClient waiting(server);
  TestClient other(server);
  const std::string id = id_of(waiting);
  CHECK(other.run("CLIENT UNBLOCK " + id) == integer(0));
  waiting.run("TAKE a b 0");
  CHECK(other.run("CLIENT UNBLOCK " + id) == integer(1));
  CHECK(waiting.take_output() == kNullArray);
  waiting.run("TAKE a b 0");
  CHECK(other.run("CLIENT UNBLOCK " + id + " TIMEOUT") == integer(1));
  CHECK(waiting.take_output() == kNullArray);
  waiting.run("TAKE a b 0");
  CHECK(other.run("CLIENT UNBLOCK " + id + " WRONG") ==
        error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"));
  CHECK(other.run("CLIENT UNBLOCK " + id + " ERROR") == integer(1));
  CHECK(waiting.take_output() == error("UNBLOCKED client unblocked via CLIENT UNBLOCK"));
  const std::string_view words[] = {"take"};
  const Command& command = *server.server.dispatcher().lookup(words);
  CHECK(command.stats.calls == 3);
  CHECK(command.stats.failed_calls == 1);
  CHECK(server.server.blocking().keys() == 0);
  CHECK(server.server.clients().blocked() == 0);
}

TEST_CASE("A client that is killed leaves its place to the next") {
  BlockingServer server;
  TestClient gone(server);
  TestClient next(server);
  TestClient other(server);
  gone.run("TAKE a b 0");
  next.run("TAKE a 0");
  CHECK(other.run("CLIENT KILL ID " + id_of(gone)) == integer(1));
  CHECK(server.server.clients().blocked() == 1);
  CHECK(server.server.blocking().keys() == 1);
  other.run("SET a 1");
  CHECK(next.take_output() == bulk("1"));
}

TEST_CASE("A key that is gone or of another type when all is done serves nobody") {
  BlockingServer server;
  TestClient waiting(server);
  TestClient other(server);
  waiting.run("TAKE a 0");
  takes_run = 0;
  other.run("MULTI");
  other.run("SET a 1");
  other.run("DEL a");
  other.run("EXEC");
  other.run("MULTI");
  other.run("SET a 1");
  other.run("FLUSHALL");
  other.run("EXEC");
  CHECK(takes_run == 0);
  other.run("SET a 2");
  CHECK(waiting.take_output() == bulk("2"));
}

TEST_CASE("A copy, and a key moved from another database, serve as well") {
  BlockingServer server;
  TestClient waiting(server);
  TestClient other(server);
  waiting.run("TAKE a 0");
  other.run("SET b 1");
  CHECK(other.run("COPY b a") == integer(1));
  CHECK(waiting.take_output() == bulk("1"));
  waiting.run("TAKE a 0");
  other.run("SELECT 1");
  other.run("SET a 2");
  CHECK(other.run("MOVE a 0") == integer(1));
  CHECK(waiting.take_output() == bulk("2"));
}

TEST_CASE("A watcher hears of what one that was served has changed, not of waiting") {
  BlockingServer server;
  TestClient waiting(server);
  TestClient watching(server);
  TestClient other(server);
  watching.run("WATCH a");
  waiting.run("TAKE a 0");
  watching.run("MULTI");
  CHECK(watching.run("EXEC") == array({}));
  watching.run("WATCH b");
  TestClient passing(server);
  passing.run("PASS c b");
  other.run("SET c x");
  CHECK(passing.take_output() == kOk);
  watching.run("MULTI");
  CHECK(watching.run("EXEC") == kNullArray);
}

TEST_CASE("A client that has asked for no replies gets none when its wait ends") {
  BlockingServer server;
  TestClient client(server);
  TestClient other(server);
  client.run("CLIENT REPLY OFF");
  client.run("TAKE a 1");
  server.advance_ms(1000);
  server.tick();
  CHECK(client.take_output().empty());
  client.run("TAKE a 0");
  other.run("CLIENT UNBLOCK " + id_of(client) + " ERROR");
  CHECK(client.take_output().empty());
  client.run("TAKE a 0");
  other.run("SET a 1");
  CHECK(client.take_output().empty());
  CHECK(client.run("CLIENT REPLY ON") == kOk);
}

// --- Pauses and memory --------------------------------------------------------------------------

namespace {

// Makes the key ready in the moment in which a pause begins.
void set_and_pause(TestClient& client) {
  client.run("MULTI");
  client.run("SET a 1");
  client.run("CLIENT PAUSE 1000 WRITE");
  client.run("EXEC");
}

}  // namespace

TEST_CASE("Who would be served during a pause is served when it ends") {
  BlockingServer server;
  TestClient first(server);
  TestClient second(server);
  TestClient other(server);
  first.run("TAKE a 0.5");
  second.run("TAKE a 0");
  set_and_pause(other);
  CHECK(first.take_output().empty());
  CHECK(other.run("GET a") == bulk("1"));
  CHECK(server.server.blocking().keys() == 0);
  CHECK(server.server.clients().blocked() == 2);
  CHECK(other.run("CLIENT UNBLOCK " + id_of(first)) == integer(0));
  // Its key came in time: what it had to wait for the pause does not end the wait.
  server.advance_ms(1000);
  server.tick();
  CHECK(first.take_output() == bulk("1"));
  CHECK(second.take_output().empty());
  CHECK(server.server.blocking().keys() == 1);
  other.run("SET a 2");
  CHECK(second.take_output() == bulk("2"));
  CHECK(server.server.clients().blocked() == 0);
}

TEST_CASE("A pause that is ended early serves at once, one that follows it does not") {
  BlockingServer server;
  TestClient waiting(server);
  TestClient other(server);
  waiting.run("TAKE a 0");
  set_and_pause(other);
  other.run("MULTI");
  other.run("CLIENT UNPAUSE");
  other.run("CLIENT PAUSE 1000 WRITE");
  other.run("EXEC");
  CHECK(waiting.take_output().empty());
  CHECK(other.run("CLIENT UNPAUSE") == kOk);
  CHECK(waiting.take_output() == bulk("1"));
}

TEST_CASE("A client may go while a pause keeps it from being served") {
  BlockingServer server;
  TestClient gone(server);
  TestClient other(server);
  gone.run("TAKE a 0");
  set_and_pause(other);
  gone->close();
  other.run("CLIENT UNPAUSE");
  CHECK(other.run("GET a") == bulk("1"));
  CHECK(server.server.clients().blocked() == 0);
}
