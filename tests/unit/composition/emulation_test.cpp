// A whole server that stands for a release of another one.
#include <initializer_list>
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
  std::string run_words(std::initializer_list<std::string_view> words) {
    return client_->run_words(words);
  }
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

TEST_CASE("COMMAND GETKEYS takes requests of one word since Redis 7.2", "[emulation]") {
  const auto one_word = [](const std::string& settings) {
    Emulating server(settings);
    REQUIRE(server.made());
    CHECK(server.run("COMMAND GETKEYS GET k") == bulks({"k"}));
    return server.run("COMMAND GETKEYS PING");
  };
  CHECK(one_word("emulate \"redis 7.0\"\n") ==
        error("ERR wrong number of arguments for 'command|getkeys' command"));
  CHECK(one_word("emulate \"redis 7.2\"\n") == error("ERR The command has no key arguments"));
  CHECK(one_word("") == error("ERR The command has no key arguments"));
}

TEST_CASE("XREAD tells of an unbalanced list of streams as each release does", "[emulation]") {
  const auto unbalanced = [](const std::string& settings, const char* request) {
    Emulating server(settings);
    REQUIRE(server.made());
    return server.run(request);
  };
  const char* const read = "XREAD STREAMS a b 0";
  const char* const read_group = "XREADGROUP GROUP g c STREAMS a b 0";
  const std::string old = error(
      "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be "
      "specified.");
  CHECK(unbalanced("emulate \"redis 7.0\"\n", read) == old);
  CHECK(unbalanced("emulate \"redis 7.0\"\n", read_group) == old);
  const std::string plain = error(
      "ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' must be "
      "specified.");
  CHECK(unbalanced("emulate \"redis 7.2\"\n", read) == plain);
  CHECK(unbalanced("emulate \"valkey 9.1\"\n", read) == plain);
  const std::string newest = error(
      "ERR Unbalanced 'xread' list of streams: for each stream key an ID, '+', or '$' must "
      "be specified.");
  CHECK(unbalanced("emulate \"redis 7.4\"\n", read) == newest);
  CHECK(unbalanced("", read) == newest);
  CHECK(unbalanced("emulate \"valkey 8.1\"\n", read_group) ==
        error("ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must "
              "be specified."));
}

TEST_CASE("BITCOUNT and BITPOS look at the key first before Redis 7.2", "[emulation]") {
  const auto reply = [](const char* release, const char* request) {
    Emulating server("emulate \"" + std::string(release) + "\"\n");
    REQUIRE(server.made());
    server.run("RPUSH l a");
    return server.run(request);
  };
  CHECK(reply("redis 7.0", "BITCOUNT l x") == kWrongType);
  CHECK(reply("redis 7.0", "BITPOS l 1 x") == kWrongType);
  CHECK(reply("redis 7.0", "BITPOS none 1 x") == integer(-1));
  CHECK(reply("redis 7.2", "BITPOS l 1 x") == error("ERR value is not an integer or out of range"));
  CHECK(reply("redis 7.2", "BITCOUNT l x") == error("ERR syntax error"));
}

TEST_CASE("XADD takes a later option for the id", "[emulation]") {
  for (const char* release : {"redis 7.0", "redis 8.0", "valkey 9.1"}) {
    INFO(release);
    Emulating server("emulate \"" + std::string(release) + "\"\n");
    REQUIRE(server.made());
    for (const char* request : {"XADD x KEEPREF * a b", "XADD x IDMPAUTO a * a b"})
      CHECK(server.run(request) ==
            error("ERR Invalid stream ID specified as stream command argument"));
    CHECK(server.run("XTRIM x MAXLEN 1 KEEPREF") == error("ERR syntax error"));
  }
}

TEST_CASE("Scans read cursors and options as each release does", "[emulation]") {
  const std::string nothing = array({bulk("0"), array({})});
  const std::string invalid = error("ERR invalid cursor");
  const std::string syntax = error("ERR syntax error");
  Emulating old("emulate \"redis 7.0\"\n");
  REQUIRE(old.made());
  CHECK(old.run("SCAN -1") == nothing);
  CHECK(old.run("SCAN ") == nothing);
  CHECK(old.run("HSCAN none -1") == nothing);
  CHECK(old.run("SCAN -1 NOVALUES") == syntax);
  CHECK(old.run("SCAN \t1") == invalid);
  CHECK(old.run("SCAN 1x") == invalid);
  // The key is looked at first.
  CHECK(old.run("HSCAN none 0 NOVALUES") == nothing);
  CHECK(old.run("SET s v") == kOk);
  CHECK(old.run("HSCAN s 0 NOVALUES") == kWrongType);
  CHECK(old.run("HSET h f v") == integer(1));
  CHECK(old.run("HSCAN h 0 NOVALUES") == syntax);
  CHECK(old.run("ZADD z 1 m") == integer(1));
  CHECK(old.run("ZSCAN z 0 NOVALUES") == syntax);
  CHECK(old.run("ZSCAN z 0 NOSCORES") == syntax);

  Emulating newer("emulate \"redis 7.4\"\n");
  REQUIRE(newer.made());
  CHECK(newer.run("SCAN -1") == invalid);
  CHECK(newer.run("SCAN ") == invalid);
  CHECK(newer.run("SCAN \t1") == nothing);
  CHECK(newer.run("SCAN 0 NOVALUES") == error("ERR NOVALUES option can only be used in HSCAN"));
  CHECK(newer.run("HSET h f v") == integer(1));
  CHECK(newer.run("HSCAN h 0 NOVALUES") == array({bulk("0"), bulks({"f"})}));
}

