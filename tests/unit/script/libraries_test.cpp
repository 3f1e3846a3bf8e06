// The libraries cjson, cmsgpack and struct, seen by scripts.

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/random.h"
#include "commands/groups.h"
#include "script/engine.h"
#include "script/rows.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

using namespace latchkey;
using namespace latchkey::tests;

namespace {

struct Libraries {
  Libraries() : server({commands::string_rows(), script::script_rows()}) {
    server.server.add_layer(std::make_shared<script::Engine>(server.server));
    client = std::make_unique<TestClient>(server);
  }
  std::string eval(std::string_view script, std::string_view argument = {}) {
    return client->run_words({"EVAL", script, "0", argument});
  }
  // The text of the error that an expression raises.
  std::string error_of(const std::string& expression) {
    return eval("return select(2, pcall(function() return " + expression + " end))");
  }

  ServerFixture server;
  std::unique_ptr<TestClient> client;
};

std::string raised(std::string_view text) {
  return bulk("user_script:1: " + std::string(text));
}

}  // namespace

// --- cjson --------------------------------------------------------------------------------------

TEST_CASE("Lua values become JSON") {
  Libraries lua;
  const auto encode = [&](const std::string& value) {
    return lua.eval("return cjson.encode(" + value + ")");
  };
  CHECK(encode("{1, 'two', {3}}") == bulk("[1,\"two\",[3]]"));
  CHECK(encode("{a = {b = true}}") == bulk("{\"a\":{\"b\":true}}"));
  CHECK(encode("{}") == bulk("{}"));
  CHECK(encode("{1, nil, 3}") == bulk("[1,null,3]"));
  CHECK(encode("{[1.5] = 1}") == bulk("{\"1.5\":1}"));
  CHECK(encode("{nil, cjson.null}") == bulk("[null,null]"));
  CHECK(encode("0.1") == bulk("0.1"));
  CHECK(encode("123456789012345678") == bulk("1.2345678901235e+17"));
  CHECK(encode("'/\"\\\\\\n\\1\\127\\200'") == bulk("\"\\/\\\"\\\\\\n\\u0001\\u007f\xc8\""));
}

TEST_CASE("The pairs of a table are written in an order that does not change from start to start") {
  Libraries lua;
  const auto encode = [&](const std::string& pairs) {
    return lua.eval("return cjson.encode({" + pairs + "})");
  };
  CHECK(encode("id = 1, name = 2, total = 3") == bulk("{\"id\":1,\"total\":3,\"name\":2}"));
  CHECK(encode("x = nil, y = 5") == bulk("{\"y\":5}"));
  CHECK(encode("x = 1, y = 2") == bulk("{\"y\":2,\"x\":1}"));
  CHECK(encode("[1.5] = 1, [0] = 2, [-7] = 3, a = 4") ==
        bulk("{\"0\":2,\"-7\":3,\"1.5\":1,\"a\":4}"));
  CHECK(encode("1, 2, 3, k = 4") == bulk("{\"1\":1,\"2\":2,\"3\":3,\"k\":4}"));
  CHECK(lua.eval("return cmsgpack.pack({x = 1, y = 2, [true] = 3})") ==
        bulk("\x83\xa1y\x02\xa1x\x01\xc3\x03"));
  CHECK(lua.eval("return #cmsgpack.pack({[{}] = 1, x = 2})") == integer(6));
}

TEST_CASE("Tables of any size and depth become the JSON that is read back as the same tables") {
  Libraries lua;
  // Few pairs are kept on Lua's stack, more are looked up again, and so are those nested deeply.
  constexpr std::string_view kSizes = R"(
    for size = 0, 70 do
      local made = {}
      for i = 1, size do made['key ' .. i * 7] = {[i] = i, x = {y = i}, [-i] = 'z', [0.5] = true} end
      local read = cjson.decode(cjson.encode(made))
      local count = 0
      for key, value in pairs(read) do
        count = count + 1
        local i = tonumber(string.sub(key, 5)) / 7
        if value[tostring(i)] ~= i or value.x.y ~= i or value[tostring(-i)] ~= 'z' or
           value['0.5'] ~= true then return 'wrong at ' .. size end
      end
      if count ~= size then return 'lost at ' .. size end
    end
    return 'same')";
  CHECK(lua.eval(kSizes) == bulk("same"));
  constexpr std::string_view kDepth = R"(
    local made = 'inmost'
    for i = 1, 900 do made = {a = 1, b = 2, c = made, d = 3} end
    local read = cjson.decode(cjson.encode(made))
    for i = 1, 900 do
      if read.a ~= 1 or read.b ~= 2 or read.d ~= 3 then return i end
      read = read.c
    end
    return read)";
  CHECK(lua.eval(kDepth) == bulk("inmost"));
}

