// Time series as payloads: of the reference, and damaged ones.
#include <string>

#include "base/random.h"
#include "commands/groups.h"
#include "persist/rows.h"
#include "unit/catch.h"
#include "unit/persist/rdb/rdb_bytes.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct SeriesServer : ServerFixture {
  SeriesServer()
      : ServerFixture({commands::time_series_rows(), commands::key_rows(),
                       commands::database_rows(), persist::dump_rows()}) {}
};

// Of Redis 8.6: TS.CREATE one CHUNK_SIZE 48 LABELS a b,
// TS.MADD one 100 1.5 one 103 2.5 one 109 2.5 one 120 2.5.
constexpr std::string_view kCompressed =
    "07814d20c1f9360f100905036f6e650200023002020240780400000000000004400204020102000200040000000000"
    "00000002010501610501620200020102300204023102813ff8000000000000024064024078020b0281400400000000"
    "00000201023205c30e30068d03f3ff1b2a00e01e0001000000";
// TS.CREATE two CHUNK_SIZE 48 ENCODING UNCOMPRESSED, TS.MADD two 5 1 two 6 2 two 7 3.
constexpr std::string_view kPlain =
    "07814d20c1f9360f1009050374776f0200023002010207040000000000000840020302010200020004000000000000"
    "000002000200020102050203023005c31a30010500e0030002f03f06e0030e03000040072004e0010001084000";

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

}  // namespace

TEST_CASE("Time series of the reference are read, and written as it writes them", "[time series]") {
  SeriesServer server;
  TestClient client(server);
  REQUIRE(restore(client, "one", from_hex(kCompressed)) == kOk);
  REQUIRE(restore(client, "two", from_hex(kPlain)) == kOk);
  CHECK(client.run("TS.REVRANGE one - + COUNT 2") ==
        array({array({integer(120), status("2.5")}), array({integer(109), status("2.5")})}));
  CHECK(client.run("TS.GET two") == array({integer(7), status("3")}));
  CHECK(client.run("TS.QUERYINDEX a=b") == bulks({"one"}));
  CHECK(dumped(client, "one") == from_hex(kCompressed));
  CHECK(dumped(client, "two") == from_hex(kPlain));
  CHECK(client.run("TS.ADD one 130 7") == integer(130));
  CHECK(client.run("TS.GET one") == array({integer(130), status("7")}));
}

TEST_CASE("A time series is refused or whole, whichever byte is another", "[time series]") {
  SeriesServer server;
  TestClient client(server);
  for (const std::string_view hex : {kCompressed, kPlain}) {
    const std::string body = from_hex(hex);
    for (size_t at = 10; at < body.size(); ++at) {
      for (const int changed : {0, 1, 0x7f, 0x80, 0xff}) {
        std::string damaged = body;
        damaged[at] = static_cast<char>(changed);
        if (restore(client, "k", damaged) != kOk) continue;
        // It can be used.
        client.run("TS.ADD k 5000 1 ON_DUPLICATE LAST");
        CHECK_FALSE(client.run("TS.RANGE k - + AGGREGATION twa 7 COUNT 5").starts_with("-"));
        client.run("TS.DEL k 0 110");
        CHECK(restore(client, "l", dumped(client, "k")) == kOk);
      }
      CHECK(restore(client, "k", body.substr(0, at)) != kOk);
    }
  }
}

}  // namespace latchkey::tests
