// Values in the encodings that servers of old have written.
#include <initializer_list>
#include <limits>
#include <string>

#include "commands/groups.h"
#include "persist/rows.h"
#include "store/encoding/listpack.h"
#include "store/value/hash.h"
#include "unit/catch.h"
#include "unit/persist/rdb/rdb_bytes.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct OldServer : ServerFixture {
  explicit OldServer(std::string_view settings = {})
      : ServerFixture({commands::hash_deadline_rows(), commands::hash_rows(), commands::key_rows(),
                       commands::list_rows(), commands::object_rows(), commands::set_rows(),
                       commands::sorted_set_range_rows(), commands::sorted_set_rows(),
                       commands::stream_info_rows(), commands::stream_rows(), persist::dump_rows()},
                      settings) {}
  std::string encoding(std::string_view key) {
    const store::KeyRef ref = database().find(key);
    return ref ? std::string(ref->encoding_name()) : "none";
  }
};

std::string restore(TestClient& client, std::string_view key, const std::string& body) {
  return client.run_words({"RESTORE", key, "0", rdb_dump(body)});
}

// A hash's fields "f0", "f1" and so on with the value "v", each with its deadline, in one listpack.
std::string hash_listpack(std::initializer_list<int64_t> deadlines_ms) {
  store::Listpack pack;
  for (const int64_t deadline_ms : deadlines_ms) {
    pack.append("f" + std::to_string(pack.size() / 3));
    pack.append("v");
    pack.append(deadline_ms);
  }
  return byte(23) + rdb_string({pack.bytes().data(), pack.bytes().size()});
}

const std::string kBad = error("ERR Bad data format");

}  // namespace

TEST_CASE("A list of strings is read", "[rdb]") {
  OldServer server;
  TestClient client(server);
  CHECK(restore(client, "list",
                byte(1) + rdb_length(3) + rdb_string("a") + from_hex("c005") + rdb_string("c")) ==
        kOk);
  CHECK(client.run("LRANGE list 0 -1") == bulks({"a", "5", "c"}));
  CHECK(server.encoding("list") == "listpack");
}

TEST_CASE("A ziplist's every kind of entry is read", "[rdb]") {
  OldServer server;
  TestClient client(server);
  const std::string text(100, 'x');
  const std::string pack = ziplist({
      zip_text("short"),
      byte(0x40) + byte(100) + text,                            // 14 bits of length
      byte(0x80) + from_hex("00000003") + "abc",                // 32 bits of length
      byte(0xc0) + number(static_cast<uint64_t>(-300), 2),      // 16 bits
      byte(0xf0) + number(static_cast<uint64_t>(-70000), 3),    // 24 bits
      byte(0xd0) + number(100000000, 4),                        // 32 bits
      byte(0xe0) + number(static_cast<uint64_t>(-1) << 40, 8),  // 64 bits
      byte(0xfe) + number(static_cast<uint64_t>(-100), 1),      // 8 bits
      byte(0xf1),                                               // 0
      byte(0xfd),                                               // 12
  });
  CHECK(restore(client, "list", byte(10) + rdb_string(pack)) == kOk);
  CHECK(client.run("LRANGE list 0 -1") ==
        bulks({"short", text, "abc", "-300", "-70000", "100000000", "-1099511627776", "-100", "0",
               "12"}));
}

TEST_CASE("A ziplist with any byte damaged is refused or read, never more", "[rdb]") {
  OldServer server;
  TestClient client(server);
  const std::string pack = ziplist({zip_text("one"), byte(0xc0) + number(5, 2), zip_text("three")});
  for (size_t i = 0; i < pack.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = pack;
      damaged[i] = static_cast<char>(damaged[i] ^ 1 << bit);
      const std::string reply = client.run_words(
          {"RESTORE", "list", "0", rdb_dump(byte(10) + rdb_string(damaged)), "REPLACE"});
      CHECK((reply == kOk || reply == kBad));
    }
  }
  for (size_t size = 0; size < pack.size(); ++size)
    CHECK(restore(client, "other", byte(10) + rdb_string(pack.substr(0, size))) == kBad);
}

