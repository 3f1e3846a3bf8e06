#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "commands/groups.h"
#include "persist/rows.h"
#include "script/engine.h"
#include "script/rows.h"
#include "unit/catch.h"
#include "unit/propagation_recorder.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

constexpr std::string_view kBadIndex = "ERR invalid array index";
constexpr std::string_view kSyntax = "ERR syntax error";

struct ArrayServer : ServerFixture {
  ArrayServer()
      : ServerFixture(
            {commands::array_cursor_rows(), commands::array_rows(), commands::array_search_rows(),
             commands::config_rows(), commands::debug_rows(), commands::key_rows(),
             commands::memory_rows(), commands::object_rows(), commands::scan_rows(),
             commands::string_rows(), persist::dump_rows(), script::script_rows()},
            "enable-debug-command yes\n"),
        client(*this) {
    server.add_layer(std::make_shared<script::Engine>(server));
  }
  std::string run(std::string_view line) { return client.run(line); }
  TestClient client;
};

std::string pair(int64_t index, std::string_view value) {
  return array({integer(index), bulk(value)});
}

}  // namespace

TEST_CASE("ARSET and ARMSET fill indexes, and count those that were empty", "[arrays]") {
  ArrayServer server;
  CHECK(server.run("ARSET a 2 x y z") == integer(3));
  CHECK(server.run("ARSET a 4 Z new") == integer(1));
  CHECK(server.run("ARMSET a 0 first 100 far 2 X 100 FAR") == integer(2));
  CHECK(server.run("ARGET a 100") == bulk("FAR"));
  CHECK(server.run("ARGET a 1") == kNull);
  CHECK(server.run("ARGET none 1") == kNull);
  CHECK(server.run("ARMGET a 0 1 2 4") ==
        array({bulk("first"), std::string(kNull), bulk("X"), bulk("Z")}));
  CHECK(server.run("ARMGET none 0 1") == array({std::string(kNull), std::string(kNull)}));
  CHECK(server.run("ARLEN a") == integer(101));
  CHECK(server.run("ARCOUNT a") == integer(6));
  CHECK(server.run("ARLEN none") == integer(0));
  CHECK(server.run("ARCOUNT none") == integer(0));
  CHECK(server.events() == "arset a, arset a, armset a");
  CHECK(server.changes() == 9);
}

TEST_CASE("Indexes of arrays go up to 2^64 - 2", "[arrays]") {
  ArrayServer server;
  CHECK(server.run("ARSET a 18446744073709551614 last") == integer(1));
  CHECK(server.run("ARLEN a") == ":18446744073709551615\r\n");
  CHECK(server.run("ARSCAN a 0 18446744073709551614") ==
        "*1\r\n*2\r\n:18446744073709551614\r\n$4\r\nlast\r\n");
  CHECK(server.run("ARSET a 18446744073709551614 x y") == error(kBadIndex));
  for (const char* index :
       {"18446744073709551615", "-1", "x", "1.5", "", "01", "99999999999999999999"}) {
    INFO(index);
    CHECK(server.client.run_words({"ARSET", "a", index, "x"}) == error(kBadIndex));
    CHECK(server.client.run_words({"ARGET", "a", index}) == error(kBadIndex));
    CHECK(server.client.run_words({"ARMSET", "a", "1", "x", index, "y"}) == error(kBadIndex));
    CHECK(server.client.run_words({"ARMGET", "a", "1", index}) == error(kBadIndex));
    CHECK(server.client.run_words({"ARDEL", "a", "18446744073709551614", index}) ==
          error(kBadIndex));
    CHECK(server.client.run_words({"ARDELRANGE", "a", "0", index}) == error(kBadIndex));
    CHECK(server.client.run_words({"ARGETRANGE", "a", index, "1"}) == error(kBadIndex));
    CHECK(server.client.run_words({"ARSCAN", "a", "1", index}) == error(kBadIndex));
    CHECK(server.client.run_words({"AROP", "a", "1", index, "SUM"}) == error(kBadIndex));
    CHECK(server.client.run_words({"ARGREP", "a", index, "+", "MATCH", "x"}) == error(kBadIndex));
  }
  CHECK(server.run("ARCOUNT a") == integer(1));
}

