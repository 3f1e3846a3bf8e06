// Attacks on the Lua of other servers that are known by a number, and what becomes of them here.

#include "unit/script/script_fixture.h"

#include "unit/catch.h"

using namespace latchkey;
using namespace latchkey::tests;

TEST_CASE("CVE-2015-4335: compiled code is not loaded", "[script-host]") {
  ScriptServer scripts;
  CHECK(scripts.eval("local code = string.dump(function() return 1 end) local f, e = "
                     "loadstring(code) return f == nil and e ~= nil") == integer(1));
  CHECK(scripts.eval("local code = string.dump(function() return 1 end) local f, e = "
                     "load(function() local c = code code = nil return c end) return f == nil and "
                     "e ~= nil") == integer(1));
  CHECK(scripts.eval("\033LJ\002\n").starts_with("-ERR Error compiling script"));
  CHECK(scripts.eval("\033LuaQ").starts_with("-ERR Error compiling script"));
  // Behind an empty first piece either.
  CHECK(
      scripts.eval("local n = 0 local f = load(function() n = n + 1 return n == 1 and '\\27' or n "
                   "== 2 and 'LJ\\2' or nil end) return f == nil") == integer(1));
}

TEST_CASE("CVE-2018-11218: cmsgpack writes any number of nested and wide tables", "[script-host]") {
  ScriptServer scripts;
  CHECK(scripts.eval("local t = {} for i = 1, 17 do t = {t} end return #cmsgpack.pack(t)") ==
        integer(17));
  CHECK(scripts.eval("local t = {} for i = 1, 70000 do t[i] = i end local u = "
                     "cmsgpack.unpack(cmsgpack.pack(t)) return #u") == integer(70'000));
  CHECK(scripts.eval("local t = {} t[1] = t return #cmsgpack.pack(t)") == integer(17));
  CHECK(scripts.eval("local t = {} t.t = t return #cmsgpack.pack({t, t, t, t})") != "");
  CHECK(scripts.works());
}

TEST_CASE("CVE-2018-11219: struct measures sizes before it uses them", "[script-host]") {
  ScriptServer scripts;
  for (const std::string_view call :
       {"struct.unpack('c4294967295', 'x')", "struct.unpack('>I2c0', '\\255\\255hello')",
        "struct.unpack('c2147483647c2147483647', 'x')", "struct.pack('i33', 1)",
        "struct.unpack('i33', string.rep('x', 40))", "struct.pack('!3i', 1)",
        "struct.unpack('i4', 'abcd', 2)", "struct.unpack('i4', 'abcd', -1)",
        "struct.unpack('i4', 'abcd', 4294967297)", "struct.pack('c99999999999', 'x')",
        "struct.unpack('s', 'no end')", "struct.unpack('dc0', struct.pack('d', -1) .. 'x')"}) {
    CAPTURE(call);
    CHECK(scripts.eval("return " + std::string(call)).starts_with("-ERR"));
  }
  CHECK(scripts.works());
}

TEST_CASE("CVE-2022-0543: no library is loaded and none is left behind", "[script-host]") {
  ScriptServer scripts;
  for (const std::string_view name :
       {"package", "require", "module", "io", "debug", "jit", "ffi", "dofile", "loadfile",
        "getfenv", "setfenv", "newproxy", "print"}) {
    CAPTURE(name);
    CHECK(scripts.eval("return rawget(_G, '" + std::string(name) + "') == nil") == integer(1));
    CHECK(scripts.error_of("return " + std::string(name)).find("nonexistent global") !=
          std::string::npos);
  }
  CHECK(scripts.eval("return os.execute == nil and os.exit == nil and os.getenv == nil") !=
        integer(0));
  CHECK(scripts.eval("local n = 0 for k in pairs(os) do n = n + 1 end return n") == integer(1));
}

TEST_CASE("CVE-2022-24834: cjson writes what is long and deep, or says that it is too much",
          "[script-host]") {
  ScriptServer scripts("maxmemory 100mb");
  CHECK(scripts
            .error_of("cjson.encode_sparse_array(true, 0, 0) return #cjson.encode({[2^31 - 1] = "
                      "1})")
            .starts_with("-ERR"));
  CHECK(scripts.error_of("local s = string.rep('\\1', 1.1e7) return #cjson.encode(s)")
            .starts_with("-ERR"));
  CHECK(scripts.error_of("local t = {} t[1] = t return cjson.encode(t)").find("nesting") !=
        std::string::npos);
  CHECK(scripts.eval("return #cjson.encode(string.rep('\\1', 100000))") == integer(600'002));
  CHECK(scripts.works());
}

TEST_CASE("CVE-2024-31449: bit.tohex takes any number of digits", "[script-host]") {
  ScriptServer scripts;
  CHECK(scripts.eval("return bit.tohex(65535, -2147483648)") == bulk("0000FFFF"));
  CHECK(scripts.eval("return bit.tohex(65535, -2147483647)") == bulk("0000FFFF"));
  CHECK(scripts.eval("return bit.tohex(65535, 2147483647)") == bulk("0000ffff"));
  CHECK(scripts.eval("return bit.tohex(65535, 1e300)") == bulk("0000FFFF"));
  CHECK(scripts.eval("return bit.tohex(65535, 2^32 + 4)") == bulk("ffff"));
  CHECK(scripts.eval("return bit.tohex(65535, -2^31 - 1)") == bulk("0000ffff"));
  CHECK(scripts.eval("return bit.tohex(65535, 4.6)") == bulk("0ffff"));
  CHECK(scripts.eval("return bit.tohex(65535, 0/0)") == bulk(""));
  CHECK(scripts.eval("return bit.tohex(65535, 0)") == bulk(""));
  CHECK(scripts.works());
}

TEST_CASE("CVE-2024-46981: what is collected in the middle of a script is not used afterwards",
          "[script-host]") {
  ScriptServer scripts;
  // Finalizers, which would run on what is half collected, cannot be set.
  CHECK(scripts.eval("local ran = false setmetatable({}, {__gc = function() ran = true end}) "
                     "collectgarbage() collectgarbage() return ran") == kNull);
  CHECK(scripts.eval("return rawget(_G, 'newproxy') == nil") == integer(1));
  CHECK(scripts.eval("for i = 1, 100 do local c = coroutine.wrap(function() coroutine.yield() end) "
                     "c() c = nil collectgarbage() end return 1") == integer(1));
  // What pieces of code are read from may go while they are compiled.
  CHECK(scripts.eval("local n = 0 local f = load(function() n = n + 1 collectgarbage() if n < 100 "
                     "then return ' local a' .. n .. ' = \"' .. n .. '\"' end if n == 100 then "
                     "return ' return a99' end end) collectgarbage() return f()") == bulk("99"));
  CHECK(scripts.eval("return (string.gsub(string.rep('a', 100), 'a', function() collectgarbage() "
                     "return string.rep('b', 10) end))") == bulk(std::string(1000, 'b')));
  CHECK(scripts.eval("local t = {} for i = 1, 100 do t[i] = tostring((i * 37) % 101) end "
                     "table.sort(t, function(a, b) collectgarbage() return a < b end) return #t") ==
        integer(100));
}

TEST_CASE("CVE-2025-46817: unpack measures its range", "[script-host]") {
  ScriptServer scripts;
  for (const std::string_view range :
       {"-2147483648, 2147483647", "0, 2147483647", "1, 1e8", "-1e9, 1e9",
        "2147483647, -2147483648", "-2147483648, -2147483648", "2147483647, 2147483647",
        "1e300, -1e300"}) {
    CAPTURE(range);
    const std::string reply =
        scripts.eval("return {unpack({1, 2, 3}, " + std::string(range) + ")}");
    CHECK((reply.starts_with("-ERR") || reply == array({}) || reply == kNullArray));
    CHECK(scripts.works());
  }
}

TEST_CASE("CVE-2025-46818: no script changes the metatable of strings or other basic types",
          "[script-host]") {
  ScriptServer scripts;
  for (const std::string_view script :
       {"getmetatable('').__index = {}", "getmetatable('').__add = function() return 'mine' end",
        "rawset(getmetatable(''), '__index', {})", "setmetatable('', {})",
        "getmetatable('').__index.upper = nil", "string.upper = nil", "rawset(string, 'upper', 1)",
        "table.insert(getmetatable(''), 1)", "getmetatable(_G).__index = nil",
        "setmetatable(getmetatable(''), {})"}) {
    CAPTURE(script);
    CHECK(scripts.eval(script).starts_with("-ERR"));
  }
  CHECK(scripts.eval("return ('x'):upper()") == bulk("X"));
  CHECK(scripts.eval("return getmetatable(1) == nil and getmetatable(nil) == nil and "
                     "getmetatable(true) == nil and getmetatable(pcall) == nil") == integer(1));
}

TEST_CASE("CVE-2025-46819: long brackets of any length are read to their end and no further",
          "[script-host]") {
  ScriptServer scripts;
  const std::string level(100'000, '=');
  CHECK(scripts.eval("return #[" + level + "[x]" + level + "]") == integer(1));
  CHECK(scripts.eval("return [" + level + "[x]" + level).starts_with("-ERR Error compiling"));
  CHECK(scripts.eval("return [" + level).starts_with("-ERR Error compiling"));
  CHECK(scripts.eval("--[" + level + "[x").starts_with("-ERR Error compiling"));
  CHECK(scripts.eval("--[" + level + "\nreturn 1") == integer(1));
  CHECK(scripts.eval("return loadstring('return [" + level + "') == nil") == integer(1));
  CHECK(scripts.works());
}

TEST_CASE("CVE-2025-49844: names and pieces of code live as long as they are compiled",
          "[script-host]") {
  ScriptServer scripts;
  // The name of a chunk is garbage as soon as the parser has it, if nobody keeps it.
  CHECK(scripts.eval("for i = 1, 200 do local f, e = loadstring('return ' .. i .. ' +', "
                     "string.rep('n', 50) .. i) collectgarbage() if f ~= nil or not e:find('n') "
                     "then return 'wrong' end end return 'right'") == bulk("right"));
  CHECK(scripts.eval(
            "for i = 1, 50 do local n = 0 local f, e = load(function() n = n + 1 "
            "collectgarbage() if n == 1 then return 'return ' .. i elseif n == 2 then return "
            "' + ' .. i end end, '=' .. string.rep('m', 50) .. i) if f() ~= 2 * i then "
            "return 'wrong' end end return 'right'") == bulk("right"));
}

TEST_CASE("CVE-2026-23631: a library's functions do not outlive their interpreter",
          "[script-host]") {
  ScriptServer scripts;
  const std::string_view code =
      "#!lua name=one\nredis.register_function('f', function() return 'one' end)";
  CHECK(scripts.client->run_words({"FUNCTION", "LOAD", code}) == bulk("one"));
  // Nothing that runs may take away what it runs on.
  for (const std::string_view command :
       {"'function', 'flush', 'sync'", "'function', 'flush', 'async'",
        "'function', 'delete', 'one'", "'script', 'flush'", "'fcall', 'f', '0'"}) {
    CAPTURE(command);
    CHECK(scripts.error_of("return redis.call(" + std::string(command) + ")") ==
          "-ERR This Redis command is not allowed from script");
  }
  CHECK(scripts.client->run("FCALL f 0") == bulk("one"));
  CHECK(scripts.client->run("FUNCTION FLUSH ASYNC") == kOk);
  CHECK(scripts.client->run("FCALL f 0") == error("ERR Function not found"));
  CHECK(scripts.client->run_words({"FUNCTION", "LOAD", code}) == bulk("one"));
  CHECK(scripts.client->run("FCALL f 0") == bulk("one"));
}

TEST_CASE("Deprecated functions are there where they are asked for, and keep within the sandbox",
          "[script-host]") {
  ScriptServer plain;
  CHECK(plain.error_of("return getfenv(1)") ==
        "-ERR user_script:1: Script attempted to access nonexistent global variable 'getfenv'");
  ScriptServer scripts("lua-enable-deprecated-api yes");
  CHECK(scripts.eval("local function f() return x end setfenv(f, {x = 5}) return f()") ==
        integer(5));
  CHECK(scripts.eval("local function f() return x end local e = {} setfenv(f, e) "
                     "return rawequal(getfenv(f), e) and rawequal(getfenv(1), getfenv(0))") ==
        integer(1));
  // Environments of C functions would show what the sandbox leaves out.
  for (const char* const function : {"redis.call", "pcall", "string.rep", "0", "1", "next"})
    CHECK(scripts.eval("local e = getfenv(" + std::string(function) +
                       ") return rawequal(e, _G) and rawget(e, 'dofile') == nil") == integer(1));
  for (const char* const function : {"0", "pcall", "redis.call"})
    CHECK(scripts.error_of("setfenv(" + std::string(function) + ", {})") ==
          "-ERR user_script:1: 'setfenv' cannot change environment of given object");
  CHECK(scripts.error_of("getfenv(1).x = 1").find("Attempt to modify a readonly table") !=
        std::string::npos);
  CHECK(scripts.error_of("getfenv(50)").find("invalid level") != std::string::npos);
  CHECK(scripts.works());
}

TEST_CASE("Userdata of scripts are not finalized", "[script-host]") {
  ScriptServer scripts("lua-enable-deprecated-api yes");
  CHECK(scripts.eval("return type(newproxy()) .. type(getmetatable(newproxy(true)))") ==
        bulk("userdatatable"));
  CHECK(scripts.eval("local p = newproxy(true) getmetatable(p).__index = function(_, k) "
                     "return k .. '!' end return newproxy(p).hey") == bulk("hey!"));
  scripts.eval(
      "local p = newproxy(true) local m = getmetatable(p) "
      "m.__gc = function() redis.call('set', 'gone', 1) end "
      "rawset(m, '__gc', function() redis.call('set', 'gone', 1) end) "
      "p, m = nil, nil collectgarbage() collectgarbage()");
  CHECK(scripts.eval("collectgarbage() collectgarbage() return redis.call('get', 'gone')") ==
        kNull);
  CHECK(scripts.eval(
            "local m = getmetatable(newproxy(true)) "
            "return pcall(setmetatable, m, nil) or getmetatable(m) or rawget(m, '__gc')") == kNull);
  CHECK(scripts.error_of("newproxy({})").find("boolean or proxy expected") != std::string::npos);
  CHECK(scripts.eval("local t = rawset({}, '__gc', 1) return t.__gc") == integer(1));
  CHECK(scripts.works());
}

TEST_CASE(
    "CVE-2024-25176, CVE-2024-25177, CVE-2024-25178: LuaJIT compiles nothing and formats no "
    "numbers that scripts choose",
    "[script-host]") {
  ScriptServer scripts;
  // The first is in LuaJIT's own formatting of numbers, which string.format does not use here; the
  // others are in its compiler for machine code, which is off and cannot be turned on.
  for (const std::string_view format :
       {"%.99f", "%99.99f", "%.99g", "%.99e", "%+99.99f", "%#.99g"}) {
    CAPTURE(format);
    CHECK(scripts.eval("return #string.format('" + std::string(format) + "', 7e-310) > 0") ==
          integer(1));
    CHECK(scripts.eval("return #string.format('" + std::string(format) + "', 1.7e308) > 0") ==
          integer(1));
  }
  CHECK(scripts.error_of("return string.format('%100.3f', 1)").find("too long") !=
        std::string::npos);
  CHECK(scripts.eval("return rawget(_G, 'jit') == nil") == integer(1));
  CHECK(scripts.eval("local n = 0 for i = 1, 100000 do n = n + i % 7 end return n") ==
        integer(300'000));
  // Errors at the very end of the stack find a place to be written.
  CHECK(scripts.error_of("local function f() return f() .. 1 end return f()")
            .find("stack overflow") != std::string::npos);
  CHECK(scripts.works());
}