TEST_CASE("Quicklists of ziplists are read node by node", "[rdb]") {
  OldServer server("list-max-listpack-size 2");
  TestClient client(server);
  const std::string first = ziplist({zip_text("a"), zip_text("b")});
  const std::string second = ziplist({zip_text("c")});
  CHECK(restore(client, "list",
                byte(14) + rdb_length(2) + rdb_string(first) + rdb_string(second)) == kOk);
  CHECK(client.run("LRANGE list 0 -1") == bulks({"a", "b", "c"}));
  CHECK(server.encoding("list") == "quicklist");
}

TEST_CASE("Hashes are read from zipmaps and ziplists", "[rdb]") {
  OldServer server;
  TestClient client(server);
  const std::string zipmap = byte(2) + byte(1) + "a" + byte(1) + byte(2) + "1" + "??" + byte(1) +
                             "b" + byte(3) + byte(0) + "two" + byte(0xff);
  CHECK(restore(client, "map", byte(9) + rdb_string(zipmap)) == kOk);
  CHECK(client.run("HGETALL map") == bulks({"a", "1", "b", "two"}));
  const std::string pack = ziplist({zip_text("f"), byte(0xf3), zip_text("g"), zip_text("x")});
  CHECK(restore(client, "hash", byte(13) + rdb_string(pack)) == kOk);
  CHECK(client.run("HGETALL hash") == bulks({"f", "2", "g", "x"}));
  CHECK(server.encoding("hash") == "listpack");

  const std::string odd = ziplist({zip_text("f")});
  CHECK(restore(client, "x", byte(13) + rdb_string(odd)) == kBad);
  const std::string twice = ziplist({zip_text("f"), zip_text("1"), zip_text("f"), zip_text("2")});
  CHECK(restore(client, "x", byte(13) + rdb_string(twice)) == kBad);
  CHECK(restore(client, "x", byte(9) + rdb_string(zipmap.substr(0, 8))) == kBad);
  // Five bytes for a length that one byte could hold.
  const std::string one = byte(0xfe) + byte(1) + byte(0) + byte(0) + byte(0);
  CHECK(restore(client, "x",
                byte(9) + rdb_string(byte(1) + one + "a" + byte(1) + byte(0) + "1" + byte(0xff))) ==
        kBad);
  CHECK(restore(client, "x",
                byte(9) + rdb_string(byte(1) + byte(1) + "a" + one + byte(0) + "1" + byte(0xff))) ==
        kBad);
  const std::string long_one = byte(0xfe) + byte(0xfe) + byte(0) + byte(0) + byte(0);
  const std::string long_text(254, 'x');
  CHECK(restore(client, "long",
                byte(9) + rdb_string(byte(1) + byte(1) + "a" + long_one + byte(0) + long_text +
                                     byte(0xff))) == kOk);
  CHECK(client.run("HGET long a") == bulk(long_text));
}

TEST_CASE("Hashes of strings are read, a field twice is refused", "[rdb]") {
  OldServer server;
  TestClient client(server);
  const std::string a = rdb_string("a") + rdb_string("1");
  const std::string b = rdb_string("b") + rdb_string("2");
  CHECK(restore(client, "hash", byte(4) + rdb_length(2) + a + b) == kOk);
  CHECK(client.run("HGETALL hash") == bulks({"a", "1", "b", "2"}));
  CHECK(restore(client, "x", byte(4) + rdb_length(2) + a + a) == kBad);
  CHECK(restore(client, "x", byte(4) + rdb_length(3) + a + b) == kBad);
}

TEST_CASE("Field deadlines are read in their first layout", "[rdb]") {
  OldServer server;
  TestClient client(server);
  const auto deadline_ms = static_cast<uint64_t>(server.now_ms() + 5000);
  std::string big_endian;
  for (int i = 7; i >= 0; --i) big_endian += byte(static_cast<int>(deadline_ms >> (8 * i) & 255));
  const std::string hash = byte(22) + rdb_length(2) + byte(0x81) + big_endian + rdb_string("f") +
                           rdb_string("1") + byte(0) + rdb_string("g") + rdb_string("2");
  CHECK(restore(client, "hash", hash) == kOk);
  CHECK(client.run("HPTTL hash FIELDS 2 f g") == array({integer(5000), integer(-1)}));
}

