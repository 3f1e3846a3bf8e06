// What scripts may take of the machine's memory, and what they leave behind.
#include <lua.hpp>

#include "unit/catch.h"
#include "unit/script/script_fixture.h"

using namespace latchkey;
using namespace latchkey::tests;

namespace {

// Scripts get no less than this, however little the server has.
constexpr size_t kMinLimit = size_t{64} << 20;
constexpr std::string_view kRefused = "not enough memory";

}  // namespace

TEST_CASE("A script that wants more memory than it may have gets an error", "[script-host]") {
  ScriptServer scripts("maxmemory 100mb");
  for (const std::string_view script :
       {"local t = {} for i = 1, 1e8 do t[i] = {} end",
        "local s = 'x' while true do s = s .. s end", "return #string.rep('x', 1e9)",
        "local t = {} for i = 1, 200 do t[i] = string.rep('x', 1e6) .. i end return "
        "#table.concat(t)",
        "return #string.gsub(string.rep('x', 1e6), 'x', string.rep('y', 1000))",
        "local t = {} string.gsub('a', 'a', function() for i = 1, 1e8 do t[i] = {} end end)",
        "local t = {} table.sort({2, 1}, function() for i = 1, 1e8 do t[i] = {} end end)",
        "local t = {} coroutine.wrap(function() for i = 1, 1e8 do t[i] = {} end end)()",
        "local n = 0 local t = {} while true do n = n + 1 t[n] = coroutine.create(pcall) end",
        "local t = string.rep('x', 3e7) return #cjson.encode({t, t, t, t})",
        "local t = {} for i = 1, 1e5 do t[i] = string.rep('x', 10000) end return #cjson.encode(t)",
        "local t = {} for i = 1, 30 do t = {t, t} end return #cjson.encode(t)",
        "local t = string.rep('x', 3e7) return #cmsgpack.pack(t, t, t, t)",
        "return #cjson.decode('[' .. string.rep('[],', 3e6) .. '[]]')",
        "return #cmsgpack.unpack(string.rep('\\144', 3e6))",
        "local s = string.rep('x', 3e7) return struct.pack('sss', s, s, s)",
        "return loadstring('return {' .. string.rep('{},', 3e6) .. '}')()()"}) {
    CAPTURE(script);
    const std::string reply = scripts.eval(script);
    CHECK(reply.starts_with("-ERR"));
    CHECK(scripts.works());
    while (scripts.engine->interpreter()->collect_garbage()) {
    }
    CHECK(scripts.engine->interpreter()->memory_usage() < kMinLimit / 2);
  }
  CHECK(scripts.error_of("return #string.rep('x', 1e9)") == "-ERR " + std::string(kRefused));
  CHECK(scripts.eval("return {pcall(string.rep, 'x', 1e9)}") ==
        array({std::string(kNull), bulk(kRefused)}));
}

// As the manual of Lua asks it of a lua_Alloc.
TEST_CASE("A VM's allocator counts each byte, and frees with a size of zero", "[script-host]") {
  ScriptServer scripts;
  REQUIRE(scripts.works());
  script::Interpreter& vm = *scripts.engine->interpreter();
  void* self = nullptr;
  const lua_Alloc allocate = lua_getallocf(vm.lua(), &self);
  const size_t before = vm.memory_usage();
  void* block = allocate(self, nullptr, 0, 1);
  REQUIRE(block != nullptr);
  CHECK(vm.memory_usage() == before + 1);
  block = allocate(self, block, 1, 100);
  REQUIRE(block != nullptr);
  CHECK(vm.memory_usage() == before + 100);
  block = allocate(self, block, 100, 1);
  REQUIRE(block != nullptr);
  CHECK(vm.memory_usage() == before + 1);
  CHECK(allocate(self, block, 1, 0) == nullptr);
  CHECK(vm.memory_usage() == before);
}

