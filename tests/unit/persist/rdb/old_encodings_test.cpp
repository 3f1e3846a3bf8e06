// Values in the encodings that servers of old have written.
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>

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
                       commands::stream_info_rows(), commands::stream_pending_rows(),
                       commands::stream_rows(), persist::dump_rows()},
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

namespace {

// The id 1-1, and a stream's node with that entry.
const std::string kId = from_hex("00000000000000010000000000000001");
const std::string kNode = from_hex("1d0000000a0001010001010181610200010201000100018162020401ff");

// A stream of one entry, in the layout with counters, up to its groups. `added`: how many entries
// it says were ever added.
std::string stream_head(int type, size_t added = 1) {
  return byte(type) + rdb_length(1) + rdb_string(kId) + rdb_string(kNode) + rdb_length(1) +
         rdb_length(1) + rdb_length(1) + rdb_length(1) + rdb_length(1) + rdb_length(0) +
         rdb_length(0) + rdb_length(added);
}
// The start of a group of the name g that has read the entry.
std::string group_head(size_t pending) {
  return rdb_length(1) + rdb_string("g") + rdb_length(1) + rdb_length(1) + rdb_length(1) +
         rdb_length(pending);
}
std::string pending_record(uint64_t delivered_ms) {
  return kId + number(delivered_ms, 8) + rdb_length(3);
}
std::string consumer_head(std::string_view name, uint64_t seen_ms, size_t pending) {
  return rdb_string(name) + number(seen_ms, 8) + number(seen_ms, 8) + rdb_length(pending);
}

}  // namespace

TEST_CASE("An entry that is pending twice is refused, in a group and with a consumer", "[rdb]") {
  OldServer server;
  TestClient client(server);
  const auto reply = [&](size_t records, size_t owned) {
    std::string body = stream_head(21) + group_head(records);
    for (size_t i = 0; i < records; ++i) body += pending_record(1000);
    body += rdb_length(1) + consumer_head("c", 2000, owned);
    for (size_t i = 0; i < owned; ++i) body += kId;
    client.run("DEL s");
    return restore(client, "s", body);
  };
  CHECK(reply(1, 1) == kOk);
  CHECK(client.run("XPENDING s g") ==
        array({integer(1), bulk("1-1"), bulk("1-1"), array({bulks({"c", "1"})})}));
  CHECK(reply(2, 1) == kBad);
  CHECK(reply(1, 2) == kBad);
  CHECK(reply(0, 0) == kOk);
}

TEST_CASE("An entry of a consumer without a name that was delivered never is released", "[rdb]") {
  OldServer server;
  TestClient client(server);
  const auto restored = [&](const std::string& name, uint64_t delivered_ms, uint64_t seen_ms) {
    client.run("DEL s");
    REQUIRE(restore(client, "s",
                    stream_head(21) + group_head(1) + pending_record(delivered_ms) + rdb_length(1) +
                        consumer_head(name, seen_ms, 1) + kId) == kOk);
    const std::string groups = client.run("XINFO GROUPS s");
    return groups.find(bulk("consumers") + integer(0)) != std::string::npos;
  };
  CHECK(restored("", 0, 0));
  CHECK(client.run("XPENDING s g - + 9") ==
        array({array({bulk("1-1"), bulk(""), integer(-1), integer(3)})}));
  // It has a name; it was delivered; the consumer was seen.
  CHECK_FALSE(restored("c", 0, 0));
  CHECK_FALSE(restored("", 1, 0));
  CHECK_FALSE(restored("", 0, 1));
}

TEST_CASE("A stream that says it has had fewer entries than it has is believed no less", "[rdb]") {
  OldServer server;
  TestClient client(server);
  const auto added = [&](size_t told) {
    client.run("DEL s");
    REQUIRE(restore(client, "s", stream_head(19, told) + rdb_length(0)) == kOk);
    const std::string info = client.run("XINFO STREAM s");
    const std::string name = bulk("entries-added") + ":";
    return std::stoi(info.substr(info.find(name) + name.size()));
  };
  CHECK(added(0) == 1);
  CHECK(added(1) == 1);
  CHECK(added(2) == 2);
}

TEST_CASE("A stream that ends too early is refused wherever that is", "[rdb]") {
  OldServer server;
  TestClient client(server);
  const std::string body = stream_head(26) + group_head(1) + pending_record(1000) + rdb_length(1) +
                           consumer_head("c", 2000, 1) + kId + rdb_length(100) + rdb_length(2) +
                           rdb_length(1) + rdb_string("p") + rdb_length(1) + rdb_string("r") +
                           rdb_length(1) + rdb_length(1) + rdb_length(4) + rdb_length(5);
  const auto reply = [&](const std::string& bytes) {
    return client.run_words({"RESTORE", "s", "0", rdb_dump(bytes, 13)});
  };
  for (size_t size = 1; size < body.size(); ++size) {
    CAPTURE(size);
    CHECK(reply(body.substr(0, size)) == kBad);
  }
  CHECK(reply(body) == kOk);
}

