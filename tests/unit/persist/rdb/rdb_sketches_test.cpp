// Count-min sketches, top-k lists and t-digests as payloads: of the reference, and damaged ones.
#include <cstring>
#include <string>

#include "base/random.h"
#include "commands/groups.h"
#include "persist/rows.h"
#include "unit/catch.h"
#include "unit/persist/rdb/rdb_bytes.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct SketchServer : ServerFixture {
  SketchServer()
      : ServerFixture({commands::count_min_sketch_rows(), commands::top_k_rows(),
                       commands::t_digest_rows(), commands::key_rows(), commands::database_rows(),
                       persist::dump_rows()}) {}
};

// Of Redis 8.6: CMS.INITBYDIM c 4 2, CMS.INCRBY c a 5 b 7 c 300.
constexpr std::string_view kSketch =
    "078108c4a4f9360f10000204020202413805c31b2008070000002c01000005200740000031200b00074008600001"
    "000000";
// TOPK.RESERVE t 3 2 2 0.5, TOPK.ADD t a.
constexpr std::string_view kList =
    "07814e8a4af9360f100002030202020204000000000000e03f05c312200517f53cf20100e001000017e0040f0100"
    "0005c31f4048010000e00d000417f53cf201201a0770c21712f07f0000400be01100010000050100050261000501"
    "0000";
// TDIGEST.CREATE d COMPRESSION 1, TDIGEST.ADD d 1 2 2 3 5 8 13 21.
constexpr std::string_view kDigest =
    "07814c3212f9360f100004000000000000f03f04000000000000f03f0400000000000035400210020302000201"
    "04000000000000204004000000000000000004000000000000f03f04000000000000164004000000000000354004"
    "000000000000f03f04000000000000184004000000000000f03f00";
// TDIGEST.CREATE s COMPRESSION 2, TDIGEST.ADD s 7.5.
constexpr std::string_view kSingle =
    "07814c3212f9360f1000040000000000000040040000000000001e40040000000000001e40021602000201020004"
    "000000000000000004000000000000f03f00";

std::string restore(TestClient& client, std::string_view key, const std::string& body) {
  return client.run_words({"RESTORE", key, "0", rdb_dump(body), "REPLACE"});
}

// The body of what DUMP replies, without version and checksum.
std::string dumped(TestClient& client, std::string_view key) {
  const std::string reply = client.run("DUMP " + std::string(key));
  const size_t start = reply.find("\r\n") + 2;
  constexpr size_t kFooter = 10;
  return reply.substr(start, reply.size() - start - 2 - kFooter);
}

std::string part(double number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return byte(4) + bytes;
}
std::string part(int number) {
  return byte(2) + rdb_length(static_cast<size_t>(number));
}
std::string text_part(std::string_view text) {
  return byte(5) + rdb_string(text);
}

std::string digest_body(double compression, int capacity, int merged, int unmerged,
                        std::initializer_list<double> parts) {
  std::string body = from_hex("07814c3212f9360f1000") + part(compression) + part(1.0) + part(9.0) +
                     part(capacity) + part(merged) + part(unmerged) + part(1) + part(2.0) +
                     part(0.0);
  for (const double number : parts) body += part(number);
  return body + byte(0);
}

constexpr std::string_view kBadData = "-ERR Bad data format\r\n";

}  // namespace

TEST_CASE("A count-min sketch of the reference is read, and written as it writes it",
          "[sketches]") {
  SketchServer server;
  TestClient client(server);
  REQUIRE(restore(client, "c", from_hex(kSketch)) == kOk);
  CHECK(client.run("CMS.QUERY c a b c d") ==
        array({integer(5), integer(7), integer(300), integer(0)}));
  CHECK(client.run("CMS.INFO c") == array({status("width"), integer(4), status("depth"), integer(2),
                                           status("count"), integer(312)}));
  CHECK(dumped(client, "c") == from_hex(kSketch));
}

TEST_CASE("A top-k list of the reference is read, and written so that it reads it", "[top-k]") {
  SketchServer server;
  TestClient client(server);
  REQUIRE(restore(client, "t", from_hex(kList)) == kOk);
  CHECK(client.run("TOPK.LIST t WITHCOUNT") == array({bulk("a"), integer(1)}));
  CHECK(client.run("TOPK.COUNT t a b") == array({integer(1), integer(0)}));
  client.run_words({"TOPK.ADD", "t", "a", "a", std::string_view("\0b", 2), ""});
  const std::string list = client.run("TOPK.LIST t WITHCOUNT");
  REQUIRE(restore(client, "u", dumped(client, "t")) == kOk);
  CHECK(client.run("TOPK.LIST u WITHCOUNT") == list);
  CHECK(client.run_words({"TOPK.QUERY", "u", std::string_view("\0b", 2), "a", "b"}) ==
        client.run_words({"TOPK.QUERY", "t", std::string_view("\0b", 2), "a", "b"}));
}

