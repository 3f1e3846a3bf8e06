// string.find, match, gmatch and gsub, and what else works long without an instruction of Lua's.

#include "unit/script/script_fixture.h"

#include "unit/catch.h"

using namespace latchkey;
using namespace latchkey::tests;

namespace {

struct Patterns : ScriptServer {
  // What an expression gives, as text with blanks between.
  std::string all(const std::string& expression) {
    return eval("local t = {" + expression +
                "} for i = 1, #t do t[i] = tostring(t[i]) end return table.concat(t, ' ')");
  }
  std::string error_text(const std::string& expression) {
    return eval("return select(2, pcall(function() return " + expression + " end))");
  }
};

std::string raised(std::string_view text) {
  return bulk("user_script:1: " + std::string(text));
}

}  // namespace

TEST_CASE("Patterns find what they describe", "[script-host]") {
  Patterns lua;
  CHECK(lua.all("string.find('hello world', 'o w')") == bulk("5 7"));
  CHECK(lua.all("string.find('a.c', '.', 2, true)") == bulk("2 2"));
  CHECK(lua.all("string.find('key = val', '(%w+)%s*=%s*(%w+)')") == bulk("1 9 key val"));
  CHECK(lua.all("string.find('abc', '()b()')") == bulk("2 2 2 3"));
  CHECK(lua.all("string.find('THE (quick) fox', '%((%a+)%)')") == bulk("5 11 quick"));
  CHECK(lua.all("string.find('THE (quick) fox', '%f[%a]%a+', 5)") == bulk("6 10"));
  CHECK(lua.all("string.find('f(a(b)c)d', '%b()')") == bulk("2 8"));
  CHECK(lua.all("string.match('2024-01-02', '(%d+)-(%d+)-(%d+)')") == bulk("2024 01 02"));
  CHECK(lua.all("string.match('  trim  ', '^%s*(.-)%s*$')") == bulk("trim"));
  CHECK(lua.all("string.match('abab', '(ab)%1')") == bulk("ab"));
  CHECK(lua.all("string.match('aXb', '%u')") == bulk("X"));
  CHECK(lua.all("string.match('a]b', '[]]')") == bulk("]"));
  CHECK(lua.all("string.match('a-b', '[a-]+')") == bulk("a-"));
  CHECK(lua.all("string.match('ab%', '[%%b]+')") == bulk("b%"));
  CHECK(lua.all("string.match('caaat', 'ca-t')") == bulk("caaat"));
  CHECK(lua.all("string.match('color', 'colou?r')") == bulk("color"));
  CHECK(lua.all("string.find('abc', '', 10)") == bulk("4 3"));
  CHECK(lua.all("string.find('abc', 'b', -2)") == bulk("2 2"));
  CHECK(lua.all("string.find('a\\0b', '%z')") == bulk("2 2"));
  CHECK(lua.all("string.find('aaaaaaaaab', 'aab')") == bulk("8 10"));
  // The character behind the last is not part of the text.
  CHECK(lua.all("string.find('xa', 'a\\0', 1, true) == nil") == bulk("true"));
  CHECK(lua.all("string.find('abc', 'b', 1e10) == nil") == bulk("true"));
  // As in Lua 5.1, which LuaJIT is not in this.
  CHECK(lua.all("string.match('xgy', '%g')") == bulk("g"));
}

TEST_CASE("A set holds what stands between its brackets, and nothing else", "[script-host]") {
  Patterns lua;
  CHECK(lua.all("string.match('xay', '[^x]')") == bulk("a"));
  CHECK(lua.all("string.match('xyz', '[^xy]')") == bulk("z"));
  CHECK(lua.all("string.find('x', '[^x]') == nil") == bulk("true"));
  CHECK(lua.all("string.find(']', '[a]') == nil") == bulk("true"));
  CHECK(lua.all("string.match(']', '[^a]')") == bulk("]"));
  CHECK(lua.all("string.match('a]b', '[^]a]')") == bulk("b"));
  CHECK(lua.all("string.match('[^', '[%^]')") == bulk("^"));
  CHECK(lua.all("string.match('c', '[a-c]')") == bulk("c"));
  CHECK(lua.all("string.match('a', '[a-c]')") == bulk("a"));
  CHECK(lua.all("string.find('d', '[a-c]') == nil") == bulk("true"));
  CHECK(lua.all("string.match('5-a', '[^%d]+')") == bulk("-a"));
}

