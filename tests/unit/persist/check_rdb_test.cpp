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

}  // namespace latchkey::tests
