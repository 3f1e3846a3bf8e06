#include "store/encoding/listpack.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "unit/catch.h"

using latchkey::store::Listpack;

namespace {

std::string raw(const Listpack& listpack) {
  return {listpack.bytes().data(), listpack.bytes().size()};
}

std::vector<std::string> contents(const Listpack& listpack) {
  std::vector<std::string> all;
  char scratch[Listpack::kScratch];
  for (auto at = listpack.first(); at != Listpack::kNone; at = listpack.next(at))
    all.emplace_back(listpack.get(at).text(scratch));
  return all;
}

Listpack of(const std::vector<std::string>& elements) {
  Listpack listpack;
  for (const std::string& element : elements) listpack.append(std::string_view(element));
  return listpack;
}

// The bytes of a listpack's only element, with its backward length.
std::string bytes_of(std::string_view text) {
  Listpack listpack;
  listpack.append(text);
  const std::string all = raw(listpack);
  return all.substr(6, all.size() - 7);
}

using List = std::vector<std::string>;

std::string operator""_b(const char* text, size_t size) {
  return {text, size};
}

}  // namespace

TEST_CASE("An empty listpack is a header and an end") {
  const Listpack listpack;
  CHECK(raw(listpack) == "\x07\x00\x00\x00\x00\x00\xff"_b);
  CHECK(listpack.empty());
  CHECK(listpack.first() == Listpack::kNone);
  CHECK(listpack.last() == Listpack::kNone);
  CHECK(listpack.at(0) == Listpack::kNone);
  CHECK(listpack.at(-1) == Listpack::kNone);
}

TEST_CASE("A listpack writes each integer in its narrowest form") {
  CHECK(bytes_of("0") == "\x00\x01"_b);
  CHECK(bytes_of("127") == "\x7f\x01"_b);
  CHECK(bytes_of("128") == "\xc0\x80\x02"_b);
  CHECK(bytes_of("-1") == "\xdf\xff\x02"_b);
  CHECK(bytes_of("4095") == "\xcf\xff\x02"_b);
  CHECK(bytes_of("-4096") == "\xd0\x00\x02"_b);
  CHECK(bytes_of("4096") == "\xf1\x00\x10\x03"_b);
  CHECK(bytes_of("-32768") == "\xf1\x00\x80\x03"_b);
  CHECK(bytes_of("32768") == "\xf2\x00\x80\x00\x04"_b);
  CHECK(bytes_of("-8388608") == "\xf2\x00\x00\x80\x04"_b);
  CHECK(bytes_of("8388608") == "\xf3\x00\x00\x80\x00\x05"_b);
  CHECK(bytes_of("2147483648") == "\xf4\x00\x00\x00\x80\x00\x00\x00\x00\x09"_b);
}

TEST_CASE("A listpack writes text that is no canonical integer as a string") {
  CHECK(bytes_of("") == "\x80\x01"_b);
  CHECK(bytes_of("abc") ==
        "\x83"
        "abc\x04"_b);
  CHECK(bytes_of("-0") == "\x82-0\x03"_b);
  CHECK(bytes_of("007") ==
        "\x83"
        "007\x04"_b);
  CHECK(bytes_of(std::string(64, 'x')).substr(0, 2) == "\xe0\x40"_b);
  CHECK(bytes_of(std::string(4095, 'x')).substr(0, 2) == "\xef\xff"_b);
  CHECK(bytes_of(std::string(4096, 'x')).substr(0, 5) == "\xf0\x00\x10\x00\x00"_b);
}

TEST_CASE("A listpack's backward length grows at the format's bounds") {
  // 126 bytes of text and two of head make 128.
  CHECK(bytes_of(std::string(125, 'x')).substr(127) == "\x7f"_b);
  CHECK(bytes_of(std::string(126, 'x')).substr(128) == "\x01\x80"_b);
  CHECK(bytes_of(std::string(16377, 'x')).substr(16382) == "\x7f\xfe"_b);
  CHECK(bytes_of(std::string(16378, 'x')).substr(16383) == "\x00\xff\xff"_b);
}

TEST_CASE("A listpack is walked both ways over elements of every form") {
  const List elements = {"0",          "",
                         "-5",         "9000",
                         "-70000",     "99999999",
                         "-123456789", "9223372036854775807",
                         "text",       std::string(100, 'a'),
                         "1.5",        std::string(20000, 'b'),
                         "end",        std::string(3000000, 'c')};
  const Listpack listpack = of(elements);
  CHECK(listpack.size() == elements.size());
  CHECK(contents(listpack) == elements);
  CHECK(Listpack::is_valid(listpack.bytes()));

  List backward;
  char scratch[Listpack::kScratch];
  for (auto at = listpack.last(); at != Listpack::kNone; at = listpack.previous(at))
    backward.insert(backward.begin(), std::string(listpack.get(at).text(scratch)));
  CHECK(backward == elements);

  const auto count = static_cast<int64_t>(elements.size());
  for (int64_t i = 0; i < count; ++i) {
    CHECK(listpack.get(listpack.at(i)).equals(elements[static_cast<size_t>(i)]));
    CHECK(listpack.at(i) == listpack.at(i - count));
  }
  CHECK(listpack.at(count) == Listpack::kNone);
  CHECK(listpack.at(-count - 1) == Listpack::kNone);
}

