#include <cmath>
#include <string>

#include "base/random.h"
#include "store/json/json_cbor.h"
#include "store/json/json_parser.h"
#include "store/json/json_precision.h"
#include "store/json/json_writer.h"
#include "unit/catch.h"

namespace latchkey::tests {

namespace {

using store::json::Layout;
using store::json::Node;
using store::json::parse;
using store::json::Precision;
using store::json::written;

constexpr size_t kDepth = 10;

// Read and written again, or the error.
std::string round_trip(std::string_view text) {
  const auto parsed = parse(text, kDepth, 1);
  return parsed ? written(parsed->root) : parsed.error();
}

std::string from_hex(std::string_view digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  return bytes;
}

std::string cbor(std::string_view digits) {
  const auto root = store::json::parse_cbor(from_hex(digits), kDepth, 1);
  return root ? written(*root) : root.error();
}

}  // namespace

TEST_CASE("JSON text is read and written", "[json]") {
  CHECK(round_trip(R"( { "a" : [ 1 , -2.50 , true , null ] } )") == R"({"a":[1,-2.5,true,null]})");
  CHECK(round_trip(R"("A\n\/\"\u001f\ud83d\ude00")") == "\"A\\n/\\\"\\u001f\U0001f600\"");
  // The first and the last code of each length.
  CHECK(round_trip(R"("\u007f\u0080\u07ff\u0800\uffff\ud800\udc00\udbff\udfff")") ==
        "\"\x7f\u0080\u07ff\u0800\uffff\U00010000\U0010ffff\"");
  CHECK(round_trip("-0") == "-0.0");
  CHECK(round_trip("18446744073709551616") == "1.8446744073709552e19");
  CHECK(round_trip("1e16") == "1e16");
  CHECK(round_trip("1e15") == "1000000000000000.0");
  CHECK(round_trip("0.00001") == "0.00001");
  CHECK(round_trip("0.000001") == "1e-6");
}

TEST_CASE("Escapes are found and made at every place of a string", "[json]") {
  constexpr std::string_view kEscapes[] = {R"(\")", R"(\\)", R"(\n)", R"(\u0000)", R"(\u001f)"};
  for (size_t size = 0; size < 30; ++size) {
    for (size_t at = 0; at <= size; ++at) {
      for (const std::string_view escape : kEscapes) {
        // Beside bytes that differ from those by a bit or a sign.
        std::string text(size, ' ');
        for (size_t i = 0; i < size; ++i) text[i] = "! #[]\x7f/"[i % 7];
        text.insert(at, escape);
        const std::string quoted = '"' + text + '"';
        CHECK(round_trip(quoted) == quoted);
        const std::string with_others = "\"\u00df" + text + "\U0001f600\"";
        CHECK(round_trip(with_others) == with_others);
      }
    }
  }
}

TEST_CASE("Text longer than the writer's buffer is written in order", "[json]") {
  for (size_t size = 2040; size < 2060; ++size) {
    const std::string text = "[\"" + std::string(size, 'a') +
                             "\\n\",1234567890123456789,-1.5e-300,{\"" +
                             std::string(2 * size, 'b') + "\":null}]";
    CHECK(round_trip(text) == text);
    std::string out = "before";
    store::json::write(parse(text, kDepth, 1)->root, Layout{}, &out);
    CHECK(out == "before" + text);
  }
}

TEST_CASE("Errors of JSON text have the line and the column", "[json]") {
  CHECK(round_trip("") == "EOF while parsing a value at line 1 column 0");
  CHECK(round_trip("[1,\n 2,,3]") == "expected value at line 2 column 4");
  CHECK(round_trip("[1 2]") == "expected `,` or `]` at line 1 column 4");
  CHECK(round_trip(R"({"a":1,})") == "trailing comma at line 1 column 8");
  CHECK(round_trip("1e999") == "number out of range at line 1 column 5");
  CHECK(round_trip("\"a\nb\"") ==
        "control character (\\u0000-\\u001F) found while parsing a string at line 2 column 0");
}

TEST_CASE("JSON text is read up to a depth", "[json]") {
  const auto nested = [](size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  CHECK(round_trip(nested(kDepth)) == nested(kDepth));
  CHECK(round_trip(nested(kDepth + 1)) == "recursion limit exceeded at line 1 column 11");
  CHECK(round_trip(std::string(1'000'000, '[')) == "recursion limit exceeded at line 1 column 11");
  CHECK(parse("[1,[2,{\"a\":3}]]", kDepth, 1)->depth == 3);
}

TEST_CASE("Doubles are read back as they were written", "[json]") {
  base::Random random(3);
  for (int i = 0; i < 20'000; ++i) {
    const double value = std::bit_cast<double>(random.next());
    if (!std::isfinite(value)) continue;
    const auto parsed = parse(written(Node::number(value)), kDepth, 1);
    REQUIRE(parsed);
    REQUIRE(parsed->root.is_double());
    CHECK(std::bit_cast<uint64_t>(parsed->root.as_double()) == std::bit_cast<uint64_t>(value));
  }
}

TEST_CASE("Any JSON string is read back as it was written", "[json]") {
  base::Random random(4);
  for (int i = 0; i < 2000; ++i) {
    std::string text(random.below(40), ' ');
    for (char& c : text) c = static_cast<char>(random.below(128));
    const auto parsed = parse(written(Node::string(text)), kDepth, 1);
    REQUIRE(parsed);
    CHECK(parsed->root.text() == text);
  }
}

TEST_CASE("A layout stands between the parts of JSON text", "[json]") {
  const auto parsed = parse(R"({"a":[1,{}],"b":[]})", kDepth, 1);
  std::string text;
  store::json::write(parsed->root, {.indent = "--", .newline = "/", .space = " "}, &text);
  CHECK(text == R"({/--"a": [/----1,/----{}/--],/--"b": []/})");
}

TEST_CASE("UTF-8 is told from other bytes", "[json]") {
  using store::json::is_valid_utf8;
  CHECK(is_valid_utf8(""));
  CHECK(is_valid_utf8("eight bytes and more \u00e9\u20ac\U0001f600"));
  for (const char* bytes :
       {"\x80", "\xc0\x80", "\xc3", "\xe0\x80\x80", "\xe2\x82", "\xed\xa0\x80", "\xf0\x80\x80\x80",
        "\xf4\x90\x80\x80", "\xf5", "\xff", "eight or more and \xe2\x82"})
    CHECK(!is_valid_utf8(bytes));
  CHECK(is_valid_utf8("\xf4\x8f\xbf\xbf"));
}

TEST_CASE("Arrays of numbers are read with less precision", "[json]") {
  const auto read = [](std::string_view text, Precision precision) {
    const auto parsed = parse(text, kDepth, 1, precision);
    return parsed ? written(parsed->root) : parsed.error();
  };
  CHECK(read("[0.1,3]", Precision::kHalf) == "[0.1,3.0]");
  CHECK(read("[3.14159265]", Precision::kHalf) == "[3.14]");
  CHECK(read("[3.14159265]", Precision::kSingle) == "[3.1415927]");
  CHECK(read("[16777217]", Precision::kSingle) == "[16777216.0]");
  CHECK(read("[70000.5]", Precision::kBrain16) == "[70144.0]");
  CHECK(read("[1e-8]", Precision::kBrain16) == "[1e-8]");
  CHECK(read("[65519.9]", Precision::kHalf) == "[65504.0]");
  CHECK(read("[65520]", Precision::kHalf) == "value out of range for F16 at line 1 column 7");
  CHECK(read(R"({"a":0.1})", Precision::kHalf) == R"({"a":0.1})");
}

TEST_CASE("Sixteen bits are rounded to and read from", "[json]") {
  for (const Precision precision : {Precision::kHalf, Precision::kBrain16}) {
    for (uint32_t bits = 0; bits <= UINT16_MAX; ++bits) {
      const double value = store::json::from_16_bits(static_cast<uint16_t>(bits), precision);
      if (!std::isfinite(value)) continue;
      REQUIRE(store::json::rounded(value, precision) == value);
      const double decimal = store::json::shortest(value, precision);
      REQUIRE(store::json::rounded(decimal, precision) == value);
    }
  }
}

TEST_CASE("CBOR is read as the reference's dumps have it", "[json]") {
  CHECK(cbor("a26161d848430102036162a161636164") == R"({"a":[1,2,3],"b":{"c":"d"}})");
  CHECK(cbor("d8484201fe") == "[1,-2]");
  CHECK(cbor("d84d4401002c01") == "[1,300]");
  CHECK(cbor("d84e4801000000701101000000") == "trailing bytes");
  CHECK(cbor("d84e480100000070110100") == "[1,70000]");
  CHECK(cbor("82011bffffffffffffffff") == "[1,18446744073709551615]");
  CHECK(cbor("d85444003e0041") == "[1.5,2.5]");
  CHECK(cbor("d856509a9999999999b93f9a9999999999c93f") == "[0.1,0.2]");
  CHECK(cbor("d85544db0f4940") == "[3.1415927]");
  CHECK(cbor("da0001000042cd3d") == "[0.1]");
  CHECK(cbor("83f5f4f6") == "[true,false,null]");
  CHECK(cbor("8420386339012c02") == "[-1,-100,-301,2]");
  CHECK(cbor("3b7fffffffffffffff") == "-9223372036854775808");
  CHECK(cbor("fb7e37e43c8800759c") == "1e300");
  CHECK(cbor("f98000") == "-0.0");
}

TEST_CASE("Damaged CBOR is refused", "[json]") {
  for (const char* bytes : {"",
                            "d8",
                            "82",
                            "8201",
                            "9bffffffffffffffff",
                            "bbffffffffffffffff",
                            "7bffffffffffffffff",
                            "d85bffffffffffffffff",
                            "3bffffffffffffffff",
                            "d854417b",
                            "d84d4101",
                            "a10101",
                            "a16161",
                            "6161ff",
                            "61ff",
                            "0000",
                            "f97c00",
                            "fa7f800000",
                            "fb7ff8000000000000",
                            "9fff",
                            "1c",
                            "f7",
                            "4161",
                            "c100",
                            "d8634100",
                            "8181818181818181818181818100"})
    CHECK(!store::json::parse_cbor(from_hex(bytes), kDepth, 1));
  // Every cut and every changed byte: nothing but an error or a value.
  const std::string whole = from_hex("a36161d8484301020361628361786461626364f561638201f9a200");
  for (size_t size = 0; size < whole.size(); ++size)
    CHECK(!store::json::parse_cbor(whole.substr(0, size), kDepth, 1));
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string changed = whole;
      changed[at] = static_cast<char>(byte);
      const auto root = store::json::parse_cbor(changed, kDepth, 1);
      if (root) CHECK(!written(*root).empty());
    }
  }
}

}  // namespace latchkey::tests
