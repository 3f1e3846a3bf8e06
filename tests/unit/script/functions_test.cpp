// Function libraries as clients and files meet them.

#include "commands/groups.h"
#include "persist/aof/aof_dataset.h"
#include "persist/rdb/byte_stream.h"
#include "persist/rdb/rdb_file.h"
#include "script/engine.h"
#include "script/function_store.h"
#include "script/library_header.h"
#include "script/rows.h"
#include "unit/catch.h"
#include "unit/propagation_recorder.h"
#include "unit/server_fixture.h"

using namespace latchkey;
using namespace latchkey::tests;

namespace {

constexpr std::string_view kHello =
    "#!lua name=hello\nredis.register_function('greet', function(keys, args) return 'hello ' .. "
    "args[1] end)";

// A library of that name whose one function returns a text.
std::string library(std::string_view name, std::string_view function, std::string_view returned) {
  return "#!lua name=" + std::string(name) + "\nredis.register_function('" + std::string(function) +
         "', function() return '" + std::string(returned) + "' end)";
}

struct FunctionServer {
  explicit FunctionServer(std::string_view settings = {})
      : server({commands::string_rows(), commands::connection_rows(), commands::database_rows(),
                commands::transaction_rows(), script::script_rows(), script::function_rows()},
               settings) {
    server.server.add_layer(std::make_shared<script::Engine>(server.server));
    client = std::make_unique<TestClient>(server);
  }
  std::string load(std::string_view code) { return client->run_words({"FUNCTION", "LOAD", code}); }
  // The error that the code of a library ends with.
  std::string error_of(const std::string& code) { return load("#!lua name=broken\n" + code); }
  std::string run(std::string_view line) { return client->run(line); }
  // The payload of a bulk reply.
  std::string bytes(std::string_view line) {
    const std::string reply = run(line);
    const size_t begin = reply.find("\r\n") + 2;
    return reply.substr(begin, reply.size() - begin - 2);
  }
  server::ScriptFigures figures() { return server.server.figures().scripts(); }

  ServerFixture server;
  std::unique_ptr<TestClient> client;
};

std::string registering(std::string_view text) {
  return error("ERR Error registering functions: " + std::string(text));
}

}  // namespace

TEST_CASE("A function is called with its keys and arguments") {
  FunctionServer server;
  CHECK(server.load(kHello) == bulk("hello"));
  CHECK(server.run("FCALL greet 0 world") == bulk("hello world"));
  CHECK(server.run("fcall GREET 1 key you") == bulk("hello you"));
  CHECK(server.run("FCALL nobody 0") == error("ERR Function not found"));
  CHECK(server.run("FCALL greet x") == error("ERR Bad number of keys provided"));
  CHECK(server.run("FCALL greet 2 a") ==
        error("ERR Number of keys can't be greater than number of args"));
  CHECK(server.run("FCALL greet -1") == error("ERR Number of keys can't be negative"));
}

TEST_CASE("Of functions that differ in case alone, within a library, the first is called") {
  FunctionServer server;
  CHECK(server.load("#!lua name=both\nredis.register_function('f', function() return 'small' end)\n"
                    "redis.register_function('F', function() return 'big' end)") == bulk("both"));
  CHECK(server.run("FCALL f 0") == bulk("small"));
  CHECK(server.run("FCALL F 0") == bulk("small"));
  CHECK(server.load(library("other", "F", "x")) == error("ERR Function F already exists"));
  CHECK(server.run("FUNCTION DELETE both") == kOk);
  CHECK(server.run("FCALL F 0") == error("ERR Function not found"));
}

TEST_CASE("A function is held to what it declares") {
  FunctionServer server;
  server.load(
      "#!lua name=lib\n"
      "local function set(keys) return redis.call('set', keys[1], 'x') end\n"
      "redis.register_function('writes', set)\n"
      "redis.register_function{function_name='reads', callback=function(keys) return "
      "redis.call('get', keys[1]) end, flags={'no-writes'}}\n"
      "redis.register_function{function_name='lies', callback=set, flags={'no-writes'}}");
  CHECK(server.run("FCALL writes 1 k") == kOk);
  CHECK(server.run("FCALL_RO reads 1 k") == bulk("x"));
  CHECK(server.run("FCALL_RO writes 1 k") ==
        error("ERR Can not execute a script with write flag using *_ro command."));
  CHECK(server.run("FCALL lies 1 k") ==
        error("ERR Write commands are not allowed from read-only scripts. script: lies, on "
              "@user_function:2."));
}