TEST_CASE("A listpack's field deadlines ascend, and those without one come last", "[rdb]") {
  OldServer server;
  TestClient client(server);
  constexpr int64_t kLast = store::Hash::kMaxDeadline;
  const int64_t soon_ms = server.now_ms() + 5000;
  CHECK(restore(client, "a", hash_listpack({soon_ms, soon_ms, soon_ms + 1, kLast, 0, 0})) == kOk);
  CHECK(client.run("HPEXPIRETIME a FIELDS 6 f0 f1 f2 f3 f4 f5") ==
        array({integer(soon_ms), integer(soon_ms), integer(soon_ms + 1), integer(kLast),
               integer(-1), integer(-1)}));
  CHECK(restore(client, "b", hash_listpack({0})) == kOk);
  CHECK(client.run("HPTTL b FIELDS 1 f0") == array({integer(-1)}));
  CHECK(restore(client, "x", hash_listpack({soon_ms, soon_ms - 1})) == kBad);
  CHECK(restore(client, "x", hash_listpack({0, soon_ms})) == kBad);
  CHECK(restore(client, "x", hash_listpack({0, kLast})) == kBad);
  CHECK(restore(client, "x", hash_listpack({-1})) == kBad);
  CHECK(restore(client, "x", hash_listpack({kLast + 1})) == kBad);
  CHECK(restore(client, "x", hash_listpack({std::numeric_limits<int64_t>::max()})) == kBad);
  CHECK(restore(client, "x", hash_listpack({std::numeric_limits<int64_t>::min()})) == kBad);

  // A field without value or deadline, and a deadline that is text.
  store::Listpack pack;
  const auto hash = [&] {
    return byte(23) + rdb_string({pack.bytes().data(), pack.bytes().size()});
  };
  pack.append("f");
  CHECK(restore(client, "x", hash()) == kBad);
  pack.append("v");
  CHECK(restore(client, "x", hash()) == kBad);
  pack.append("soon");
  CHECK(restore(client, "x", hash()) == kBad);
  CHECK(client.run("EXISTS x") == integer(0));
}

TEST_CASE("Sets and sorted sets are read from strings", "[rdb]") {
  OldServer server;
  TestClient client(server);
  CHECK(restore(client, "set", byte(2) + rdb_length(2) + rdb_string("a") + rdb_string("b")) == kOk);
  CHECK(server.encoding("set") == "listpack");
  CHECK(restore(client, "integers",
                byte(2) + rdb_length(2) + from_hex("c005") + rdb_string("700000000000")) == kOk);
  CHECK(server.encoding("integers") == "intset");
  CHECK(restore(client, "x", byte(2) + rdb_length(2) + rdb_string("a") + rdb_string("a")) == kBad);

  const std::string scores = byte(3) + rdb_length(4) + rdb_string("b") + byte(4) + "2.25" +
                             rdb_string("top") + byte(254) + rdb_string("low") + byte(255) +
                             rdb_string("a") + byte(1) + "1";
  CHECK(restore(client, "sorted", scores) == kOk);
  CHECK(client.run("ZRANGE sorted 0 -1 WITHSCORES") ==
        bulks({"low", "-inf", "a", "1", "b", "2.25", "top", "inf"}));
  CHECK(restore(client, "x", byte(3) + rdb_length(1) + rdb_string("m") + byte(253)) == kBad);
  const std::string nan = from_hex("000000000000f87f");
  CHECK(restore(client, "x", byte(5) + rdb_length(1) + rdb_string("m") + nan) == kBad);
}

TEST_CASE("Sorted sets are read from ziplists and put in order", "[rdb]") {
  OldServer server;
  TestClient client(server);
  const std::string pack = ziplist(
      {zip_text("b"), zip_text("2.5"), zip_text("a"), byte(0xf2), zip_text("c"), byte(0xf2)});
  CHECK(restore(client, "sorted", byte(12) + rdb_string(pack)) == kOk);
  CHECK(client.run("ZRANGE sorted 0 -1 WITHSCORES") == bulks({"a", "1", "c", "1", "b", "2.5"}));
  // Scores that descend while the members ascend, and equal scores whose members descend.
  const std::string falling = ziplist({zip_text("a"), zip_text("2.5"), zip_text("b"), byte(0xf2)});
  CHECK(restore(client, "falling", byte(12) + rdb_string(falling)) == kOk);
  CHECK(client.run("ZRANGE falling 0 -1 WITHSCORES") == bulks({"b", "1", "a", "2.5"}));
  const std::string equal = ziplist({zip_text("b"), byte(0xf2), zip_text("a"), byte(0xf2)});
  CHECK(restore(client, "equal", byte(12) + rdb_string(equal)) == kOk);
  CHECK(client.run("ZRANGE equal 0 -1") == bulks({"a", "b"}));
  const std::string no_score = ziplist({zip_text("b"), zip_text("much")});
  CHECK(restore(client, "x", byte(12) + rdb_string(no_score)) == kBad);
}