TEST_CASE("ARDEL and ARDELRANGE erase, and the key goes with its last element", "[arrays]") {
  ArrayServer server;
  server.run("ARSET a 0 a b c d e");
  server.events();
  CHECK(server.run("ARDEL a 1 9 1") == integer(1));
  CHECK(server.run("ARDEL a 9") == integer(0));
  CHECK(server.run("ARDELRANGE a 3 2 3 100") == integer(3));
  CHECK(server.run("ARLEN a") == integer(1));
  CHECK(server.events() == "ardel a, ardelrange a");
  CHECK(server.run("ARDELRANGE a 0 18446744073709551614") == integer(1));
  CHECK(server.events() == "ardelrange a, del a");
  CHECK(server.run("EXISTS a") == integer(0));
  CHECK(server.run("ARDEL a 1") == integer(0));
  CHECK(server.run("ARDELRANGE a 1 2") == integer(0));
  CHECK(server.run("ARDELRANGE a 1 2 3") ==
        error("ERR wrong number of arguments for 'ardelrange' command"));
}

TEST_CASE("ARGETRANGE gives every index of a range, in either direction", "[arrays]") {
  ArrayServer server;
  server.run("ARMSET a 0 a 1 b 3 d");
  const std::string none(kNull);
  CHECK(server.run("ARGETRANGE a 0 4") == array({bulk("a"), bulk("b"), none, bulk("d"), none}));
  CHECK(server.run("ARGETRANGE a 3 1") == array({bulk("d"), none, bulk("b")}));
  CHECK(server.run("ARGETRANGE a 7 6") == array({none, none}));
  CHECK(server.run("ARGETRANGE none 0 1") == array({none, none}));
  CHECK(server.run("ARGETRANGE a 0 999999").starts_with("*1000000\r\n"));
  CHECK(server.run("ARGETRANGE a 0 1000000") ==
        error("ERR range exceeds maximum of 1000000 items"));
  CHECK(server.run("ARGETRANGE a 18446744073709551614 0") ==
        error("ERR range exceeds maximum of 1000000 items"));
}

TEST_CASE("ARSCAN gives what there is of a range", "[arrays]") {
  ArrayServer server;
  server.run("ARMSET a 0 a 500 b 9000000000 c");
  CHECK(server.run("ARSCAN a 0 18446744073709551614") ==
        array({pair(0, "a"), pair(500, "b"), pair(9000000000, "c")}));
  CHECK(server.run("ARSCAN a 9000000000 1") == array({pair(9000000000, "c"), pair(500, "b")}));
  CHECK(server.run("ARSCAN a 0 9000000000 LIMIT 2") == array({pair(0, "a"), pair(500, "b")}));
  CHECK(server.run("ARSCAN a 1 499") == array({}));
  CHECK(server.run("ARSCAN none 0 1") == array({}));
  CHECK(server.run("ARSCAN a 0 1 LIMIT 0") == error("ERR LIMIT must be a positive integer"));
  CHECK(server.run("ARSCAN a 0 1 LIMIT") == error(kSyntax));
}

TEST_CASE("ARINSERT appends at a cursor that ARSEEK moves and ARNEXT tells", "[arrays]") {
  ArrayServer server;
  CHECK(server.run("ARNEXT log") == integer(0));
  CHECK(server.run("ARSEEK log 5") == integer(0));
  CHECK(server.run("ARINSERT log a b") == integer(1));
  CHECK(server.run("ARNEXT log") == integer(2));
  CHECK(server.run("ARSEEK log 10") == integer(1));
  CHECK(server.run("ARINSERT log c") == integer(10));
  // Neither what is set nor what is deleted moves it.
  server.run("ARSET log 50 far");
  server.run("ARDEL log 10");
  CHECK(server.run("ARNEXT log") == integer(11));
  CHECK(server.events() == "arinsert log, arseek log, arinsert log, arset log, ardel log");
  CHECK(server.run("ARSEEK log 18446744073709551614") == integer(1));
  CHECK(server.run("ARINSERT log x y") == error("ERR insert index overflow"));
  CHECK(server.run("ARINSERT log x") == ":18446744073709551614\r\n");
  CHECK(server.run("ARNEXT log") == kNull);
  CHECK(server.run("ARINSERT log x") == error("ERR insert index overflow"));
  CHECK(server.run("ARSEEK log 18446744073709551615") == integer(1));
  CHECK(server.run("ARSEEK log 18446744073709551616") == error(kBadIndex));
}