TEST_CASE("A t-digest of the reference is read, and written as it writes it", "[t-digest]") {
  SketchServer server;
  TestClient client(server);
  REQUIRE(restore(client, "d", from_hex(kDigest)) == kOk);
  CHECK(client.run("TDIGEST.QUANTILE d 0 0.25 0.5 0.9") == bulks({"1", "2.5", "5.5", "21"}));
  CHECK(dumped(client, "d") == from_hex(kDigest));
  client.run("TDIGEST.CREATE e COMPRESSION 1");
  client.run("TDIGEST.ADD e 1 2 2 3 5 8 13 21");
  CHECK(dumped(client, "e") == from_hex(kDigest));
}

TEST_CASE("A single observation is saved, and found though the reference did not save it",
          "[t-digest]") {
  SketchServer server;
  TestClient client(server);
  REQUIRE(restore(client, "s", from_hex(kSingle)) == kOk);
  const std::string info = client.run("TDIGEST.INFO s");
  CHECK(client.run("TDIGEST.BYRANK s 0 1") == bulks({"7.5", "inf"}));
  REQUIRE(restore(client, "u", dumped(client, "s")) == kOk);
  CHECK(client.run("TDIGEST.INFO u") == info);
  client.run("TDIGEST.ADD u 8.5");
  CHECK(client.run("TDIGEST.QUANTILE u 0.25 0.75") == bulks({"7.5", "8.5"}));
}

TEST_CASE("Between the ends and the outer centroids a t-digest counts on a line", "[t-digest]") {
  SketchServer server;
  TestClient client(server);
  // From 1 to 9: four observations around 3, and one at 9.
  REQUIRE(restore(client, "low", digest_body(10, 70, 2, 0, {3, 9, 4, 1})) == kOk);
  CHECK(client.run("TDIGEST.CDF low 0.5 1 2") == bulks({"0", "0.1", "0.3"}));
  CHECK(client.run("TDIGEST.CDF low 9.5") == bulks({"1"}));
  CHECK(client.run("TDIGEST.QUANTILE low 0.2 0.3") == bulks({"1", "2"}));
  // And the other way round.
  REQUIRE(restore(client, "high", digest_body(10, 70, 2, 0, {1, 7, 1, 4})) == kOk);
  CHECK(client.run("TDIGEST.CDF high 9 8") == bulks({"0.9", "0.7"}));
  CHECK(client.run("TDIGEST.QUANTILE high 0.8 0.7") == bulks({"9", "8"}));
}

TEST_CASE("A t-digest with impossible parts is refused", "[t-digest]") {
  SketchServer server;
  TestClient client(server);
  CHECK(restore(client, "d", digest_body(10, 70, 2, 0, {1, 9, 1, 1})) == kOk);
  // Infinite and missing means come from sums that overflow.
  CHECK(restore(client, "d", digest_body(10, 70, 2, 0, {1, INFINITY, 1, 1})) == kOk);
  CHECK(restore(client, "d", digest_body(0, 70, 2, 0, {1, 9, 1, 1})) == kBadData);
  CHECK(restore(client, "d", digest_body(NAN, 70, 2, 0, {1, 9, 1, 1})) == kBadData);
  CHECK(restore(client, "d", digest_body(1e300, 70, 2, 0, {1, 9, 1, 1})) == kBadData);
  CHECK(restore(client, "d", digest_body(10, 1, 2, 0, {1, 9, 1, 1})) == kBadData);
  // Less room than digests of that compression have.
  CHECK(restore(client, "d", digest_body(10, 69, 2, 0, {1, 9, 1, 1})) == kBadData);
  CHECK(restore(client, "d", digest_body(10, 0, 0, 0, {})) == kBadData);
  CHECK(restore(client, "d", digest_body(10, 70, 1, 1, {1, 9, 1, 1})) == kBadData);
  CHECK(restore(client, "d", digest_body(10, 70, 0, 2, {})) == kBadData);
  CHECK(restore(client, "d", digest_body(10, 70, 2, 0, {1, 9, 0, 1})) == kBadData);
  CHECK(restore(client, "d", digest_body(10, 70, 2, 0, {1, 9, NAN, 1})) == kBadData);
  CHECK(restore(client, "d", digest_body(10, 70, 2, 0, {1, 9, 1e30, 1})) == kBadData);
  CHECK(restore(client, "d", digest_body(10, 70, 3, 0, {1, 5, 9, 0x1.8p61, 0x1.8p61, 0x1.8p61})) ==
        kBadData);
  CHECK(restore(client, "d", digest_body(10, 70, 2, 0, {1, 9, 1})) == kBadData);
}

