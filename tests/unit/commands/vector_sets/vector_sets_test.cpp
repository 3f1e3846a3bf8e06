#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "commands/groups.h"
#include "persist/rows.h"
#include "unit/catch.h"
#include "unit/persist/rdb/rdb_bytes.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct VectorsFixture : ServerFixture {
  explicit VectorsFixture(std::string_view settings = {})
      : ServerFixture({commands::vector_set_rows(), commands::vector_search_rows(),
                       commands::key_rows(), commands::string_rows(), commands::object_rows(),
                       commands::database_rows(), commands::scan_rows(), commands::memory_rows(),
                       commands::transaction_rows(), persist::dump_rows()},
                      settings) {}
};

// The bytes of a reply that is a bulk string.
std::string payload(const std::string& reply) {
  const size_t start = reply.find("\r\n") + 2;
  return reply.substr(start, reply.size() - start - 2);
}

// What DUMP says of v, without version and checksum.
std::string dump_body(TestClient& client) {
  constexpr size_t kFooter = 10;
  std::string body = payload(client.run("DUMP v"));
  body.resize(body.size() - kFooter);
  return body;
}

std::string blob(const std::vector<float>& components) {
  return {reinterpret_cast<const char*>(components.data()), components.size() * sizeof(float)};
}

// The numbers among the reply's bulk strings. Their last digits depend on the order of a sum, and
// so on the processor.
std::vector<double> numbers(const std::string& reply) {
  std::vector<double> numbers;
  for (size_t at = reply.find('$'); at != std::string::npos; at = reply.find('$', at)) {
    at = reply.find("\r\n", at) + 2;
    double number;
    if (std::from_chars(reply.data() + at, reply.data() + reply.size(), number).ec == std::errc())
      numbers.push_back(number);
  }
  return numbers;
}

// Three directions in a plane, and one opposite.
void add_compass(TestClient& client, const std::string& options = {}) {
  client.run("VADD v VALUES 2 1 0 east" + options);
  client.run("VADD v VALUES 2 0 1 north" + options);
  client.run("VADD v VALUES 2 -1 0 west" + options);
  client.run("VADD v VALUES 2 1 1 between" + options);
}

}  // namespace

TEST_CASE("VADD tells whether the element is new, in the protocol's way", "[vectors]") {
  VectorsFixture server;
  TestClient client(server);
  CHECK(client.run("VADD v VALUES 2 1 2 a") == integer(1));
  CHECK(client.run("VADD v VALUES 2 2 1 a") == integer(0));
  CHECK(client.run_words({"VADD", "v", "FP32", blob({3, 4}), "b"}) == integer(1));
  CHECK(client.run("VCARD v") == integer(2));
  CHECK(client.run("VDIM v") == integer(2));
  CHECK(client.run("TYPE v") == status("vectorset"));
  CHECK(client.run("OBJECT ENCODING v") == bulk("raw"));
  CHECK(client.run("SCAN 0 TYPE vectorset") == "*2\r\n$1\r\n0\r\n" + bulks({"v"}));
  TestClient newer(server, 3);
  CHECK(newer.run("VADD v VALUES 2 1 2 c") == "#t\r\n");
  CHECK(newer.run("VADD v VALUES 2 1 2 c") == "#f\r\n");
  CHECK(newer.run("VREM v c") == "#t\r\n");
  CHECK(newer.run("VISMEMBER v c") == "#f\r\n");
}