TEST_CASE("string.find takes special characters as they are when it is asked to", "[script-host]") {
  Patterns lua;
  CHECK(lua.all("string.find('abc', '.')") == bulk("1 1"));
  CHECK(lua.all("string.find('abc', '.', 1, false)") == bulk("1 1"));
  CHECK(lua.all("string.find('abc', '.', 1, nil)") == bulk("1 1"));
  CHECK(lua.all("string.find('abc', '.', 1, true) == nil") == bulk("true"));
  CHECK(lua.all("string.find('a.c', '.', 1, true)") == bulk("2 2"));
  CHECK(lua.all("string.find('a.c', '.', 3, true) == nil") == bulk("true"));
  // What is found as it stands has no captures.
  CHECK(lua.all("string.find('(a)', '(a)', 1, 1)") == bulk("1 3"));
  // The fourth argument of string.match means nothing.
  CHECK(lua.all("string.match('abc', '(.)', 2, true)") == bulk("b"));
}

TEST_CASE("Patterns replace what they find", "[script-host]") {
  Patterns lua;
  CHECK(lua.all("string.gsub('hello world', 'o', '0')") == bulk("hell0 w0rld 2"));
  CHECK(lua.all("string.gsub('hello world', '(o)', '<%1%0%%>', 1)") == bulk("hell<oo%> world 1"));
  CHECK(lua.all("string.gsub('abc', '', '-')") == bulk("-a-b-c- 4"));
  CHECK(lua.all("string.gsub('abc', '^a', 'x')") == bulk("xbc 1"));
  CHECK(lua.all("string.gsub('$name is $age', '%$(%w+)', {name = 'Bob', age = 5})") ==
        bulk("Bob is 5 2"));
  CHECK(lua.all("string.gsub('abc', '%w', function(c) if c ~= 'b' then return c .. c end end)") ==
        bulk("aabcc 3"));
  CHECK(lua.all("string.gsub('abc', 'b', false or 7)") == bulk("a7c 1"));
  CHECK(lua.eval("local t = {} for k, v in string.gmatch('a=1, b=2', '(%w+)=(%w+)') do t[#t + 1] = "
                 "k .. v end return t") == bulks({"a1", "b2"}));
  CHECK(lua.eval("local n = 0 for x in ('abc'):gmatch('') do n = n + 1 end return n") ==
        integer(4));
}

TEST_CASE("Patterns that mean nothing are errors", "[script-host]") {
  Patterns lua;
  CHECK(lua.error_text("(string.find('a', '%'))") == raised("malformed pattern (ends with '%')"));
  CHECK(lua.error_text("(string.find('a', '[a'))") == raised("malformed pattern (missing ']')"));
  CHECK(lua.error_text("(string.find('a', '[a%'))") == raised("malformed pattern (missing ']')"));
  CHECK(lua.error_text("(string.find('a', '%f'))") == raised("missing '[' after '%f' in pattern"));
  CHECK(lua.error_text("(string.find('a', '%bx'))") == raised("unbalanced pattern"));
  CHECK(lua.error_text("(string.match('a', ')'))") == raised("invalid pattern capture"));
  CHECK(lua.error_text("(string.find('a', '(a'))") == raised("unfinished capture"));
  CHECK(lua.error_text("(string.find('a', '%1'))") == raised("invalid capture index"));
  CHECK(lua.error_text("(string.find('aaa', ('(a?)'):rep(33)))") == raised("too many captures"));
  CHECK(lua.error_text("(string.gsub('a', 'a', '%2'))") == raised("invalid capture index"));
  CHECK(lua.error_text("(string.gsub('a', 'a', function() return {} end))") ==
        raised("invalid replacement value (a table)"));
  CHECK(lua.error_text("(string.gsub('a', 'a', true))") ==
        raised("bad argument #3 to 'gsub' (string/function/table expected)"));
}

TEST_CASE("What works long inside a function is stopped there", "[script-host]") {
  Patterns lua;
  // Each takes longer than anybody waits, or all memory.
  for (const std::string_view script :
       {"string.find(string.rep('a', 100), string.rep('a?', 50) .. string.rep('a', 100) .. 'b')",
        "string.match(string.rep('a', 100), string.rep('a-', 50) .. 'b')",
        "string.find(string.rep('a', 1e6), '.-.-.-b')",
        "string.gsub(string.rep('a', 1e6), '.*.*b', '')",
        "for x in string.gmatch(string.rep('a', 1e6), '.-.-.-b') do end",
        "string.find(string.rep('(', 1e6), '%b()')", "table.insert({}, -2e9, 1)",
        "table.insert({1}, 2^31, 1)",
        "local t = {} for i = 1, 1e6 do t[i] = (i * 7919) % 1000003 end while true do "
        "table.sort(t) end",
        "cjson.encode_max_depth(1e6) local t = {} for i = 1, 60 do t = {t, t} end cjson.encode(t)",
        "local t = {} for i = 1, 5 do local u = {} for k = 1, 100 do u[k] = t end t = u end "
        "cmsgpack.pack(t)"}) {
    CAPTURE(script);
    CHECK(lua.error_of("redis.call('stopme') " + std::string(script)) == ScriptServer::kStopped);
    CHECK(lua.works());
  }
}