TEST_CASE("ARRING keeps the newest, and ARLASTITEMS gives them in order", "[arrays]") {
  ArrayServer server;
  CHECK(server.run("ARRING r 3 v0") == integer(0));
  CHECK(server.run("ARRING r 3 v1 v2") == integer(2));
  CHECK(server.run("ARRING r 3 v3") == integer(0));
  CHECK(server.run("ARCOUNT r") == integer(3));
  CHECK(server.run("ARLASTITEMS r 3") == bulks({"v1", "v2", "v3"}));
  CHECK(server.run("ARLASTITEMS r 9 REV") == bulks({"v3", "v2", "v1"}));
  CHECK(server.run("ARLASTITEMS r 2") == bulks({"v2", "v3"}));
  CHECK(server.run("ARLASTITEMS r 0") == array({}));
  CHECK(server.run("ARLASTITEMS none 2") == array({}));
  CHECK(server.run("ARLASTITEMS r -1").starts_with("-ERR"));
  CHECK(server.run("ARLASTITEMS r 1 BACK") == error(kSyntax));
  CHECK(server.run("ARRING r 0 x") == error("ERR invalid size"));
  CHECK(server.run("ARRING new x y") == error("ERR invalid size"));
  CHECK(server.run("EXISTS new") == integer(0));
}

TEST_CASE("A ring of another size keeps the order of what is in it", "[arrays]") {
  ArrayServer server;
  server.run("ARRING r 3 a b c d e");
  CHECK(server.run("ARRING r 5 f") == integer(3));
  CHECK(server.run("ARGETRANGE r 0 3") == bulks({"c", "d", "e", "f"}));
  CHECK(server.run("ARRING r 5 g h") == integer(0));
  CHECK(server.run("ARLASTITEMS r 9") == bulks({"d", "e", "f", "g", "h"}));
  CHECK(server.run("ARRING r 2 i") == integer(0));
  CHECK(server.run("ARLASTITEMS r 9") == bulks({"h", "i"}));
  CHECK(server.run("ARLEN r") == integer(2));
  // What was never appended has no order.
  server.run("ARSET plain 0 a b c d");
  CHECK(server.run("ARRING plain 2 x") == integer(0));
  CHECK(server.run("ARGETRANGE plain 0 3") ==
        array({bulk("x"), bulk("b"), std::string(kNull), std::string(kNull)}));
}

TEST_CASE("A ring of another size keeps what is behind its last gap", "[arrays]") {
  ArrayServer server;
  server.run("ARRING r 4 a b c d e");  // e b c d
  server.run("ARDEL r 2");
  CHECK(server.run("ARRING r 3 f") == integer(2));
  CHECK(server.run("ARGETRANGE r 0 2") == bulks({"d", "e", "f"}));
  CHECK(server.run("ARCOUNT r") == integer(3));
  server.run("ARRING r 3 g");  // g e f
  server.run("ARDEL r 1");
  CHECK(server.run("ARRING r 8 h") == integer(2));
  CHECK(server.run("ARGETRANGE r 0 2") == bulks({"f", "g", "h"}));
  // Nothing was appended where the cursor was put.
  server.run("ARSEEK r 100");
  CHECK(server.run("ARRING r 1 i") == integer(0));
  CHECK(server.run("ARLASTITEMS r 9") == bulks({"i"}));
}

TEST_CASE("A cursor that was put at 0 lets a ring grow in place", "[arrays]") {
  ArrayServer server;
  server.run("ARRING r 3 a b c d");  // d b c
  server.run("ARSEEK r 0");
  CHECK(server.run("ARRING r 5 e") == integer(0));
  CHECK(server.run("ARGETRANGE r 0 2") == bulks({"e", "b", "c"}));
  CHECK(server.run("ARNEXT r") == integer(1));
}

TEST_CASE("ARLASTITEMS begins at the end of the array when the cursor is at 0", "[arrays]") {
  ArrayServer server;
  server.run("ARINSERT a x y z");
  server.run("ARSEEK a 0");
  CHECK(server.run("ARLASTITEMS a 2") == bulks({"y", "z"}));
  CHECK(server.run("ARLASTITEMS a 2 REV") == bulks({"z", "y"}));
  server.run("ARSET set 5 one two");
  CHECK(server.run("ARLASTITEMS set 1") == bulks({"two"}));
}