TEST_CASE("Values beyond the limits are read into their large encodings", "[rdb]") {
  OldServer server(
      "hash-max-listpack-entries 1\nset-max-intset-entries 1\nset-max-listpack-entries 1\n"
      "zset-max-listpack-entries 1");
  TestClient client(server);
  const std::string pairs = ziplist({zip_text("f"), byte(0xf2), zip_text("g"), byte(0xf3)});
  CHECK(restore(client, "hash", byte(13) + rdb_string(pairs)) == kOk);
  CHECK(server.encoding("hash") == "hashtable");
  CHECK(restore(client, "sorted", byte(12) + rdb_string(pairs)) == kOk);
  CHECK(server.encoding("sorted") == "skiplist");
  CHECK(restore(client, "set", byte(11) + rdb_string(from_hex("020000000200000001000200"))) == kOk);
  CHECK(server.encoding("set") == "hashtable");
  CHECK(restore(client, "texts", from_hex("140d0d0000000200816102816202ff")) == kOk);
  CHECK(server.encoding("texts") == "hashtable");
}

TEST_CASE("A set read member by member is a table when it is too large for an intset", "[rdb]") {
  OldServer server("set-max-intset-entries 2\nset-max-listpack-entries 8");
  TestClient client(server);
  const std::string two = byte(2) + rdb_length(2) + rdb_string("a") + rdb_string("b");
  CHECK(restore(client, "two", two) == kOk);
  CHECK(server.encoding("two") == "listpack");
  const std::string three =
      byte(2) + rdb_length(3) + rdb_string("a") + rdb_string("b") + rdb_string("c");
  CHECK(restore(client, "three", three) == kOk);
  CHECK(server.encoding("three") == "hashtable");
}

TEST_CASE("Streams without counters are read", "[rdb]") {
  OldServer server;
  TestClient client(server);
  const std::string node = from_hex("1d0000000a0001010001010181610200010201000100018162020401ff");
  const std::string id = from_hex("00000000000000010000000000000001");
  const std::string stream = byte(15) + rdb_length(1) + rdb_string(id) + rdb_string(node) +
                             rdb_length(1) + rdb_length(1) + rdb_length(1) + rdb_length(1) +
                             rdb_string("g") + rdb_length(1) + rdb_length(1) + rdb_length(1) + id +
                             number(1000, 8) + rdb_length(3) + rdb_length(1) + rdb_string("c") +
                             number(2000, 8) + rdb_length(1) + id;
  CHECK(restore(client, "stream", stream) == kOk);
  CHECK(client.run("XRANGE stream - +") == array({array({bulk("1-1"), bulks({"a", "b"})})}));
  const std::string full = client.run("XINFO STREAM stream FULL");
  CHECK(full.find(bulk("entries-added") + integer(1)) != std::string::npos);
  CHECK(full.find(bulk("entries-read") + integer(1)) != std::string::npos);
  CHECK(full.find(array({bulk("1-1"), bulk("c"), integer(1000), integer(3)})) != std::string::npos);
}