TEST_CASE("Words of directives that came later are unknown", "[emulation]") {
  const auto set = [](Emulating& server, std::string_view directive, std::string_view word) {
    const std::string reply = server.run_words({"CONFIG", "SET", directive, word});
    return reply == kOk ? "OK" : reply.substr(0, reply.size() - 2);
  };
  Emulating redis("emulate \"redis 7.0\"\n");
  REQUIRE(redis.made());
  CHECK(set(redis, "maxmemory-policy", "allkeys-lrm")
            .ends_with("one of the following: volatile-lru, volatile-lfu, volatile-random, "
                       "volatile-ttl, allkeys-lru, allkeys-lfu, allkeys-random, noeviction"));
  CHECK(set(redis, "maxmemory-policy", "allkeys-lru") == "OK");
  CHECK(set(redis, "loglevel", "nothing").ends_with("debug, verbose, notice, warning"));
  CHECK(set(redis, "repl-diskless-load", "flushdb").ends_with("disabled, on-empty-db, swapdb"));
  CHECK(set(redis, "notify-keyspace-events", "KEAn") == "OK");
  CHECK(contains(set(redis, "notify-keyspace-events", "KEAo"), "Invalid event class"));

  Emulating valkey("emulate \"valkey 8.1\"\n");
  REQUIRE(valkey.made());
  CHECK(set(valkey, "repl-diskless-load", "flush-before-load") == "OK");
  CHECK(contains(valkey.run("CONFIG GET repl-diskless-load"), bulk("flush-before-load")));
  CHECK(set(valkey, "log-format", "json").ends_with("legacy, logfmt"));
  CHECK(contains(valkey.run("CONFIG GET dual-*"), "dual-channel-replication-enabled"));

  Emulating none("");
  REQUIRE(none.made());
  CHECK(set(none, "maxmemory-policy", "allkeys-lrm") == "OK");
  CHECK(set(none, "notify-keyspace-events", "KEAoc") == "OK");
  CHECK(none.run("CONFIG GET dual-*") == "*0\r\n");
}

TEST_CASE("Scripts and their errors are Valkey's where it is emulated", "[emulation]") {
  const char* const load =
      "#!lua name=lib\nredis.register_function('not a name',function() return 1 end)";
  const auto first_words = [](const std::string& reply) {
    return reply.substr(0, reply.find(" script"));
  };
  Emulating valkey("emulate \"valkey 9.1\"\n");
  REQUIRE(valkey.made());
  CHECK(valkey.run("EVALSHA abc 0") == error("NOSCRIPT No matching script."));
  CHECK(valkey.run_words({"FUNCTION", "LOAD", load})
            .starts_with("-ERR Function names can only contain"));
  CHECK(valkey.run_words({"FUNCTION", "LOAD", "#!lua name=lib\nredis.nosuch()"})
            .starts_with("-ERR Error registering functions: "));
  CHECK(first_words(valkey.evaluate("return redis.call('MULTI')")) ==
        "-ERR This Valkey command is not allowed from");
  CHECK(valkey.run("ACL SAVE")
            .starts_with("-ERR This instance is not configured to use an ACL file. "));
  CHECK(valkey.run("CLIENT UNBLOCK 999 WHAT more") == integer(0));
  CHECK(valkey.run("CLIENT PAUSE 1 WRITE more") == kOk);

  Emulating redis("emulate \"redis 7.0\"\n");
  REQUIRE(redis.made());
  CHECK(redis.run("EVALSHA abc 0") == error("NOSCRIPT No matching script. Please use EVAL."));
  CHECK(redis.run_words({"FUNCTION", "LOAD", load})
            .starts_with("-ERR Error registering functions: "));
  CHECK(first_words(redis.evaluate("return redis.call('MULTI')")) ==
        "-ERR This Redis command is not allowed from");
  CHECK(first_words(redis.evaluate("redis.log(100,'x')")) == "-ERR Invalid debug level.");
  CHECK(contains(redis.evaluate("return os.clock()"), "nonexistent global variable 'os'"));
  CHECK(first_words(redis.evaluate("redis.set_repl()")) ==
        "-ERR redis.set_repl() requires two arguments.");
  CHECK(redis.run("ACL SAVE").starts_with("-ERR This Redis instance is not configured"));
  CHECK(contains(redis.run("CLIENT PAUSE 1 WRITE more"), "wrong number of arguments"));
}

TEST_CASE("MEMORY STATS and INFO have the figures of the release", "[emulation]") {
  Emulating redis("emulate \"redis 7.0\"\n");
  REQUIRE(redis.made());
  const std::string figures = redis.run("MEMORY STATS");
  CHECK_FALSE(contains(figures, "allocator.muzzy"));
  CHECK_FALSE(contains(figures, "script.VMs"));
  CHECK(contains(figures, "allocator.resident"));
  CHECK_FALSE(contains(redis.info("everything"), "clients_hz"));

  Emulating valkey("emulate \"valkey 9.1\"\n");
  REQUIRE(valkey.made());
  CHECK(contains(valkey.run("MEMORY STATS"), "allocator.muzzy"));
  CHECK_FALSE(contains(valkey.run("MEMORY STATS"), "replica.fullsync.buffer"));
  CHECK(contains(valkey.info("server"), "clients_hz:10\r\n"));
  CHECK(contains(valkey.info("stats"), "io_threaded_poll_processed:0\r\n"));
  CHECK(contains(valkey.info("stats"), "expired_keys_with_volatile_items_stale_perc:0.00\r\n"));
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
