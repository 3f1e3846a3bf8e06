// A whole server that stands for a release of another one.
#include <memory>
#include <string>
#include <string_view>

#include "composition/whole_server.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"
#include "unit/temporary_directory.h"

namespace latchkey::tests {

namespace {

using composition::WholeServer;
using namespace std::string_view_literals;

class Emulating {
 public:
  explicit Emulating(const std::string& settings) {
    log_.set_level(base::LogLevel::kNothing);
    // Other tests may run in the same directory at the same time.
    auto made = WholeServer::make_space(settings + directory_.setting(),
                                        {.clock = clock_, .log = log_, .loop = &loop_});
    if (!made) {
      error = std::move(made).error();
      return;
    }
    whole_ = *std::move(made);
    client_ = std::make_unique<TestClient>(whole_->server());
  }

  std::string run(const std::string& request) { return client_->run(request); }
  std::string restore(const char* key, const std::string& payload) {
    return client_->run_words({"RESTORE", key, "0", payload});
  }
  std::string evaluate(const char* script) { return client_->run_words({"EVAL", script, "0"}); }
  std::string info(const std::string& section) { return run("INFO " + section); }
  bool made() const { return whole_ != nullptr; }

  server::ConfigError error;

 private:
  TemporaryDirectory directory_;
  base::VirtualClock clock_;
  base::Logger log_;
  net::Loop loop_;
  std::unique_ptr<WholeServer> whole_;
  std::unique_ptr<TestClient> client_;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("Commands that came later are unknown", "[emulation]") {
  Emulating redis("emulate \"redis 7.0\"\n");
  REQUIRE(redis.made());
  CHECK(contains(redis.run("HEXPIRE h 5 FIELDS 1 f"), "-ERR unknown command 'HEXPIRE'"));
  CHECK(contains(redis.run("CLUSTER SLOT-STATS"), "-ERR unknown subcommand 'SLOT-STATS'"));
  CHECK(redis.run("COMMAND INFO hexpire") == "*1\r\n$-1\r\n");
  CHECK_FALSE(contains(redis.run("COMMAND LIST"), "hexpire"));
  CHECK(contains(redis.run("ACL SETUSER u +hexpire"), "-ERR Error in ACL SETUSER modifier"));
  CHECK(redis.run("SINTERCARD 1 s") == ":0\r\n");

  Emulating older("emulate \"redis 6.2\"\n");
  REQUIRE(older.made());
  CHECK(contains(older.run("SINTERCARD 1 s"), "-ERR unknown command"));
  CHECK(contains(older.run("FUNCTION LIST"), "-ERR unknown command"));
}

TEST_CASE("Commands of its own stay, unlisted", "[emulation]") {
  Emulating redis("emulate \"redis 7.0\"\n");
  REQUIRE(redis.made());
  CHECK(contains(redis.run("CLOCK"), "mode"));
  CHECK_FALSE(contains(redis.run("COMMAND LIST"), "clock"));
  CHECK(contains(redis.run("COMMAND DOCS clock"), "clock"));
}

TEST_CASE("Options that came later are syntax errors, or too many words", "[emulation]") {
  Emulating redis("emulate \"redis 7.0\"\n");
  REQUIRE(redis.made());
  CHECK(redis.run("ZRANK z m WITHSCORE") ==
        "-ERR wrong number of arguments for 'zrank' command\r\n");
  CHECK(redis.run("SET k v IFEQ x") == "-ERR syntax error\r\n");
  CHECK(redis.run("SET IFEQ IFEQ NX") == kOk);
  // Where they are queued, and in scripts, as well.
  CHECK(redis.run("MULTI") == kOk);
  CHECK(redis.run("SET k v IFEQ x") == "+QUEUED\r\n");
  CHECK(redis.run("EXEC") == "*1\r\n-ERR syntax error\r\n");
  CHECK(
      contains(redis.evaluate("return redis.call('SET','k','v','IFEQ','x')"), "ERR syntax error"));
  CHECK_FALSE(contains(redis.run("COMMAND DOCS set"), "IFEQ"));
  CHECK(contains(redis.run("COMMAND DOCS set"), "KEEPTTL"));

  Emulating older("emulate \"redis 6.2\"\n");
  REQUIRE(older.made());
  CHECK(older.run("EXPIRE k 5 NX") == "-ERR wrong number of arguments for 'expire' command\r\n");
}

TEST_CASE("It tells the version that it stands for", "[emulation]") {
  Emulating redis("emulate \"redis 7.0\"\n");
  REQUIRE(redis.made());
  CHECK(contains(redis.info("server"), "redis_version:7.0.15\r\n"));
  CHECK_FALSE(contains(redis.info("everything"), "eventloop_cycles"));
  CHECK_FALSE(contains(redis.info("everything"), "# Keysizes"));
  CHECK(contains(redis.run("HELLO 2"), "$6\r\n7.0.15\r\n"));
  // Vector sets came with a module.
  CHECK(redis.run("MODULE LIST") == "*0\r\n");
  CHECK_FALSE(contains(redis.run("HELLO 2"), "vectorset"));
  CHECK_FALSE(contains(redis.info("modules"), "vectorset"));
  CHECK(redis.evaluate("return redis.REDIS_VERSION") == bulk("7.0.15"));
  CHECK_FALSE(contains(redis.run("CLIENT INFO"), "lib-name="));
  CHECK(redis.run("CONFIG GET emulate") == "*2\r\n" + bulk("emulate") + bulk("redis 7.0"));

  Emulating valkey("emulate \"valkey 9.1\"\n");
  REQUIRE(valkey.made());
  CHECK(contains(valkey.info("server"), "redis_version:7.2.4\r\n"));
  CHECK(contains(valkey.info("server"), "valkey_version:9.1.2\r\n"));
  CHECK(contains(valkey.info("server"), "server_mode:standalone\r\n"));
  CHECK(contains(valkey.run("HELLO 2"), bulk("valkey")));
  CHECK(valkey.evaluate("return server.VALKEY_VERSION") == bulk("9.1.2"));
}

TEST_CASE("Directives that came later are unknown", "[emulation]") {
  Emulating redis("emulate \"redis 7.0\"\n");
  REQUIRE(redis.made());
  CHECK(redis.run("CONFIG GET set-max-listpack-entries") == "*0\r\n");
  CHECK(contains(redis.run("CONFIG SET set-max-listpack-entries 5"), "-ERR Unknown option"));
  CHECK(contains(redis.run("CONFIG GET hash-max-listpack-entries"), "hash-max-listpack-entries"));
  // Whichever line says what is emulated.
  CHECK_FALSE(Emulating("lookahead 5\nemulate \"redis 7.0\"\n").made());
  CHECK(Emulating("lookahead 5\nemulate \"redis 8.6\"\n").made());
}

TEST_CASE("What older releases say of integers and lists is said", "[emulation]") {
  Emulating older("emulate \"redis 7.0\"\n");
  Emulating newer("emulate \"redis 8.6\"\n");
  REQUIRE((older.made() && newer.made()));
  for (Emulating* server : {&older, &newer}) {
    server->run("SET n 7");
    server->run("RPUSH l a");
  }
  CHECK(older.run("OBJECT REFCOUNT n") == ":2147483647\r\n");
  CHECK(newer.run("OBJECT REFCOUNT n") == ":1\r\n");
  CHECK(older.run("OBJECT REFCOUNT l") == ":1\r\n");
  CHECK(older.run("OBJECT ENCODING l") == bulk("quicklist"));
  CHECK(newer.run("OBJECT ENCODING l") == bulk("listpack"));
}

TEST_CASE("What cannot be emulated is refused", "[emulation]") {
  Emulating none("emulate \"redis 5.0\"\n");
  CHECK_FALSE(none.made());
  CHECK(contains(none.error.message, "must be one of the following: no, redis 6.2"));
  CHECK(none.error.line_text == "emulate \"redis 5.0\"");
  CHECK(Emulating("emulate redis 7.0\n").made());
  CHECK_FALSE(Emulating("emulate\n").made());
}

TEST_CASE("Payloads have the version and the layouts that the release reads", "[emulation]") {
  const auto dump = [](Emulating& server, const std::string& key) {
    return server.run("DUMP " + key);
  };
  const auto fill = [](Emulating& server) {
    REQUIRE(server.made());
    server.run("RPUSH l a b 3");
    server.run("HSET h f v");
    server.run("SADD s a b");
    server.run("ZADD z 1 a");
    server.run("XADD x 1-1 f v");
    server.run("XGROUP CREATE x g 0");
    server.run("XREADGROUP GROUP g c STREAMS x >");
  };
  struct Expected {
    const char* edition;
    int version;
    std::string types;  // of l, h, s, z, x
  };
  const Expected expected[] = {
      {"redis 6.2", 9, {1, 4, 2, 5, 15}},       {"redis 7.0", 10, {18, 16, 2, 17, 19}},
      {"redis 7.2", 11, {18, 16, 20, 17, 21}},  {"redis 8.6", 13, {18, 16, 20, 17, 21}},
      {"valkey 8.1", 11, {18, 16, 20, 17, 21}}, {"valkey 9.1", 80, {18, 16, 20, 17, 21}},
  };
  for (const Expected& each : expected) {
    INFO(each.edition);
    const bool asks = each.version > 9;
    Emulating server((asks ? "enable-debug-command yes\nemulate " : "emulate ") +
                     std::string(each.edition) + "\n");
    fill(server);
    size_t i = 0;
    for (const char* key : {"l", "h", "s", "z", "x"}) {
      INFO(key);
      const std::string reply = dump(server, key);
      const std::string payload =
          reply.substr(reply.find("\r\n") + 2, reply.size() - reply.find("\r\n") - 4);
      CHECK(payload[0] == each.types[i++]);
      CHECK(payload[payload.size() - 10] == each.version);
    }
    // What it writes it can read.
    const std::string before = server.run("DEBUG DIGEST");
    CHECK(server.run("DEBUG RELOAD") == kOk);
    CHECK(server.run("DEBUG DIGEST") == before);
  }
}

TEST_CASE("Hashes with deadlines are in Valkey's form where Valkey is emulated", "[emulation]") {
  // As Valkey 9.1.2 wrote it: f has the value v and a deadline, g the value w.
  constexpr std::string_view kPayload =
      "\x16\x02\x01"
      "f\x01v\x00 J\xa9\xd1\x01\x00\x00\x01g\x01w"
      "\xff\xff\xff\xff\xff\xff\xff\xffP\x00\xc0\xa2\x1e\xb1\x08\xdb\x1b"
      "f"sv;
  const std::string payload(kPayload);
  for (const char* settings : {"", "emulate \"valkey 9.1\"\n"}) {
    INFO(settings);
    Emulating server(std::string("enable-debug-command yes\n") + settings);
    REQUIRE(server.made());
    CHECK(server.restore("h", payload) == kOk);
    CHECK(server.run("HPEXPIRETIME h FIELDS 2 f g") == "*2\r\n:2000000000000\r\n:-1\r\n");
    CHECK(server.run("HMGET h f g") == "*2\r\n" + bulk("v") + bulk("w"));
    const std::string before = server.run("DEBUG DIGEST");
    CHECK(server.run("DEBUG RELOAD") == kOk);
    CHECK(server.run("DEBUG DIGEST") == before);
  }
  Emulating valkey("emulate \"valkey 9.1\"\n");
  REQUIRE(valkey.made());
  CHECK(valkey.restore("h", payload) == kOk);
  CHECK(contains(valkey.run("DUMP h"),
                 "\x16\x02\x01"
                 "f\x01v"));
}

TEST_CASE("Payloads of later releases are refused", "[emulation]") {
  Emulating newer("");
  Emulating older("emulate \"redis 7.0\"\n");
  REQUIRE((newer.made() && older.made()));
  // "value" as an RDB of version 12 has it, whose checksum is left out.
  const std::string payload("\x00\x05value\x0c\x00\x00\x00\x00\x00\x00\x00\x00\x00"sv);
  CHECK(newer.restore("k", payload) == kOk);
  CHECK(older.restore("k", payload) == "-ERR DUMP payload version or checksum are wrong\r\n");
}

TEST_CASE("Before Redis 8.6 an unknown command is told of with arguments that it has not",
          "[emulation]") {
  for (const char* settings : {"", "emulate \"redis 8.6\"\n"}) {
    INFO(settings);
    Emulating server(settings);
    REQUIRE(server.made());
    CHECK(server.run("FOO") == "-ERR unknown command 'FOO'\r\n");
    CHECK(server.run("FOO x") == "-ERR unknown command 'FOO', with args beginning with: 'x' \r\n");
    CHECK(server.run("MULTI") == kOk);
    CHECK(server.run("FOO") == "-ERR unknown command 'FOO'\r\n");
  }
  for (const char* release : {"redis 7.0", "redis 8.0", "valkey 8.1", "valkey 9.1"}) {
    INFO(release);
    Emulating server("emulate \"" + std::string(release) + "\"\n");
    REQUIRE(server.made());
    CHECK(server.run("FOO") == "-ERR unknown command 'FOO', with args beginning with: \r\n");
    CHECK(server.run("FOO x") == "-ERR unknown command 'FOO', with args beginning with: 'x' \r\n");
  }
}

}  // namespace latchkey::tests
