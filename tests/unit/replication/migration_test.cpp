// MIGRATE: what the other server is sent, and what becomes of the keys by what it says. The test
// plays that server over a socket.
#include "replication/migration.h"

#include <sys/socket.h>
#include <unistd.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "commands/groups.h"
#include "persist/rows.h"
#include "replication/rows.h"
#include "unit/catch.h"
#include "unit/net/listening_socket.h"
#include "unit/net/wire.h"
#include "unit/persist/rdb/rdb_bytes.h"
#include "unit/propagation_recorder.h"
#include "unit/replication/replication_fixture.h"
#include "unit/testing/tested_server.h"

namespace latchkey::tests {

namespace {

// The other server. Because MIGRATE waits for its replies, it says them by a thread, as soon as
// there is a connection.
class Target {
 public:
  Target() = default;
  ~Target() { join(); }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  std::string port() const { return listening_.port(); }
  // What the next connection is told.
  void will_say(std::string replies) {
    join();
    saying_ = std::thread([this, replies = std::move(replies)] {
      const int accepted = listening_.accept();
      send(accepted, replies.data(), replies.size(), MSG_NOSIGNAL);
      accepted_ = accepted;
    });
  }
  // And that is all it is told.
  void will_say_and_leave(std::string replies) {
    join();
    saying_ = std::thread([this, replies = std::move(replies)] {
      const int accepted = listening_.accept();
      // What was not read would end the connection before the replies are there.
      char bytes[4096];
      recv(accepted, bytes, sizeof bytes, 0);
      send(accepted, replies.data(), replies.size(), MSG_NOSIGNAL);
      close(accepted);
    });
  }
  // The newest connection.
  Peer& peer() {
    join();
    return *peer_;
  }

 private:
  void join() {
    if (saying_.joinable()) saying_.join();
    if (accepted_ >= 0) peer_ = std::make_unique<Peer>(std::exchange(accepted_, -1));
  }