TEST_CASE("Sketches and lists of the wrong size are refused", "[sketches]") {
  SketchServer server;
  TestClient client(server);
  const auto sketch = [&](int width, int depth, size_t bytes) {
    return restore(client, "c",
                   from_hex("078108c4a4f9360f1000") + part(width) + part(depth) + part(0) +
                       text_part(std::string(bytes, '\1')) + byte(0));
  };
  CHECK(sketch(2, 3, 24) == kOk);
  CHECK(sketch(2, 3, 23) == kBadData);
  CHECK(sketch(0, 3, 0) == kBadData);
  CHECK(sketch(16'000, 16'000, 24) == kBadData);
  const auto list = [&](int k, double decay, size_t buckets, size_t slots,
                        std::string_view second) {
    return restore(client, "t",
                   from_hex("07814e8a4af9360f1000") + part(k) + part(2) + part(3) + part(decay) +
                       text_part(std::string(buckets, '\1')) + text_part(std::string(slots, '\1')) +
                       text_part(std::string("a\0", 2)) + text_part(second) + byte(0));
  };
  const std::string b("b\0", 2);
  CHECK(list(2, 0.9, 48, 48, b) == kOk);
  CHECK(list(2, 0.9, 47, 48, b) == kBadData);
  CHECK(list(2, 0.9, 48, 47, b) == kBadData);
  CHECK(list(0, 0.9, 48, 0, b) == kBadData);
  CHECK(list(2, 0, 48, 48, b) == kBadData);
  CHECK(list(2, 2, 48, 48, b) == kBadData);
  CHECK(list(3, 0.9, 48, 72, b) == kBadData);
}

TEST_CASE("Damaged payloads are refused or harmless", "[sketches][top-k][t-digest]") {
  SketchServer server;
  TestClient client(server);
  base::Random random(7);
  const std::string body = from_hex(GENERATE(kSketch, kList, kDigest, kSingle));
  size_t refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = body;
    for (uint64_t changes = 1 + random.below(3); changes > 0; --changes)
      damaged[10 + random.below(damaged.size() - 10)] = static_cast<char>(random.below(256));
    if (random.below(4) == 0) damaged.resize(10 + random.below(damaged.size() - 10));
    if (restore(client, "k", damaged) != kOk) {
      ++refused;
      continue;
    }
    for (const char* request :
         {"CMS.INCRBY k a 1", "CMS.QUERY k a b", "TOPK.ADD k a b c", "TOPK.LIST k WITHCOUNT",
          "TOPK.COUNT k a", "TDIGEST.ADD k 1 2 3", "TDIGEST.QUANTILE k 0 0.5 1",
          "TDIGEST.CDF k 1 2 3", "TDIGEST.RANK k 1 5", "TDIGEST.BYRANK k 0 1 5",
          "TDIGEST.TRIMMED_MEAN k 0.1 0.9", "TDIGEST.MERGE m 1 k", "DUMP k"})
      client.run(request);
  }
  CHECK(refused > 300);
}

TEST_CASE("A t-digest that was merged with itself as often as can be is read again", "[t-digest]") {
  SketchServer server;
  TestClient client(server);
  for (const std::string compression : {"1", "2", "3", "5", "10"}) {
    CAPTURE(compression);
    client.run("TDIGEST.CREATE d COMPRESSION " + compression);
    for (int i = 0; i < 61; ++i) {
      REQUIRE(client.run("TDIGEST.ADD d " + std::to_string(i)) == kOk);
      REQUIRE(client.run("TDIGEST.MERGE d 1 d") == kOk);
    }
    REQUIRE(client.run("TDIGEST.ADD d 61") == kOk);
    CHECK(client.run("TDIGEST.MERGE d 1 d") == error("ERR T-Digest: overflow detected"));
    REQUIRE(restore(client, "e", dumped(client, "d")) == kOk);
    CHECK(client.run("TDIGEST.MAX e") == bulk("61"));
    CHECK(dumped(client, "e") == dumped(client, "d"));
    client.run("DEL d e");
  }
}

}  // namespace latchkey::tests