TEST_CASE("VADD refuses vectors that are none, and creates no key", "[vectors]") {
  VectorsFixture server;
  TestClient client(server);
  const std::string invalid = error("ERR invalid vector specification");
  for (const char* words :
       {"VALUES 2 nan 1 e", "VALUES 2 inf 1 e", "VALUES 2 1 -inf e", "VALUES 2 1e39 1 e",
        "VALUES 2 1e999 1 e", "VALUES 2 x 1 e", "VALUES 0 e x", "VALUES -1 1 e", "VALUES x 1 e",
        "VALUES 3 1 2 e", "VALUES 99999999999 1 e", "FP32 12345 e x", "LIST 2 1 2 e",
        "REDUCE 0 VALUES 2 1 2 e", "REDUCE x VALUES 2 1 2 e", "REDUCE 3 VALUES 2 1 2 e"}) {
    INFO(words);
    CHECK(client.run(std::string("VADD v ") + words) == invalid);
  }
  CHECK(client.run_words({"VADD", "v", "FP32", blob({std::nanf(""), 1}), "e"}) == invalid);
  CHECK(client.run_words({"VADD", "v", "FP32", "", "e"}) == invalid);
  CHECK(client.run("VADD v VALUES 2 1 2") ==
        error("ERR wrong number of arguments for 'VADD' command"));
  CHECK(client.run("VADD v") == error("ERR wrong number of arguments for 'VADD' command"));
  for (const char* words : {"EF 0", "EF 1000001", "EF x"})
    CHECK(client.run(std::string("VADD v VALUES 1 1 e ") + words) == error("ERR invalid EF"));
  for (const char* words : {"M 3", "M 4097", "M x"})
    CHECK(client.run(std::string("VADD v VALUES 1 1 e ") + words) == error("ERR invalid M"));
  for (const char* words : {"EF", "SETATTR", "SOME"})
    CHECK(client.run(std::string("VADD v VALUES 1 1 e ") + words) ==
          error("ERR invalid option after element"));
  CHECK(client.run("EXISTS v") == integer(0));
}