TEST_CASE("What JSON cannot say is an error") {
  Libraries lua;
  CHECK(lua.error_of("(cjson.encode(pcall))") ==
        raised("Cannot serialise function: type not supported"));
  CHECK(lua.error_of("(cjson.encode(0/0))") ==
        raised("Cannot serialise number: must not be NaN or Inf"));
  CHECK(lua.error_of("(cjson.encode({[true] = 1}))") ==
        raised("Cannot serialise boolean: table key must be a number or string"));
  CHECK(lua.error_of("(cjson.encode({[1] = 1, [30] = 2}))") ==
        raised("Cannot serialise table: excessively sparse array"));
  CHECK(lua.eval("local t = {} t.t = t return select(2, pcall(cjson.encode, t))") ==
        bulk("Cannot serialise, excessive nesting (1001)"));
}

TEST_CASE("JSON becomes Lua values") {
  Libraries lua;
  constexpr std::string_view kAgain = "return cjson.encode(cjson.decode(ARGV[1]))";
  for (const std::string_view text :
       {"[1,2.5,\"x\",[],{}]", "{\"a\":[true,false,null]}", "-1e-07", "\"a\\u0000b\""}) {
    const bool has_empty_array = text.find("[]") != text.npos;
    CHECK(lua.eval(kAgain, text) == bulk(has_empty_array ? "[1,2.5,\"x\",{},{}]" : text));
  }
  CHECK(lua.eval("return cjson.decode(ARGV[1])", "\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"") ==
        bulk("A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"));
  CHECK(lua.eval("return cjson.decode(ARGV[1]) == cjson.null", "null") == integer(1));
  CHECK(lua.eval("return cjson.decode(ARGV[1])[3]", " [ 1 , 2 , 3 ] ") == integer(3));
}

TEST_CASE("Numbers become the JSON that printf writes, with as many digits as are set") {
  Libraries lua;
  base::Random random(1);
  const auto some_number = [&]() -> double {
    const auto integer = static_cast<double>(random.below(uint64_t{1} << (1 + random.below(60))));
    switch (random.below(4)) {
      case 0:
        return integer;
      case 1:
        return integer / std::pow(10, random.below(20));
      case 2:
        return -static_cast<double>(random.below(1'000'000)) / 1000;
      default:
        return std::bit_cast<double>(random.next());
    }
  };
  std::vector<double> numbers = {
      0,      -0.0,  1,    -1,        12.5, 1e14, 1e14 - 1, -1e14 + 1,
      1e15,   1e-4,  9e-5, 1e-5,      0.1,  0.3,  1.0 / 3,  99999999999999.9,
      5e-324, 1e308, 1e21, 123456.789};
  for (int i = 0; i < 2000; ++i) numbers.push_back(some_number());
  constexpr std::string_view kEncode =
      "cjson.encode_number_precision(tonumber(ARGV[1]))"
      "local text = cjson.encode((struct.unpack('<d', ARGV[2])))"
      "cjson.encode_number_precision(14) return text";
  for (const double number : numbers) {
    if (!std::isfinite(number)) continue;
    const int precision = random.below(2) == 0 ? 14 : static_cast<int>(1 + random.below(14));
    char expected[64];
    std::snprintf(expected, sizeof expected, "%.*g", precision, number);
    const std::string_view bytes(reinterpret_cast<const char*>(&number), sizeof number);
    REQUIRE(lua.client->run_words({"EVAL", kEncode, "0", std::to_string(precision), bytes}) ==
            bulk(expected));
  }
}

TEST_CASE("Numbers of JSON are those that strtod reads") {
  Libraries lua;
  base::Random random(2);
  std::vector<std::string> texts = {"0",
                                    "-0",
                                    "1.",
                                    "-1.5",
                                    "00012",
                                    "0x10",
                                    "-0x1p4",
                                    "1e5",
                                    "1E+5",
                                    "1e-400",
                                    "1e400",
                                    "-1e400",
                                    "0.1",
                                    "inf",
                                    "-inf",
                                    "nan",
                                    "123456789012345",
                                    "1234567890123456",
                                    "9007199254740993",
                                    "12345678901234567890123",
                                    "1.7976931348623157e308",
                                    "4.9e-324",
                                    "2.2250738585072011e-308",
                                    "0.30000000000000004"};
  for (int i = 0; i < 1000; ++i) {
    std::string text = random.below(2) == 0 ? "-" : "";
    for (uint64_t digits = 1 + random.below(19); digits > 0; --digits)
      text += static_cast<char>('0' + random.below(10));
    if (random.below(2) == 0) text += "." + std::to_string(random.below(1'000'000'000));
    if (random.below(4) == 0) text += "e" + std::to_string(random.below(40));
    texts.push_back(std::move(text));
  }
  constexpr std::string_view kDecode = "return struct.pack('<d', cjson.decode(ARGV[1]))";
  for (const std::string& text : texts) {
    INFO(text);
    const double number = std::strtod(text.c_str(), nullptr);
    const std::string_view bytes(reinterpret_cast<const char*>(&number), sizeof number);
    const std::string decoded = lua.eval(kDecode, text);
    if (std::isnan(number)) {
      CHECK(decoded.size() == bulk(bytes).size());
    } else {
      REQUIRE(decoded == bulk(bytes));
    }
  }
}

TEST_CASE("JSON that is none is an error that says where") {
  Libraries lua;
  struct Bad {
    std::string_view text;
    std::string_view problem;
  };
  constexpr Bad kBad[] = {
      {"", "Expected value but found T_END at character 1"},
      {"[1,]", "Expected value but found T_ARR_END at character 4"},
      {"[1", "Expected comma or array end but found T_END at character 3"},
      {"{1:1}", "Expected object key string but found T_NUMBER at character 2"},
      {"{\"a\"}", "Expected colon but found T_OBJ_END at character 5"},
      {"{\"a\":1 2}", "Expected comma or object end but found T_NUMBER at character 8"},
      {"1 2", "Expected the end but found T_NUMBER at character 3"},
      {"\"abc", "Expected value but found unexpected end of string at character 5"},
      {"[\"\\q\"]", "Expected value but found invalid escape code at character 3"},
      {"\"\\ud83d\"", "Expected value but found invalid unicode escape code at character 2"},
      {"\"\\ude00\"", "Expected value but found invalid unicode escape code at character 2"},
      {"\"\\u12", "Expected value but found invalid unicode escape code at character 2"},
      {"nul", "Expected value but found invalid token at character 1"},
      {"{{", "Expected object key string but found T_OBJ_BEGIN at character 2"},
      {"{[", "Expected object key string but found T_ARR_BEGIN at character 2"},
      {"{true", "Expected object key string but found T_BOOLEAN at character 2"},
      {"{null", "Expected object key string but found T_NULL at character 2"},
      {"{:", "Expected object key string but found T_COLON at character 2"},
      {"{,", "Expected object key string but found T_COMMA at character 2"},
      {"[1 \"a\"]", "Expected comma or array end but found T_STRING at character 4"},
      {"-", "Expected value but found invalid number at character 1"},
      {std::string_view("\0a", 2), "JSON parser does not support UTF-16 or UTF-32"},
  };
  for (const Bad& bad : kBad) {
    INFO(bad.text);
    CHECK(lua.eval("return select(2, pcall(cjson.decode, ARGV[1]))", bad.text) ==
          bulk(bad.problem));
  }
  CHECK(lua.eval("return select(2, pcall(cjson.decode, string.rep('[', 1e6)))") ==
        bulk("Found too many nested data structures (1001) at character 1001"));
  CHECK(lua.eval("cjson.decode_max_depth(2^31 - 1) "
                 "return (pcall(cjson.decode, string.rep('[', 1e6)))") == kNull);
}

TEST_CASE("Arrays of JSON stay arrays where they are marked") {
  Libraries lua;
  const std::string again = "return cjson.encode(cjson.decode(ARGV[1]))";
  CHECK(lua.eval(again, "{\"item\":[]}") == bulk("{\"item\":{}}"));
  CHECK(lua.eval("return {cjson.decode_array_with_array_mt(true) and 'on', "
                 "cjson.decode_array_with_array_mt() and 'on'}") == bulks({"on", "on"}));
  CHECK(lua.eval(again, "{\"item\":[]}") == bulk("{\"item\":[]}"));
  CHECK(lua.eval("local t = cjson.decode('[1,2]') t[1] = nil t[2] = nil return cjson.encode(t)") ==
        bulk("[]"));
  CHECK(lua.eval("local t = cjson.decode('[1,2,3]') t[1] = nil t.x = 1 return cjson.encode(t)") ==
        bulk("[null,2,3]"));
  CHECK(lua.eval("return cjson.encode(cjson.decode('{}'))") == bulk("{}"));
  // Each library has the setting for itself, and all know the mark.
  CHECK(lua.eval("return cjson.encode(cjson.new().decode('[]'))") == bulk("{}"));
  CHECK(lua.eval("return cjson.new().encode(cjson.decode('[]'))") == bulk("[]"));
  CHECK(
      lua.eval("cjson.decode_array_with_array_mt(false) return cjson.encode(cjson.decode('[]'))") ==
      bulk("{}"));
  CHECK(lua.error_of("cjson.decode_array_with_array_mt(true, 1)") ==
        raised("bad argument #2 to 'decode_array_with_array_mt' (found too many arguments)"));
}

TEST_CASE("The mark of arrays is a metatable that scripts can give and cannot change") {
  Libraries lua;
  lua.eval("cjson.decode_array_with_array_mt(true)");
  constexpr std::string_view kRefused = "Attempt to modify a readonly table";
  CHECK(
      lua.eval("return select(2, pcall(function() getmetatable(cjson.decode('[]')).x = 1 end))") ==
      raised(kRefused));
  CHECK(lua.eval("return select(2, pcall(rawset, getmetatable(cjson.decode('[]')), 'x', 1))") ==
        bulk(kRefused));
  CHECK(lua.eval("return getmetatable(cjson.decode('[]')).__is_cjson_array and 1") == integer(1));
  CHECK(lua.eval("local t = setmetatable({}, getmetatable(cjson.decode('[]'))) "
                 "return cjson.encode(t)") == bulk("[]"));
  CHECK(lua.eval("return cjson.encode(setmetatable({}, {__is_cjson_array = true}))") == bulk("[]"));
  CHECK(lua.eval("return cjson.encode(setmetatable({}, {__is_cjson_array = false}))") ==
        bulk("{}"));
  CHECK(lua.eval("local t = cjson.decode('[]') setmetatable(t, nil) return cjson.encode(t)") ==
        bulk("{}"));
}

TEST_CASE("The settings of a JSON library are its own") {
  Libraries lua;
  CHECK(lua.eval("local mine = cjson.new() mine.encode_number_precision(3) "
                 "return {mine.encode(1/3), cjson.encode(1/3)}") ==
        bulks({"0.333", "0.33333333333333"}));
  CHECK(lua.eval("return {cjson.encode_sparse_array()}") ==
        array({std::string(kNull), integer(2), integer(10)}));
  CHECK(lua.eval("local mine = cjson.new() mine.encode_sparse_array(true) "
                 "return mine.encode({[30] = 1})") == bulk("{\"30\":1}"));
  CHECK(lua.eval("local mine = cjson.new() mine.encode_invalid_numbers('null') "
                 "return mine.encode({1/0})") == bulk("[null]"));
  CHECK(lua.eval("local mine = cjson.new() mine.decode_invalid_numbers(false) "
                 "return select(2, pcall(mine.decode, '[0x10]'))") ==
        bulk("Expected value but found invalid number at character 2"));
  CHECK(
      lua.error_of("cjson.encode_max_depth(0)") ==
      raised("bad argument #1 to 'encode_max_depth' (expected integer between 1 and 2147483647)"));
}

TEST_CASE("Libraries cannot be changed") {
  Libraries lua;
  for (const char* name : {"cjson", "cmsgpack", "struct", "bit"}) {
    CHECK(lua.eval("return select(2, pcall(function() " + std::string(name) + ".x = 1 end))") ==
          raised("Attempt to modify a readonly table"));
  }
}

// --- cmsgpack -----------------------------------------------------------------------------------

TEST_CASE("Lua values take their shortest form in MessagePack") {
  Libraries lua;
  const auto pack = [&](const std::string& values) {
    return lua.eval("return cmsgpack.pack(" + values + ")");
  };
  using namespace std::string_literals;
  CHECK(pack("0, 127, -1, -32") == bulk("\x00\x7f\xff\xe0"s));
  CHECK(pack("128, 255, 256") == bulk("\xcc\x80\xcc\xff\xcd\x01\x00"s));
  CHECK(pack("65536, 2^32") == bulk("\xce\x00\x01\x00\x00\xcf\x00\x00\x00\x01\x00\x00\x00\x00"s));
  CHECK(pack("-33, -128, -129") == bulk("\xd0\xdf\xd0\x80\xd1\xff\x7f"s));
  CHECK(pack("-32769, -2^31 - 1") ==
        bulk("\xd2\xff\xff\x7f\xff\xd3\xff\xff\xff\xff\x7f\xff\xff\xff"s));
  CHECK(pack("1.5, 1.1") == bulk("\xca\x3f\xc0\x00\x00\xcb\x3f\xf1\x99\x99\x99\x99\x99\x9a"s));
  CHECK(pack("nil, true, false, pcall") == bulk("\xc0\xc3\xc2\xc0"s));
  CHECK(pack("'', 'abc'") == bulk("\xa0\xa3"s + "abc"));
  CHECK(pack("string.rep('a', 32)") == bulk("\xd9\x20"s + std::string(32, 'a')));
  CHECK(pack("string.rep('a', 256)") == bulk("\xda\x01\x00"s + std::string(256, 'a')));
  CHECK(pack("{}, {1, 2}, {a = 1}, {[2] = 1}") ==
        bulk("\x90\x92\x01\x02\x81\xa1"s + "a\x01\x81\x02\x01"));
  CHECK(lua.eval("local t = {} t[1] = t return cmsgpack.pack(t)") ==
        bulk(std::string(16, '\x91') + "\xc0"));
}

TEST_CASE("What is packed is unpacked") {
  Libraries lua;
  CHECK(lua.eval("local t = {1, -1, 300, -300, 1.25, 'x', {a = {b = {1, 2}}}, true, false, 2^40} "
                 "local u = cmsgpack.unpack(cmsgpack.pack(t)) "
                 "return cjson.encode(u)") ==
        bulk("[1,-1,300,-300,1.25,\"x\",{\"a\":{\"b\":[1,2]}},true,false,1099511627776]"));
  CHECK(lua.eval("return {cmsgpack.unpack('\\1\\2\\3')}") ==
        array({integer(1), integer(2), integer(3)}));
  CHECK(lua.eval("return {cmsgpack.unpack_one('\\1\\2\\3', 1)}") ==
        array({integer(2), integer(2)}));
  CHECK(lua.eval("return {cmsgpack.unpack_one('\\1\\2\\3', 2)}") ==
        array({integer(-1), integer(3)}));
  CHECK(lua.eval("return {cmsgpack.unpack_limit('\\1\\2\\3', 2)}") ==
        array({integer(2), integer(1), integer(2)}));
}

TEST_CASE("MessagePack that is none is an error") {
  Libraries lua;
  const auto problem = [&](const std::string& call) {
    return lua.eval("return select(2, pcall(cmsgpack." + call + "))");
  };
  const std::string missing = bulk("Missing bytes in input.");
  CHECK(problem("unpack, '\\205\\1'") == missing);
  CHECK(problem("unpack, '\\217\\3ab'") == missing);
  CHECK(problem("unpack, '\\219\\255\\255\\255\\255ab'") == missing);
  CHECK(problem("unpack, '\\221\\255\\255\\255\\255\\1'") == missing);
  CHECK(problem("unpack, '\\223\\255\\255\\255\\255\\1\\1'") == missing);
  CHECK(problem("unpack, '\\193'") == bulk("Bad data format in input."));
  CHECK(problem("unpack, '\\129\\192\\1'") == bulk("table index is nil"));
  CHECK(problem("unpack_one, 'a', 2") == bulk("Start offset 2 greater than input length 1."));
  CHECK(problem("unpack_one, 'a', -1") ==
        bulk("Invalid request to unpack with offset of -1 and limit of 1."));
  CHECK(problem("unpack, string.rep('\\145', 1e6)") ==
        bulk("stack overflow (in function mp_decode_to_lua_array)"));
  CHECK(problem("unpack, string.rep('\\1', 1e6)") ==
        bulk("stack overflow (too many return values at once; use unpack_one or unpack_limit "
             "instead.)"));
}

// --- struct -------------------------------------------------------------------------------------

TEST_CASE("struct lays numbers and strings out as its format says") {
  Libraries lua;
  const auto pack = [&](const std::string& values) {
    return lua.eval("return struct.pack(" + values + ")");
  };
  using namespace std::string_literals;
  CHECK(pack("'bhi', 1, 2, 3") == bulk("\1\2\0\3\0\0\0"s));
  CHECK(pack("'>bhi', 1, 2, 3") == bulk("\1\0\2\0\0\0\3"s));
  CHECK(pack("'>I3<I3', 0x123456, 0x123456") == bulk("\x12\x34\x56\x56\x34\x12"s));
  CHECK(pack("'!bi', 1, 2") == bulk("\1\0\0\0\2\0\0\0"s));
  CHECK(pack("'!2bi', 1, 2") == bulk("\1\0\2\0\0\0"s));
  CHECK(pack("'sc2c0x', 'ab', 'cde', 'fg'") == bulk("ab\0cdfg\0"s));
  CHECK(pack("'>fd', 1.5, 1.5") == bulk("\x3f\xc0\0\0\x3f\xf8\0\0\0\0\0\0"s));
  CHECK(pack("'>i16', -5") == bulk(std::string(8, '\0') + std::string(7, '\xff') + "\xfb"));
  CHECK(lua.eval("return {struct.size('!bhi'), struct.size('>I3c5'), struct.size('d')}") ==
        array({integer(8), integer(8), integer(8)}));
}

TEST_CASE("struct.size counts characters of a fixed number only") {
  Libraries lua;
  CHECK(lua.eval("return {struct.size('c1'), struct.size('c2'), struct.size('bc1b')}") ==
        array({integer(1), integer(2), integer(3)}));
  CHECK(lua.eval("return select(2, pcall(struct.size, 'c0'))") ==
        bulk("bad argument #1 to '?' (option 'c0' has no fixed size)"));
  CHECK(lua.eval("return select(2, pcall(struct.size, 'bc0'))") ==
        bulk("bad argument #1 to '?' (option 'c0' has no fixed size)"));
  CHECK(lua.eval("return {struct.size('x'), struct.size('')}") == array({integer(1), integer(0)}));
}

TEST_CASE("struct reads what it wrote") {
  Libraries lua;
  CHECK(lua.eval("return {struct.unpack('>bhI3sc2', struct.pack('>bhI3sc2', -1, -2, 70000, 'xy', "
                 "'zz'))}") ==
        array({integer(-1), integer(-2), integer(70000), bulk("xy"), bulk("zz"), integer(12)}));
  CHECK(lua.eval("return {struct.unpack('bc0', '\\2abc')}") == array({bulk("ab"), integer(4)}));
  CHECK(lua.eval("return {struct.unpack('b', 'abc', 3)}") == array({integer('c'), integer(4)}));
}

TEST_CASE("struct refuses formats and bytes that do not fit") {
  Libraries lua;
  const auto problem = [&](const std::string& call) {
    return lua.eval("return select(2, pcall(struct." + call + "))");
  };
  const std::string too_short = bulk("bad argument #2 to '?' (data string too short)");
  CHECK(problem("unpack, 'i', 'abc'") == too_short);
  CHECK(problem("unpack, 'b', 'abc', 4") == too_short);
  CHECK(problem("unpack, 'b', 'abc', -1") == too_short);
  CHECK(problem("unpack, 'b', 'abc', 2^63") == too_short);
  CHECK(problem("unpack, 'c2147483647', 'abc'") == too_short);
  CHECK(problem("unpack, 'bc0', '\\255abc'") == too_short);
  CHECK(problem("unpack, 's', 'abc'") == bulk("unfinished string in data"));
  CHECK(problem("unpack, 'c0', '3'") == bulk("format 'c0' needs a previous size"));
  CHECK(problem("unpack, string.rep('b', 9000), string.rep('b', 9000)") ==
        bulk("stack overflow (too many results)"));
  CHECK(problem("pack, 'i33', 1") == bulk("integral size 33 is larger than limit of 32"));
  CHECK(problem("pack, 'i4294967297', 1") == bulk("integral size overflow"));
  CHECK(problem("pack, '!3i', 1") == bulk("alignment 3 is not a power of 2"));
  CHECK(problem("pack, 'z', 1") == bulk("bad argument #1 to '?' (invalid format option 'z')"));
  CHECK(problem("pack, 'i'") == bulk("bad argument #2 to '?' (number expected, got nil)"));
  CHECK(problem("size, '='") == bulk("bad argument #1 to '?' (invalid format option '=')"));
  CHECK(problem("size, 's'") == bulk("bad argument #1 to '?' (option 's' has no fixed size)"));
}

TEST_CASE("Tables with keys of every kind are packed and come back as they were") {
  Libraries lua;
  CHECK(
      lua.eval("local t = {[true] = 'yes', [false] = 'no'} "
               "for i = 1, 300 do t['a rather long key ' .. i] = i t[i + 0.5] = i t['k' .. i] = i "
               "end local u = cmsgpack.unpack(cmsgpack.pack(t)) local wrong = 0 "
               "for k, v in pairs(t) do if u[k] ~= v then wrong = wrong + 1 end end "
               "for k, v in pairs(u) do if t[k] ~= v then wrong = wrong + 1 end end "
               "return {wrong, u[true], u[false], u[1.5]}") ==
      array({integer(0), bulk("yes"), bulk("no"), integer(1)}));
  CHECK(lua.eval("return select(2, pcall(cmsgpack.unpack, "
                 "'\\129\\203\\127\\248\\0\\0\\0\\0\\0\\0\\1'))") == bulk("table index is NaN"));
  CHECK(lua.eval("return select(2, pcall(cmsgpack.unpack, '\\129\\192\\1'))") ==
        bulk("table index is nil"));
}

#if defined(__x86_64__)
TEST_CASE("struct writes numbers that 64 bits do not hold as the processor converts them") {
  Libraries lua;
  CHECK(lua.eval("return struct.pack('>I8', 2^63)") ==
        bulk(std::string_view("\x80\0\0\0\0\0\0\0", 8)));
  CHECK(lua.eval("return struct.pack('>I8', 2^64)") ==
        bulk(std::string_view("\0\0\0\0\0\0\0\0", 8)));
  CHECK(lua.eval("return struct.pack('>I8', 2^64 - 2048)") ==
        bulk(std::string_view("\xff\xff\xff\xff\xff\xff\xf8\0", 8)));
  CHECK(lua.eval("return struct.pack('>i8', -2^63)") ==
        bulk(std::string_view("\x80\0\0\0\0\0\0\0", 8)));
  CHECK(lua.eval("return struct.pack('>i8', -1)") ==
        bulk(std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff", 8)));
}
#endif
