// Scripts as clients meet them.

#include <cctype>

#include "base/digest/sha1.h"
#include "commands/groups.h"
#include "script/engine.h"
#include "script/rows.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"
#include "unit/temporary_directory.h"
#include "unit/testing/tested_server.h"

using namespace latchkey;
using namespace latchkey::tests;

namespace {

struct Scripts {
  explicit Scripts(std::string_view settings = {}, int protocol = 2)
      : server({commands::string_rows(), commands::string_batch_rows(), commands::counter_rows(),
                commands::transaction_rows(), commands::client_rows(), script::script_rows()},
               settings) {
    server.server.add_layer(std::make_shared<script::Engine>(server.server));
    client = std::make_unique<TestClient>(server, protocol);
  }
  std::string eval(std::string_view script) { return client->run_words({"EVAL", script, "0"}); }
  // The error that the script ends with, without what names the script.
  std::string error_of(std::string_view script) {
    const std::string reply = eval(script);
    return reply.substr(0, reply.find(" script: "));
  }
  server::ScriptFigures figures() { return server.server.figures().scripts(); }

  ServerFixture server;
  std::unique_ptr<TestClient> client;
};

}  // namespace

TEST_CASE("A script sees its keys and arguments") {
  Scripts scripts;
  CHECK(scripts.client->run("EVAL return{KEYS[1],ARGV[1],ARGV[2],KEYS[2]} 1 a b c") ==
        bulks({"a", "b", "c"}));
  CHECK(scripts.client->run("EVAL return{#KEYS,#ARGV,KEYS[2],ARGV[1]} 2 a b c") ==
        array({integer(2), integer(1), bulk("b"), bulk("c")}));
  CHECK(scripts.client->run("EVAL return 2 a") ==
        error("ERR Number of keys can't be greater than number of args"));
  CHECK(scripts.client->run("EVAL return -1 a") == error("ERR Number of keys can't be negative"));
}

TEST_CASE("EXEC is refused to scripts as any command that is not for them") {
  Scripts scripts;
  for (const std::string name : {"exec", "multi"})
    CHECK(scripts.eval("return redis.pcall('" + name + "')") ==
          error("ERR This Redis command is not allowed from script"));
}

TEST_CASE("SCRIPT SHOW replies with the script of a digest in any case") {
  Scripts scripts;
  const std::string sha = base::sha1_hex("return 1");
  const std::string unknown = error("NOSCRIPT No matching script.");
  CHECK(scripts.client->run("SCRIPT SHOW " + sha) == unknown);
  scripts.eval("return 1");
  CHECK(scripts.client->run("SCRIPT SHOW " + sha) == bulk("return 1"));
  std::string upper = sha;
  for (char& digit : upper) digit = static_cast<char>(std::toupper(digit));
  CHECK(scripts.client->run("SCRIPT SHOW " + upper) == bulk("return 1"));
  CHECK(scripts.client->run("SCRIPT SHOW abc") == unknown);
  scripts.client->run("SCRIPT FLUSH");
  CHECK(scripts.client->run("SCRIPT SHOW " + sha) == unknown);
}

TEST_CASE("The release of a lock deletes only the holder's key") {
  Scripts scripts;
  constexpr std::string_view kRelease =
      "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('getdel', KEYS[1]) else "
      "return 0 end";
  scripts.client->run("SET lock mine");
  CHECK(scripts.client->run_words({"EVAL", kRelease, "1", "lock", "theirs"}) == integer(0));
  CHECK(scripts.client->run("GET lock") == bulk("mine"));
  CHECK(scripts.client->run_words({"EVAL", kRelease, "1", "lock", "mine"}) == bulk("mine"));
  CHECK(scripts.client->run("GET lock") == kNull);
}

TEST_CASE("redis.sha1hex takes one argument, of which text and numbers count") {
  Scripts scripts;
  const auto digest_of = [](std::string_view text) { return bulk(base::sha1_hex(text)); };
  CHECK(scripts.eval("return redis.sha1hex('abc')") == digest_of("abc"));
  CHECK(scripts.eval("return redis.sha1hex('')") == digest_of(""));
  CHECK(scripts.eval("return redis.sha1hex('a\\0b')") == digest_of({"a\0b", 3}));
  CHECK(scripts.eval("return redis.sha1hex(12)") == digest_of("12"));
  CHECK(scripts.eval("return redis.sha1hex(1.5)") == digest_of("1.5"));
  for (const std::string value : {"nil", "true", "{'abc'}", "function() end"}) {
    CAPTURE(value);
    CHECK(scripts.eval("return redis.sha1hex(" + value + ")") == digest_of(""));
  }
  CHECK(scripts.error_of("return redis.sha1hex()") == "-ERR wrong number of arguments");
  CHECK(scripts.error_of("return redis.sha1hex('a', 'b')") == "-ERR wrong number of arguments");
}

TEST_CASE("Lua values become replies") {
  Scripts scripts;
  CHECK(scripts.eval("return 3.99") == integer(3));
  CHECK(scripts.eval("return -3.99") == integer(-3));
  CHECK(scripts.eval("return 'a\\0b'") == bulk(std::string_view("a\0b", 3)));
  CHECK(scripts.eval("return true") == integer(1));
  CHECK(scripts.eval("return false") == kNull);
  CHECK(scripts.eval("return {1, {'x'}, nil, 3}") == array({integer(1), array({bulk("x")})}));
  CHECK(scripts.eval("return {ok = 'fine'}") == status("fine"));
  CHECK(scripts.eval("return {err = 'CODE text'}") == error("CODE text"));
  CHECK(scripts.eval("return redis.status_reply('TEXT')") == status("TEXT"));
  CHECK(scripts.eval("return redis.error_reply('text')") == error("ERR text"));
  CHECK(scripts.eval("return function() end") == kNull);
}