TEST_CASE("The limits of a stream's producers are those that can be set", "[rdb]") {
  OldServer server;
  TestClient client(server);
  const auto reply = [&](uint64_t duration_s, uint64_t most_each) {
    client.run("DEL s");
    const auto big = [](uint64_t value) {
      std::string bytes = byte(0x81);
      for (int shift = 56; shift >= 0; shift -= 8)
        bytes += byte(static_cast<int>(value >> shift & 255));
      return bytes;
    };
    return client.run_words(
        {"RESTORE", "s", "0",
         rdb_dump(stream_head(26) + rdb_length(0) + big(duration_s) + big(most_each) +
                      rdb_length(0) + rdb_length(4) + rdb_length(5),
                  13)});
  };
  CHECK(reply(1, 1) == kOk);
  CHECK(reply(86'400, 10'000) == kOk);
  const std::string info = client.run("XINFO STREAM s");
  CHECK(info.find(bulk("idmp-duration") + integer(86'400)) != std::string::npos);
  CHECK(info.find(bulk("idmp-maxsize") + integer(10'000)) != std::string::npos);
  CHECK(info.find(bulk("iids-added") + integer(4)) != std::string::npos);
  CHECK(info.find(bulk("iids-duplicates") + integer(5)) != std::string::npos);
  CHECK(reply(0, 1) == kBad);
  CHECK(reply(1, 0) == kBad);
  CHECK(reply(86'401, 1) == kBad);
  CHECK(reply(1, 10'001) == kBad);
}

TEST_CASE("Deadlines of a hash's fields that cannot be are refused, and fields twice", "[rdb]") {
  OldServer server;
  TestClient client(server);
  constexpr auto kLast = static_cast<uint64_t>(store::Hash::kMaxDeadline);
  const auto big = [](uint64_t value) {
    std::string bytes = byte(0x81);
    for (int shift = 56; shift >= 0; shift -= 8)
      bytes += byte(static_cast<int>(value >> shift & 255));
    return bytes;
  };
  // In the first layout deadlines are absolute, and in the present one from the earliest on.
  const auto hash = [&](int type, uint64_t first_ms, uint64_t deadline_ms) {
    client.run("DEL x");
    return restore(client, "x",
                   byte(type) + (type == 24 ? number(first_ms, 8) : std::string()) + rdb_length(1) +
                       big(deadline_ms) + rdb_string("f") + rdb_string("1"));
  };
  CHECK(hash(22, 0, kLast) == kOk);
  CHECK(client.run("HPEXPIRETIME x FIELDS 1 f") == array({integer(store::Hash::kMaxDeadline)}));
  CHECK(hash(22, 0, kLast + 1) == kBad);
  CHECK(hash(24, kLast, 1) == kOk);
  CHECK(client.run("HPEXPIRETIME x FIELDS 1 f") == array({integer(store::Hash::kMaxDeadline)}));
  CHECK(hash(24, kLast, 2) == kBad);
  CHECK(hash(24, 5, uint64_t{1} << 63) == kBad);

  const std::string field = byte(0) + rdb_string("f") + rdb_string("1");
  CHECK(restore(client, "y", byte(24) + number(0, 8) + rdb_length(2) + field + field) == kBad);
  store::Listpack pack;
  for (const char* text : {"f", "1", "0", "f", "2", "0"}) pack.append(text);
  const std::string twice = byte(23) + rdb_string({pack.bytes().data(), pack.bytes().size()});
  CHECK(restore(client, "y", twice) == kBad);
  CHECK(client.run("EXISTS y") == integer(0));
}

TEST_CASE("A hash of Valkey 9 has its deadlines behind its fields", "[rdb]") {
  OldServer server("emulate \"valkey 9.1\"\n");
  TestClient client(server);
  const auto hash = [&](std::initializer_list<std::pair<const char*, int64_t>> fields) {
    std::string body = byte(22) + rdb_length(fields.size());
    for (const auto& [name, deadline_ms] : fields)
      body += rdb_string(name) + rdb_string("v") + number(static_cast<uint64_t>(deadline_ms), 8);
    client.run("DEL x");
    return client.run_words({"RESTORE", "x", "0", rdb_dump(body, 80)});
  };
  constexpr int64_t kLast = store::Hash::kMaxDeadline;
  CHECK(hash({{"f", kLast}, {"g", -1}}) == kOk);
  CHECK(client.run("HPEXPIRETIME x FIELDS 2 f g") == array({integer(kLast), integer(-1)}));
  // Valkey takes later ones.
  CHECK(hash({{"f", kLast + 1}}) == kOk);
  CHECK(client.run("HPEXPIRETIME x FIELDS 1 f") == array({integer(kLast)}));
  CHECK(hash({{"f", -2}}) == kBad);
  CHECK(hash({{"f", -1}, {"f", -1}}) == kBad);
  CHECK(hash({}) == kBad);
}

TEST_CASE("A zipmap with a field twice, or with half a pair, is refused", "[rdb]") {
  OldServer server;
  TestClient client(server);
  const std::string a = byte(1) + "a" + byte(1) + byte(0) + "1";
  const std::string b = byte(1) + "b" + byte(1) + byte(0) + "2";
  const auto zipmap = [&](const std::string& pairs) {
    client.run("DEL x");
    return restore(client, "x", byte(9) + rdb_string(byte(2) + pairs + byte(0xff)));
  };
  CHECK(zipmap(a + b) == kOk);
  CHECK(client.run("HGETALL x") == bulks({"a", "1", "b", "2"}));
  CHECK(zipmap(a + a) == kBad);
  CHECK(zipmap("") == kBad);
  CHECK(zipmap(a + byte(1) + "b") == kBad);
}

TEST_CASE("Elements are told apart by their text, numbers or not, however many there are",
          "[rdb]") {
  OldServer server("hash-max-listpack-entries 1000");
  TestClient client(server);
  const auto hash = [&](int fields, const std::string& last) {
    store::Listpack pack;
    for (int i = 0; i < fields; ++i) {
      pack.append("f" + std::to_string(i));
      pack.append("v");
    }
    pack.append(last);
    pack.append("v");
    client.run("DEL x");
    return restore(client, "x", byte(16) + rdb_string({pack.bytes().data(), pack.bytes().size()}));
  };
  for (const int fields : {1, 15, 63, 64, 127, 128, 300}) {
    CAPTURE(fields);
    CHECK(hash(fields, "f" + std::to_string(fields)) == kOk);
    CHECK(client.run("HLEN x") == integer(fields + 1));
    CHECK(hash(fields, "f0") == kBad);
    CHECK(hash(fields, "f" + std::to_string(fields - 1)) == kBad);
  }
  // A number as text, which a listpack need not hold as a number.
  const std::string pack = from_hex("130000000400") + from_hex("0c01") + from_hex("817602") +
                           from_hex("82313203") + from_hex("817602") + from_hex("ff");
  CHECK(restore(client, "y", byte(16) + rdb_string(pack)) == kBad);
  // Numbers with a zero in front are other texts.
  const std::string other = from_hex("140000000400") + from_hex("0c01") + from_hex("817602") +
                            from_hex("8330313204") + from_hex("817602") + from_hex("ff");
  CHECK(restore(client, "y", byte(16) + rdb_string(other)) == kOk);
  CHECK(client.run("HMGET y 12 012") == bulks({"v", "v"}));
}

TEST_CASE("Numbers of every length are read as strings", "[rdb]") {
  OldServer server;
  TestClient client(server);
  const auto text = [&](const std::string& form) {
    client.run("DEL x");
    REQUIRE(restore(client, "x", byte(2) + rdb_length(1) + form) == kOk);
    return client.run("SMEMBERS x");
  };
  CHECK(text(from_hex("c080")) == bulks({"-128"}));
  CHECK(text(from_hex("c1ff7f")) == bulks({"32767"}));
  CHECK(text(from_hex("c100ff")) == bulks({"-256"}));
  CHECK(text(from_hex("c200000080")) == bulks({"-2147483648"}));
  // The same text after each form of a length.
  CHECK(text(from_hex("4001") + "a") == bulks({"a"}));
  CHECK(text(from_hex("8000000001") + "a") == bulks({"a"}));
  CHECK(text(from_hex("810000000000000001") + "a") == bulks({"a"}));
  CHECK(restore(client, "y", byte(2) + rdb_length(1) + from_hex("c4") + "abcd") == kBad);
  CHECK(restore(client, "y", byte(2) + rdb_length(1) + from_hex("820000") + "abcd") == kBad);
  CHECK(restore(client, "y", byte(2) + from_hex("c001") + "a") == kBad);
}

}  // namespace latchkey::tests
