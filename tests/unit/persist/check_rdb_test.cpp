#include "persist/check_rdb.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "unit/catch.h"
#include "unit/persist/rdb/rdb_bytes.h"

namespace latchkey::tests {

namespace {

struct Check {
  bool is_intact;
  std::vector<std::string> lines;
};

Check check(const std::string& file) {
  char path[] = "/tmp/latchkey-test-XXXXXX";
  ::close(::mkstemp(path));
  REQUIRE(base::write_file(path, file));
  Check result;
  constexpr int64_t kNowMs = 1'000'000;
  result.is_intact = persist::check_rdb(
      path, kNowMs, [&](std::string_view line) { result.lines.emplace_back(line); });
  ::unlink(path);
  // The first line names the file.
  REQUIRE(!result.lines.empty());
  result.lines.erase(result.lines.begin());
  return result;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("An intact file is gone through and counted", "[check_rdb]") {
  const std::string expired = byte(0xfc) + number(5, 8);
  const std::string later = byte(0xfc) + number(2'000'000, 8);
  const std::string key = byte(0) + rdb_string("a") + rdb_string("b");
  const std::string hash = byte(24) + rdb_string("h") + number(5, 8) + rdb_length(2) + byte(1) +
                           rdb_string("f") + rdb_string("v") + byte(0) + rdb_string("g") +
                           rdb_string("v");
  const Check result = check(rdb_file(byte(0xfa) + rdb_string("name") + rdb_string("value") +
                                      byte(0xfe) + byte(2) + expired + key + later + key + hash));
  CHECK(result.is_intact);
  CHECK(result.lines == Lines{"[offset 21] AUX FIELD name = 'value'",
                              "[offset 23] Selecting DB ID 2", "[offset 82] Checksum OK",
                              "[offset 82] \\o/ RDB looks OK! \\o/", "[info] 3 keys read",
                              "[info] 2 expires", "[info] 1 already expired",
                              "[info] 1 subexpires"});
}

TEST_CASE("A damaged file is told with what was being read", "[check_rdb]") {
  const std::string body = byte(0xfe) + byte(0) + byte(16) + rdb_string("hash") + rdb_string("abc");
  const Check result = check(rdb_file(body));
  CHECK_FALSE(result.is_intact);
  CHECK(
      result.lines ==
      Lines{"[offset 11] Selecting DB ID 0", "--- RDB ERROR DETECTED ---",
            "[offset 21] Internal error in RDB reading offset 21 -> Hash listpack integrity check "
            "failed.",
            "[additional info] While doing: read-object-value",
            "[additional info] Reading key 'hash'",
            "[additional info] Reading type 16 (hash-listpack)", "[info] 1 keys read",
            "[info] 0 expires", "[info] 0 already expired", "[info] 0 subexpires"});
}

TEST_CASE("A file that ends too early, and one that is none, are told", "[check_rdb]") {
  CHECK(check("REDIS").lines[1] == "[offset 0] Unexpected EOF reading RDB file");
  CHECK(check("REDIX0012").lines[1] == "[offset 9] Wrong signature trying to load DB from file");
  CHECK(check("REDIS0014").lines[1] == "[offset 9] Can't handle RDB format version 14");
  CHECK_FALSE(persist::check_rdb("/nonexistent/file", 0, [](std::string_view) {}));
}

TEST_CASE("What stands in a file besides keys is gone through", "[check_rdb]") {
  const std::string key = byte(0) + rdb_string("a") + rdb_string("b");
  // A library of functions, sizes of a database, of a slot, idle time and frequency of a key.
  Check result = check(rdb_file(byte(0xf5) + rdb_string("#!lua name=l") + byte(0xfe) + byte(0) +
                                from_hex("fb0101") + from_hex("f4010203") + from_hex("f805") + key +
                                from_hex("f907") + key));
  CHECK(result.is_intact);
  CHECK(result.lines == Lines{"[offset 25] Selecting DB ID 0", "[offset 55] Checksum OK",
                              "[offset 55] \\o/ RDB looks OK! \\o/", "[info] 2 keys read",
                              "[info] 0 expires", "[info] 0 already expired",
                              "[info] 0 subexpires"});

  // A deadline in seconds, one that has come this very millisecond, and one that has passed.
  result =
      check(rdb_file(byte(0xfd) + number(999, 4) + key + byte(0xfc) + number(1'000'000, 8) + key +
                     byte(0xfc) + number(999'999, 8) + key + byte(0xfc) + number(0, 8) + key));
  CHECK(result.is_intact);
  CHECK(Lines(result.lines.end() - 3, result.lines.end()) ==
        Lines{"[info] 4 expires", "[info] 3 already expired", "[info] 0 subexpires"});
}

TEST_CASE("A file that was saved without a checksum is not held against it", "[check_rdb]") {
  const std::string file = "REDIS0012" + byte(0) + rdb_string("a") + rdb_string("b") + byte(0xff);
  const Check without = check(file + number(0, 8));
  CHECK(without.is_intact);
  CHECK(without.lines[0] ==
        "[offset 23] RDB file was saved with checksum disabled: no check performed.");
  const Check wrong = check(file + number(1, 8));
  CHECK_FALSE(wrong.is_intact);
  CHECK(wrong.lines == Lines{"--- RDB ERROR DETECTED ---", "[offset 23] RDB CRC error",
                             "[additional info] While doing: check-sum", "[info] 1 keys read",
                             "[info] 0 expires", "[info] 0 already expired",
                             "[info] 0 subexpires"});
}

TEST_CASE("The data of modules that are not known is skipped, part by part", "[check_rdb]") {
  const std::string module = from_hex("810102030405060708");
  const std::string parts = from_hex("0105") + from_hex("0206") + byte(3) + number(0, 4) + byte(4) +
                            number(0, 8) + byte(5) + rdb_string("text") + byte(0);
  // Before and after the keys, and as a key's value.
  Check result = check(rdb_file(byte(0xf7) + module + from_hex("0201") + parts + byte(7) +
                                rdb_string("k") + module + parts));
  CHECK(result.is_intact);
  CHECK(result.lines[0] == "[offset 21] MODULE AUX for: AQIDBAUGB");
  CHECK(result.lines[3] == "[info] 1 keys read");

  const auto failure = [&](const std::string& damaged) {
    const Check failed = check("REDIS0012" + byte(7) + rdb_string("k") + module + damaged);
    CHECK_FALSE(failed.is_intact);
    REQUIRE(failed.lines.size() > 1);
    return failed.lines[1];
  };
  CHECK(failure(byte(6)) ==
        "[offset 22] Internal error in RDB reading offset 22 -> Unknown part of a module's data: "
        "6");
  for (const char* part : {"", "01", "02", "03000000", "0400000000000000", "05", "0503abab"}) {
    CAPTURE(part);
    CHECK(failure(from_hex(part)).find("Unexpected EOF reading RDB file") != std::string::npos);
  }
  result = check(rdb_file(byte(0xf7) + module + byte(2)).substr(0, 20));
  CHECK_FALSE(result.is_intact);
}

TEST_CASE("What cannot stand in a file is told", "[check_rdb]") {
  const auto told = [](const std::string& body) {
    const Check result = check(rdb_file(body));
    CHECK_FALSE(result.is_intact);
    return Lines(result.lines.begin() + 1, result.lines.end() - 4);
  };
  CHECK(told(byte(0xf6)) == Lines{"[offset 10] Pre-release function format not supported.",
                                  "[additional info] While doing: read-type",
                                  "[additional info] Reading type 0 (string)"});
  CHECK(told(byte(150)) == Lines{"[offset 10] Invalid object type: 150",
                                 "[additional info] While doing: read-type",
                                 "[additional info] Reading type 0 (string)"});
  CHECK(told(byte(8)) == Lines{"[offset 10] Invalid object type: 8",
                               "[additional info] While doing: read-type",
                               "[additional info] Reading type 0 (string)"});
  CHECK(told(byte(4) + rdb_string("k") + byte(0)) ==
        Lines{"[offset 13] The value is empty", "[additional info] While doing: read-object-value",
              "[additional info] Reading key 'k'",
              "[additional info] Reading type 4 (hash-hashtable)"});
}

TEST_CASE("A migration of slots that a file of Valkey tells of is shown", "[check_rdb]") {
  const std::string name(40, 'a');
  const Check result = check("VALKEY080" + byte(0xf3) + rdb_string(name) + byte(1) + byte(0) +
                             byte(7) + byte(0xff) + number(0, 8));
  CHECK(result.is_intact);
  CHECK(result.lines[0] == "[offset 54] SLOT IMPORT " + name);
}

}  // namespace latchkey::tests