TEST_CASE("Lua values become RESP3 replies for clients that speak it") {
  Scripts scripts({}, 3);
  CHECK(scripts.eval("return false") == kNull3);
  CHECK(scripts.eval("redis.setresp(3) return {true, false}") == "*2\r\n#t\r\n#f\r\n");
  CHECK(scripts.eval("return {double = 1.5}") == ",1.5\r\n");
  CHECK(scripts.eval("return {map = {a = 1}}") == "%1\r\n$1\r\na\r\n:1\r\n");
  CHECK(scripts.eval("return {set = {a = true}}") == "~1\r\n$1\r\na\r\n");
  CHECK(scripts.eval("return {big_number = '123'}") == "(123\r\n");
  CHECK(scripts.eval("return {verbatim_string = {string = 'abc', format = 'txt'}}") ==
        "=7\r\ntxt:abc\r\n");
}

// Without optimisation Clang's frames are so large that the process's stack ends first.
TEST_CASE("A table that holds itself ends at the Lua stack's end", "[frames]") {
  Scripts scripts;
  const std::string reply = scripts.eval("local t = {} t[1] = t return t");
  CHECK(reply.ends_with("-ERR reached lua stack limit\r\n"));
  // As deep as in the reference, and only once, so that a client knows where the reply ends.
  constexpr size_t kDepth = 7995;
  std::string expected;
  for (size_t i = 0; i < kDepth; ++i) expected += "*1\r\n";
  expected += "-ERR reached lua stack limit\r\n";
  CHECK(scripts.eval("local a = {} local b = {a} a[1] = b return a") == expected);
  CHECK(scripts.eval("return 1") == integer(1));
}

TEST_CASE("Replies become Lua values") {
  Scripts scripts;
  CHECK(scripts.eval("return redis.call('set', 'a', 'b').ok") == bulk("OK"));
  CHECK(scripts.eval("return redis.call('get', 'none') == false") == integer(1));
  CHECK(scripts.eval("redis.setresp(3) return redis.call('get', 'none') == nil") == integer(1));
  CHECK(scripts.eval("return redis.call('incr', 'n') + 1") == integer(2));
  CHECK(scripts.eval("return redis.call('mget', 'a', 'none')") ==
        array({bulk("b"), std::string(kNull)}));
  CHECK(scripts.eval("return redis.pcall('incr', 'a').err") ==
        bulk("ERR value is not an integer or out of range"));
}