  ListeningSocket listening_{4};
  std::thread saying_;
  int accepted_ = -1;
  std::unique_ptr<Peer> peer_;
};

struct Source : ReplicationFixture {
  explicit Source(std::string_view settings = {})
      : ReplicationFixture(
            {commands::string_rows(), commands::key_rows(), commands::expire_rows(),
             commands::database_rows(), commands::list_rows(), commands::string_batch_rows(),
             persist::dump_rows(), replication::migrate_rows()},
            settings),
        client(*this) {
    client.run("SET text hello");
  }
  std::string migrate(const Target& target, const std::string& rest) {
    return client.run("MIGRATE 127.0.0.1 " + target.port() + " " + rest);
  }
  size_t kept() { return replication->migration().kept_connections(); }
  TestClient client;
};

// What DUMP of the reference gives for "hello", and for 12.
const std::string kHello = from_hex("000568656c6c6f0c00a804ebb69f1ebe43");
const std::string kTwelve = from_hex("00c00c0c00f75ccc91a62e229c");
const std::string kSelect = bulks({"SELECT", "2"});

}  // namespace

TEST_CASE("MIGRATE sends a key, and removes it when it has arrived", "[migrate]") {
  Source source;
  Target target;
  PropagationRecorder stream(source);
  target.will_say("+OK\r\n+OK\r\n");
  source.events();
  CHECK(source.migrate(target, "text 2 10000") == kOk);
  CHECK(target.peer().receive() == kSelect + bulks({"RESTORE", "text", "0", kHello}));
  CHECK(source.client.run("EXISTS text") == integer(0));
  CHECK(source.events() == "del text");
  CHECK(stream.take() == "SELECT 0; DEL text");
}

TEST_CASE("MIGRATE with COPY leaves the key, and with REPLACE takes another one's place",
          "[migrate]") {
  Source source;
  Target target;
  target.will_say("+OK\r\n+OK\r\n");
  CHECK(source.migrate(target, "text 2 10000 COPY REPLACE") == kOk);
  CHECK(target.peer().receive() == kSelect + bulks({"RESTORE", "text", "0", kHello, "REPLACE"}));
  CHECK(source.client.run("GET text") == bulk("hello"));
  CHECK(source.changes() == 1);
}

TEST_CASE("MIGRATE sends the time that a key has left, and at least a millisecond", "[migrate]") {
  Source source;
  Target target;
  source.client.run("PEXPIRE text 5000");
  source.advance_ms(1);
  target.will_say("+OK\r\n+OK\r\n");
  CHECK(source.migrate(target, "text 2 10000 COPY") == kOk);
  CHECK(target.peer().receive() == kSelect + bulks({"RESTORE", "text", "4999", kHello}));
  source.advance_ms(4998);
  target.peer().send("+OK\r\n");
  CHECK(source.migrate(target, "text 2 10000 COPY") == kOk);
  CHECK(target.peer().receive() == bulks({"RESTORE", "text", "1", kHello}));
  source.advance_ms(1);
  CHECK(source.migrate(target, "text 2 10000 COPY") == status("NOKEY"));
}

TEST_CASE("MIGRATE KEYS sends those that there are, and removes those that have arrived",
          "[migrate]") {
  Source source;
  Target target;
  source.client.run("SET number 12");
  source.client.run("SET refused hello");
  target.will_say("+OK\r\n+OK\r\n-BUSYKEY Target key name already exists.\r\n+OK\r\n");
  CHECK(source.client.run_words({"MIGRATE", "127.0.0.1", target.port(), "", "2", "10000", "KEYS",
                                 "text", "nosuch", "refused", "number"}) ==
        error("ERR Target instance replied with error: BUSYKEY Target key name already exists."));
  CHECK(target.peer().receive() == kSelect + bulks({"RESTORE", "text", "0", kHello}) +
                                       bulks({"RESTORE", "refused", "0", kHello}) +
                                       bulks({"RESTORE", "number", "0", kTwelve}));
  CHECK(source.client.run("MGET text refused number") ==
        array({std::string(kNull), bulk("hello"), std::string(kNull)}));
}

TEST_CASE("MIGRATE says who it is before all else", "[migrate]") {
  Source source;
  Target target;
  target.will_say("+OK\r\n+OK\r\n+OK\r\n");
  SECTION("by a password") {
    CHECK(source.migrate(target, "text 2 10000 AUTH secret") == kOk);
    CHECK(target.peer().receive() ==
          bulks({"AUTH", "secret"}) + kSelect + bulks({"RESTORE", "text", "0", kHello}));
  }
  SECTION("by a name and a password") {
    CHECK(source.migrate(target, "text 2 10000 AUTH2 user secret COPY") == kOk);
    CHECK(target.peer().receive() ==
          bulks({"AUTH", "user", "secret"}) + kSelect + bulks({"RESTORE", "text", "0", kHello}));
  }
}

TEST_CASE("MIGRATE keeps its keys when the other server does not know it, or the database",
          "[migrate]") {
  Source source;
  Target target;
  SECTION("it does not know it") {
    target.will_say("-WRONGPASS invalid\r\n+OK\r\n+OK\r\n");
    CHECK(source.migrate(target, "text 2 10000 AUTH secret") ==
          error("ERR Target instance replied with error: WRONGPASS invalid"));
  }
  SECTION("there is no such database") {
    target.will_say("-ERR DB index is out of range\r\n+OK\r\n");
    CHECK(source.migrate(target, "text 2 10000") ==
          error("ERR Target instance replied with error: ERR DB index is out of range"));
    target.peer().receive();
    // So the database is selected again.
    target.peer().send("+OK\r\n+OK\r\n");
    CHECK(source.migrate(target, "text 2 10000 COPY") == kOk);
    CHECK(target.peer().receive() == kSelect + bulks({"RESTORE", "text", "0", kHello}));
  }
  CHECK(source.client.run("GET text") == bulk("hello"));
}

TEST_CASE("MIGRATE uses its connection again, and selects a database when it is another one",
          "[migrate]") {
  Source source;
  Target target;
  target.will_say("+OK\r\n+OK\r\n");
  CHECK(source.migrate(target, "text 2 10000 COPY") == kOk);
  target.peer().receive();
  CHECK(source.kept() == 1);
  target.peer().send("+OK\r\n");
  CHECK(source.migrate(target, "text 2 10000 COPY") == kOk);
  CHECK(target.peer().receive() == bulks({"RESTORE", "text", "0", kHello}));
  target.peer().send("+OK\r\n+OK\r\n");
  CHECK(source.migrate(target, "text 3 10000 COPY") == kOk);
  CHECK(target.peer().receive() ==
        bulks({"SELECT", "3"}) + bulks({"RESTORE", "text", "0", kHello}));
  CHECK(source.kept() == 1);
  SECTION("for as long as it is used within ten seconds") {
    const int64_t now_ms = source.now_ms();
    source.replication->migration().close_idle(now_ms + 10'000);
    CHECK(source.kept() == 1);
    source.replication->migration().close_idle(now_ms + 10'001);
    CHECK(source.kept() == 0);
    target.peer().receive();
    CHECK(target.peer().is_at_end());
  }
  SECTION("and connects again where it was closed") {
    target.peer().close();
    target.will_say("+OK\r\n+OK\r\n");
    CHECK(source.migrate(target, "text 3 10000") == kOk);
    CHECK(target.peer().receive() ==
          bulks({"SELECT", "3"}) + bulks({"RESTORE", "text", "0", kHello}));
    CHECK(source.kept() == 1);
    CHECK(source.client.run("EXISTS text") == integer(0));
  }
}

TEST_CASE("MIGRATE fails when the other server is silent, leaves, or is not there", "[migrate]") {
  Source source;
  const std::string reading = error("IOERR error or timeout reading to target instance");
  SECTION("it is silent") {
    Target target;
    CHECK(source.migrate(target, "text 2 1") == reading);
  }
  SECTION("it leaves") {
    Target target;
    target.will_say_and_leave("+OK\r\n");
    CHECK(source.migrate(target, "text 2 10000") == reading);
  }
  SECTION("it leaves when a key has arrived") {
    Target target;
    source.client.run("SET number 12");
    target.will_say_and_leave("+OK\r\n+OK\r\n");
    CHECK(source.client.run_words({"MIGRATE", "127.0.0.1", target.port(), "", "2", "10000", "KEYS",
                                   "number", "text"}) == reading);
    CHECK(source.client.run("EXISTS number") == integer(0));
  }
  SECTION("nobody knows where it is") {
    CHECK(source.client.run("MIGRATE 127.0.0.1 nosuchport text 2 10000") ==
          error("IOERR error or timeout connecting to the client"));
  }
  CHECK(source.kept() == 0);
  CHECK(source.client.run("GET text") == bulk("hello"));
}

TEST_CASE("MIGRATE says what it does not understand", "[migrate]") {
  Source source;
  const auto reply = [&](const std::string& rest) {
    return source.client.run("MIGRATE 127.0.0.1 1 " + rest);
  };
  CHECK(reply("text 0 100 KEYS text") ==
        error("ERR When using MIGRATE KEYS option, the key argument must be set to the empty "
              "string"));
  CHECK(reply("text 0 100 COPIES") == error("ERR syntax error"));
  CHECK(reply("text 0 100 AUTH") == error("ERR syntax error"));
  CHECK(reply("text 0 100 AUTH2 user") == error("ERR syntax error"));
  CHECK(reply("text 0 x") == error("ERR value is not an integer or out of range"));
  CHECK(reply("text x 100") == error("ERR value is not an integer or out of range"));
  CHECK(reply("nosuch 0 100") == status("NOKEY"));
  CHECK(reply(" 0 100 KEYS nosuch other") == status("NOKEY"));
  CHECK(source.client.run("GET text") == bulk("hello"));
}

TEST_CASE("The passwords of MIGRATE are known to be secrets", "[migrate]") {
  Source source;
  const auto secrets = [&](std::initializer_list<std::string_view> words) {
    std::vector<size_t> positions;
    replication::migrate_rows()[0].extras.find_secrets(
        source.config, std::span(words.begin(), words.size()), &positions);
    return positions;
  };
  using Positions = std::vector<size_t>;
  CHECK(secrets({"MIGRATE", "h", "p", "k", "0", "1"}).empty());
  CHECK(secrets({"MIGRATE", "h", "p", "k", "0", "1", "COPY", "AUTH", "x"}) == Positions{8});
  CHECK(secrets({"MIGRATE", "h", "p", "k", "0", "1", "AUTH2", "u", "x", "COPY"}) ==
        Positions{7, 8});
  CHECK(secrets({"MIGRATE", "h", "p", "k", "0", "1", "AUTH"}).empty());
  CHECK(secrets({"MIGRATE", "h", "p", "k", "0", "1", "AUTH2", "u"}).empty());
  CHECK(secrets({"MIGRATE", "h", "p", "", "0", "1", "KEYS", "AUTH", "x"}).empty());
}

TEST_CASE("KEYS that ends a request of MIGRATE names no keys", "[migrate]") {
  TestedServer server;
  TestClient client(server);
  const auto keys = [&](std::string_view key, std::initializer_list<std::string_view> options) {
    std::vector<std::string_view> words{"COMMAND", "GETKEYS", "MIGRATE", "host",
                                        "1",       key,       "0",       "1"};
    words.insert(words.end(), options);
    return client.run_words(words);
  };
  const std::string invalid = error("ERR Invalid arguments specified for command");
  CHECK(keys("key", {"KEYS"}) == bulks({"key"}));
  CHECK(keys("key", {"COPY", "KEYS"}) == bulks({"key"}));
  CHECK(keys("", {"KEYS"}) == bulks({""}));
  CHECK(keys("", {"KEYS", "a", "b"}) == bulks({"a", "b"}));
  CHECK(keys("key", {"KEYS", "a"}) == invalid);
}

}  // namespace latchkey::tests