TEST_CASE("A text is found in time that grows with its size", "[script-host]") {
  Patterns lua;
  CHECK(lua.all("string.find(string.rep('a', 2e6), string.rep('a', 1e6) .. 'b') == nil") ==
        bulk("true"));
  CHECK(lua.all("string.find(string.rep('a', 2e6) .. 'b', string.rep('a', 1e6) .. 'b')") ==
        bulk("1000001 2000001"));
}

TEST_CASE("Large tables are sorted as small ones are", "[script-host]") {
  Patterns lua;
  for (const std::string_view value : {"(i * 7919) % 100003", "tostring((i * 7919) % 100003)", "-i",
                                       "i % 3", "setmetatable({v = -i}, m)"}) {
    CAPTURE(value);
    CHECK(lua.eval(
              "local m = {} m.__lt = function(a, b) return a.v < b.v end local t = {} for i = 1, "
              "70000 do t[i] = " +
              std::string(value) +
              " end table.sort(t) for i = 2, #t do if t[i] < t[i - 1] then return i end end "
              "return #t") == integer(70'000));
  }
  // More than are merged at once.
  CHECK(lua.eval("local t = {} for i = 1, 140000 do t[i] = (i * 7919) % 1000003 end table.sort(t) "
                 "for i = 2, #t do if t[i] < t[i - 1] then return i end end return #t") ==
        integer(140'000));
  CHECK(lua.error_of("local t = {} for i = 1, 5000 do t[i] = {} end table.sort(t)") ==
        "-ERR attempt to compare two table values");
  CHECK(lua.error_of("local t = {} for i = 1, 5000 do t[i] = i end t[5000] = 'x' table.sort(t)")
            .starts_with("-ERR attempt to compare"));
}

TEST_CASE("Tables of any size are sorted by a comparison that is a C function", "[script-host]") {
  Patterns lua;
  for (const int size : {2, 1000, 5000}) {
    CAPTURE(size);
    // Nothing comes before anything else.
    CHECK(lua.eval("local a = {} for i = 1, " + std::to_string(size) +
                   " do a[i] = i end table.sort(a, rawequal) local sum = 0 " +
                   "for i = 1, #a do sum = sum + a[i] end return sum") ==
          integer(size * (size + 1) / 2));
  }
  CHECK(lua.error_of("local a = {} for i = 1, 5000 do a[i] = i end table.sort(a, setmetatable)")
            .starts_with("-ERR bad argument #1 to"));
}

TEST_CASE("Tables of any size are sorted by the operator as by a comparison", "[script-host]") {
  Patterns lua;
  for (const std::string_view value :
       {"i * 7919 % 1009 - 500", "'key ' .. i * 7919 % 1009", "i % 5 == 0 and -0 or i % 3"}) {
    for (const int size : {0, 1, 16, 17, 1000, 4096, 4097}) {
      CAPTURE(value, size);
      CHECK(lua.eval("local a, b = {}, {} for i = 1, " + std::to_string(size) + " do a[i] = " +
                     std::string(value) + " b[i] = a[i] end table.sort(a) table.sort(b, " +
                     "function(x, y) return x < y end) for i = 1, #a do " +
                     "if a[i] ~= b[i] then return -i end end return #a") == integer(size));
      // A comparison is asked, whatever the operator would say.
      CHECK(lua.eval("local a = {} for i = 1, " + std::to_string(size) + " do a[i] = " +
                     std::string(value) + " end table.sort(a, function(x, y) return x > y end) " +
                     "for i = 2, #a do if a[i] > a[i - 1] then return -i end end return #a") ==
            integer(size));
    }
  }
  CHECK(lua.error_of("local t = {} for i = 1, 100 do t[i] = i end t[50] = 'x' table.sort(t)")
            .starts_with("-ERR attempt to compare"));
}