TEST_CASE("A stream whose parts contradict each other is refused", "[rdb]") {
  OldServer server;
  TestClient client(server);
  const std::string node = from_hex("1d0000000a0001010001010181610200010201000100018162020401ff");
  const std::string id = from_hex("00000000000000010000000000000001");
  const std::string nodes = byte(15) + rdb_length(1) + rdb_string(id) + rdb_string(node);
  const std::string figures = rdb_length(1) + rdb_length(1) + rdb_length(1);
  CHECK(restore(client, "a", nodes + figures + rdb_length(0)) == kOk);
  // More entries than there are; a last id below that of an entry.
  CHECK(restore(client, "x",
                nodes + rdb_length(2) + rdb_length(1) + rdb_length(1) + rdb_length(0)) == kBad);
  CHECK(restore(client, "x",
                nodes + rdb_length(1) + rdb_length(0) + rdb_length(9) + rdb_length(0)) == kBad);
  const std::string group = rdb_string("g") + rdb_length(1) + rdb_length(1);
  const std::string pending = rdb_length(1) + id + number(1000, 8) + rdb_length(3);
  const std::string consumer = rdb_string("c") + number(2000, 8);
  const std::string head = nodes + figures;
  // Pending, and nobody's; somebody's, and not pending; the same group, the same consumer twice.
  CHECK(restore(client, "x", head + rdb_length(1) + group + pending + rdb_length(0)) == kBad);
  CHECK(restore(client, "x",
                head + rdb_length(1) + group + rdb_length(0) + rdb_length(1) + consumer +
                    rdb_length(1) + id) == kBad);
  const std::string empty_group = group + rdb_length(0) + rdb_length(0);
  CHECK(restore(client, "x", head + rdb_length(2) + empty_group + empty_group) == kBad);
  const std::string idle = consumer + rdb_length(0);
  CHECK(restore(client, "x",
                head + rdb_length(1) + group + rdb_length(0) + rdb_length(2) + idle + idle) ==
        kBad);
  CHECK(restore(client, "b",
                head + rdb_length(1) + group + pending + rdb_length(1) + consumer + rdb_length(1) +
                    id) == kOk);
}

TEST_CASE("Times of a stream's group before 1970 are read as 1970", "[rdb]") {
  OldServer server;
  TestClient client(server);
  const std::string node = from_hex("1d0000000a0001010001010181610200010201000100018162020401ff");
  const std::string id = from_hex("00000000000000010000000000000001");
  const auto delivered = [&](const std::string& key, int64_t time_ms) {
    const std::string time = number(static_cast<uint64_t>(time_ms), 8);
    CHECK(restore(client, key,
                  byte(15) + rdb_length(1) + rdb_string(id) + rdb_string(node) + rdb_length(1) +
                      rdb_length(1) + rdb_length(1) + rdb_length(1) + rdb_string("g") +
                      rdb_length(1) + rdb_length(1) + rdb_length(1) + id + time + rdb_length(3) +
                      rdb_length(1) + rdb_string("c") + time + rdb_length(1) + id) == kOk);
    return client.run("XINFO STREAM " + key + " FULL");
  };
  const auto pending = [](int64_t time_ms) {
    return array({bulk("1-1"), bulk("c"), integer(time_ms), integer(3)});
  };
  for (const int64_t time_ms : {-1, 0}) {
    const std::string full = delivered(time_ms < 0 ? "before" : "at", time_ms);
    CHECK(full.find(pending(0)) != std::string::npos);
    CHECK(full.find(bulk("seen-time") + integer(0)) != std::string::npos);
  }
  const std::string full = delivered("after", 1);
  CHECK(full.find(pending(1)) != std::string::npos);
  CHECK(full.find(bulk("seen-time") + integer(1)) != std::string::npos);
}

TEST_CASE("What is no value is refused", "[rdb]") {
  OldServer server;
  TestClient client(server);
  for (const int type : {6, 7, 8, 26, 99, 250, 255})
    CHECK(restore(client, "x", byte(type) + rdb_string("abc")) == kBad);
  CHECK(restore(client, "x", "") == kBad);
  for (const int type : {1, 2, 3, 4, 5, 14, 18})
    CHECK(restore(client, "x", byte(type) + rdb_length(0)) == kBad);
  // Compressed text that says it is longer than it can be, or is none.
  CHECK(restore(client, "x", byte(0) + from_hex("c303") + from_hex("80ffffffff") + "abc") == kBad);
  CHECK(restore(client, "x", byte(0) + from_hex("c30305") + "abc") == kBad);
  // Far more bytes than there are.
  CHECK(restore(client, "x", byte(0) + from_hex("81ffffffffffffffff") + "abc") == kBad);
  CHECK(server.database().size() == 0);
}

}  // namespace latchkey::tests