TEST_CASE("A script that keeps little may make as much garbage as it likes", "[script-host]") {
  ScriptServer scripts("maxmemory 100mb");
  CHECK(scripts.eval("for i = 1, 3000 do local s = string.rep('x', 1e5) .. i end return 1") ==
        integer(1));
  CHECK(scripts.eval("local kept = string.rep('y', 2e7) for i = 1, 3000 do local s = "
                     "string.rep('x', 1e5) .. i end return #kept") == integer(20'000'000));
  CHECK(scripts.eval("local kept = {} for i = 1, 200000 do kept[i] = {i} end for i = 1, 3000000 do "
                     "local t = {i} end return #kept") == integer(200'000));
}

TEST_CASE("Wherever Lua has no memory for a reply, the next reply is the right one",
          "[script-host]") {
  ScriptServer scripts;
  constexpr std::string_view kCalls =
      "local t = {} for i = 1, 4 do local ok, reply = pcall(redis.call, 'mget', 'a', 'b', 'c') if "
      "ok and #reply ~= 3 then return 'wrong' end ok, reply = pcall(redis.call, 'get', 'a') if ok "
      "and reply ~= 'first' then return 'wrong' end ok, reply = pcall(redis.call, 'incr', 'n') if "
      "ok and type(reply) ~= 'number' then return 'wrong' end ok, reply = pcall(redis.call, 'get', "
      "'b') if ok and reply ~= 'second' then return 'wrong' end end return 'right'";
  scripts.client->run("MSET a first b second c third n 0");
  CHECK(scripts.eval(kCalls) == bulk("right"));
  constexpr long kMax = 400;
  bool went_through = false;
  for (long granted = 0; granted < kMax; ++granted) {
    CAPTURE(granted);
    script::LuaMemory& memory = scripts.engine->interpreter()->memory();
    memory.grant_only(granted);
    const std::string reply = scripts.eval(kCalls);
    memory.grant_only(-1);
    const bool right = reply == bulk("right");
    CHECK((right || reply.starts_with("-ERR")));
    went_through = right;
    CHECK(scripts.eval("return redis.call('get', 'c')") == bulk("third"));
    CHECK(scripts.eval("return {redis.call('get', 'a'), redis.call('get', 'b')}") ==
          bulks({"first", "second"}));
  }
  CHECK(went_through);
  CHECK(scripts.works());
}

TEST_CASE("One refusal in the middle of a script spoils no later reply", "[script-host]") {
  ScriptServer scripts;
  scripts.client->run("MSET a first b second");
  // The command answers, and Lua has no memory for the answer.
  static constexpr server::CommandRow kRows[] = {
      {"STARVE",
       [](server::CommandContext& ctx) {
         ctx.server.layer<script::Engine>().interpreter()->memory().grant_only(0);
         ctx.reply.bulk("left behind");
       },
       "",
       0,
       {},
       0,
       server::Group::kScripting,
       "1.0.0",
       "O(1)",
       "Starves."},
      {"FEED",
       [](server::CommandContext& ctx) {
         ctx.server.layer<script::Engine>().interpreter()->memory().grant_only(-1);
         ctx.reply.ok();
       },
       "",
       0,
       {},
       0,
       server::Group::kScripting,
       "1.0.0",
       "O(1)",
       "Feeds."}};
  scripts.server.server.commands().add(kRows);
  CHECK(scripts.error_of("return redis.call('starve')") == "-ERR " + std::string(kRefused));
  scripts.engine->interpreter()->memory().grant_only(-1);
  CHECK(scripts.eval("return redis.call('get', 'a')") == bulk("first"));
  CHECK(scripts.eval("local ok = pcall(redis.call, 'starve') pcall(redis.call, 'feed') return "
                     "{redis.call('get', 'a'), redis.call('get', 'b')}") ==
        bulks({"first", "second"}));
}

TEST_CASE("What one script leaves behind is gone some scripts later", "[script-host]") {
  ScriptServer scripts;
  const auto in_use = [&] { return scripts.engine->interpreter()->memory_usage(); };
  scripts.eval("return 1");
  const size_t before = in_use();
  for (const std::string_view script :
       {"local t = {} for i = 1, 1000000 do t[i] = {i} end return 1",
        "local t = {} for i = 1, 60 do t[i] = string.rep('x', 1e6) .. i end return 1",
        "collectgarbage('stop') for i = 1, 1000000 do local t = {i} end return 1",
        "collectgarbage('setpause', 100000) collectgarbage('setstepmul', 1) for i = 1, 1000000 do "
        "local t = {i} end return 1"}) {
    CAPTURE(script);
    const size_t total_allocated = scripts.engine->interpreter()->memory().total_allocated();
    CHECK(scripts.eval(script) == integer(1));
    CHECK(scripts.engine->interpreter()->memory().total_allocated() >
          total_allocated + (size_t{20} << 20));
    for (int i = 0; i < 100; ++i) scripts.eval("return 1");
    CHECK(in_use() < before + (size_t{2} << 20));
  }
  // Nothing of it is left for those who ran before.
  CHECK(scripts.eval("return collectgarbage('setpause', 200)") == integer(200));
  CHECK(scripts.eval("return collectgarbage('setstepmul', 200)") == integer(200));
}

TEST_CASE("What scripts leave behind goes although none comes any more", "[script-host]") {
  ScriptServer scripts;
  scripts.eval("return 1");
  const size_t before = scripts.engine->interpreter()->memory_usage();
  scripts.eval("local t = {} for i = 1, 500000 do t[i] = {i} end return 1");
  for (int i = 0; i < 100; ++i) {
    scripts.server.advance_ms(100);
    scripts.server.tick();
  }
  CHECK(scripts.engine->interpreter()->memory_usage() < before + (size_t{2} << 20));
}

TEST_CASE("lua-memory-limit says how much a script may have", "[script-host]") {
  ScriptServer scripts("lua-memory-limit 20mb");
  constexpr std::string_view kScript = "return #string.rep('x', 3e7)";
  CHECK(scripts.client->run("CONFIG GET lua-memory-limit") ==
        bulks({"lua-memory-limit", "20971520"}));
  CHECK(scripts.error_of(kScript) == "-ERR " + std::string(kRefused));
  CHECK(scripts.client->run("CONFIG SET lua-memory-limit 100mb") == kOk);
  CHECK(scripts.eval(kScript) == integer(30'000'000));
  CHECK(scripts.client->run("CONFIG SET lua-memory-limit 0") == kOk);
  CHECK(scripts.eval(kScript) == integer(30'000'000));
  CHECK(scripts.client->run("CONFIG SET lua-memory-limit 101%").starts_with("-ERR"));
  CHECK(scripts.client->run("CONFIG SET lua-memory-limit 10%") == kOk);
  CHECK(scripts.client->run("CONFIG GET lua-memory-limit") == bulks({"lua-memory-limit", "10%"}));
}

TEST_CASE("What scripts leave behind goes before keys are evicted", "[script-host]") {
  ScriptServer scripts("maxmemory-policy allkeys-random");
  const std::string value(1000, 'v');
  for (int i = 0; i < 100; ++i)
    scripts.client->run_words({"SET", "key" + std::to_string(i), value});
  scripts.eval("return 1");
  const size_t before = scripts.server.server.used_memory();
  scripts.client->run_words(
      {"CONFIG", "SET", "maxmemory", std::to_string(before + (size_t{20} << 20))});
  CHECK(scripts.eval("collectgarbage('stop') local t = {} for i = 1, 500000 do t[i] = {i} end "
                     "return 1") == integer(1));
  CHECK(scripts.client->run("SET one more") == kOk);
  CHECK(scripts.server.database().size() == 101);
}