TEST_CASE("ARLASTITEMS shows what was deleted as null", "[arrays]") {
  ArrayServer server;
  server.run("ARINSERT a x y z");
  server.run("ARDEL a 1");
  CHECK(server.run("ARLASTITEMS a 5") == array({std::string(kNull), bulk("z")}));
}

TEST_CASE("ARGREP finds values by their text", "[arrays]") {
  ArrayServer server;
  server.client.run_words({"ARMSET", "log", "0", "boot: ok", "1", "warn: disk", "2", "ERROR: cpu",
                           "3", "info: ready", "90", "error: net"});
  CHECK(server.run("ARGREP log - + MATCH error NOCASE") == array({integer(2), integer(90)}));
  CHECK(server.run("ARGREP log + - MATCH error NOCASE") == array({integer(90), integer(2)}));
  CHECK(server.run("ARGREP log - + MATCH error") == array({integer(90)}));
  CHECK(server.run("ARGREP log - + MATCH error NOCASE LIMIT 1 WITHVALUES") ==
        array({pair(2, "ERROR: cpu")}));
  CHECK(server.run("ARGREP log 0 99 GLOB warn:* OR GLOB error:*") ==
        array({integer(1), integer(90)}));
  CHECK(server.run("ARGREP log 0 99 MATCH r MATCH d AND") == array({integer(1), integer(3)}));
  CHECK(server.client.run_words({"ARGREP", "log", "0", "99", "EXACT", "info: ready"}) ==
        array({integer(3)}));
  CHECK(server.client.run_words({"ARGREP", "log", "0", "99", "exact", "INFO: READY", "nocase"}) ==
        array({integer(3)}));
  CHECK(server.client.run_words({"ARGREP", "log", "0", "99", "RE", "^[A-Za-z]+: (cpu|net)$"}) ==
        array({integer(2), integer(90)}));
  CHECK(server.run("ARGREP none - + MATCH x") == array({}));
}

TEST_CASE("ARGREP refuses what makes no sense", "[arrays]") {
  ArrayServer server;
  server.run("ARSET a 0 x");
  CHECK(server.run("ARGREP a - + NOCASE LIMIT 1") == error(kSyntax));
  CHECK(server.run("ARGREP a - + MATCH x MORE") == error(kSyntax));
  CHECK(server.run("ARGREP a - + MATCH x LIMIT 0") ==
        error("ERR LIMIT must be a positive integer"));
  CHECK(server.run("ARGREP a - + RE (x") == error("ERR invalid regular expression: missing ): (x"));
}

