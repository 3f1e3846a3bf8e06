#include "server/emulation/valkey_words.h"

#include <array>
#include <string>

#include "unit/catch.h"
#include "unit/testing/tested_server.h"

using latchkey::server::in_words_of_valkey;

TEST_CASE("The log of Valkey speaks of primaries", "[emulation]") {
  std::array<char, 64> room{};
  CHECK(in_words_of_valkey("Connecting to MASTER 1.2.3.4:1", room) ==
        "Connecting to PRIMARY 1.2.3.4:1");
  CHECK(in_words_of_valkey("Master told the master: masters, webmaster, my_master.", room) ==
        "Primary told the primary: masters, webmaster, my_master.");
  CHECK(in_words_of_valkey("master", room) == "primary");
  CHECK(in_words_of_valkey("Redis is ready, RediSearch is not.", room) ==
        "Valkey is ready, RediSearch is not.");
  CHECK(in_words_of_valkey("", room).empty());
}

TEST_CASE("A line that does not fit stays in the words of Redis", "[emulation]") {
  std::array<char, 8> room{};
  CHECK(in_words_of_valkey("master 1", room) == "master 1");
  CHECK(in_words_of_valkey("master 12345678", room) == "master 12345678");
}

TEST_CASE("Errors of scripts have Valkey's words", "[emulation]") {
  using latchkey::server::script_error_of_valkey;
  CHECK(script_error_of_valkey("ERR Unknown Redis command called from script") ==
        "ERR Unknown command called from script");
  CHECK(script_error_of_valkey("ERR redis.log() requires two arguments or more.") ==
        "ERR server.log() requires two arguments or more.");
  CHECK(script_error_of_valkey("ERR wrong number of arguments to redis.register_function") ==
        "ERR wrong number of arguments to server.register_function");
  CHECK(script_error_of_valkey("ERR RESP version must be 2 or 3.") ==
        "ERR RESP version must be 2 or 3.");
}

TEST_CASE("A script of an engine that is not there is refused in Valkey's words", "[emulation]") {
  using latchkey::server::shebang_error_of_valkey;
  CHECK(shebang_error_of_valkey("ERR Unexpected engine in script shebang: #!js") ==
        "ERR Could not find scripting engine 'js'");
  CHECK(shebang_error_of_valkey("ERR Invalid script shebang") == "ERR Invalid script shebang");
  latchkey::tests::TestedServer valkey("emulate \"valkey 9.1\"\n");
  latchkey::tests::TestClient client(valkey);
  CHECK(client.run_words({"EVAL", "#!js\nreturn 1", "0"}) ==
        "-ERR Could not find scripting engine 'js'\r\n");
  latchkey::tests::TestedServer redis;
  latchkey::tests::TestClient other(redis);
  CHECK(other.run_words({"EVAL", "#!js\nreturn 1", "0"}) ==
        "-ERR Unexpected engine in script shebang: #!js\r\n");
}

TEST_CASE("What a script is told is in Valkey's words, unless it is to be as Redis",
          "[emulation]") {
  const auto told = [](const std::string& settings, const std::string& script) {
    latchkey::tests::TestedServer server(settings);
    latchkey::tests::TestClient client(server);
    const std::string reply = client.run_words({"EVAL", script, "0"});
    return reply.substr(0, reply.find(" script: "));
  };
  const std::string valkey = "emulate \"valkey 9.1\"\n";
  CHECK(told(valkey, "redis.log(1)") == "-ERR server.log() requires two arguments or more.");
  CHECK(told("", "redis.log(1)") == "-ERR redis.log() requires two arguments or more.");
  CHECK(told(valkey, "return redis.call('nosuch')") == "-ERR Unknown command called from script");
  CHECK(told("", "return redis.call('nosuch')") == "-ERR Unknown Redis command called from script");
}