TEST_CASE("A listpack finds integers by number and strings by bytes") {
  const Listpack listpack = of({"a", "1", "12", "a", "-7", "text", "1.0"});
  const auto first = listpack.first();
  CHECK(listpack.find("a", first) == listpack.at(0));
  CHECK(listpack.find("-7", first) == listpack.at(4));
  CHECK(listpack.find("1.0", first) == listpack.at(6));
  CHECK(listpack.find("tex", first) == Listpack::kNone);
  CHECK(listpack.find("01", first) == Listpack::kNone);
  SECTION("from a position on, and passing others over") {
    CHECK(listpack.find("a", listpack.at(1)) == listpack.at(3));
    CHECK(listpack.find("1", first, 1) == Listpack::kNone);
    CHECK(listpack.find("12", first, 1) == listpack.at(2));
    CHECK(listpack.find("a", Listpack::kNone) == Listpack::kNone);
  }
  SECTION("and a number that another writer has stored as a string") {
    const std::string foreign =
        "\x0a\x00\x00\x00\x01\x00\x81"
        "5\x02\xff"_b;
    REQUIRE(Listpack::is_valid(foreign));
    const Listpack other = Listpack::from_bytes(foreign);
    CHECK(other.find("5", other.first()) == other.first());
  }
}

TEST_CASE("A listpack is changed at its ends, within and in place") {
  Listpack listpack = of({"b", "d"});
  listpack.prepend("a");
  listpack.append(int64_t{5});
  CHECK(listpack.insert_before(listpack.at(2), "c") == listpack.at(2));
  CHECK(contents(listpack) == List{"a", "b", "c", "d", "5"});
  listpack.replace(listpack.at(1), std::string(500, 'z'));
  listpack.replace(listpack.at(4), int64_t{1000000});
  CHECK(contents(listpack) == List{"a", std::string(500, 'z'), "c", "d", "1000000"});
  CHECK(listpack.erase(listpack.at(1)) == listpack.at(1));
  CHECK(listpack.erase(listpack.at(2), 9) == Listpack::kNone);
  CHECK(contents(listpack) == List{"a", "c"});
  CHECK(listpack.size() == 2);
  CHECK(Listpack::is_valid(listpack.bytes()));
  listpack.clear();
  CHECK(listpack.empty());
}

TEST_CASE("A listpack is divided and joined") {
  Listpack head = of({"a", "b", "c", "d"});
  Listpack tail = head.split(head.at(1));
  CHECK(contents(head) == List{"a"});
  CHECK(contents(tail) == List{"b", "c", "d"});
  head.append_range(tail, tail.at(1));
  CHECK(contents(head) == List{"a", "c", "d"});
  CHECK(head.size() == 3);
  CHECK(head.split(Listpack::kNone).empty());
  CHECK(Listpack::is_valid(head.bytes()));
}

TEST_CASE("A listpack counts beyond what its header holds") {
  Listpack listpack;
  for (int64_t i = 0; i < 65600; ++i) listpack.append(i);
  CHECK(listpack.size() == 65600);
  CHECK(listpack.get(listpack.at(65599)).integer == 65599);
  CHECK(listpack.get(listpack.at(-1)).integer == 65599);
  CHECK(Listpack::is_valid(listpack.bytes()));
  listpack.erase(listpack.first(), 100);
  CHECK(listpack.size() == 65500);
  CHECK(raw(listpack).substr(4, 2) == "\xdc\xff"_b);
}

TEST_CASE("A listpack tells the bytes that an element will take") {
  for (const std::string& text : {std::string("5"), std::string(), std::string("-3000"),
                                  std::string(63, 'x'), std::string(5000, 'x')}) {
    Listpack listpack;
    listpack.append(std::string_view(text));
    CHECK(listpack.byte_size() == 7 + Listpack::encoded_size(text));
  }
}

TEST_CASE("A copy of a listpack is independent of it") {
  Listpack original = of({"a"});
  Listpack copy(original);
  copy.append("b");
  CHECK(contents(original) == List{"a"});
  original = copy;
  copy.clear();
  CHECK(contents(original) == List{"a", "b"});
}

TEST_CASE("Bytes that are no listpack are refused") {
  const std::string good = raw(of({"a", "300", std::string(70, 'x'), std::string(5000, 'y')}));
  REQUIRE(Listpack::is_valid(good));
  CHECK(raw(Listpack::from_bytes(good)) == good);

  SECTION("cut anywhere") {
    for (size_t size = 0; size < good.size(); ++size) {
      std::string cut = good.substr(0, size);
      CHECK_FALSE(Listpack::is_valid(cut));
      if (size < 7) continue;
      cut[0] = static_cast<char>(size);
      cut[1] = static_cast<char>(size >> 8);
      cut[size - 1] = '\xff';
      CHECK_FALSE(Listpack::is_valid(cut));
    }
  }
  SECTION("with another count") {
    std::string bytes = good;
    ++bytes[4];
    CHECK_FALSE(Listpack::is_valid(bytes));
  }
  SECTION("with a wrong way back") {
    std::string bytes = good;
    ++bytes[8];
    CHECK_FALSE(Listpack::is_valid(bytes));
  }
  SECTION("with an unknown encoding") {
    CHECK_FALSE(Listpack::is_valid("\x09\x00\x00\x00\x01\x00\xf5\x01\xff"_b));
  }
  SECTION("with an end before the end") {
    CHECK_FALSE(Listpack::is_valid("\x08\x00\x00\x00\x00\x00\xff\xff"_b));
  }
}