TEST_CASE("The first line of a library says what it is") {
  FunctionServer server;
  CHECK(server.load("return 1") == error("ERR Missing library metadata"));
  CHECK(server.load("#!lua name=a") == error("ERR Invalid library metadata"));
  CHECK(server.load("#!lua\n") == error("ERR Library name was not given"));
  CHECK(server.load("#!lua name=a-b\n") == error(script::kBadFunctionName));
  CHECK(server.load("#!lua name=a name=b\n") ==
        error("ERR Invalid metadata value, name argument was given multiple times"));
  CHECK(server.load("#!lua name=a flags=no-writes\n") ==
        error("ERR Invalid metadata value given: flags=no-writes"));
  CHECK(server.load("#!perl name=a\n") == error("ERR Engine 'perl' not found"));
  CHECK(server.load("#!lua name=a\n") == error("ERR No functions registered"));
  CHECK(server.load("#!lua name=a\nx x") ==
        error("ERR Error compiling function: user_function:2: '=' expected near 'x'"));
}

TEST_CASE("What a library registers is looked at") {
  FunctionServer server;
  CHECK(server.error_of("redis.register_function()") ==
        registering("ERR wrong number of arguments to redis.register_function"));
  CHECK(server.error_of("redis.register_function('f')") ==
        registering("ERR calling redis.register_function with a single argument is only applicable "
                    "to Lua table (representing named arguments)."));
  CHECK(server.error_of("redis.register_function({}, function() end)") ==
        registering("ERR first argument to redis.register_function must be a string"));
  CHECK(server.error_of("redis.register_function('f', 1)") ==
        registering("ERR second argument to redis.register_function must be a function"));
  CHECK(server.error_of("redis.register_function('f g', function() end)") ==
        registering(script::kBadFunctionName));
  CHECK(server.error_of("for i = 1, 2 do redis.register_function('f', function() end) end") ==
        registering("ERR Function already exists in the library"));
  const auto named = [&](const std::string& arguments) {
    return server.error_of("redis.register_function{" + arguments + "}");
  };
  CHECK(named("") == registering("ERR redis.register_function must get a function name argument"));
  CHECK(named("function_name='f'") ==
        registering("ERR redis.register_function must get a callback argument"));
  CHECK(named("function_name='f', callback=function() end, more=1") ==
        registering("ERR unknown argument given to redis.register_function"));
  CHECK(named("function_name='f', callback=function() end, flags={'x'}") ==
        registering("ERR unknown flag given"));
  CHECK(named("function_name='f', callback=function() end, description={}") ==
        registering("ERR description argument given to redis.register_function must be a string"));
  CHECK(server.run("FUNCTION LIST") == "*0\r\n");
}

TEST_CASE("A library sees little while it is loaded, and registers nothing later") {
  FunctionServer server;
  const auto missing = [](std::string_view name) {
    return registering(
        "ERR user_function:2: Script attempted to access nonexistent global "
        "variable '" +
        std::string(name) + "'");
  };
  CHECK(server.error_of("redis.call('ping')") == missing("call"));
  CHECK(server.error_of("local a = pairs") == missing("pairs"));
  CHECK(server.error_of("local a = _G") == missing("_G"));
  CHECK(server.error_of("local a = KEYS") == missing("KEYS"));
  CHECK(server.error_of("a = 1") ==
        registering("ERR user_function:2: Attempt to modify a readonly table"));
  CHECK(server.error_of("redis.call = 1") ==
        registering("ERR user_function:2: Attempt to modify a readonly table"));
  server.load(
      "#!lua name=lib\nlocal register = redis.register_function\n"
      "register('late', function() register('later', function() end) end)\n"
      "register('globals', function() return type(pairs) .. type(redis.register_function) end)");
  CHECK(server.run("FCALL late 0") ==
        error("ERR redis.register_function can only be called on FUNCTION LOAD command script: "
              "late, on @user_function:3."));
  CHECK(server.run("FCALL globals 0") == bulk("functionnil"));
  // Scripts live in another VM.
  CHECK(server.client->run_words({"EVAL", "return redis.register_function", "0"}) == kNull);
}