TEST_CASE("A large value passes through a script whole") {
  Scripts scripts;
  const std::string value(300'000, 'v');
  scripts.client->run_words({"SET", "large", value});
  CHECK(scripts.eval("return #redis.call('get', 'large')") == integer(300'000));
  CHECK((scripts.eval("return redis.call('mget', 'large', 'none', 'large')[3]") == bulk(value)));
}

TEST_CASE("Numbers are arguments as they are written") {
  Scripts scripts;
  const auto written = [&](std::string_view number) {
    return scripts.eval("redis.call('set', 'n', " + std::string(number) +
                        ") return redis.call('get', 'n')");
  };
  CHECK(written("10") == bulk("10"));
  CHECK(written("-0") == bulk("0"));
  CHECK(written("0.1") == bulk("0.1"));
  CHECK(written("1e15") == bulk("1000000000000000"));
  CHECK(written("2^63") == bulk("9223372036854776000"));
  CHECK(written("1e20") == bulk("1e+20"));
  CHECK(written("0/0") == bulk("-nan"));
}

TEST_CASE("An error names the script and the line it came from") {
  Scripts scripts;
  const std::string reply = scripts.eval("\nreturn redis.call('nosuch')");
  const std::string sha = base::sha1_hex("\nreturn redis.call('nosuch')");
  CHECK(reply == error("ERR Unknown Redis command called from script script: " + sha +
                       ", on @user_script:2."));
  CHECK(scripts.error_of("error('boom')") == "-ERR user_script:1: boom");
  CHECK(scripts.error_of("error({err = 'CODE text'})") == "-CODE text");
  CHECK(scripts.error_of("return redis.call('get')") ==
        "-ERR Wrong number of args calling Redis command from script");
  CHECK(scripts.error_of("return redis.call('multi')") ==
        "-ERR This Redis command is not allowed from script");
  CHECK(scripts.error_of("return redis.call()") ==
        "-ERR Please specify at least one argument for this redis lib call");
  CHECK(scripts.error_of("return redis.call('get', {})") ==
        "-ERR Lua redis lib command arguments must be strings or integers");
  CHECK(scripts.eval("return (") == error("ERR Error compiling script (new function): "
                                          "user_script:1: unexpected symbol near '<eof>'"));
}

TEST_CASE("string.format writes strings and numbers, as Lua 5.1 does") {
  Scripts scripts;
  CHECK(scripts.eval("return string.format('%5.1f|%%s|%-4s|%s|%q', 1.5, 'ab', 7, 'x')") ==
        bulk("  1.5|%s|ab  |7|\"x\""));
  CHECK(scripts.eval("return ('%s'):format('a')") == bulk("a"));
  CHECK(scripts.error_of("return string.format('%s', {})") ==
        "-ERR user_script:1: bad argument #2 to 'format' (string expected, got table)");
  CHECK(scripts.error_of("return string.format('%%%d %s', 1, nil)") ==
        "-ERR user_script:1: bad argument #3 to 'format' (string expected, got nil)");
  CHECK(scripts.error_of("return string.format('%s')") ==
        "-ERR user_script:1: bad argument #2 to 'format' (no value)");
  CHECK(scripts.error_of("return string.format('%a', 1)") ==
        "-ERR user_script:1: invalid option '%a' to 'format'");
}

TEST_CASE("Numbers are written by the C library, and NaN with its sign") {
  Scripts scripts;
  CHECK(scripts.eval("return string.format('%5.1f|%.0f|%g', 1.25, 0.5, 0.1)") ==
        bulk("  1.2|0|0.1"));
  CHECK(scripts.eval("return string.format('%#x %+d % d %05d', 255, 1, 2, 3)") ==
        bulk("0xff +1  2 00003"));
  CHECK(scripts.eval("return string.format('%10s|%-4s|%.2s', 'ab', 'cd', 'xyz')") ==
        bulk("        ab|cd  |xy"));
  CHECK(scripts.eval("return string.format('%c%c', 0, 65)") == bulk("A"));
  CHECK(scripts.eval("return string.format('%u', -1)") == bulk("18446744073709551615"));
  CHECK(scripts.eval("return string.format('%f', 0/0) .. tostring(-(0/0))") == bulk("-nannan"));
  CHECK(scripts.error_of("return string.format('%100d', 1)") ==
        "-ERR user_script:1: invalid format (width or precision too long)");
  CHECK(scripts.error_of("return string.format('%-+ #00d', 1)") ==
        "-ERR user_script:1: invalid format (repeated flags)");
}

TEST_CASE("Errors that a script catches are strings") {
  Scripts scripts;
  CHECK(scripts.eval("local ok, e = pcall(redis.call, 'nosuch') return e") ==
        bulk("ERR Unknown Redis command called from script"));
  CHECK(scripts.eval("return {pcall(error, {err = 'x'})}") ==
        array({std::string(kNull), bulk("x")}));
}

TEST_CASE("A failed command is counted once, though the script fails with it") {
  Scripts scripts;
  scripts.client->run("SET a b");
  scripts.eval("return redis.call('incr', 'a')");
  CHECK(scripts.server.server.stats().error_replies == 1);
  scripts.eval("return redis.pcall('incr', 'a')");
  CHECK(scripts.server.server.stats().error_replies == 2);
  scripts.eval("error('mine')");
  CHECK(scripts.server.server.stats().error_replies == 3);
}

TEST_CASE("Scripts cannot change what they share") {
  Scripts scripts;
  constexpr std::string_view kReadOnly = "Attempt to modify a readonly table";
  for (const char* script :
       {"x = 1", "redis.call = nil", "redis.new = 1", "string.sub = nil", "_G.x = 1", "KEYS = {}",
        "getmetatable('').__index = nil", "getmetatable(_G).__index = nil", "math.pi = 3"}) {
    CHECK(scripts.error_of(script) == "-ERR user_script:1: " + std::string(kReadOnly));
  }
  for (const char* script :
       {"rawset(_G, 'x', 1)", "rawset(redis, 'call', 1)", "setmetatable(_G, {})",
        "setmetatable(string, {})", "table.insert(redis, 1)"}) {
    CHECK(scripts.error_of(script) == "-ERR " + std::string(kReadOnly));
  }
  // What pairs hands out is no way in either.
  scripts.eval("local f, t = pairs(redis) t.call = function() return 'mine' end");
  scripts.eval("for k, v in pairs(redis) do if k == 'call' then rawset(redis, k, 1) end end");
  CHECK(scripts.eval("return redis.call('set', 'a', 'b')") == kOk);
  CHECK(scripts.error_of("return x") ==
        "-ERR user_script:1: Script attempted to access nonexistent global variable 'x'");
  CHECK(scripts.eval("return rawget(_G, 'x')") == kNull);
  CHECK(scripts.eval("local n = 0 for k in pairs(redis) do n = n + 1 end return n > 10") ==
        integer(1));
}

TEST_CASE("Of the system scripts see nothing") {
  Scripts scripts;
  for (const char* name : {"io", "require", "package", "debug", "jit", "ffi", "print", "dofile",
                           "loadfile", "getfenv", "setfenv", "newproxy", "module"}) {
    CHECK(scripts.error_of("return " + std::string(name)) ==
          "-ERR user_script:1: Script attempted to access nonexistent global variable '" +
              std::string(name) + "'");
  }
  CHECK(scripts.eval("local t = {} for k in pairs(os) do t[#t + 1] = k end return t") ==
        bulks({"clock"}));
  CHECK(scripts.eval("local f = loadstring(string.dump(function() end)) return f == nil") ==
        integer(1));
  CHECK(scripts.eval("local _, e = loadstring(string.dump(function() end), 'chunk') return e") ==
        bulk("[string \"chunk\"]:1: unexpected symbol near 'char(27)'"));
}

TEST_CASE("A read-only script does not write") {
  Scripts scripts;
  constexpr std::string_view kWrite = "return redis.call('set', 'a', 'b')";
  constexpr std::string_view kError =
      "-ERR Write commands are not allowed from read-only scripts. script: ";
  CHECK(scripts.client->run_words({"EVAL_RO", kWrite, "0"}).starts_with(kError));
  CHECK(scripts.eval("#!lua flags=no-writes\nreturn redis.call('set', 'a', 'b')")
            .starts_with(kError));
  CHECK(scripts.client->run_words({"EVAL_RO", "#!lua\nreturn 1", "0"}) ==
        error("ERR Can not execute a script with write flag using *_ro command."));
  CHECK(scripts.client->run_words({"EVAL_RO", "return redis.call('get', 'a')", "0"}) == kNull);
  CHECK(scripts.eval(kWrite) == kOk);
}

TEST_CASE("Without memory a script may read, and finish what it has begun to write") {
  Scripts scripts("maxmemory 1");
  constexpr std::string_view kOom = "OOM command not allowed when used memory > 'maxmemory'.";
  CHECK(scripts.eval("return redis.call('get', 'a')") == kNull);
  CHECK(scripts.error_of("return redis.call('set', 'a', 'b')") == "-" + std::string(kOom));
  CHECK(scripts.eval("redis.call('getdel', 'a') return redis.call('set', 'a', 'b')") == kOk);
  CHECK(scripts.eval("#!lua\nreturn 1") == error(kOom));
  CHECK(scripts.eval("#!lua flags=no-writes\nreturn 1") == integer(1));
  CHECK(scripts.eval("#!lua flags=allow-oom\nreturn redis.call('set', 'a', 'b')") == kOk);
}

TEST_CASE("What is loaded or comes from the master is run without memory, also in scripts") {
  Scripts scripts("maxmemory 1");
  const auto origin = GENERATE(server::kClientInternal, server::kClientMaster);
  (*scripts.client)->set(origin);
  scripts.eval("return redis.call('set', 'a', 'b')");  // a master gets no reply
  (*scripts.client)->set(origin, false);
  CHECK(scripts.eval("return redis.call('get', 'a')") == bulk("b"));
}

TEST_CASE("With fewer replicas than wanted a script may only read") {
  Scripts scripts("min-replicas-to-write 1");
  constexpr std::string_view kRefusal = "NOREPLICAS Not enough good replicas to write.";
  CHECK(scripts.eval("return redis.call('get', 'a')") == kNull);
  CHECK(scripts.error_of("return redis.call('set', 'a', 'b')") == "-" + std::string(kRefusal));
  CHECK(scripts.eval("#!lua\nreturn 1") == error(kRefusal));
  CHECK(scripts.eval("#!lua flags=no-writes\nreturn 1") == integer(1));
}

TEST_CASE("A script's commands come from no client that others see") {
  Scripts scripts;
  const size_t before = scripts.server.server.clients().size();
  CHECK(scripts.eval("return redis.call('get', 'a')") == kNull);
  CHECK(before == 1);
  CHECK(scripts.server.server.clients().size() == 1);
}

TEST_CASE("A script is kept by its digest until the cache is flushed") {
  Scripts scripts;
  constexpr std::string_view kSha = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
  CHECK(scripts.client->run_words({"EVALSHA", kSha, "0"}) ==
        error("NOSCRIPT No matching script. Please use EVAL."));
  // A digest that can be none is told before the number of keys is read.
  CHECK(scripts.client->run_words({"EVALSHA", "short", "many"}) ==
        error("NOSCRIPT No matching script. Please use EVAL."));
  CHECK(scripts.client->run_words({"SCRIPT", "LOAD", "return 1"}) == bulk(kSha));
  CHECK(scripts.client->run_words({"EVALSHA", kSha, "0"}) == integer(1));
  CHECK(scripts.client->run_words({"SCRIPT", "EXISTS", kSha, "x"}) ==
        array({integer(1), integer(0)}));
  for (const char* how : {"SYNC", "ASYNC"}) {
    scripts.client->run_words({"SCRIPT", "LOAD", "return 1"});
    CHECK(scripts.figures().cached_scripts == 1);
    CHECK(scripts.client->run_words({"SCRIPT", "FLUSH", how}) == kOk);
    CHECK(scripts.figures().cached_scripts == 0);
    CHECK(scripts.client->run_words({"EVALSHA", kSha, "0"}).starts_with("-NOSCRIPT"));
  }
  CHECK(scripts.eval("return redis.call('set', 'a', 'b')") == kOk);
}

TEST_CASE("Scripts that only EVAL brought are evicted, the oldest first") {
  Scripts scripts;
  scripts.client->run_words({"SCRIPT", "LOAD", "return 'loaded'"});
  for (size_t i = 0; i <= script::ScriptCache::kMaxEvalScripts; ++i)
    scripts.eval("return " + std::to_string(i));
  CHECK(scripts.figures().cached_scripts == script::ScriptCache::kMaxEvalScripts + 1);
  CHECK(scripts.figures().evicted_scripts == 1);
}

TEST_CASE("What a script selects stays in the script") {
  Scripts scripts;
  CHECK(scripts.eval("redis.call('set', 'a', 'b') return redis.call('get', 'a')") == bulk("b"));
  CHECK((*scripts.client)->database == 0);
}

TEST_CASE("math.random follows the sequence that scripts know") {
  Scripts scripts;
  CHECK(scripts.eval("math.randomseed(10) return {math.random(1000000), math.random(1000000)}") ==
        array({integer(878852), integer(795807)}));
}

TEST_CASE("Nothing runs that could be killed when SCRIPT KILL comes") {
  Scripts scripts;
  CHECK(scripts.client->run("SCRIPT KILL") == error("NOTBUSY No scripts in execution right now."));
}

TEST_CASE("The interpreter comes with the first script and goes with SCRIPT FLUSH") {
  Scripts scripts;
  CHECK(scripts.figures().interpreter_bytes == 0);
  CHECK(scripts.client->run("SCRIPT FLUSH SYNC") == kOk);
  CHECK(scripts.client->run("SCRIPT FLUSH ASYNC") == kOk);
  CHECK(scripts.client->run("SCRIPT KILL") == error("NOTBUSY No scripts in execution right now."));
  CHECK(scripts.figures().interpreter_bytes == 0);
  const std::string_view flush = GENERATE("SCRIPT FLUSH SYNC", "SCRIPT FLUSH ASYNC");
  CHECK(scripts.eval("return 1") == integer(1));
  CHECK(scripts.figures().interpreter_bytes > 0);
  CHECK(scripts.client->run(flush) == kOk);
  CHECK(scripts.figures().interpreter_bytes == 0);
  CHECK(scripts.eval("return 2") == integer(2));
}

TEST_CASE("Of a NO-TOUCH client's script only TOUCH marks keys as used") {
  Scripts scripts;
  scripts.server.server.commands().add(commands::key_rows());
  scripts.client->run("SET key value");
  const auto access = [&] {
    return scripts.server.database().find("key", store::Keyspace::kPeek)->access();
  };
  const auto written = access();
  (*scripts.client)->set(server::kClientNoTouch);
  scripts.server.advance_ms(10'000);
  scripts.server.tick();
  scripts.eval("return redis.call('get', 'key')");
  CHECK(access() == written);
  scripts.eval("return redis.call('touch', 'key')");
  CHECK(access() != written);
}

TEST_CASE("Collections that a script or a transaction changes are packed before it has ended") {
  Scripts scripts;
  scripts.server.server.commands().add(commands::list_rows());
  const std::vector<store::ChangedValue>& changed = scripts.server.server.environment().changed;
  const size_t most = scripts.server.server.environment().many_changed;
  const auto is_packed = [&](std::string_view key) {
    return scripts.server.database().find(key, store::Keyspace::kPeek)->is_packed();
  };
  SECTION("a script") {
    scripts.eval("for i = 1, 5000 do redis.call('rpush', 'list:' .. i, i) end");
    CHECK(is_packed("list:1"));
    CHECK(scripts.eval("redis.call('rpush', 'list:1', 'two') return redis.call('lrange', 'list:1', "
                       "0, -1)") == array({bulk("1"), bulk("two")}));
  }
  SECTION("a transaction") {
    scripts.client->run("MULTI");
    for (size_t i = 1; i <= most + 100; ++i)
      scripts.client->run("RPUSH list:" + std::to_string(i) + " x");
    scripts.client->run("EXEC");
    CHECK(is_packed("list:1"));
  }
  CHECK(changed.size() < most);
}

TEST_CASE("A pause of writes holds scripts but for those that declare that they write nothing") {
  Scripts scripts;
  TestClient other(scripts.server);
  scripts.client->run_words({"SCRIPT", "LOAD", "#!lua flags=no-writes\nreturn 2"});
  scripts.client->run("CLIENT PAUSE 1000 WRITE");
  CHECK(scripts.eval("#!lua flags=no-writes\nreturn 1") == integer(1));
  CHECK(scripts.client->run_words(
            {"EVALSHA", base::sha1_hex("#!lua flags=no-writes\nreturn 2"), "0"}) == integer(2));
  CHECK(scripts.eval("return 3").empty());
  CHECK(other.run_words({"EVAL", "#!lua\nreturn 4", "0"}).empty());
}

TEST_CASE("A transaction waits for a pause when a script that it queues may write") {
  Scripts scripts;
  scripts.client->run("MULTI");
  scripts.eval("#!lua flags=no-writes\nreturn 1");
  TestClient other(scripts.server);
  other.run("MULTI");
  other.run_words({"EVAL", "#!lua\nreturn 1", "0"});
  TestClient(scripts.server).run("CLIENT PAUSE 1000 WRITE");
  CHECK(scripts.client->run("EXEC") == "*1\r\n" + integer(1));
  CHECK(other.run("EXEC").empty());
}

TEST_CASE("Replies of RESP3 become Lua values of their kinds") {
  TestedServer server("enable-debug-command yes\n");
  TestClient client(server, 3);
  REQUIRE(client.run("DEBUG SET-DISABLE-DENY-SCRIPTS 1") == kOk);
  const auto told = [&](const std::string& kind, const std::string& expression) {
    return client.run_words({"EVAL",
                             "redis.setresp(3) local r = redis.call('debug', 'protocol', '" + kind +
                                 "') return " + expression,
                             "0"});
  };
  CHECK(told("bignum", "r.big_number") == bulk("1234567999999999999999999999999999999"));
  CHECK(told("bignum", "r") == "(1234567999999999999999999999999999999\r\n");
  CHECK(told("double", "tostring(r.double)") == bulk("3.141"));
  CHECK(told("verbatim", "r.verbatim_string.format") == bulk("txt"));
  CHECK(told("verbatim", "r.verbatim_string.string") == bulk("This is a verbatim\nstring"));
  CHECK(told("verbatim", "r") == "=29\r\ntxt:This is a verbatim\nstring\r\n");
  CHECK(told("set", "tostring(r.set[0]) .. tostring(r.set[2]) .. tostring(r.set[3])") ==
        bulk("truetruenil"));
  CHECK(told("map", "tostring(r.map[0]) .. tostring(r.map[1]) .. tostring(r.map[2])") ==
        bulk("falsetruefalse"));
  CHECK(told("attrib", "r") == bulk("Some real reply following the attribute"));
  CHECK(told("null", "tostring(r)") == bulk("nil"));
  CHECK(told("true", "tostring(r)") == bulk("true"));
  CHECK(told("false", "tostring(r)") == bulk("false"));
  CHECK(told("array", "#r") == integer(3));
  CHECK(told("integer", "r + 1") == integer(12346));
}

TEST_CASE("redis.log writes to the log at its level, what has a text") {
  Scripts scripts;
  const TemporaryDirectory directory;
  scripts.server.log.set_file(directory.path() / "log");
  scripts.server.log.set_level(base::LogLevel::kVerbose);
  CHECK(scripts.eval("redis.log(redis.LOG_WARNING, 'a', 5, {}, 'b')") == kNull);
  CHECK(scripts.eval("redis.log(redis.LOG_NOTICE, 'notice')") == kNull);
  CHECK(scripts.eval("redis.log(redis.LOG_VERBOSE, 'verbose')") == kNull);
  CHECK(scripts.eval("redis.log(redis.LOG_DEBUG, 'debug')") == kNull);
  scripts.server.log.set_level(base::LogLevel::kNothing);
  const std::string log = directory.read("log");
  CHECK(log.find(" # a 5 b\n") != std::string::npos);
  CHECK(log.find(" * notice\n") != std::string::npos);
  CHECK(log.find(" - verbose\n") != std::string::npos);
  CHECK(log.find("debug") == std::string::npos);
  CHECK(scripts.error_of("redis.log(1)") == "-ERR redis.log() requires two arguments or more.");
  CHECK(scripts.error_of("redis.log('x', 'y')") ==
        "-ERR First argument must be a number (log level).");
  CHECK(scripts.error_of("redis.log(-1, 'y')") == "-ERR Invalid log level.");
  CHECK(scripts.error_of("redis.log(4, 'y')") == "-ERR Invalid log level.");
}

TEST_CASE("redis.error_reply and status_reply take one text") {
  Scripts scripts;
  CHECK(scripts.eval("return redis.error_reply('-CODE and text')") == error("CODE and text"));
  CHECK(scripts.eval("return redis.error_reply('CODE and text')") == error("CODE and text"));
  CHECK(scripts.eval("return redis.error_reply('text')") == error("ERR text"));
  CHECK(scripts.eval("return redis.status_reply('FINE')") == status("FINE"));
  for (const char* const call : {"error_reply()", "error_reply('a', 'b')", "error_reply(5)",
                                 "status_reply()", "status_reply('a', 'b')", "status_reply({})"}) {
    INFO(call);
    CHECK(scripts.eval("return redis." + std::string(call)) ==
          error("ERR wrong number or type of arguments"));
  }
}

TEST_CASE("Errors that are no text are told by what they are") {
  Scripts scripts;
  CHECK(scripts.error_of("error(true)") == "-ERR true");
  CHECK(scripts.error_of("error(false)") == "-ERR false");
  CHECK(scripts.error_of("error(nil)") == "-ERR nil");
  CHECK(scripts.error_of("error(12)") == "-ERR user_script:1: 12");
  CHECK(scripts.error_of("error(print)").starts_with("-ERR "));
}

TEST_CASE("Functions of the sandbox refuse what they cannot take") {
  Scripts scripts;
  const auto problem = [&](const std::string& call) {
    return scripts.eval("return select(2, pcall(" + call + "))");
  };
  CHECK(problem("rawset, {}, nil, 1") == bulk("table index is nil"));
  CHECK(scripts.eval("return {select('#', pcall()), (select(2, pcall()))}") ==
        array({integer(2), bulk("bad argument #1 to 'pcall' (value expected)")}));
  CHECK(scripts.eval("return type((select(2, pcall(error, {err = {}}))))") == bulk("table"));
  CHECK(scripts.eval("return (select(2, pcall(error, {err = 'text'})))") == bulk("text"));
  CHECK(scripts.eval("return {select(2, load(function() return {} end))}") ==
        array({bulk("reader function must return a string")}));
  CHECK(scripts.eval("local n = 0 return load(function() n = n + 1 "
                     "return ({'return ', '4', '2'})[n] end)()") == integer(42));
  CHECK(problem("math.random, 0").find("interval is empty") != std::string::npos);
  CHECK(problem("math.random, 2, 1").find("bad argument #2") != std::string::npos);
  CHECK(problem("math.random, 2, 1").find("interval is empty") != std::string::npos);
  CHECK(problem("math.random, 1, 2, 3").find("wrong number of arguments") != std::string::npos);
  CHECK(problem("table.setn, {}, 1").find("'setn' is obsolete") != std::string::npos);
  CHECK(problem("function() return _G[{}] end")
            .find("Second argument to luaProtectedTableError must be a string or number") !=
        std::string::npos);
  CHECK(problem("function() return _G[5] end")
            .find("Script attempted to access nonexistent global variable '5'") !=
        std::string::npos);
  CHECK(problem("table.insert, {}, 1, 2, 3").find("wrong number of arguments") !=
        std::string::npos);
}

TEST_CASE("math has random numbers of a range, and logarithms") {
  Scripts scripts;
  CHECK(scripts.eval("return {math.random(1), math.random(5, 5), math.random(-3, -3)}") ==
        array({integer(1), integer(5), integer(-3)}));
  CHECK(scripts.eval("local low, high = 9, 0 for i = 1, 1000 do local n = math.random(3, 5) "
                     "if n < low then low = n end if n > high then high = n end end "
                     "return {low, high}") == array({integer(3), integer(5)}));
  CHECK(scripts.eval("local n = math.random() return n >= 0 and n < 1") == integer(1));
  CHECK(scripts.eval("return {math.log(1), tostring(math.log(math.exp(2)))}") ==
        array({integer(0), bulk("2")}));
  CHECK(scripts.eval("local t = {1, 3} table.insert(t, 2, 2) table.insert(t, 4) "
                     "return t") == array({integer(1), integer(2), integer(3), integer(4)}));
}

TEST_CASE("A coroutine that cannot be resumed says why") {
  Scripts scripts;
  const auto resumed = [&](const std::string& script) {
    return scripts.eval(script + " return {tostring(a), b}");
  };
  CHECK(resumed("local a, b = coroutine.wrap(function() "
                "return coroutine.resume(coroutine.running()) end)()") ==
        bulks({"false", "cannot resume running coroutine"}));
  CHECK(resumed("local a, b local one one = coroutine.create(function() "
                "coroutine.wrap(function() a, b = coroutine.resume(one) end)() end) "
                "coroutine.resume(one)") == bulks({"false", "cannot resume normal coroutine"}));
  CHECK(resumed("local one = coroutine.create(function() end) coroutine.resume(one) "
                "local a, b = coroutine.resume(one)") ==
        bulks({"false", "cannot resume dead coroutine"}));
  CHECK(resumed("local one = coroutine.create(function() error('x', 0) end) "
                "local a, b = coroutine.resume(one)") == bulks({"false", "x"}));
}

TEST_CASE("string.format quotes what stands for itself in a string") {
  Scripts scripts;
  CHECK(scripts.eval("return string.format('%q', 'a\\rb\\nc\\\\d\"e')") ==
        bulk("\"a\\rb\\\nc\\\\d\\\"e\""));
  CHECK(scripts.eval("return string.format('%q', 'a\\0b')") == bulk("\"a\\000b\""));
  CHECK(scripts.eval("return string.format('%s|%5s|%.2s', string.rep('x', 100), 'ab', 'abc')") ==
        bulk(std::string(100, 'x') + "|   ab|ab"));
  CHECK(scripts.eval("return string.format('%s', string.rep('x', 99))") ==
        bulk(std::string(99, 'x')));
}

TEST_CASE("SCRIPT DEBUG is wanted, or not, outside of pipelines") {
  Scripts scripts;
  TestClient& client = *scripts.client;
  CHECK(client.run("SCRIPT DEBUG MAYBE") == error("ERR Use SCRIPT DEBUG YES/SYNC/NO"));
  const std::string loaded = client.run_words({"SCRIPT", "LOAD", "return 1"});
  const std::string digest = loaded.substr(loaded.find("\r\n") + 2, 40);
  for (const char* const mode : {"YES", "SYNC"}) {
    CHECK(client.run("SCRIPT DEBUG " + std::string(mode)) == kOk);
    CHECK(client.run("EVALSHA " + digest + " 0") ==
          error("ERR Please use EVAL instead of EVALSHA for debugging"));
    CHECK(client.run("SCRIPT DEBUG NO") == kOk);
    CHECK(client.run("EVALSHA " + digest + " 0") == integer(1));
  }
  client->out().append("waits");
  CHECK(client.run("SCRIPT DEBUG YES") ==
        "waits" + error("ERR SCRIPT DEBUG must be called outside a pipeline"));
}

TEST_CASE("Places in tables are taken as Lua 5.1 takes them, also where 32 bits do not hold them") {
  Scripts scripts;
  const auto inserted = [&](const std::string& place) {
    return scripts.eval("local t = {1} table.insert(t, " + place +
                        ", 7) local at = {} for k in pairs(t) do at[#at + 1] = k end "
                        "table.sort(at) return table.concat(at, ' ')");
  };
  CHECK(inserted("1e10") == bulk("1 1410065408"));
  CHECK(inserted("-2^31 - 1") == bulk("1 2147483647"));
  CHECK(inserted("2^32 + 5") == bulk("1 5"));
  CHECK(inserted("'4294967301'") == bulk("1 5"));
  for (const char* const place : {"2^32", "2^53", "1e300", "-1e300", "1/0", "-1/0", "0/0"}) {
    CAPTURE(place);
    CHECK(inserted(place) == bulk("0 2"));
  }
  CHECK(inserted("-5.5") == bulk("-5 2"));
  CHECK(scripts.eval("return {unpack({1, 2}, 1e10, 1)}") == array({}));
  CHECK(scripts.eval("return {unpack({1, 2}, 2^32 + 1, 2^32 + 2)}") ==
        array({integer(1), integer(2)}));
  CHECK(scripts.eval("return {unpack({1, 2})}") == array({integer(1), integer(2)}));
  CHECK(scripts.eval("return table.concat({1, 2}, ',', 1e10, 1)") == bulk(""));
  CHECK(scripts.eval("return table.concat({1, 2}, ',', 2^32 + 1)") == bulk("1,2"));
  CHECK(scripts.eval("return {string.gsub('aaa', 'a', 'b', 2^31)}") ==
        array({bulk("aaa"), integer(0)}));
}

TEST_CASE("Positions in strings are taken as Lua 5.1 takes them") {
  Scripts scripts;
  const auto sub = [&](const std::string& positions) {
    return scripts.eval("return string.sub('abcdef', " + positions + ")");
  };
  for (const char* const whole : {"1", "0", "-6", "-7", "-1e300", "1/0", "-2^31 - 1", "1, 2^31",
                                  "1, 2^53", "-1e10, 1e10", "1, nil"}) {
    CAPTURE(whole);
    CHECK(sub(whole) == bulk("abcdef"));
  }
  for (const char* const empty : {"7", "1e10", "2^53", "0, 0", "4, 2", "1, 1/0", "-1/0, 0/0",
                                  "2^62, -2^63", "1e300, -1e300"}) {
    CAPTURE(empty);
    CHECK(sub(empty) == bulk(""));
  }
  CHECK(sub("2, 2^31") == bulk("bcdef"));
  CHECK(sub("-3.7, '5'") == bulk("de"));
  CHECK(sub("2.9, -2") == bulk("bcde"));
  CHECK(scripts.eval("return ('abc'):sub(2)") == bulk("bc"));
  CHECK(scripts.error_of("local s = ('abc'):sub(1, {})") ==
        "-ERR user_script:1: bad argument #2 to 'sub' (number expected, got table)");
  CHECK(scripts.error_of("return string.sub('abc')") ==
        "-ERR user_script:1: bad argument #2 to 'sub' (number expected, got no value)");
  const auto bytes = [&](const std::string& positions) {
    return scripts.eval("return table.concat({string.byte('abc\\255', " + positions + ")}, ' ')");
  };
  CHECK(bytes("1, 1e10") == bulk("97 98 99 255"));
  CHECK(bytes("-1e10, 1e10") == bulk("97 98 99 255"));
  CHECK(bytes("nil") == bulk("97"));
  CHECK(bytes("-2, nil") == bulk("99"));
  CHECK(bytes("0") == bulk(""));
  CHECK(bytes("1e10") == bulk(""));
  CHECK(bytes("1, 1/0") == bulk(""));
  CHECK(scripts.error_of("return (string.rep('a', 1e6):byte(1, -1))") ==
        "-ERR user_script:1: stack overflow (string slice too long)");
}

TEST_CASE("Numbers that no integer holds are converted as the processor does it") {
  Scripts scripts;
  CHECK(scripts.error_of("redis.setresp(2^31)") == "-ERR RESP version must be 2 or 3.");
  CHECK(scripts.error_of("redis.setresp(0/0)") == "-ERR RESP version must be 2 or 3.");
  CHECK(scripts.error_of("redis.set_repl(1e300)") ==
        "-ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.");
  CHECK(scripts.error_of("redis.log(1e300, 'a')") == "-ERR Invalid log level.");
  CHECK(scripts.eval("return string.format('%d %d %d', 1e300, 0/0, 2^63)") ==
        bulk("-9223372036854775808 -9223372036854775808 -9223372036854775808"));
  CHECK(scripts.eval("return string.format('%x %x %x %x', 1e300, -1e300, 2^63, 0/0)") ==
        bulk("0 8000000000000000 8000000000000000 8000000000000000"));
  CHECK(scripts.eval("return string.format('%c%c.', 0/0, 2^32 + 65)") == bulk("."));
  CHECK(scripts.eval("math.randomseed(1e300) return math.random(1000000)") == integer(170829));
  CHECK(scripts.eval("math.randomseed(2^32 + 1) return math.random(1000000)") == integer(41631));
  CHECK(scripts.eval("return {cmsgpack.unpack_limit('\\1\\2', 2^32)}") ==
        array({integer(-1), integer(1), integer(2)}));
}

TEST_CASE("A function of variable arguments finds them in arg unless its body has points") {
  Scripts scripts;
  CHECK(scripts.eval("local function f(...) local n = 0 for i = 1, arg.n do n = n + arg[i] end "
                     "return n end return f(1, 2, 3)") == integer(6));
  CHECK(scripts.eval("local function f(...) return {arg.n, #arg} end return f(1, nil, 3, nil)") ==
        array({integer(4), integer(1)}));
  CHECK(scripts.eval("local function f(...) local a = {...} return tostring(arg) end "
                     "return f(1)") == bulk("nil"));
  CHECK(scripts.eval("local function f(arg, ...) return type(arg) end return f(1)") ==
        bulk("table"));
  CHECK(scripts.eval("local function f(...) return (function() return arg[1] end)() end "
                     "return f(7)") == integer(7));
  CHECK(scripts.eval("local function f(...) return (function(...) return arg[1] end)(8) end "
                     "return f(7)") == integer(8));
  CHECK(scripts.error_of("return type(arg)") ==
        "-ERR user_script:1: Script attempted to access nonexistent global variable 'arg'");
}

TEST_CASE("Errors of functions that LuaJIT has in its own code come from the script") {
  Scripts scripts;
  for (const std::string script : {"table.getn(1)", "\n\ntable.remove(1)", "table.foreach(1, 2)"}) {
    CAPTURE(script);
    const std::string line = script.starts_with('\n') ? "3" : "1";
    const std::string reply = scripts.eval(script);
    CHECK(reply.ends_with(", on @user_script:" + line + ".\r\n"));
  }
  CHECK(scripts.error_of("return math.deg()") ==
        "-ERR user_script:1: bad argument #1 to 'deg' (number expected, got no value)");
  CHECK(scripts.error_of("return math.rad({})") ==
        "-ERR user_script:1: bad argument #1 to 'rad' (number expected, got table)");
  CHECK(scripts.eval("return string.format('%.17g %.17g', math.deg(1), math.rad(7))") ==
        bulk("57.295779513082323 0.12217304763960307"));
}
