#include <string>

#include "commands/groups.h"
#include "server/client/blocking.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct SeriesServer : ServerFixture {
  SeriesServer()
      : ServerFixture({commands::time_series_rows(), commands::key_rows(),
                       commands::database_rows(), commands::acl_rows(),
                       commands::connection_rows()}) {}
};

std::string sample(int64_t timestamp, std::string_view value) {
  return array({integer(timestamp), status(value)});
}

}  // namespace

TEST_CASE("TS.ADD with * takes the server's time, which may be set", "[time series]") {
  SeriesServer server;
  TestClient client(server);
  CHECK(client.run("TS.ADD k * 1") == integer(server.now_ms()));
  server.advance_ms(1000);
  CHECK(client.run("TS.INCRBY k 2") == integer(server.now_ms()));
  CHECK(client.run("TS.GET k") == sample(server.now_ms(), "3"));
}

TEST_CASE("TS.READ waits for as many samples as were asked for", "[time series]") {
  SeriesServer server;
  TestClient client(server);
  TestClient waiting(server);
  CHECK(waiting.run("TS.READ k 5 BLOCK 0 2").empty());
  client.run("TS.ADD k 1 1");
  client.run("TS.ADD k 5 2");
  server.server.blocking().serve();
  CHECK(waiting.take_output().empty());
  client.run("TS.ADD k 6 3");
  server.server.blocking().serve();
  CHECK(waiting.take_output() == array({sample(5, "2"), sample(6, "3")}));
}

TEST_CASE("Queries reply only to who may read all that they find", "[time series]") {
  SeriesServer server;
  TestClient client(server);
  client.run("TS.ADD a 1 1 LABELS x y");
  client.run("TS.ADD b 1 1 LABELS x y");
  client.run("ACL SETUSER u on nopass %R~a %W~b +@all");
  client.run("AUTH u x");
  CHECK(client.run("TS.MGET FILTER x=y").starts_with("-NOPERM"));
  CHECK(client.run("TS.MRANGE - + FILTER x=y").starts_with("-NOPERM"));
}

TEST_CASE("A compaction is written once its bucket is over", "[time series]") {
  SeriesServer server;
  TestClient client(server);
  client.run("TS.CREATE a");
  client.run("TS.CREATE b");
  CHECK(client.run("TS.CREATERULE a b AGGREGATION sum 10") == kOk);
  client.run("TS.MADD a 1 1 a 5 2");
  CHECK(client.run("TS.GET b") == "*0\r\n");
  CHECK(client.run("TS.GET b LATEST") == sample(0, "3"));
  client.run("TS.ADD a 12 7");
  CHECK(client.run("TS.GET b") == sample(0, "3"));
  client.run("TS.ADD a 6 10");
  CHECK(client.run("TS.GET b") == sample(0, "13"));
  client.run("TS.DEL a 5 12");
  CHECK(client.run("TS.RANGE b - +") == "*0\r\n");
  CHECK(client.run("TS.GET b LATEST") == sample(0, "1"));
  CHECK(client.run("DEL b") == integer(1));
  CHECK(client.run("TS.ADD a 100 1") == integer(100));
}

TEST_CASE("TS.DEL keeps to both ends of its range", "[time series]") {
  SeriesServer server;
  TestClient client(server);
  client.run("TS.CREATE a");
  client.run("TS.MADD a 1 1 a 2 2 a 3 3 a 4 4");
  CHECK(client.run("TS.DEL a 3 +") == integer(2));
  CHECK(client.run("TS.DEL a - 1") == integer(1));
  CHECK(client.run("TS.RANGE a - +") == array({sample(2, "2")}));
}

TEST_CASE("Buckets without samples are not told without limit", "[time series]") {
  SeriesServer server;
  TestClient client(server);
  client.run("TS.ADD k 0 1");
  client.run("TS.ADD k 9223372036854775807 1");
  CHECK(client.run("TS.RANGE k - + AGGREGATION count 1 EMPTY") ==
        error("ERR TSDB: EMPTY would report too many buckets"));
  CHECK(client.run("TS.RANGE k 0 + AGGREGATION count 1 EMPTY COUNT 2") ==
        array({sample(0, "1"), sample(1, "0")}));
}

}  // namespace latchkey::tests