TEST_CASE("A library is replaced as a whole or not at all") {
  FunctionServer server;
  server.load(library("a", "f", "one"));
  server.load(library("b", "g", "other"));
  CHECK(server.load(library("a", "f", "two")) == error("ERR Library 'a' already exists"));
  CHECK(server.load(library("c", "F", "two")) == error("ERR Function F already exists"));
  const std::string taken = library("a", "g", "two");
  CHECK(server.client->run_words({"FUNCTION", "LOAD", "REPLACE", taken}) ==
        error("ERR Function g already exists"));
  CHECK(server.run("FCALL f 0") == bulk("one"));
  const std::string two = library("a", "f2", "two");
  CHECK(server.client->run_words({"FUNCTION", "LOAD", "REPLACE", two}) == bulk("a"));
  CHECK(server.run("FCALL f2 0") == bulk("two"));
  CHECK(server.run("FCALL f 0") == error("ERR Function not found"));
  CHECK(server.client->run_words({"FUNCTION", "LOAD", "KEEP", two}) ==
        error("ERR Unknown option given: KEEP"));
  CHECK(server.client->run_words({"FUNCTION", "LOAD", std::string_view("KE\0EP", 5), two}) ==
        error("ERR Unknown option given: KE"));
}

TEST_CASE("Libraries are deleted and flushed") {
  FunctionServer server;
  server.load(library("a", "f", "one"));
  server.load(library("b", "g", "two"));
  CHECK(server.run("FUNCTION DELETE a") == kOk);
  CHECK(server.run("FUNCTION DELETE a") == error("ERR Library not found"));
  CHECK(server.run("FCALL f 0") == error("ERR Function not found"));
  CHECK(server.run("FLUSHALL") == kOk);
  CHECK(server.run("FCALL g 0") == bulk("two"));
  CHECK(server.run("FUNCTION FLUSH later") ==
        error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
  for (const char* how : {"ASYNC", "SYNC"}) {
    server.load(library("c", "h", "three"));
    CHECK(server.run("FUNCTION FLUSH " + std::string(how)) == kOk);
    CHECK(server.run("FCALL h 0") == error("ERR Function not found"));
    CHECK(server.figures().functions == 0);
    CHECK(server.figures().function_interpreter_bytes == 0);
  }
}

TEST_CASE("FUNCTION LIST tells of libraries and their functions") {
  FunctionServer server;
  server.load(
      "#!lua name=lib\nredis.register_function{function_name='f', callback=function() end, "
      "description='what it does', flags={'no-writes', 'allow-oom'}}");
  server.load(library("other", "g", ""));
  const std::string f = array({bulk("name"), bulk("f"), bulk("description"), bulk("what it does"),
                               bulk("flags"), array({status("no-writes"), status("allow-oom")})});
  CHECK(server.run("FUNCTION LIST LIBRARYNAME LI*") ==
        array({array({bulk("library_name"), bulk("lib"), bulk("engine"), bulk("LUA"),
                      bulk("functions"), array({f})})}));
  const std::string g = array(
      {bulk("name"), bulk("g"), bulk("description"), std::string(kNull), bulk("flags"), array({})});
  CHECK(server.run("FUNCTION LIST WITHCODE LIBRARYNAME other") ==
        array({array({bulk("library_name"), bulk("other"), bulk("engine"), bulk("LUA"),
                      bulk("functions"), array({g}), bulk("library_code"),
                      bulk(library("other", "g", ""))})}));
  CHECK(server.run("FUNCTION LIST LIBRARYNAME") ==
        error("ERR library name argument was not given"));
  CHECK(server.run("FUNCTION LIST x") == error("ERR Unknown argument x"));
}

TEST_CASE("Functions are counted") {
  FunctionServer server;
  server.load(kHello);
  const server::ScriptFigures figures = server.figures();
  CHECK(figures.libraries == 1);
  CHECK(figures.functions == 1);
  CHECK(figures.functions_bytes > kHello.size());
  CHECK(figures.function_interpreter_bytes > 0);
  CHECK(figures.interpreter_bytes == 0);
  CHECK(server.run("FUNCTION STATS") ==
        array({bulk("running_script"), std::string(kNull), bulk("engines"),
               array({bulk("LUA"), array({bulk("libraries_count"), integer(1),
                                          bulk("functions_count"), integer(1)})})}));
  CHECK(server.run("FUNCTION KILL") == error("NOTBUSY No scripts in execution right now."));
}

TEST_CASE("Libraries are dumped and restored") {
  FunctionServer server;
  server.load(library("a", "f", "one"));
  server.load(library("b", "g", std::string(300, 'x')));
  const std::string dump = server.bytes("FUNCTION DUMP");
  const auto restore = [&](std::string_view policy) {
    return server.client->run_words({"FUNCTION", "RESTORE", dump, policy});
  };
  CHECK(restore("APPEND") == error("ERR Library a already exists"));
  server.run("FUNCTION FLUSH");
  CHECK(restore("APPEND") == kOk);
  CHECK(server.run("FCALL f 0") == bulk("one"));
  CHECK(server.bytes("FUNCTION DUMP") == dump);

  const std::string changed = library("a", "f", "two");
  server.client->run_words({"FUNCTION", "LOAD", "REPLACE", changed});
  server.load(library("c", "h", "three"));
  CHECK(restore("REPLACE") == kOk);
  CHECK(server.run("FCALL f 0") == bulk("one"));
  CHECK(server.run("FCALL h 0") == bulk("three"));
  CHECK(restore("FLUSH") == kOk);
  CHECK(server.run("FCALL h 0") == error("ERR Function not found"));

  // A function of a library that is not replaced is in the way: nothing of the dump is taken.
  server.run("FUNCTION DELETE b");
  server.load(library("c", "g", "three"));
  server.run("FUNCTION DELETE a");
  CHECK(restore("REPLACE") == error("ERR Function g already exists"));
  CHECK(server.run("FCALL f 0") == error("ERR Function not found"));
  CHECK(restore("SOMEHOW") ==
        error("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE."));
}

TEST_CASE("A dump of libraries has the version of the release that is emulated") {
  const auto version_of = [](std::string_view dump) {
    return static_cast<uint8_t>(dump[dump.size() - 10]);
  };
  FunctionServer own;
  own.load(kHello);
  const std::string newer = own.bytes("FUNCTION DUMP");
  CHECK(version_of(newer) == 12);
  FunctionServer older("emulate \"redis 7.0\"\n");
  older.load(kHello);
  const std::string dump = older.bytes("FUNCTION DUMP");
  CHECK(version_of(dump) == 10);
  CHECK(own.client->run_words({"FUNCTION", "RESTORE", dump, "FLUSH"}) == kOk);
  CHECK(older.client->run_words({"FUNCTION", "RESTORE", newer, "FLUSH"}) ==
        error("ERR DUMP payload version or checksum are wrong"));
}

TEST_CASE("A dump that is none is refused") {
  FunctionServer server;
  server.load(kHello);
  const std::string dump = server.bytes("FUNCTION DUMP");
  server.run("FUNCTION FLUSH");
  const std::string wrong = error("ERR DUMP payload version or checksum are wrong");
  for (size_t size = 0; size < dump.size(); ++size) {
    CHECK(server.client->run_words({"FUNCTION", "RESTORE", dump.substr(0, size)}) == wrong);
  }
  std::string damaged = dump;
  damaged[3] ^= 1;
  CHECK(server.client->run_words({"FUNCTION", "RESTORE", damaged}) == wrong);
  CHECK(server.run("FUNCTION LIST") == "*0\r\n");
}

TEST_CASE("What is done to libraries is written, and what functions do") {
  FunctionServer server;
  PropagationRecorder effects(server.server);
  server.load(kHello);
  CHECK(effects.take() == "SELECT 0; FUNCTION LOAD " + std::string(kHello));
  server.run("FCALL greet 0 x");
  server.run("FUNCTION LIST");
  server.load(kHello);
  CHECK(effects.take() == "");
  server.load(
      "#!lua name=w\nredis.register_function('w', function(keys) redis.call('set', keys[1], 1) "
      "return redis.call('set', keys[1], 2) end)");
  effects.take();
  server.run("FCALL w 1 k");
  CHECK(effects.take() == "MULTI; set k 1; set k 2; EXEC");
  server.run("FUNCTION DELETE w");
  CHECK(effects.take() == "FUNCTION DELETE w");
  server.run("FUNCTION FLUSH");
  CHECK(effects.take() == "FUNCTION FLUSH");
}

TEST_CASE("Libraries are in the dataset's files") {
  FunctionServer before;
  before.load(library("a", "f", "one"));
  before.load(library("b", "g", std::string(1'000, 'x')));
  std::string file;
  {
    persist::StringSink sink(file);
    REQUIRE(persist::write_dataset(sink, before.server.server, {}));
  }
  FunctionServer after;
  const auto read = [&](bool replace) {
    persist::MemorySource source(file);
    persist::ReadOptions options;
    options.replace_existing = replace;
    return persist::read_dataset(source, after.server.server, options);
  };
  CHECK(read(false).ok);
  CHECK(after.run("FCALL f 0") == bulk("one"));
  CHECK(after.run("FCALL g 0") == bulk(std::string(1'000, 'x')));
  const persist::ReadReport again = read(false);
  CHECK(!again.ok);
  CHECK(again.errors.back() == "Failed creating the library: ERR Library 'a' already exists");
  CHECK(read(true).ok);

  std::string requests;
  persist::StringSink sink(requests);
  REQUIRE(persist::write_dataset_as_requests(sink, before.server.server, {}));
  after.run("FUNCTION FLUSH");
  after.client->send(requests);
  CHECK(after.run("FCALL f 0") == bulk("one"));
}

TEST_CASE("A file without functions is written where they are not wanted") {
  FunctionServer server;
  server.load(kHello);
  std::string file;
  persist::StringSink sink(file);
  persist::WriteOptions options;
  options.with_functions = false;
  REQUIRE(persist::write_dataset(sink, server.server.server, options));
  CHECK(file.find("greet") == file.npos);
}

TEST_CASE("A store finds functions in any case and libraries as they are called") {
  script::FunctionStore store;
  const auto make = [](const char* name, const char* function) {
    auto made = std::make_shared<script::FunctionLibrary>();
    made->name = name;
    made->functions.push_back({.name = function, .description = {}, .flags = 0, .callback = 1});
    return made;
  };
  CHECK(store.add(make("lib", "Fun")));
  CHECK(store.add(make("LIB", "other")));
  CHECK(store.find_function("fUN")->name == "Fun");
  CHECK(store.find_library("Lib") == nullptr);
  CHECK(store.add(make("third", "FUN")).error() == "ERR Function FUN already exists");
  CHECK(store.add(make("lib", "new")).error() == "ERR Library 'lib' already exists");
  script::FunctionStore copy = store;
  CHECK(store.remove("lib") != nullptr);
  CHECK(store.remove("lib") == nullptr);
  CHECK(store.find_function("fun") == nullptr);
  CHECK(copy.find_function("fun")->name == "Fun");
}

namespace {

// A server whose functions and scripts may ask about themselves: TELLME is FUNCTION STATS, and
// STOPFUNCTION and STOPSCRIPT are the two KILLs.
struct TellingServer : FunctionServer {
  explicit TellingServer(std::string_view settings = {}) : FunctionServer(settings) {
    static constexpr auto kRow = [](const char* name, server::Handler handler) {
      return server::CommandRow{name,    handler, "",      0, {}, 0, server::Group::kScripting,
                                "1.0.0", "O(1)",  "Tells."};
    };
    static constexpr server::CommandRow kRows[] = {
        kRow("TELLME",
             [](server::CommandContext& ctx) {
               ctx.server.commands().find_full_name("function|stats")->handler(ctx);
             }),
        kRow("STOPFUNCTION",
             [](server::CommandContext& ctx) {
               ctx.server.layer<script::Engine>().runner().kill(ctx,
                                                                script::Program::Kind::kFunction);
             }),
        kRow("STOPSCRIPT", [](server::CommandContext& ctx) {
          ctx.server.layer<script::Engine>().runner().kill(ctx, script::Program::Kind::kScript);
        })};
    server.server.commands().add(kRows);
  }
};

}  // namespace

TEST_CASE("FUNCTION STATS tells which function runs, and with what request") {
  TellingServer server;
  CHECK(server.load("#!lua name=l\nredis.register_function('f', function() "
                    "return redis.call('tellme') end)") == bulk("l"));
  CHECK(server.run("FCALL f 1 key argument")
            .starts_with("*4\r\n" + bulk("running_script") + "*6\r\n" + bulk("name") + bulk("f") +
                         bulk("command") + bulks({"FCALL", "f", "1", "key", "argument"}) +
                         bulk("duration_ms") + ":"));
  CHECK(server.run("FUNCTION STATS").starts_with("*4\r\n" + bulk("running_script") + "$-1\r\n"));
}

TEST_CASE("While a script runs FUNCTION says that it is busy, and SCRIPT while a function does") {
  TellingServer server;
  const auto eval = [&](const std::string& word) {
    return server.client->run_words({"EVAL", "return redis.pcall('" + word + "')", "0"});
  };
  const std::string script =
      "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
  CHECK(eval("tellme").starts_with(script));
  CHECK(eval("stopfunction").starts_with(script));
  server.load(
      "#!lua name=l\nredis.register_function('f', function() "
      "return redis.pcall('stopscript') end)");
  CHECK(server.run("FCALL f 0")
            .starts_with("-BUSY Redis is busy running a script. You can only call FUNCTION KILL or "
                         "SHUTDOWN NOSAVE."));
}

TEST_CASE("redis.register_function says what is wrong with its named arguments") {
  FunctionServer server;
  const std::string callback = "callback = function() end";
  CHECK(server.error_of("redis.register_function{function_name = 'f', " + callback +
                        ", flags = 'no-writes'}") ==
        registering("ERR flags argument to redis.register_function must be a table representing "
                    "function flags"));
  CHECK(server.error_of("redis.register_function{[true] = 1, function_name = 'f', " + callback +
                        "}") ==
        registering("ERR named argument key given to redis.register_function is not a string"));
  CHECK(server.error_of("redis.register_function{function_name = 'f', " + callback +
                        ", flags = {'no-such'}}") == registering("ERR unknown flag given"));
}

TEST_CASE("Libraries of Valkey know their server by both names") {
  FunctionServer server("emulate \"valkey 9.1\"\n");
  CHECK(server.load("#!lua name=l\nserver.register_function('f', function() return 'both' end)") ==
        bulk("l"));
  CHECK(server.run("FCALL f 0") == bulk("both"));
  FunctionServer other;
  CHECK(other.load("#!lua name=l\nserver.register_function('f', function() return 'both' end)")
            .starts_with("-ERR"));
}

TEST_CASE("Valkey is busy in its own name") {
  for (const bool as_redis : {false, true}) {
    TellingServer server("emulate \"valkey 9.1\"\n" +
                         std::string(as_redis ? "extended-redis-compatibility yes\n" : ""));
    CHECK(server.client->run_words({"EVAL", "return redis.pcall('tellme')", "0"})
              .starts_with("-BUSY " + std::string(as_redis ? "Redis" : "Valkey") +
                           " is busy running a script. You can only call SCRIPT KILL or SHUTDOWN "
                           "NOSAVE."));
  }
}