TEST_CASE("VADD refuses projections whose matrix is much larger than the request", "[vectors]") {
  VectorsFixture server;
  TestClient client(server);
  const std::string vector = blob(std::vector<float>(16'384, 1));
  CHECK(client.run_words({"VADD", "v", "REDUCE", "16384", "FP32", vector, "e"}) ==
        error("ERR projection is too large"));
  CHECK(client.run_words({"VADD", "v", "REDUCE", "1025", "FP32", vector, "e"}) ==
        error("ERR projection is too large"));
  CHECK(client.run("EXISTS v") == integer(0));
  CHECK(client.run_words({"VADD", "v", "REDUCE", "16", "FP32", vector, "e"}) == integer(1));
}

TEST_CASE("VADD keeps to what the first element decided", "[vectors]") {
  VectorsFixture server;
  TestClient client(server);
  client.run("VADD v REDUCE 2 VALUES 3 1 2 3 a NOQUANT M 8");
  CHECK(client.run("VADD v REDUCE 2 VALUES 3 1 2 3 b M 8") ==
        error("ERR asked quantization mismatch with existing vector set"));
  CHECK(client.run("VADD v REDUCE 2 VALUES 3 1 2 3 b NOQUANT") ==
        error("ERR asked M value mismatch with existing vector set"));
  CHECK(client.run("VADD v VALUES 3 1 2 3 b NOQUANT M 8") ==
        error("ERR Vector dimension mismatch - got 3 but set has 2"));
  CHECK(client.run("VADD v REDUCE 2 VALUES 4 1 2 3 4 b NOQUANT M 8") ==
        error("ERR Input dimension mismatch for projection - got 4 but projection expects 3"));
  CHECK(client.run("VADD v VALUES 2 1 2 b NOQUANT M 8") ==
        error("ERR Vector dimension mismatch - got 2 but set has 2"));
  CHECK(client.run("VADD v REDUCE 2 VALUES 3 3 2 1 b NOQUANT M 8 CAS EF 10") == integer(1));
  CHECK(client.run("VDIM v") == integer(2));
  CHECK(client.run("VSIM v VALUES 3 3 2 1 COUNT 1") == bulks({"b"}));
  CHECK(client.run("VSIM v VALUES 4 3 2 1 0") ==
        error("ERR Input dimension mismatch for projection - got 4 but projection expects 3"));
  client.run("VADD plain VALUES 2 1 2 a");
  CHECK(client.run("VADD plain REDUCE 1 VALUES 2 1 2 b") ==
        error("ERR cannot add projection to existing set without projection"));
  CHECK(client.run("VADD plain REDUCE 2 VALUES 3 1 2 3 b") ==
        error("ERR Vector dimension mismatch - got 3 but set has 2"));
  CHECK(client.run("VADD plain VALUES 3 1 2 3 b") ==
        error("ERR Vector dimension mismatch - got 3 but set has 2"));
  CHECK(client.run_words({"VADD", "long", "FP32", std::string(4 * 65'537, 'x'), "e"}) ==
        error("ERR invalid vector specification"));
  client.run("SET s text");
  CHECK(client.run("VADD s VALUES 1 1 e") == kWrongType);
}

TEST_CASE("VSIM gives the most similar elements first", "[vectors]") {
  for (const std::string options : {"", " NOQUANT"}) {
    VectorsFixture server;
    TestClient client(server);
    add_compass(client, options);
    CHECK(client.run("VSIM v ELE north COUNT 2") == bulks({"north", "between"}));
    CHECK(client.run("VSIM v VALUES 2 -1 -0.2 COUNT 1") == bulks({"west"}));
    CHECK(client.run("VSIM v VALUES 2 1 -0.2 TRUTH") == client.run("VSIM v VALUES 2 1 -0.2 EF 7"));
  }
  VectorsFixture server;
  TestClient client(server);
  client.run("VADD v VALUES 4 1 1 1 1 all BIN");
  client.run("VADD v VALUES 4 1 1 -1 -1 half BIN");
  client.run("VADD v VALUES 4 -1 -1 -1 -1 none BIN");
  CHECK(client.run("VSIM v VALUES 4 9 8 7 6 WITHSCORES NOTHREAD") ==
        bulks({"all", "1", "half", "0.5", "none", "0"}));
}

TEST_CASE("VSIM shows scores and attributes as each protocol has them", "[vectors]") {
  VectorsFixture server;
  TestClient client(server);
  add_compass(client);
  client.run("VSETATTR v east {}");
  CHECK(client.run("VSIM v VALUES 2 1 0 WITHSCORES EPSILON 0.6") ==
        bulks({"east", "1", "between", "0.8535533845424652", "north", "0.5"}));
  CHECK(client.run("VSIM v VALUES 2 1 0 WITHSCORES WITHATTRIBS COUNT 1") ==
        bulks({"east", "1", "{}"}));
  TestClient newer(server, 3);
  CHECK(newer.run("VSIM v VALUES 2 1 0 WITHSCORES COUNT 1") == "%1\r\n$4\r\neast\r\n,1\r\n");
  CHECK(newer.run("VSIM v VALUES 2 1 0 WITHSCORES WITHATTRIBS COUNT 1") ==
        "%1\r\n$4\r\neast\r\n*2\r\n,1\r\n$2\r\n{}\r\n");
  CHECK(newer.run("VSIM v VALUES 2 0 1 WITHATTRIBS COUNT 1") == "%1\r\n$5\r\nnorth\r\n_\r\n");
}

TEST_CASE("VSIM refuses what it does not understand", "[vectors]") {
  VectorsFixture server;
  TestClient client(server);
  CHECK(client.run("VSIM missing ELE e SOME") == "*0\r\n");
  add_compass(client);
  const auto reply = [&](const std::string& words) { return client.run("VSIM v " + words); };
  CHECK(reply("ELE nowhere") == error("ERR element not found in set"));
  CHECK(reply("VALUES 3 1 2 3") == error("ERR Vector dimension mismatch - got 3 but set has 2"));
  CHECK(reply("VALUES 2 1 inf") == error("ERR invalid vector specification"));
  CHECK(reply("SOME 1") == error("ERR invalid vector specification"));
  CHECK(reply("ELE east SOME") == error("ERR syntax error in VSIM command"));
  for (const std::string option : {"COUNT", "EF", "FILTER-EF", "EPSILON"}) {
    CHECK(reply("ELE east " + option) == error("ERR syntax error in VSIM command"));
    CHECK(reply("ELE east " + option + " 0") == error("ERR invalid " + option));
    CHECK(reply("ELE east " + option + " x") == error("ERR invalid " + option));
  }
  CHECK(client.run_words({"VSIM", "v", "ELE", "east", "FILTER", "1 = 1"}) ==
        error("ERR syntax error in FILTER expression near:  1"));
  std::string many = ".a == 1";
  for (int i = 0; i < 300; ++i) many += " and .a == 1";
  CHECK(client.run_words({"VSIM", "v", "ELE", "east", "FILTER", many})
            .starts_with("-ERR syntax error in FILTER expression near: "));
  client.run("SET s text");
  CHECK(client.run("VSIM s ELE e") == kWrongType);
}

TEST_CASE("VSIM filters by attributes", "[vectors]") {
  VectorsFixture server;
  TestClient client(server);
  for (int i = 0; i < 300; ++i) {
    const std::string number = std::to_string(i);
    client.run_words(
        {"VADD", "v", "VALUES", "2", number, "100", number, "SETATTR", "{\"n\":" + number + "}"});
  }
  client.run("VADD v VALUES 2 299 100 bare");
  CHECK(client.run_words({"VSIM", "v", "ELE", "299", "COUNT", "2", "FILTER", ".n % 100 == 7",
                          "FILTER-EF", "100000"}) == bulks({"207", "107"}));
  CHECK(client.run_words({"VSIM", "v", "ELE", "299", "COUNT", "2", "TRUTH", "FILTER",
                          ".n % 100 == 7"}) == bulks({"207", "107"}));
  const std::string all =
      client.run_words({"VSIM", "v", "ELE", "299", "COUNT", "400", "FILTER", "1"});
  CHECK(all.starts_with("*300\r\n"));
  CHECK(all.find("bare") == std::string::npos);
  CHECK(client.run_words({"VSIM", "v", "ELE", "0", "FILTER", ".n == 299", "FILTER-EF", "10"}) ==
        "*0\r\n");
}

TEST_CASE("VSIM reads filters as the emulated release does", "[vectors]") {
  VectorsFixture server;
  VectorsFixture older("emulate \"redis 8.6\"\n");
  const auto found = [](ServerFixture& where, std::string_view filter) {
    TestClient client(where);
    client.run_words({"VADD", "v", "VALUES", "2", "1", "1", "e", "SETATTR", R"({"s": "a\"b"})"});
    return client.run_words({"VSIM", "v", "ELE", "e", "FILTER", filter});
  };
  for (const std::string_view filter : {"!!.s", R"(.s == "a\"b")"})
    CHECK(found(server, filter) == bulks({"e"}));
  CHECK(found(older, "!!.s") == error("ERR syntax error in FILTER expression near: !!.s"));
  CHECK(found(older, R"(.s == "a\"b")") == "*0\r\n");
}

TEST_CASE("Attributes are set, replaced and removed", "[vectors]") {
  VectorsFixture server;
  TestClient client(server);
  client.run("VADD v VALUES 1 1 e SETATTR {}");
  CHECK(client.run("VGETATTR v e") == bulk("{}"));
  client.run("VADD v VALUES 1 1 e");
  CHECK(client.run("VGETATTR v e") == bulk("{}"));
  CHECK(client.run("VSETATTR v e other") == integer(1));
  CHECK(client.run("VINFO v").find("+attributes-count\r\n:1\r\n") != std::string::npos);
  CHECK(client.run_words({"VSETATTR", "v", "e", ""}) == integer(1));
  CHECK(client.run("VGETATTR v e") == kNull);
  CHECK(client.run("VINFO v").find("+attributes-count\r\n:0\r\n") != std::string::npos);
  CHECK(client.run("VSETATTR v nobody x") == integer(0));
  CHECK(client.run("VSETATTR missing e x") == integer(0));
  CHECK(client.run("VGETATTR missing e") == kNull);
}

TEST_CASE("VEMB gives vectors back, or the bytes that are kept", "[vectors]") {
  VectorsFixture server;
  TestClient client(server);
  client.run("VADD q VALUES 3 1 2 3 e");
  client.run("VADD f VALUES 3 1 2 3 e NOQUANT");
  client.run("VADD b VALUES 3 0 -2 3 e BIN");
  CHECK(client.run("VEMB q e") == bulks({"0.992125928401947", "2.007874011993408", "3"}));
  CHECK(client.run("VEMB q e RAW") == "*4\r\n+int8\r\n$3\r\n*U\x7f\r\n" +
                                          bulk("3.7416574954986572") + bulk("0.8017836809158325"));
  CHECK(client.run("VEMB f e") == bulks({"1", "2", "3"}));
  CHECK(client.run("VEMB b e") == bulks({"-1", "-1", "1"}));
  CHECK(client.run("VEMB b e RAW") ==
        "*3\r\n+bin\r\n" + bulk(std::string("\x04\0\0\0\0\0\0\0", 8)) + bulk("3.605551242828369"));
  CHECK(client.run("VEMB q nobody") == kNull);
  CHECK(client.run("VEMB missing e") == kNull);
  CHECK(client.run("VEMB q e RAW raw") == client.run("VEMB q e RAW"));
  CHECK(client.run("VEMB q e SOME") == error("ERR invalid option"));
  CHECK(client.run("VEMB missing e RAW SOME") == error("ERR invalid option"));
}

TEST_CASE("VLINKS shows the neighbours of each level", "[vectors]") {
  VectorsFixture server;
  TestClient client(server);
  client.run("VADD v VALUES 2 1 0 a");
  client.run("VADD v VALUES 2 0 1 b");
  CHECK(client.run("VLINKS v a").find("*1\r\n" + bulk("b")) != std::string::npos);
  CHECK(client.run("VLINKS v a WITHSCORES").find(bulks({"b", "0.5"})) != std::string::npos);
  TestClient newer(server, 3);
  CHECK(newer.run("VLINKS v a WITHSCORES").find("%1\r\n$1\r\nb\r\n,0.5\r\n") != std::string::npos);
  CHECK(client.run("VLINKS v nobody") == kNull);
  CHECK(client.run("VLINKS v a SOME") ==
        error("ERR wrong number of arguments for 'VLINKS' command"));
}

TEST_CASE("VRANGE walks through elements in the order of their names", "[vectors]") {
  VectorsFixture server;
  TestClient client(server);
  for (const char* name : {"b", "a", "ab", "zz", "B"})
    client.run_words({"VADD", "v", "VALUES", "1", "1", name});
  CHECK(client.run("VRANGE v - +") == bulks({"B", "a", "ab", "b", "zz"}));
  CHECK(client.run("VRANGE v (a [b") == bulks({"ab", "b"}));
  CHECK(client.run("VRANGE v [a (b 1") == bulks({"a"}));
  CHECK(client.run("VRANGE v - + 0") == "*0\r\n");
  CHECK(client.run("VRANGE v [b [a") == "*0\r\n");
  client.run("VREM v ab");
  client.run("VADD v VALUES 1 1 aa");
  CHECK(client.run("VRANGE v [a [b") == bulks({"a", "aa", "b"}));
  CHECK(client.run("VRANGE missing - +") == "*0\r\n");
  CHECK(client.run("VRANGE v + -") ==
        error("ERR '-' can only be used as first argument, '+' only as second"));
  CHECK(client.run("VRANGE v a +") == error("ERR invalid start range format"));
  CHECK(client.run("VRANGE v - (") == error("ERR invalid end range format"));
  CHECK(client.run("VRANGE v - + x") == error("ERR invalid COUNT value"));
}

TEST_CASE("VRANGE knows the order of all bytes, whatever names have in common", "[vectors]") {
  VectorsFixture server;
  TestClient client(server);
  base::Random random(9);
  const std::string common = GENERATE("", "common:", "a");
  std::set<std::string> names;
  for (int i = 0; i < 500; ++i) {
    std::string name = common;
    constexpr std::string_view kBytes("\0\1ab\x7f\x80\xff", 7);
    for (uint64_t left = random.below(14); left > 0; --left)
      name += kBytes[random.below(random.below(4) == 0 ? kBytes.size() : 2)];
    if (name.empty()) continue;
    names.insert(name);
    client.run_words({"VADD", "v", "VALUES", "1", "1", name, "M", "4", "EF", "4"});
  }
  std::string expected = "*" + std::to_string(names.size()) + "\r\n";
  for (const std::string& name : names) expected += bulk(name);
  CHECK(client.run("VRANGE v - +") == expected);
}

TEST_CASE("VRANDMEMBER gives different elements, or repeats them", "[vectors]") {
  VectorsFixture server;
  TestClient client(server);
  CHECK(client.run("VRANDMEMBER v") == kNull);
  CHECK(client.run("VRANDMEMBER v 2") == "*0\r\n");
  client.run("VADD v VALUES 1 1 a");
  client.run("VADD v VALUES 1 1 b");
  const std::string both = client.run("VRANDMEMBER v 10");
  CHECK((both == bulks({"a", "b"}) || both == bulks({"b", "a"})));
  CHECK(client.run("VRANDMEMBER v -5").starts_with("*5\r\n"));
  CHECK(client.run("VRANDMEMBER v x") == error("ERR COUNT value is not an integer"));
  CHECK(client.run("VRANDMEMBER v -9223372036854775808") ==
        error("ERR COUNT value is not an integer"));
}

TEST_CASE("Changes of vector sets are told to those who watch, and to nobody else", "[vectors]") {
  VectorsFixture server;
  TestClient client(server);
  TestClient other(server);
  const auto is_seen = [&](const char* change) {
    client.run("WATCH v");
    other.run(change);
    client.run("MULTI");
    client.run("TYPE v");
    return client.run("EXEC") == kNullArray;
  };
  CHECK(is_seen("VADD v VALUES 1 1 e"));
  CHECK(is_seen("VADD v VALUES 1 -1 e"));
  CHECK(is_seen("VSETATTR v e {}"));
  CHECK_FALSE(is_seen("VSETATTR v nobody {}"));
  CHECK_FALSE(is_seen("VREM v nobody"));
  CHECK(is_seen("VREM v e"));
  CHECK(client.run("EXISTS v") == integer(0));
}

TEST_CASE("A dump whose projection has no dimensions, or too many, is refused", "[vectors]") {
  VectorsFixture server;
  TestClient client(server);
  client.run("VADD v REDUCE 1 VALUES 2 3 4 e");
  const std::string dump = dump_body(client);
  // Type and module; then dimensions, elements, quantization and links, flags: each after the byte
  // that says it is a number.
  const size_t dimensions = 1 + 9 + 1;
  const auto other = [&](size_t input_dimensions, size_t matrix_size) {
    size_t at = dimensions;
    for (int skipped = 0; skipped < 4; ++skipped) {
      const auto first = static_cast<unsigned char>(dump[at]);
      at += (first < 0x40 ? 1 : first < 0x80 ? 2 : first == 0x80 ? 5 : 9) + 1;
    }
    const std::string projection = byte(2) + byte(5) + rdb_string(dump.substr(at + 3, 8));
    REQUIRE(dump.substr(at, projection.size()) == projection);
    const std::string head = dump.substr(0, at - 1);
    const size_t end = at + projection.size();
    return rdb_dump(head + byte(2) + rdb_length(input_dimensions) + byte(5) +
                    rdb_string(std::string(matrix_size, '\0')) + dump.substr(end));
  };
  CHECK(client.run_words({"RESTORE", "restored", "0", other(2, 8)}) == kOk);
  for (const auto& [input_dimensions, matrix_size] :
       {std::pair<size_t, size_t>{0, 0}, {0, 8}, {2, 4}, {2, 12}, {1, 8}})
    CHECK(client.run_words({"RESTORE", "other", "0", other(input_dimensions, matrix_size)}) ==
          error("ERR Bad data format"));
}

TEST_CASE("A copied, dumped and restored set answers as the first one did", "[vectors]") {
  for (const std::string options : {"", " NOQUANT", " BIN"}) {
    VectorsFixture server;
    TestClient client(server);
    for (int i = 0; i < 200; ++i) {
      const std::string number = std::to_string(i);
      client.run("VADD v REDUCE 3 VALUES 4 " + number + " 7 1 -" + std::to_string(i * i) + " e" +
                 number + options + " M 4 SETATTR {}");
    }
    for (int i = 0; i < 50; ++i) client.run("VREM v e" + std::to_string(i * 3));
    CHECK(client.run("COPY v copied") == integer(1));
    CHECK(client.run_words({"RESTORE", "restored", "0", payload(client.run("DUMP v"))}) == kOk);
    client.run("VRANGE v - +");
    for (const char* key : {"copied", "restored"}) {
      const std::string name(key);
      CHECK(client.run("VRANGE " + name + " - +") == client.run("VRANGE v - +"));
      for (const char* element : {"e1", "e100", "e199"}) {
        const std::string of(element);
        CHECK(client.run("VSIM " + name + " ELE " + of + " WITHSCORES TRUTH") ==
              client.run("VSIM v ELE " + of + " WITHSCORES TRUTH"));
        CHECK(client.run("VLINKS " + name + " " + of) == client.run("VLINKS v " + of));
        CHECK(client.run("VEMB " + name + " " + of) == client.run("VEMB v " + of));
      }
      CHECK(client.run("VSIM " + name + " VALUES 4 1 2 3 4 TRUTH") ==
            client.run("VSIM v VALUES 4 1 2 3 4 TRUTH"));
      client.run("VREM " + name + " e199");
      CHECK(client.run("VISMEMBER v e199") == integer(1));
    }
  }
}

TEST_CASE("A large set costs less memory than its parts in other forms would", "[vectors]") {
  VectorsFixture server;
  TestClient client(server);
  constexpr int kElements = 1000;
  constexpr int kDimensions = 64;
  for (int i = 0; i < kElements; ++i) {
    std::vector<float> components(kDimensions, 1);
    components[static_cast<size_t>(i % kDimensions)] = static_cast<float>(i);
    client.run_words({"VADD", "v", "FP32", blob(components), "element:" + std::to_string(i)});
  }
  const std::string usage = client.run("MEMORY USAGE v SAMPLES 0");
  const int64_t each = std::stoll(usage.substr(1)) / kElements;
  // The vector, 32 links of four bytes, the name and its place in the table, the rest.
  CHECK(each < kDimensions + 32 * 4 + 100);
}

TEST_CASE("A projection of large components is finite", "[vectors]") {
  VectorsFixture server;
  TestClient client(server);
  for (const std::string quantization : {"NOQUANT", "Q8", "BIN"}) {
    CAPTURE(quantization);
    CHECK(client.run("VADD v REDUCE 2 VALUES 3 3e38 3e38 3e38 e " + quantization) == integer(1));
    CHECK(client.run("VSIM v VALUES 3 3e38 3e38 3e38") == bulks({"e"}));
    const std::string scores = client.run("VSIM v VALUES 3 3e38 3e38 3e38 WITHSCORES");
    CHECK_THAT(numbers(scores), Catch::Matchers::Approx<double>({1}));
    const std::string dump = payload(client.run("DUMP v"));
    CHECK(client.run_words({"RESTORE", "again", "0", dump}) == kOk);
    const std::string vector = client.run("VEMB v e");
    CHECK(client.run("VEMB again e") == vector);
    const double large = quantization == "BIN" ? 1 : 1.73205085e+38;
    CHECK_THAT(numbers(vector), Catch::Matchers::Approx<double>({large, -large}));
    // One of these is the largest that a sum of three can be, in each of the two sums.
    for (const std::string signs : {"3e38 3e38", "3e38 -3e38", "-3e38 3e38", "-3e38 -3e38"}) {
      CAPTURE(signs);
      CHECK(client.run("VADD v REDUCE 2 VALUES 3 3e38 " + signs + " e " + quantization) ==
            integer(0));
      const std::string embedding = client.run("VEMB v e");
      CHECK(embedding.find("inf") == std::string::npos);
      CHECK(embedding.find("nan") == std::string::npos);
    }
    client.run("DEL v again");
  }
}

TEST_CASE("A dump whose projection has what is no number is refused", "[vectors]") {
  VectorsFixture server;
  TestClient client(server);
  client.run("VADD v REDUCE 1 VALUES 2 3 4 e NOQUANT");
  const std::string body = dump_body(client);
  const auto with_factor = [&](float factor) {
    const float own = 1 / std::sqrt(2.0F);
    size_t at = body.find(blob({own}));
    if (at == std::string::npos) at = body.find(blob({-own}));
    REQUIRE(at != std::string::npos);
    return rdb_dump(std::string(body).replace(at, sizeof factor, blob({factor})));
  };
  CHECK(client.run_words({"RESTORE", "other", "0", with_factor(2)}) == kOk);
  for (const float factor : {INFINITY, -INFINITY, NAN})
    CHECK(client.run_words({"RESTORE", "none", "0", with_factor(factor)}) ==
          error("ERR Bad data format"));
}

TEST_CASE("A vector of a file may have no length or range, and is compared all the same",
          "[vectors]") {
  VectorsFixture server;
  TestClient client(server);
  client.run("VADD v VALUES 2 1 2 e");
  const std::string body = dump_body(client);
  // What the range and the length are packed into is the last part: a byte that says it is a
  // number, one that says how long it is, and the number with its first byte first; then the end.
  const size_t at = body.size() - 1 - sizeof(uint64_t);
  REQUIRE(body.substr(at - 2, 2) == "\x02\x81");
  const auto with_scale = [&](float range, float length) {
    std::string scale = blob({length, range});
    std::reverse(scale.begin(), scale.end());
    return rdb_dump(std::string(body).replace(at, scale.size(), scale));
  };
  for (const auto& [range, length] : {std::pair<float, float>{0, INFINITY},
                                      {1, INFINITY},
                                      {INFINITY, 1},
                                      {NAN, NAN},
                                      {-1, -1},
                                      {3e38F, 3e38F},
                                      {INFINITY, INFINITY}}) {
    CAPTURE(range, length);
    REQUIRE(client.run_words({"RESTORE", "r", "0", with_scale(range, length), "REPLACE"}) == kOk);
    CHECK(client.run("VEMB r e").starts_with("*2\r\n"));
    CHECK(client.run("VSIM r ELE e") == bulks({"e"}));
    CHECK(client.run("VADD r VALUES 2 1 1 f") == integer(1));
    CHECK(client.run("VCARD r") == integer(2));
  }
}

TEST_CASE("VRANGE looks at the form of both ends before which end is which", "[vectors]") {
  VectorsFixture server;
  TestClient client(server);
  client.run("VADD v VALUES 1 1 a");
  const std::string wrong_end =
      error("ERR '-' can only be used as first argument, '+' only as second");
  CHECK(client.run("VRANGE v + x") == error("ERR invalid end range format"));
  CHECK(client.run("VRANGE v x -") == error("ERR invalid start range format"));
  CHECK(client.run("VRANGE v + [a") == wrong_end);
  CHECK(client.run("VRANGE v [a -") == wrong_end);
  CHECK(client.run("VRANGE v + +") == wrong_end);
  CHECK(client.run("VRANGE v - -") == wrong_end);
}

TEST_CASE("A new element has attributes even if they are an empty text", "[vectors]") {
  VectorsFixture server;
  TestClient client(server);
  const auto count = [&](int expected) {
    return client.run("VINFO v").find("+attributes-count\r\n:" + std::to_string(expected) +
                                      "\r\n") != std::string::npos;
  };
  client.run_words({"VADD", "v", "VALUES", "1", "1", "e", "SETATTR", ""});
  client.run("VADD v VALUES 1 1 bare");
  CHECK(client.run("VGETATTR v e") == bulk(""));
  CHECK(client.run("VGETATTR v bare") == kNull);
  CHECK(count(1));
  CHECK(client.run("VSIM v VALUES 1 1 FILTER 1 WITHATTRIBS") == bulks({"e", ""}));
  CHECK(client.run("VSIM v VALUES 1 1 FILTER .a") == "*0\r\n");
  // Of an element that there is, an empty text removes them.
  client.run_words({"VADD", "v", "VALUES", "1", "1", "e", "SETATTR", ""});
  CHECK(client.run("VGETATTR v e") == kNull);
  CHECK(count(0));
}

}  // namespace latchkey::tests