TEST_CASE("ARGREP is not held up by patterns that were made to be slow", "[arrays]") {
  ArrayServer server;
  const auto grep = [&](std::initializer_list<std::string_view> predicates) {
    std::vector<std::string_view> words{"ARGREP", "a", "-", "+"};
    words.insert(words.end(), predicates.begin(), predicates.end());
    return server.client.run_words(std::span<const std::string_view>(words));
  };
  // Half a million times half a million steps for who compares at each place.
  const std::string text(1'000'000, 'a');
  const std::string part = std::string(500'000, 'a') + "b";
  const std::string longer = "A" + part;
  server.client.run_words({"ARSET", "a", "0", text, part});
  CHECK(grep({"MATCH", part}) == array({integer(1)}));
  CHECK(grep({"MATCH", longer, "NOCASE"}) == array({}));
  CHECK(grep({"MATCH", std::string_view(longer).substr(0, 400'000), "NOCASE"}) ==
        array({integer(0), integer(1)}));
  // Short patterns that stand for long ones, and many of them.
  const std::string refused = error("ERR invalid regular expression: too large");
  CHECK(grep({"RE", "(.*a){900}b"}) == refused);
  std::vector<std::string_view> many{"ARGREP", "a", "-", "+"};
  for (int i = 0; i < 30; ++i) many.insert(many.end(), {"RE", "(a|b)*a(a|b){40}c"});
  CHECK(server.client.run_words(std::span<const std::string_view>(many)) == refused);
  CHECK(grep({"RE", "^a{1,200}$"}) == array({}));
  // Another state of the pattern at each byte.
  base::Random random(1);
  std::string mixed;
  for (int i = 0; i < 100'000; ++i) mixed += random.below(2) == 0 ? 'a' : 'b';
  server.client.run_words({"ARSET", "a", "0", "ac", mixed});
  CHECK(grep({"RE", "(a|b)*a(a|b){250}c"}) ==
        error("ERR regular expression takes too long for this text"));
  CHECK(grep({"RE", "[ab]c", "LIMIT", "1"}) == array({integer(0)}));
}

TEST_CASE("ARGREP is not held up by globs, or by many predicates", "[arrays]") {
  ArrayServer server;
  std::vector<std::string> words;
  const auto grep = [&](const char* kind, size_t count, std::string_view pattern) {
    std::vector<std::string_view> request{"ARGREP", "a", "-", "+"};
    for (size_t i = 0; i < count; ++i) request.insert(request.end(), {kind, pattern});
    return server.client.run_words(std::span<const std::string_view>(request));
  };
  const std::string text(1'000'000, 'a');
  server.client.run_words({"ARSET", "a", "0", text, "b"});
  CHECK(grep("GLOB", 1, "*" + std::string(500'000, 'a') + "b*") == array({}));
  CHECK(grep("GLOB", 1, "*" + std::string(1000, '?') + "b*") == array({}));
  CHECK(grep("GLOB", 2, "*" + std::string(600, '?') + "b*") ==
        error("ERR glob patterns are too large"));
  for (const char* kind : {"EXACT", "MATCH", "GLOB", "RE"}) {
    CHECK(grep(kind, 250, "b") == array({integer(1)}));
    CHECK(grep(kind, 251, "b") == error("ERR too many predicates, the maximum is 250"));
  }
}

TEST_CASE("ARGREP takes regular expressions of 2048 bytes", "[arrays]") {
  ArrayServer server;
  const auto grep = [&](std::string_view pattern, std::string_view option = "OR") {
    return server.client.run_words({"ARGREP", "a", "-", "+", "RE", pattern, option});
  };
  const std::string longest(2048, 'a');
  server.client.run_words({"ARSET", "a", "0", longest, "A.b"});
  CHECK(grep(longest) == array({integer(0)}));
  CHECK(grep("B", "NOCASE") == array({integer(1)}));
  CHECK(grep("b", "AND") == array({integer(1)}));
  CHECK(grep("A.b") == array({integer(1)}));
  CHECK(grep("A\\.b") == array({integer(1)}));
  CHECK(grep(longest + "a") ==
        error("ERR regular expression is too long, the maximum is 2048 bytes"));
  CHECK(grep("") == error("ERR regular expression is empty"));
  for (const char* pattern : {"(a)\\1", "\\\\(a)\\9"})
    CHECK(grep(pattern) == error("ERR regular expression backreferences are not supported"));
  CHECK(grep("A\\\\1") == array({}));
  CHECK(grep("\\x{1").starts_with("-ERR invalid regular expression: "));
}

TEST_CASE("ARGREP joins exact predicates with others", "[arrays]") {
  ArrayServer server;
  server.run("ARSET a 0 red green Red blue");
  CHECK(server.run("ARGREP a - + EXACT red EXACT blue") == array({integer(0), integer(3)}));
  CHECK(server.run("ARGREP a - + EXACT red EXACT blue AND") == array({}));
  CHECK(server.run("ARGREP a - + EXACT red EXACT red AND") == array({integer(0)}));
  CHECK(server.run("ARGREP a - + EXACT RED EXACT red AND NOCASE") ==
        array({integer(0), integer(2)}));
  CHECK(server.run("ARGREP a - + EXACT red MATCH e AND") == array({integer(0)}));
  CHECK(server.run("ARGREP a - + EXACT red MATCH z AND") == array({}));
  CHECK(server.run("ARGREP a - + EXACT red GLOB b*") == array({integer(0), integer(3)}));
  CHECK(server.run("ARGREP a - + GLOB *R*D? NOCASE") == array({}));
  CHECK(server.run("ARGREP a - + GLOB *E? NOCASE") == array({integer(0), integer(1), integer(2)}));
  CHECK(server.run("ARGREP a - + GLOB R*") == array({integer(2)}));
  CHECK(server.run("ARGREP a - + GLOB [R]*D NOCASE") == array({integer(0), integer(2)}));
  CHECK(server.run("ARGREP a - + MATCH ED NOCASE RE ^r AND") == array({integer(0), integer(2)}));
}

TEST_CASE("AROP aggregates the numbers of a range", "[arrays]") {
  ArrayServer server;
  server.run("ARMSET a 0 10 1 20.5 2 word 7 -3 9 10");
  CHECK(server.run("AROP a 0 9 SUM") == bulk("37.5"));
  CHECK(server.run("AROP a 9 0 MIN") == bulk("-3"));
  CHECK(server.run("AROP a 0 9 max") == bulk("20.5"));
  CHECK(server.run("AROP a 0 9 USED") == integer(5));
  CHECK(server.run("AROP a 0 9 MATCH 10") == integer(2));
  CHECK(server.run("AROP a 2 2 SUM") == kNull);
  CHECK(server.run("AROP a 3 6 AND") == kNull);
  CHECK(server.run("AROP none 0 9 SUM") == kNull);
  CHECK(server.run("AROP none 0 9 USED") == integer(0));
  server.run("ARSET bits 0 255 15 240.9");
  CHECK(server.run("AROP bits 0 1 AND") == integer(15));
  CHECK(server.run("AROP bits 0 2 AND") == integer(0));
  CHECK(server.run("AROP bits 1 2 OR") == integer(255));
  CHECK(server.run("AROP bits 0 2 XOR") == integer(0));
  CHECK(server.run("AROP a 0 9 AVG") == error(kSyntax));
  CHECK(server.run("AROP a 0 9 MATCH") == error(kSyntax));
  CHECK(server.run("AROP a 0 9 SUM x") == error(kSyntax));
}

TEST_CASE("ARINFO tells what an array is made of", "[arrays]") {
  ArrayServer server;
  server.run("ARMSET a 0 a 1 b 100 c");
  server.run("ARINSERT a d");
  CHECK(server.run("ARINFO a") ==
        array({bulk("count"), integer(3), bulk("len"), integer(101), bulk("next-insert-index"),
               integer(1), bulk("slices"), integer(1), bulk("directory-size"), integer(1),
               bulk("super-dir-entries"), integer(0), bulk("slice-size"), integer(4096)}));
  CHECK(server.run("ARINFO a FULL").starts_with("*24\r\n"));
  CHECK(server.run("ARINFO none") == error("ERR no such key"));
  CHECK(server.run("ARINFO a MORE") == error(kSyntax));
}

TEST_CASE("ARINFO counts slices of array-slice-size, dense from array-sparse-kmax texts on",
          "[arrays]") {
  ArrayServer server;
  const auto slices = [&](std::string_view dense, std::string_view sparse) {
    const std::string told = server.run("ARINFO a FULL");
    return told.find(bulk("dense-slices") + ":" + std::string(dense) + "\r\n" +
                     bulk("sparse-slices") + ":" + std::string(sparse) + "\r\n") !=
           std::string::npos;
  };
  for (int i = 0; i < 9; ++i) server.run("ARSET a " + std::to_string(4000 + 20 * i) + " x");
  CHECK(slices("0", "2"));  // of 5 texts and of 4
  for (int i = 0; i < 5; ++i) server.run("ARSET a " + std::to_string(i) + " x");
  CHECK(slices("1", "1"));
  // From 0 to 4080 and from 4100 to 4160.
  CHECK(server.run("ARINFO a FULL")
            .ends_with(bulk("avg-dense-size") + bulk("4096") + bulk("avg-dense-fill") +
                       bulk("0.00244140625") + bulk("avg-sparse-size") + bulk("4")));
  server.run("CONFIG SET array-sparse-kmax 5");
  CHECK(slices("1", "1"));
  server.run("CONFIG SET array-sparse-kmax 0");
  CHECK(slices("2", "0"));
  // Slices as small as a part of a leaf.
  server.run("CONFIG SET array-slice-size 4 array-sparse-kmax 2");
  CHECK(slices("1", "10"));
  CHECK(server.run("ARINFO a").ends_with(bulk("slice-size") + integer(4)));
  CHECK(server.run("CONFIG SET array-slice-size 5000").find("power of two") != std::string::npos);
}

TEST_CASE("Commands on arrays refuse other types, and others refuse arrays", "[arrays]") {
  ArrayServer server;
  server.run("SET text x");
  for (const char* line :
       {"ARSET text 0 x", "ARMSET text 0 x", "ARGET text 0", "ARMGET text 0", "ARGETRANGE text 0 1",
        "ARDEL text 0", "ARDELRANGE text 0 1", "ARLEN text", "ARCOUNT text", "ARINFO text",
        "ARINSERT text x", "ARRING text 1 x", "ARNEXT text", "ARSEEK text 1", "ARLASTITEMS text 1",
        "ARSCAN text 0 1", "ARGREP text - + MATCH x", "AROP text 0 1 SUM"}) {
    INFO(line);
    CHECK(server.run(line) == kWrongType);
  }
  server.run("ARSET a 0 x");
  CHECK(server.run("GET a") == kWrongType);
}

TEST_CASE("An array is a key like any other", "[arrays]") {
  ArrayServer server;
  server.run("ARRING a 3 1 22222222 " + std::string(100, 'x') + " w");
  CHECK(server.run("TYPE a") == status("array"));
  CHECK(server.run("OBJECT ENCODING a") == bulk("sliced-array"));
  CHECK(server.run("SCAN 0 TYPE array") == array({bulk("0"), bulks({"a"})}));
  CHECK(server.run("COPY a copy") == integer(1));
  const std::string digest = server.run("DEBUG DIGEST-VALUE a");
  CHECK(server.run("DEBUG DIGEST-VALUE copy") == digest);
  CHECK(server.run("ARNEXT copy") == integer(1));
  server.run("ARDEL copy 0");
  CHECK(server.run("DEBUG DIGEST-VALUE copy") != digest);
  CHECK(server.run("ARCOUNT a") == integer(3));
  const std::string usage = server.run("MEMORY USAGE a");
  CHECK(std::stoi(usage.substr(1)) > 200);
}

TEST_CASE("An array survives DUMP and RESTORE with its cursor", "[arrays]") {
  ArrayServer server;
  server.run("ARMSET a 7 seven 18446744073709551614 last 0 12");
  server.run("ARSEEK a 8");
  const std::string dumped = server.run("DUMP a");
  const size_t start = dumped.find("\r\n") + 2;
  const std::string dump = dumped.substr(start, dumped.size() - start - 2);
  CHECK(server.client.run_words({"RESTORE", "b", "0", dump}) == kOk);
  CHECK(server.run("DEBUG DIGEST-VALUE b") == server.run("DEBUG DIGEST-VALUE a"));
  CHECK(server.run("ARNEXT b") == integer(8));
  // One that ends early, or whose indexes do not ascend, is refused.
  std::string cut = dump;
  cut.erase(cut.size() / 2, 3);
  CHECK(server.client.run_words({"RESTORE", "c", "0", cut}).starts_with("-ERR"));
  CHECK(server.run("EXISTS c") == integer(0));
}

TEST_CASE("Scripts read the lengths and indexes of arrays, however large", "[arrays]") {
  ArrayServer server;
  server.run("ARSET a 18446744073709551614 last");
  server.run("ARSET a 3 x");
  for (const std::string resp : {"2", "3"}) {
    CHECK(server.client.run_words(
              {"EVAL",
               "redis.setresp(" + resp + ") return string.format('%.0f', redis.call('ARLEN', 'a'))",
               "0"}) == bulk("18446744073709551616"));
    CHECK(server.client.run_words(
              {"EVAL", "redis.setresp(" + resp + ") return redis.call('ARSCAN', 'a', 0, 10)",
               "0"}) == array({pair(3, "x")}));
  }
}

TEST_CASE("Requests that change arrays are propagated as they came", "[arrays]") {
  ArrayServer server;
  PropagationRecorder stream(server);
  server.run("ARSET a 0 x");
  server.run("ARRING a 2 y z");
  server.run("ARDEL a 5");
  server.run("ARGET a 0");
  CHECK(stream.take() == "SELECT 0; ARSET a 0 x; ARRING a 2 y z");
}

}  // namespace latchkey::tests
