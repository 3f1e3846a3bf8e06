#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "unit/catch.h"
#include "unit/commands/string_server.h"

namespace latchkey::tests {

namespace {
constexpr std::string_view kTooLong =
    "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n";

// A longest common subsequence by the textbook: where its bytes stand in both, from last to first.
std::vector<std::pair<size_t, size_t>> common_places(std::string_view first,
                                                     std::string_view second) {
  std::vector<std::vector<int>> length(first.size() + 1, std::vector<int>(second.size() + 1));
  for (size_t i = 1; i <= first.size(); ++i) {
    for (size_t j = 1; j <= second.size(); ++j) {
      length[i][j] = first[i - 1] == second[j - 1] ? length[i - 1][j - 1] + 1
                                                   : std::max(length[i - 1][j], length[i][j - 1]);
    }
  }
  std::vector<std::pair<size_t, size_t>> places;
  for (size_t i = first.size(), j = second.size(); i > 0 && j > 0;) {
    if (first[i - 1] == second[j - 1]) {
      places.emplace_back(--i, --j);
    } else {
      --(length[i - 1][j] > length[i][j - 1] ? i : j);
    }
  }
  return places;
}
}  // namespace

TEST_CASE("APPEND makes and lengthens strings, and keeps the deadline", "[strings]") {
  StringServer server;
  TestClient client(server);
  CHECK(client.run("APPEND name 12") == integer(2));
  CHECK(server.encoding("name") == "int");
  CHECK(client.run("APPEND name 3x") == integer(4));
  CHECK(server.encoding("name") == "raw");
  CHECK(client.run("GET name") == bulk("123x"));
  client.run("SET name a EX 10");
  CHECK(client.run("APPEND name ") == integer(1));
  CHECK(client.run("APPEND name b") == integer(2));
  CHECK(server.ttl_ms("name") == 10'000);
  CHECK(client.run("APPEND empty ") == integer(0));
  CHECK(client.run("GET empty") == bulk(""));
  server.put_list("list");
  CHECK(client.run("APPEND list a") == kWrongType);
  CHECK(server.events() ==
        "append name, append name, set name, expire name, append name, append name, append empty");
}

TEST_CASE("APPEND leaves alone what is still on its way to a client", "[strings]") {
  StringServer server;
  TestClient client(server);
  const std::string large(100'000, 'x');
  client.run_words({"SET", "name", large});
  (*client).out().clear();
  const std::string reply =
      client.send("GET name\r\nAPPEND name y\r\nSETRANGE name 0 z\r\nGET name\r\n");
  std::string changed = large + "y";
  changed[0] = 'z';
  CHECK(reply == bulk(large) + integer(100'001) + integer(100'001) + bulk(changed));
}

TEST_CASE("Many small appends add up", "[strings]") {
  StringServer server;
  TestClient client(server);
  base::Random random(1);
  std::string expected;
  for (int i = 0; i < 2000; ++i) {
    const std::string piece(random.below(30), static_cast<char>('a' + random.below(26)));
    expected += piece;
    REQUIRE(client.run_words({"APPEND", "name", piece}) ==
            integer(static_cast<int64_t>(expected.size())));
  }
  CHECK(client.run("GET name") == bulk(expected));
}

TEST_CASE("Strings grow to proto-max-bulk-len and no further", "[strings]") {
  StringServer server("proto-max-bulk-len 1mb");
  TestClient client(server);
  const std::string full(1'048'576, 'x');
  client.run_words({"SET", "name", full.substr(1)});
  CHECK(client.run("APPEND name ab") == kTooLong);
  CHECK(client.run("APPEND name a") == integer(1'048'576));
  CHECK(client.run("SETRANGE name 1048576 a") == kTooLong);
  CHECK(client.run("SETRANGE name 1048575 b") == integer(1'048'576));
  CHECK(client.run("SETRANGE none 1048575 ab") == kTooLong);
  CHECK(client.run("SETRANGE none 9223372036854775807 a") == kTooLong);
  CHECK(client.run("GET none") == kNull);
}

TEST_CASE("STRLEN counts bytes, of numbers too", "[strings]") {
  StringServer server;
  TestClient client(server);
  client.run_words({"MSET", "number", "-555", "text", std::string_view("a\0b", 3), "long",
                    std::string(1000, 'x')});
  CHECK(client.run("STRLEN number") == integer(4));
  CHECK(client.run("STRLEN text") == integer(3));
  CHECK(client.run("STRLEN long") == integer(1000));
  CHECK(client.run("STRLEN none") == integer(0));
  server.put_list("list");
  CHECK(client.run("STRLEN list") == kWrongType);
}

TEST_CASE("GETRANGE takes positions from either end", "[strings]") {
  StringServer server;
  TestClient client(server);
  client.run_words({"SET", "text", "Hello World"});
  client.run("SET number 1234");
  const auto range = [&](const std::string& arguments) {
    return client.run("GETRANGE " + arguments);
  };
  CHECK(range("text 0 3") == bulk("Hell"));
  CHECK(range("text 0 -1") == bulk("Hello World"));
  CHECK(range("text -4 -1") == bulk("orld"));
  CHECK(range("text 5 3") == bulk(""));
  CHECK(range("text 5 5000") == bulk(" World"));
  CHECK(range("text -5000 10000") == bulk("Hello World"));
  CHECK(range("text 0 -100") == bulk("H"));
  CHECK(range("text 1 -100") == bulk(""));
  CHECK(range("text -1 -100") == bulk(""));
  CHECK(range("text -100 -99") == bulk("H"));
  CHECK(range("text -100 -101") == bulk(""));
  CHECK(range("text -9223372036854775808 9223372036854775807") == bulk("Hello World"));
  CHECK(range("text 100 200") == bulk(""));
  CHECK(range("number 1 2") == bulk("23"));
  CHECK(range("none 0 -1") == bulk(""));
  CHECK(range("none a b") == error("ERR value is not an integer or out of range"));
  CHECK(client.run("SUBSTR text 0 3") == bulk("Hell"));
  client.run("SET empty ");
  CHECK(range("empty 0 -1") == bulk(""));
  CHECK(range("empty 0 0") == bulk(""));
  server.put_list("list");
  CHECK(range("list 0 1") == kWrongType);
}

TEST_CASE("SETRANGE overwrites, lengthens and fills with zeros", "[strings]") {
  StringServer server;
  TestClient client(server);
  CHECK(client.run("SETRANGE name 1 foo") == integer(4));
  CHECK(client.run("GET name") == bulk(std::string_view("\0foo", 4)));
  CHECK(client.run("SETRANGE name 0 b") == integer(4));
  CHECK(client.run("SETRANGE name 6 bar") == integer(9));
  CHECK(client.run("GET name") == bulk(std::string_view("bfoo\0\0bar", 9)));
  client.run("SET number 1234 EX 10");
  CHECK(client.run("SETRANGE number 0 2") == integer(4));
  CHECK(client.run("GET number") == bulk("2234"));
  CHECK(server.encoding("number") == "raw");
  CHECK(server.ttl_ms("number") == 10'000);
}

TEST_CASE("SETRANGE of nothing changes nothing", "[strings]") {
  StringServer server;
  TestClient client(server);
  client.run("SET number 1234");
  server.events();
  CHECK(client.run("SETRANGE number 0 ") == integer(4));
  CHECK(server.encoding("number") == "int");
  CHECK(client.run("SETRANGE number 9223372036854775807 ") == integer(4));
  CHECK(client.run("SETRANGE none 5 ") == integer(0));
  CHECK(client.run("GET none") == kNull);
  CHECK(server.events() == "");
}

TEST_CASE("SETRANGE refuses what it cannot do", "[strings]") {
  StringServer server;
  TestClient client(server);
  server.put_list("list");
  CHECK(client.run("SETRANGE list x a") == error("ERR value is not an integer or out of range"));
  CHECK(client.run("SETRANGE list -1 a") == error("ERR offset is out of range"));
  CHECK(client.run("SETRANGE list 0 ") == kWrongType);
}

TEST_CASE("LCS answers the subsequence, its length or where it lies", "[lcs]") {
  StringServer server;
  TestClient client(server);
  client.run("MSET a ohmytext b mynewtext");
  CHECK(client.run("LCS a b") == bulk("mytext"));
  CHECK(client.run("LCS a b LEN") == integer(6));
  const auto range = [](int64_t first, int64_t last) {
    return array({integer(first), integer(last)});
  };
  const std::string text = array({range(4, 7), range(5, 8)});
  const std::string my = array({range(2, 3), range(0, 1)});
  CHECK(client.run("LCS a b IDX") ==
        array({bulk("matches"), array({text, my}), bulk("len"), integer(6)}));
  CHECK(client.run("LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN") ==
        array({bulk("matches"), array({array({range(4, 7), range(5, 8), integer(4)})}), bulk("len"),
               integer(6)}));
  TestClient third(server, 3);
  CHECK(third.run("LCS a none IDX") ==
        "%2\r\n" + bulk("matches") + array({}) + bulk("len") + integer(0));
}

TEST_CASE("LCS of random strings finds what the textbook does", "[lcs]") {
  StringServer server;
  TestClient client(server);
  base::Random random(17);
  constexpr size_t kLengths[] = {1, 2, 63, 64, 65, 127, 128, 129, 200, 300};
  constexpr size_t kBytes[] = {1, 2, 4, 256};
  for (int i = 0; i < 400; ++i) {
    const auto any_text = [&] {
      std::string text(kLengths[random.below(std::size(kLengths))], '\0');
      const size_t bytes = kBytes[random.below(std::size(kBytes))];
      for (char& byte : text) byte = static_cast<char>(random.below(bytes));
      return text;
    };
    const std::string a = any_text();
    const std::string b = any_text();
    const auto places = common_places(a, b);
    client.run_words({"SET", "a", a});
    client.run_words({"SET", "b", b});
    std::string common;
    std::string runs;
    size_t count = 0;
    for (size_t at = 0; at < places.size(); ++at)
      common.insert(common.begin(), a[places[at].first]);
    for (size_t at = 0; at < places.size();) {
      size_t size = 1;
      while (at + size < places.size() && places[at + size].first + size == places[at].first &&
             places[at + size].second + size == places[at].second)
        ++size;
      const auto range = [size](size_t last) {
        return array(
            {integer(static_cast<int64_t>(last + 1 - size)), integer(static_cast<int64_t>(last))});
      };
      runs += array({range(places[at].first), range(places[at].second)});
      ++count;
      at += size;
    }
    const auto length = static_cast<int64_t>(places.size());
    CHECK(client.run("LCS a b") == bulk(common));
    CHECK(client.run("LCS a b LEN") == integer(length));
    CHECK(client.run("LCS a b IDX") ==
          array({bulk("matches"), "*" + std::to_string(count) + "\r\n" + runs, bulk("len"),
                 integer(length)}));
  }
}

TEST_CASE("LCS of numbers, of nothing and of what is no string", "[lcs]") {
  StringServer server;
  TestClient client(server);
  client.run("MSET a 12345 b 1359 empty ");
  CHECK(client.run("LCS a b") == bulk("135"));
  CHECK(client.run("LCS a a") == bulk("12345"));
  CHECK(client.run("LCS a empty") == bulk(""));
  CHECK(client.run("LCS none none LEN") == integer(0));
  server.put_list("list");
  CHECK(client.run("LCS list a") == error("ERR The specified keys must contain string values"));
  CHECK(client.run("LCS a list FOO") == error("ERR The specified keys must contain string values"));
}

TEST_CASE("LCS refuses contradictory options and what would take too much memory", "[lcs]") {
  StringServer server("proto-max-bulk-len 1mb");
  TestClient client(server);
  client.run("MSET a ohmytext b mynewtext");
  CHECK(client.run("LCS a b LEN IDX") ==
        error("ERR If you want both the length and indexes, please just use IDX."));
  CHECK(client.run("LCS a b FOO") == error("ERR syntax error"));
  CHECK(client.run("LCS a b MINMATCHLEN") == error("ERR syntax error"));
  CHECK(client.run("LCS a b MINMATCHLEN x") ==
        error("ERR value is not an integer or out of range"));
  CHECK(client.run("LCS a b MINMATCHLEN -5") == bulk("mytext"));
  client.run_words({"SET", "a", std::string(511, 'a')});
  client.run_words({"SET", "b", std::string(511, 'a')});
  CHECK(client.run("LCS a b LEN") == integer(511));
  client.run("APPEND b a");
  CHECK(client.run("LCS a b LEN") ==
        error("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"));
}

}  // namespace latchkey::tests
