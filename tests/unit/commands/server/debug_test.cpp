#include <string>

#include "base/jemalloc.h"
#include "commands/groups.h"
#include "unit/catch.h"
#include "unit/commands/server/debug_server.h"
#include "unit/server_fixture.h"
#include "unit/temporary_directory.h"
#include "unit/testing/tested_server.h"

using namespace latchkey;
using tests::DebugServer;
using tests::ServerFixture;
using tests::TestClient;

TEST_CASE("DEBUG is refused unless the configuration allows it") {
  ServerFixture server({commands::debug_rows()});
  TestClient client(server);
  CHECK(client.run("DEBUG SLEEP 0").starts_with("-ERR DEBUG command not allowed."));
}

TEST_CASE("DEBUG PROTOCOL has pushes for clients that know them only") {
  DebugServer server;
  TestClient old(server);
  CHECK(old.run("DEBUG PROTOCOL push") ==
        tests::error("ERR RESP2 is not supported by this command"));
  TestClient client(server, 3);
  CHECK(client.run("DEBUG PROTOCOL push") ==
        tests::bulk("Some real reply following the push reply") + ">2\r\n" +
            tests::bulk("server-cpu-usage") + ":42\r\n");
}

TEST_CASE("DEBUG REPLYBUFFER says that there is no peak to forget, and nothing that resizes") {
  DebugServer server;
  TestClient client(server);
  const std::string refused = tests::error(
      "ERR reply buffers of this server have neither a fixed size nor a peak to reset");
  CHECK(client.run("DEBUG REPLYBUFFER RESIZING 0") == tests::kOk);
  CHECK(client.run("DEBUG REPLYBUFFER PEAK-RESET-TIME 100") == refused);
}

TEST_CASE("DEBUG DIGEST-VALUE gives what the reference gives for the same value") {
  DebugServer server;
  TestClient client(server);
  client.run("SET number 1");
  client.run("SET text foobar");
  client.run("SET volatile foobar PX 1000");
  CHECK(client.run("DEBUG DIGEST-VALUE number text volatile missing") ==
        tests::array({tests::status("b4fc66738120fba0b5aa500ab5c2bf89cea1c5da"),
                      tests::status("ca50da18efb08f00eeb6e2c4e91141b80a6d3473"),
                      tests::status("2cd524e7338965542fa0093cac7b8e2310c375f0"),
                      tests::status("0000000000000000000000000000000000000000")}));
}

TEST_CASE("DEBUG DIGEST-VALUE knows keys that have expired and are not removed") {
  DebugServer server;
  TestClient client(server);
  client.run("DEBUG SET-ACTIVE-EXPIRE 0");
  client.run("SET key value PX 100");
  const std::string digest = client.run("DEBUG DIGEST-VALUE key");
  server.advance_ms(200);
  CHECK(client.run("DEBUG DIGEST-VALUE key") == digest);
  CHECK(client.run("DEBUG DIGEST-VALUE key other") != client.run("DEBUG DIGEST-VALUE other other"));
}

