#include <string>

#include "commands/groups.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"
#include "unit/testing/tested_server.h"

namespace latchkey::tests {

namespace {

constexpr std::string_view kNoNumber = "ERR One or more scores can't be converted into double";

struct SortServer : ServerFixture {
  SortServer()
      : ServerFixture({commands::hash_deadline_rows(), commands::hash_rows(), commands::key_rows(),
                       commands::list_rows(), commands::object_rows(), commands::set_rows(),
                       commands::sort_rows(), commands::sorted_set_rows(),
                       commands::string_batch_rows(), commands::string_rows()}) {}
};

}  // namespace

TEST_CASE("SORT orders numbers, both ways", "[sort]") {
  SortServer server;
  TestClient client(server);
  client.run("RPUSH list 10 9 -1.5 1e3");
  CHECK(client.run("SORT list") == bulks({"-1.5", "9", "10", "1e3"}));
  CHECK(client.run("SORT list DESC") == bulks({"1e3", "10", "9", "-1.5"}));
  CHECK(client.run("SORT list ALPHA") == bulks({"-1.5", "10", "1e3", "9"}));
  CHECK(client.run("SORT_RO list") == client.run("SORT list"));
  CHECK(client.run("SORT missing") == bulks({}));
}

TEST_CASE("A sorted set that is sorted is a large one from then on", "[sort]") {
  SortServer server;
  TestClient client(server);
  for (const char* sort : {"SORT zset", "SORT_RO zset", "SORT zset BY nosort LIMIT 0 0",
                           "SORT zset ALPHA STORE list"}) {
    client.run("DEL zset");
    client.run("ZADD zset 2 1 1 2");
    INFO(sort);
    CHECK(client.run("OBJECT ENCODING zset") == bulk("listpack"));
    client.run(sort);
    CHECK(client.run("OBJECT ENCODING zset") == bulk("skiplist"));
    CHECK(client.run("ZRANK zset 1") == integer(1));
  }
}

TEST_CASE("SORT removes the fields past their deadline that it comes by", "[sort]") {
  SortServer server;
  TestClient client(server);
  client.run("RPUSH list 1 2");
  client.run("HSET user:1 name anna");
  client.run("HSETEX user:2 PX 1 FIELDS 1 name berta");
  server.advance_ms(2);
  CHECK(client.run("SORT list GET user:*->name") == array({bulk("anna"), std::string(kNull)}));
  CHECK(client.run("EXISTS user:2") == integer(0));
}

TEST_CASE("SORT refuses what is no number, and what cannot be sorted", "[sort]") {
  SortServer server;
  TestClient client(server);
  client.run("SET text 1");
  CHECK(client.run("SORT text") == kWrongType);
  for (const char* word : {"x", "nan", "0x10", "1e", "+-1", "."}) {
    client.run("DEL list");
    client.run_words({"RPUSH", "list", word, "1"});
    INFO(word);
    CHECK(client.run("SORT list") == error(kNoNumber));
  }
}

TEST_CASE("SORT reads a number up to the first NUL", "[sort]") {
  SortServer server;
  TestClient client(server);
  const std::string twelve("12\0abc", 6);
  const std::string none("\0", 1);
  client.run_words({"RPUSH", "list", twelve, "5", none});
  CHECK(client.run("SORT list") == bulks({none, "5", twelve}));
}

TEST_CASE("SORT takes nothing at all for 0, and numbers beyond a double for infinite", "[sort]") {
  SortServer server;
  TestClient client(server);
  client.run_words({"RPUSH", "list", "1e400", "+1", "", "-inf", "1e-400"});
  CHECK(client.run("SORT list") == bulks({"-inf", "", "1e-400", "+1", "1e400"}));
}

TEST_CASE("SORT LIMIT gives a part of what would be the whole", "[sort]") {
  SortServer server;
  TestClient client(server);
  client.run("RPUSH list 5 3 1 4 2");
  CHECK(client.run("SORT list LIMIT 1 2") == bulks({"2", "3"}));
  CHECK(client.run("SORT list LIMIT 3 9") == bulks({"4", "5"}));
  CHECK(client.run("SORT list LIMIT 2 -1") == bulks({"3", "4", "5"}));
  CHECK(client.run("SORT list LIMIT -2 1") == bulks({"1"}));
  CHECK(client.run("SORT list LIMIT 9 1") == bulks({}));
  CHECK(client.run("SORT list LIMIT 9223372036854775807 9223372036854775807") == bulks({}));
  CHECK(client.run("SORT list LIMIT 1") == error("ERR syntax error"));
  CHECK(client.run("SORT list LIMIT a 1") == error("ERR value is not an integer or out of range"));
}

TEST_CASE("every part of a sorted list is what the whole has there", "[sort]") {
  SortServer server;
  TestClient client(server);
  constexpr int kElements = 60;
  for (int i = 0; i < kElements; ++i)
    client.run("RPUSH list " + std::to_string(i * 37 % kElements));
  for (int first = 0; first < kElements; first += 7) {
    for (int count = 0; count < kElements; count += 11) {
      std::string expected;
      const int end = std::min(first + count, kElements);
      for (int i = first; i < end; ++i) expected += bulk(std::to_string(i));
      CHECK(client.run("SORT list LIMIT " + std::to_string(first) + " " + std::to_string(count)) ==
            "*" + std::to_string(end - first) + "\r\n" + expected);
    }
  }
}

TEST_CASE("SORT BY takes weights from other keys and from fields of hashes", "[sort]") {
  SortServer server;
  TestClient client(server);
  client.run("RPUSH list 1 2 3");
  client.run("MSET weight_1 30 weight_2 20 weight_3 10");
  CHECK(client.run("SORT list BY weight_*") == bulks({"3", "2", "1"}));
  client.run("HSET person_1 age 20");
  client.run("HSET person_2 age 30");
  CHECK(client.run("SORT list BY person_*->age") == bulks({"3", "1", "2"}));
  CHECK(client.run("SORT list BY person_*->age DESC") == bulks({"2", "1", "3"}));
  client.run("SET weight_2 x");
  CHECK(client.run("SORT list BY weight_*") == error(kNoNumber));
  CHECK(client.run("SORT list BY weight_* ALPHA") == bulks({"3", "1", "2"}));
  CHECK(client.run("SORT list BY nothing_* ALPHA") == bulks({"1", "2", "3"}));
}

TEST_CASE("SORT GET gives values in the place of elements", "[sort]") {
  SortServer server;
  TestClient client(server);
  TestClient client3(server, 3);
  client.run("RPUSH list 2 1");
  client.run("MSET name_1 anna name_2 ben");
  client.run("HSET person_1 age 20");
  CHECK(client.run("SORT list GET name_*") == bulks({"anna", "ben"}));
  CHECK(client.run("SORT list GET # GET person_*->age GET name") ==
        array({bulk("1"), bulk("20"), std::string(kNull), bulk("2"), std::string(kNull),
               std::string(kNull)}));
  CHECK(client3.run("SORT list GET person_*->age") == array({bulk("20"), std::string(kNull3)}));
  CHECK(client.run("SORT list GET person_*") == array({std::string(kNull), std::string(kNull)}));
  CHECK(client.run("SORT list GET name_*->age") == array({std::string(kNull), std::string(kNull)}));
}

TEST_CASE("SORT BY a text without a star leaves the order of lists and sorted sets", "[sort]") {
  SortServer server;
  TestClient client(server);
  client.run("RPUSH list c a b");
  client.run("ZADD zset 1 z 2 y 3 x");
  CHECK(client.run("SORT list BY nosort") == bulks({"c", "a", "b"}));
  CHECK(client.run("SORT list BY nosort DESC LIMIT 0 2") == bulks({"b", "a"}));
  CHECK(client.run("SORT zset BY nosort") == bulks({"z", "y", "x"}));
  CHECK(client.run("SORT zset BY nosort DESC LIMIT 0 2") == bulks({"x", "y"}));
  CHECK(client.run("SORT zset BY nosort LIMIT 1 9") == bulks({"y", "x"}));
}

TEST_CASE("SORT STORE keeps the result as a list, in an order that can be told", "[sort]") {
  SortServer server;
  TestClient client(server);
  client.run("SADD set b a c");
  client.run("SET target x PX 100");
  server.events();
  server.changes();
  CHECK(client.run("SORT set BY nosort STORE target") == integer(3));
  CHECK(server.events() == "sortstore target");
  CHECK(server.changes() == 3);
  CHECK(client.run("LRANGE target 0 -1") == bulks({"a", "b", "c"}));
  CHECK(client.run("SORT target ALPHA DESC STORE target") == integer(3));
  CHECK(client.run("LRANGE target 0 -1") == bulks({"c", "b", "a"}));
  CHECK(client.run("SORT target ALPHA GET x* STORE target") == integer(3));
  CHECK(client.run("LRANGE target 0 -1") == bulks({"", "", ""}));
  server.events();
  CHECK(client.run("SORT missing STORE target") == integer(0));
  CHECK(server.events() == "del target");
  CHECK(client.run("SORT_RO set STORE target") == error("ERR syntax error"));
}

TEST_CASE("SORT of a large list is stored in full", "[sort]") {
  SortServer server;
  TestClient client(server);
  for (int i = 1000; i > 0; --i) client.run("RPUSH list " + std::to_string(i));
  CHECK(client.run("SORT list STORE target") == integer(1000));
  CHECK(client.run("LRANGE target 998 -1") == bulks({"999", "1000"}));
  CHECK(client.run("OBJECT ENCODING target") == client.run("OBJECT ENCODING list"));
}

TEST_CASE("The keys of SORT are the list and the last target", "[sort]") {
  TestedServer server;
  TestClient client(server);
  const auto keys = [&](const std::string& words) {
    return client.run("COMMAND GETKEYS SORT " + words);
  };
  CHECK(keys("list") == bulks({"list"}));
  CHECK(keys("list LIMIT 0 5 STORE to") == bulks({"list", "to"}));
  CHECK(keys("list BY w_* GET # STORE one ALPHA STORE two") == bulks({"list", "two"}));
  CHECK(keys("list LIMIT STORE STORE STORE to") == bulks({"list", "to"}));
  CHECK(keys("list GET STORE") == bulks({"list"}));
}

TEST_CASE("SORT_RO has no target", "[sort]") {
  TestedServer server;
  TestClient client(server);
  CHECK(client.run("COMMAND GETKEYS SORT_RO list STORE to") == bulks({"list"}));
}

TEST_CASE("SORT takes a large weight once for all elements that have it", "[sort]") {
  SortServer server;
  TestClient client(server);
  // With a copy for each element it would be forty gigabytes.
  constexpr size_t kElements = 20'000;
  const std::string large(2 << 20, 'x');
  CHECK(client.run_words({"SET", "w_a", large + "a"}) == kOk);
  CHECK(client.run_words({"SET", "w_b", large}) == kOk);
  std::string push = "RPUSH list b";
  for (size_t i = 0; i < kElements; ++i) push += " a";
  client.run(push + " b");
  CHECK(client.run("SORT list BY w_* ALPHA LIMIT 0 3") == bulks({"b", "b", "a"}));
  CHECK(client.run("SORT list BY w_* ALPHA DESC LIMIT 19999 2") == bulks({"a", "b"}));
}

}  // namespace latchkey::tests