TEST_CASE("DEBUG DIGEST-VALUE marks fields with a deadline, past or not, as the reference does") {
  DebugServer server;
  TestClient client(server);
  const auto digest = [&] { return client.run("DEBUG DIGEST-VALUE h"); };
  client.run("HSET h a 1 b 2");
  CHECK(digest() == "*1\r\n+6c8f22b3bf510fdcfd6122dd0f908a80e88243bf\r\n");
  client.run("HEXPIRE h 100 FIELDS 1 a");
  CHECK(digest() == "*1\r\n+c07db73128914a41e685572f9d83e5ec946f598d\r\n");
  server.advance_ms(100'000);
  CHECK(digest() == "*1\r\n+c07db73128914a41e685572f9d83e5ec946f598d\r\n");
  client.run("HGET h a");
  CHECK(digest() == "*1\r\n+ad0cab148f2e31ee9d53b9211c2641768c3f7e67\r\n");
}

TEST_CASE("DEBUG LISTPACK prints values that are kept in one, and no others") {
  DebugServer server;
  TestClient client(server);
  client.run("HSET h a 1");
  client.run("SADD integers 1");
  client.run("SET text t");
  CHECK(client.run("DEBUG LISTPACK h") == tests::status("Listpack structure printed on stdout"));
  for (const char* const key : {"integers", "text"}) {
    CHECK(client.run(std::string("DEBUG LISTPACK ") + key) ==
          tests::error("ERR Not a listpack encoded object."));
  }
  CHECK(client.run("DEBUG LISTPACK none") == tests::error("ERR no such key"));
}

TEST_CASE("DEBUG DIGEST tells datasets apart, whatever the order of their keys") {
  DebugServer first;
  DebugServer second;
  TestClient one(first);
  TestClient other(second);
  CHECK(one.run("DEBUG DIGEST") == tests::status("0000000000000000000000000000000000000000"));
  for (const char* request : {"SET a 1", "SET b 2"}) one.run(request);
  for (const char* request : {"SET b 2", "SET a 1"}) other.run(request);
  CHECK(one.run("DEBUG DIGEST") == other.run("DEBUG DIGEST"));
  one.run("PERSIST a");
  other.run("SET a 1 PX 1000");
  CHECK(one.run("DEBUG DIGEST") != other.run("DEBUG DIGEST"));
}

TEST_CASE("DEBUG POPULATE makes keys without counting changes, and leaves those that are there") {
  DebugServer server;
  TestClient client(server);
  client.run("SET key:1 mine");
  server.changes();
  CHECK(client.run("DEBUG POPULATE 3") == tests::kOk);
  CHECK(client.run("DEBUG POPULATE 2 sized 10") == tests::kOk);
  CHECK(client.run("DBSIZE") == tests::integer(5));
  CHECK(client.run("GET key:1") == tests::bulk("mine"));
  CHECK(client.run("GET key:2") == tests::bulk("value:2"));
  CHECK(client.run("GET sized:0") == tests::bulk(std::string_view("value:0\0\0\0", 10)));
  CHECK(server.changes() == 0);
}

TEST_CASE("DEBUG HTSTATS describes the tables of a database") {
  DebugServer server;
  TestClient client(server);
  CHECK(client.run("DEBUG HTSTATS 0") == tests::bulk("[Dictionary HT]\n[Expires HT]\n"));
  client.run("SET name value");
  const std::string told = client.run("DEBUG HTSTATS 0 full");
  CHECK(told.find(" number of elements: 1\n") != std::string::npos);
  CHECK(told.find(" max chain length: 1\n") != std::string::npos);
  CHECK(client.run("DEBUG HTSTATS 99") == tests::error("ERR Out of range database"));
}

TEST_CASE("DEBUG SET-ACTIVE-EXPIRE leaves expired keys to those who ask for them") {
  DebugServer server;
  TestClient client(server);
  client.run("DEBUG SET-ACTIVE-EXPIRE 0");
  client.run("SET name value PX 10");
  server.advance_ms(100);
  server.tick();
  CHECK(client.run("DBSIZE") == tests::integer(1));
  client.run("DEBUG SET-ACTIVE-EXPIRE 1");
  server.tick();
  CHECK(client.run("DBSIZE") == tests::integer(0));
}

TEST_CASE("DEBUG answers a wrong subcommand or number of words with one error") {
  DebugServer server;
  TestClient client(server);
  for (const char* request : {"DEBUG nonsense", "DEBUG nonsense 1 2"}) {
    CHECK(
        client.run(request) ==
        tests::error(
            "ERR unknown subcommand or wrong number of arguments for 'nonsense'. Try DEBUG HELP."));
  }
}

TEST_CASE("Of a long wrong subcommand 128 bytes are shown, of any what stands before a NUL") {
  DebugServer server;
  TestClient client(server);
  const std::string before = "ERR unknown subcommand or wrong number of arguments for '";
  const std::string behind = "'. Try DEBUG HELP.";
  CHECK(client.run("DEBUG " + std::string(200, 'x')) ==
        tests::error(before + std::string(128, 'x') + behind));
  CHECK(client.run_words({"DEBUG", std::string_view("a\0b", 3)}) ==
        tests::error(before + "a" + behind));
}

TEST_CASE("DEBUG HTSTATS-KEY tells of the table of a large set, hash or sorted set") {
  DebugServer server;
  server.database().environment().limits = {.hash_max_listpack_entries = 0,
                                            .set_max_listpack_entries = 0,
                                            .zset_max_listpack_entries = 0};
  TestClient client(server);
  client.run("SADD set a b c");
  client.run("HSET hash a 1 b 2 c 3");
  client.run("ZADD sorted 1 a 2 b 3 c");
  client.run("RPUSH list a b c");
  for (const char* key : {"set", "hash", "sorted"}) {
    const std::string told = client.run("DEBUG HTSTATS-KEY " + std::string(key) + " full");
    CHECK(told.find("Hash table 0 stats (main hash table):\n table size: ") != std::string::npos);
    CHECK(told.find(" number of elements: 3\n") != std::string::npos);
    CHECK(told.find(" max chain length: ") != std::string::npos);
    CHECK(client.run("DEBUG HTSTATS-KEY " + std::string(key)).find("chain") == std::string::npos);
  }
  CHECK(client.run("DEBUG HTSTATS-KEY list") ==
        tests::error(
            "ERR The value stored at the specified key is not represented using an hash table"));
}

TEST_CASE("DEBUG OBJECT tells of the nodes of a quicklist") {
  DebugServer server;
  server.database().environment().limits.list_max_listpack_size = 2;
  TestClient client(server);
  client.run("RPUSH list 1 2 3 4 5");
  CHECK(client.run("DEBUG OBJECT list")
            .ends_with(" ql_nodes:3 ql_avg_node:1.67 ql_listpack_max:2 ql_compressed:0 "
                       "ql_uncompressed_size:31\r\n"));
  client.run("RPUSH short 1 2");
  CHECK(client.run("DEBUG OBJECT short").find("ql_") == std::string::npos);
}

TEST_CASE("A quicklist keeps the size of nodes that held when it became one") {
  DebugServer server;
  TestClient client(server);
  const auto figures = [&](const std::string& key) {
    const std::string text = client.run("DEBUG OBJECT " + key);
    const auto field = [&](const std::string& name) {
      const size_t at = text.find(name);
      return at == text.npos ? 0 : std::stoi(text.substr(at + name.size()));
    };
    return std::pair(field("ql_nodes:"), field("ql_listpack_max:"));
  };
  client.run("CONFIG SET list-max-listpack-size 3");
  client.run("RPUSH list 1 2 3 4 5 6");
  client.run("CONFIG SET list-max-listpack-size 2");
  client.run("RPUSH list 7 8 9");
  CHECK(figures("list") == std::pair(3, 3));
  client.run("COPY list copy");
  client.run("RPUSH copy 10 11 12");
  CHECK(figures("copy") == std::pair(4, 3));
  client.run("RPUSH other 1 2 3 4 5 6");
  CHECK(figures("other") == std::pair(3, 2));
  // Whether it is small again, the setting of the moment says.
  client.run("CONFIG SET list-max-listpack-size 100");
  client.run("LTRIM list 0 2");
  CHECK(client.run("DEBUG OBJECT list").find(" encoding:listpack ") != std::string::npos);
  client.run("CONFIG SET list-max-listpack-size 2");
  client.run("LTRIM other 0 1");
  CHECK(client.run("DEBUG OBJECT other").find(" encoding:quicklist ") != std::string::npos);
}

TEST_CASE("DEBUG QUICKLIST prints lists of several nodes, and nothing else") {
  DebugServer server;
  TestClient client(server);
  client.run("CONFIG SET list-max-listpack-size 2 list-compress-depth 1");
  client.run("RPUSH chain a b c d e f 7");
  client.run("RPUSH small a");
  client.run("SET text t");
  const std::string printed = tests::status("Quicklist structure printed on stdout");
  CHECK(client.run("DEBUG QUICKLIST chain") == printed);
  CHECK(client.run("DEBUG QUICKLIST chain 1") == printed);
  for (const char* const key : {"small", "text"}) {
    CHECK(client.run(std::string("DEBUG QUICKLIST ") + key) ==
          tests::error("ERR Not a quicklist encoded object."));
  }
  CHECK(client.run("DEBUG QUICKLIST none") == tests::error("ERR no such key"));
}

TEST_CASE("DEBUG QUICKLIST-PACKED-THRESHOLD gives elements of that size nodes of their own") {
  DebugServer server;
  TestClient client(server);
  const auto nodes = [&](const std::string& key) {
    const std::string text = client.run("DEBUG OBJECT " + key);
    const size_t at = text.find("ql_nodes:");
    return at == std::string::npos ? 0 : std::stoi(text.substr(at + 9));
  };
  client.run("CONFIG SET list-max-listpack-size 2");
  client.run("DEBUG QUICKLIST-PACKED-THRESHOLD 5b");
  client.run("RPUSH list abcde b abcd c d");
  CHECK(nodes("list") == 3);
  client.run("CONFIG SET list-max-listpack-size 3");
  client.run("RPUSH other abcde b abcd c d");
  CHECK(nodes("other") == 3);
  client.run("DEBUG QUICKLIST-PACKED-THRESHOLD 0");
  client.run("RPUSH third abcde b abcd c d");
  CHECK(nodes("third") == 2);
  CHECK(client.run("LRANGE list 0 -1") == client.run("LRANGE third 0 -1"));
  const std::string refused =
      tests::error("ERR argument must be a memory value bigger than 1 and smaller than 4gb");
  CHECK(client.run("DEBUG QUICKLIST-PACKED-THRESHOLD 4293918720") == tests::status("OK"));
  CHECK(client.run("DEBUG QUICKLIST-PACKED-THRESHOLD 4293918721") == refused);
  CHECK(client.run("DEBUG QUICKLIST-PACKED-THRESHOLD -1") == refused);
}

TEST_CASE("DEBUG PROTOCOL replies with a value of each type, as the client's protocol has it") {
  DebugServer server;
  TestClient old(server);
  TestClient client(server, 3);
  const struct {
    std::string type;
    std::string two;
    std::string three;
  } rows[] = {
      {"string", "$11\r\nHello World\r\n", "$11\r\nHello World\r\n"},
      {"integer", ":12345\r\n", ":12345\r\n"},
      {"double", "$5\r\n3.141\r\n", ",3.141\r\n"},
      {"bignum", "$37\r\n1234567999999999999999999999999999999\r\n",
       "(1234567999999999999999999999999999999\r\n"},
      {"null", "$-1\r\n", "_\r\n"},
      {"array", "*3\r\n:0\r\n:1\r\n:2\r\n", "*3\r\n:0\r\n:1\r\n:2\r\n"},
      {"set", "*3\r\n:0\r\n:1\r\n:2\r\n", "~3\r\n:0\r\n:1\r\n:2\r\n"},
      {"map", "*6\r\n:0\r\n:0\r\n:1\r\n:1\r\n:2\r\n:0\r\n",
       "%3\r\n:0\r\n#f\r\n:1\r\n#t\r\n:2\r\n#f\r\n"},
      {"attrib", "$39\r\nSome real reply following the attribute\r\n",
       "|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n"
       "$39\r\nSome real reply following the attribute\r\n"},
      {"verbatim", "$25\r\nThis is a verbatim\nstring\r\n",
       "=29\r\ntxt:This is a verbatim\nstring\r\n"},
      {"true", ":1\r\n", "#t\r\n"},
      {"false", ":0\r\n", "#f\r\n"},
  };
  for (const auto& row : rows) {
    INFO(row.type);
    CHECK(old.run("DEBUG PROTOCOL " + row.type) == row.two);
    CHECK(client.run("DEBUG PROTOCOL " + row.type) == row.three);
  }
  CHECK(client.run("DEBUG PROTOCOL strings") ==
        tests::error(
            "ERR Wrong protocol type name. Please use one of the following: "
            "string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false"));
}

TEST_CASE("DEBUG SET-ALLOW-ACCESS-EXPIRED shows keys whose time has come") {
  DebugServer server;
  TestClient client(server);
  client.run("SET name value PX 10");
  client.run("DEBUG SET-ACTIVE-EXPIRE 0");
  CHECK(client.run("DEBUG SET-ALLOW-ACCESS-EXPIRED 1") == tests::kOk);
  server.advance_ms(100);
  CHECK(client.run("GET name") == tests::bulk("value"));
  CHECK(client.run("DEBUG SET-ALLOW-ACCESS-EXPIRED 0") == tests::kOk);
  CHECK(client.run("GET name") == tests::kNull);
}

TEST_CASE("DEBUG PAUSE-CRON stops the periodic work until it is told to go on") {
  DebugServer server;
  TestClient client(server);
  CHECK_FALSE(server.server.ticking_paused());
  CHECK(client.run("DEBUG PAUSE-CRON 1") == tests::kOk);
  CHECK(server.server.ticking_paused());
  CHECK(client.run("DEBUG PAUSE-CRON 0") == tests::kOk);
  CHECK_FALSE(server.server.ticking_paused());
}

TEST_CASE("DEBUG LOG writes a line to the log, at the level of warnings") {
  DebugServer server;
  TestClient client(server);
  tests::TemporaryDirectory directory;
  server.log.set_file(directory.path() / "log");
  server.log.set_level(base::LogLevel::kWarning);
  CHECK(client.run_words({"DEBUG", "LOG", "all is well"}) == tests::kOk);
  server.log.set_level(base::LogLevel::kNothing);
  CHECK(directory.read("log").ends_with(" # DEBUG LOG: all is well\n"));
}

TEST_CASE("DEBUG ERROR replies with the text as it is") {
  DebugServer server;
  TestClient client(server);
  CHECK(client.run_words({"DEBUG", "ERROR", "LONG live the error"}) == "-LONG live the error\r\n");
  CHECK(client.run_words({"DEBUG", "ERROR", "-LONG live the error"}) ==
        "--LONG live the error\r\n");
}

TEST_CASE("An error that DEBUG ERROR was asked for does not count as one") {
  tests::TestedServer server("enable-debug-command yes\n");
  TestClient client(server);
  CHECK(client.run("DEBUG ERROR wanted") == "-wanted\r\n");
  CHECK(client.run("MULTI") == tests::kOk);
  client.run("DEBUG ERROR wanted");
  CHECK(client.run("EXEC") == "*1\r\n-wanted\r\n");
  const std::string info = client.run("INFO everything");
  CHECK(info.find("total_error_replies:0\r\n") != std::string::npos);
  CHECK(info.find("errorstat_") == std::string::npos);
  CHECK(info.find("failed_calls=1") == std::string::npos);
}

TEST_CASE("DEBUG STRUCTSIZE tells sizes of this machine's words") {
  DebugServer server;
  TestClient client(server);
  const std::string sizes = client.run("DEBUG STRUCTSIZE");
  CHECK(sizes.find("\r\nbits:64 entry:") != std::string::npos);
  for (const char* name : {" deadline:", " blob:", " keyspace:", " client:"})
    CHECK(sizes.find(name) != std::string::npos);
  CHECK(sizes.ends_with(" \r\n"));
}

TEST_CASE("Scripts may call a little of what is denied to them while DEBUG says so") {
  tests::TestedServer server("enable-debug-command yes\n");
  TestClient client(server);
  const auto calls = [&] {
    return client.run_words({"EVAL", "return redis.pcall('debug', 'error', 'WELL done')", "0"});
  };
  const std::string refused = tests::error("ERR This Redis command is not allowed from script");
  CHECK(calls().starts_with(refused.substr(0, refused.size() - 2)));
  CHECK(client.run("DEBUG SET-DISABLE-DENY-SCRIPTS 1") == tests::kOk);
  CHECK(calls().starts_with("-WELL done"));
  CHECK(client.run_words({"EVAL", "return redis.call('client', 'info')", "0"}).starts_with("$"));
  for (const std::string words : {"'eval', 'return 1', '0'", "'script', 'flush'",
                                  "'client', 'reply', 'off'", "'subscribe', 'c'", "'sync'"}) {
    INFO(words);
    CHECK(client.run_words({"EVAL", "return redis.pcall(" + words + ")", "0"})
              .starts_with(refused.substr(0, refused.size() - 2)));
  }
  CHECK(client.run("DEBUG SET-DISABLE-DENY-SCRIPTS 0") == tests::kOk);
  CHECK(calls().starts_with(refused.substr(0, refused.size() - 2)));
}

TEST_CASE("Switches of DEBUG that change what nobody sees here are obeyed") {
  DebugServer server;
  TestClient client(server);
  CHECK(client.run("DEBUG CLIENT-ENFORCE-REPLY-LIST 1") == tests::kOk);
  CHECK(server.server.debug_settings().enforce_reply_list);
  CHECK(client.run("DEBUG CLIENT-ENFORCE-REPLY-LIST 0") == tests::kOk);
  CHECK_FALSE(server.server.debug_settings().enforce_reply_list);
  CHECK(client.run("DEBUG REPLY-COPY-AVOIDANCE 0") == tests::kOk);
  CHECK(server.server.buffer_pool().copies_all);
  CHECK(client.run("DEBUG REPLY-COPY-AVOIDANCE 1") == tests::kOk);
  CHECK_FALSE(server.server.buffer_pool().copies_all);
  CHECK(client.run("DEBUG FORCE-FREE-PRIMARY-ASYNC 1") == tests::kOk);
  CHECK(client.run("DEBUG SLEEP 0") == tests::kOk);
  CHECK(client.run("DEBUG SLEEP -1") == tests::kOk);
  CHECK(client.run("DEBUG DICT-RESIZING 1") == tests::kOk);
  CHECK(client.run("DEBUG DICT-RESIZING 0") ==
        tests::error("ERR hash tables of this server cannot be kept from resizing"));
}

TEST_CASE("DEBUG CONFIG-REWRITE-FORCE-ALL needs a file") {
  DebugServer server;
  TestClient client(server);
  CHECK(client.run("DEBUG CONFIG-REWRITE-FORCE-ALL")
            .starts_with("-ERR CONFIG-REWRITE-FORCE-ALL failed: "));
}

TEST_CASE("DEBUG MALLCTL tells numbers that the allocator knows, and no others") {
  DebugServer server;
  TestClient client(server);
  CHECK(client.run("DEBUG MALLCTL no.such.name") == tests::error("ERR No such file or directory"));
  CHECK(client.run("DEBUG MALLCTL arenas.page x") ==
        tests::error("ERR value is not an integer or out of range"));
  CHECK(client.run("DEBUG MALLCTL-STR no.such.name VOID") ==
        tests::error("ERR No such file or directory"));
  CHECK(client.run("DEBUG MALLCTL-STR arena.0.purge NOW") ==
        tests::error("ERR only VOID is possible, for names that stand for something to be done"));
  if (mallctl == nullptr) return;
  CHECK(client.run("DEBUG MALLCTL arenas.page") == tests::integer(4096));
  CHECK(client.run("DEBUG MALLCTL-STR arena.0.purge VOID") == tests::kOk);
}

TEST_CASE("DEBUG SDSLEN tells what a string takes beside its text") {
  DebugServer server;
  TestClient client(server);
  client.run("SET name value");
  const std::string told = client.run("DEBUG SDSLEN name");
  CHECK(told.starts_with("+key_sds_len:4, key_sds_avail:0, key_zmalloc: "));
  CHECK(told.ends_with(", val_sds_len:5, val_sds_avail:0, val_zmalloc: 5\r\n"));
  client.run("SET number 12");
  client.run("RPUSH list a");
  for (const char* key : {"number", "list"}) {
    CHECK(client.run("DEBUG SDSLEN " + std::string(key)) ==
          tests::error("ERR Not an sds encoded string."));
  }
  CHECK(client.run("DEBUG SDSLEN none") == tests::error("ERR no such key"));
  // The key, the value and the room behind it are what MEMORY USAGE counts.
  client.run_words({"SET", "large", std::string(100'000, 'x')});
  const std::string large = client.run("DEBUG SDSLEN large");
  const auto figure = [&](const std::string& name) {
    return std::stoll(large.substr(large.find(name) + name.size()));
  };
  CHECK(figure("val_sds_len:") == 100'000);
  CHECK(figure("val_zmalloc: ") == 100'000 + figure("val_sds_avail:"));
  CHECK(client.run("MEMORY USAGE large") ==
        tests::integer(figure("key_zmalloc: ") + figure("val_zmalloc: ")));
}

TEST_CASE("DEBUG POPULATE wants a number of keys, and a size, that are not negative") {
  DebugServer server;
  TestClient client(server);
  const std::string refused = tests::error("ERR value is out of range, must be positive");
  CHECK(client.run("DEBUG POPULATE -1") == refused);
  CHECK(client.run("DEBUG POPULATE 1 key -1") == refused);
  CHECK(client.run("DEBUG POPULATE x") == refused);
  CHECK(client.run("DBSIZE") == tests::integer(0));
  CHECK(client.run("DEBUG POPULATE 0") == tests::kOk);
  CHECK(client.run("DBSIZE") == tests::integer(0));
  CHECK(client.run("DEBUG POPULATE 1 plain 0") == tests::kOk);
  CHECK(client.run("GET plain:0") == tests::bulk("value:0"));
}

TEST_CASE("DEBUG HTSTATS counts the keys with a deadline by themselves") {
  DebugServer server;
  TestClient client(server);
  client.run("SET a 1");
  client.run("SET b 1 EX 100");
  client.run("SET c 1 EX 100");
  const std::string told = client.run("DEBUG HTSTATS 0");
  CHECK(told.find(" number of elements: 3\n[Expires HT]\nTiming wheel stats:\n number of elements: "
                  "2\n") != std::string::npos);
  CHECK(told.find("chain") == std::string::npos);
  CHECK(client.run("DEBUG HTSTATS 15").find("[Dictionary HT]\n[Expires HT]\n") !=
        std::string::npos);
  CHECK(client.run("DEBUG HTSTATS 16") == tests::error("ERR Out of range database"));
  CHECK(client.run("DEBUG HTSTATS -1") == tests::error("ERR Out of range database"));
  CHECK(client.run("DEBUG HTSTATS x") ==
        tests::error("ERR value is not an integer or out of range"));
}

TEST_CASE("DEBUG LISTPACK prints lists, sets and sorted sets while they are in one") {
  DebugServer server;
  TestClient client(server);
  client.run("CONFIG SET list-max-listpack-size 2 set-max-listpack-entries 2");
  client.run("CONFIG SET zset-max-listpack-entries 2 hash-max-listpack-entries 2");
  client.run("RPUSH list a b");
  client.run("SADD set a b");
  client.run("ZADD sorted 1 a 2 b");
  client.run("HSET hash a 1 b 2");
  const char* const keys[] = {"list", "set", "sorted", "hash"};
  for (const char* const key : keys) {
    INFO(key);
    CHECK(client.run(std::string("DEBUG LISTPACK ") + key) ==
          tests::status("Listpack structure printed on stdout"));
  }
  client.run("RPUSH list c");
  client.run("SADD set c");
  client.run("ZADD sorted 3 c");
  client.run("HSET hash c 3");
  for (const char* const key : keys) {
    INFO(key);
    CHECK(client.run(std::string("DEBUG LISTPACK ") + key) ==
          tests::error("ERR Not a listpack encoded object."));
  }
}

TEST_CASE("DEBUG refuses in a space what acts on the process") {
  DebugServer server;
  TestClient client(server);
  server.server.set_state(server::kStateSpace, true);
  for (const char* const name :
       {"ASSERT", "CONFIG-REWRITE-FORCE-ALL", "CRASH-AND-RECOVER", "LEAK", "loadaof", "MALLCTL",
        "MALLCTL-STR", "OOM", "PANIC", "RESTART", "SEGFAULT"}) {
    CHECK(client.run(std::string("DEBUG ") + name) ==
          tests::error("ERR DEBUG " + std::string(name) +
                       " acts on the whole process, and is not available in a space"));
  }
  CHECK(client.run("DEBUG SET-ACTIVE-EXPIRE 1") == tests::kOk);
}

TEST_CASE("Subcommands of DEBUG take as many words as they say") {
  DebugServer server;
  TestClient client(server);
  for (const std::string request :
       {"SLEEP", "SLEEP 0 0", "POPULATE", "POPULATE 1 a 1 1", "HTSTATS", "HTSTATS 0 full more",
        "DIGEST now", "QUICKLIST", "QUICKLIST a 1 1", "RESTART 1 1", "MALLCTL", "MALLCTL a 1 1",
        "MALLCTL-STR a", "HELP me", "STRUCTSIZE all", "REPLYBUFFER RESIZING"}) {
    INFO(request);
    const std::string name = request.substr(0, request.find(' '));
    CHECK(client.run("DEBUG " + request) ==
          tests::error("ERR unknown subcommand or wrong number of arguments for '" + name +
                       "'. Try DEBUG HELP."));
  }
}

TEST_CASE("What DEBUG has counted after each call agrees with what is there") {
  DebugServer server;
  TestClient client(server);
  for (const char* const check : {"KEYSIZES-HIST-ASSERT", "ALLOCSIZE-SLOTS-ASSERT"}) {
    INFO(check);
    // The histogram is there from when somebody has asked for it.
    CHECK(client.run(std::string("DEBUG ") + check + " 1") == tests::kOk);
    CHECK(client.run("SET text abc") == tests::kOk);
    CHECK(client.run("RPUSH list a b c") == tests::integer(3));
    CHECK(client.run("SADD set a b") == tests::integer(2));
    CHECK(client.run("ZADD sorted 1 a") == tests::integer(1));
    CHECK(client.run("HSET hash a 1") == tests::integer(1));
    CHECK(client.run("RPOP list") == tests::bulk("c"));
    CHECK(client.run("DEL text list set sorted hash") == tests::integer(5));
    CHECK(client.run(std::string("DEBUG ") + check + " 0") == tests::kOk);
  }
}

TEST_CASE("Keys that DEBUG POPULATE makes are told to clients that track them") {
  DebugServer server;
  TestClient reader(server, 3);
  TestClient maker(server);
  CHECK(reader.run("CLIENT TRACKING ON") == tests::kOk);
  reader.run("GET key:0");
  CHECK(maker.run("DEBUG POPULATE 2") == tests::kOk);
  CHECK(reader.take_output() == ">2\r\n" + tests::bulk("invalidate") + tests::bulks({"key:0"}));
}
