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

TEST_CASE("A series that was moved to another database has no rules any more, nor back in its own",
          "[time series]") {
  SeriesServer server;
  TestClient client(server);
  TestClient elsewhere(server);
  elsewhere.run("SELECT 1");
  client.run("TS.CREATE a");
  client.run("TS.CREATE b");
  client.run("TS.CREATERULE a b AGGREGATION sum 10");
  const std::string moved = GENERATE("a", "b");
  CHECK(client.run("MOVE " + moved + " 1") == integer(1));
  CHECK(elsewhere.run("MOVE " + moved + " 0") == integer(1));
  client.run("TS.MADD a 1 1 a 11 1");
  CHECK(client.run("TS.RANGE b - +") == "*0\r\n");
  CHECK(client.run("TS.CREATERULE a b AGGREGATION sum 10") == kOk);
  client.run("TS.MADD a 21 1 a 31 1");
  CHECK(client.run("TS.RANGE b - +") == array({sample(20, "1")}));
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

namespace {

struct PolicyServer : ServerFixture {
  explicit PolicyServer(std::string_view settings)
      : ServerFixture({commands::time_series_rows(), commands::key_rows(),
                       commands::database_rows(), commands::config_rows()},
                      settings) {}
};

// A field of TS.INFO as it stands in the reply.
std::string field_of(TestClient& client, const std::string& key, std::string_view name) {
  const std::string text = client.run("TS.INFO " + key);
  const std::string start = std::string(name) + "\r\n";
  const size_t at = text.find(start);
  return at == std::string::npos ? "" : text.substr(at + start.size());
}

}  // namespace

TEST_CASE("A series that a sample makes gets the compactions of ts-compaction-policy",
          "[time series]") {
  PolicyServer server(
      "ts-compaction-policy max:1M:1h;twa:5s:2h:1000M\nts-chunk-size-bytes 256\n"
      "ts-duplicate-policy last\nts-encoding uncompressed\n");
  TestClient client(server);
  CHECK(client.run("TS.CREATE other") == kOk);
  CHECK(client.run("DBSIZE") == integer(1));
  client.run("DEL other");
  server.changes();
  CHECK(client.run("TS.ADD k 1000 1 LABELS room kitchen") == integer(1000));
  CHECK(client.run("DBSIZE") == integer(3));
  CHECK(server.changes() == 3);
  for (const std::string key : {"k_MAX_60000", "k_TWA_5000_60000000"}) {
    INFO(key);
    CHECK(client.run("TYPE " + key) == status("TSDB-TYPE"));
    CHECK(field_of(client, key, "sourceKey").starts_with(bulk("k")));
    CHECK(field_of(client, key, "chunkSize").starts_with(integer(256)));
    CHECK(field_of(client, key, "chunkType").starts_with(status("uncompressed")));
    CHECK(field_of(client, key, "duplicatePolicy").starts_with(kNull));
  }
  CHECK(field_of(client, "k_MAX_60000", "retentionTime").starts_with(integer(3'600'000)));
  CHECK(field_of(client, "k_TWA_5000_60000000", "retentionTime").starts_with(integer(7'200'000)));
  CHECK(field_of(client, "k_MAX_60000", "labels")
            .starts_with(array({bulks({"room", "kitchen"}), bulks({"aggregation", "MAX"}),
                                bulks({"time_bucket", "60000"})})));
  CHECK(field_of(client, "k", "duplicatePolicy").starts_with(status("last")));
  client.run("TS.ADD k 60000 3");
  client.run("TS.ADD k 61000 5");
  client.run("TS.ADD k 120000 1");
  CHECK(client.run("TS.RANGE k_MAX_60000 - +") == array({sample(0, "1"), sample(60'000, "5")}));
  // A key that is there stays as it is.
  client.run("DEL k");
  CHECK(client.run("TS.ADD k 1 1") == integer(1));
  CHECK(client.run("TS.RANGE k_MAX_60000 - +") == array({sample(0, "1"), sample(60'000, "5")}));
}

TEST_CASE("A new series is compressed where ts-encoding says so", "[time series]") {
  PolicyServer server("ts-compaction-policy avg:1M:0m\nts-encoding compressed\n");
  TestClient client(server);
  CHECK(client.run("TS.ADD k 1 1") == integer(1));
  CHECK(field_of(client, "k_AVG_60000", "chunkType").starts_with(status("compressed")));
  CHECK(field_of(client, "k_AVG_60000", "retentionTime").starts_with(integer(0)));
}

TEST_CASE("A sample of the same time is treated as ts-duplicate-policy says", "[time series]") {
  const struct {
    const char* policy;
    const char* value;
  } rows[] = {{"first", "5"}, {"last", "3"}, {"min", "3"}, {"max", "5"}, {"sum", "8"}};
  for (const auto& row : rows) {
    INFO(row.policy);
    PolicyServer server("ts-duplicate-policy " + std::string(row.policy) + "\n");
    TestClient client(server);
    client.run("TS.ADD k 1 5");
    CHECK(client.run("TS.ADD k 1 3") == integer(1));
    CHECK(client.run("TS.GET k") == sample(1, row.value));
  }
  PolicyServer server("ts-duplicate-policy block\n");
  TestClient client(server);
  client.run("TS.ADD k 1 5");
  CHECK(client.run("TS.ADD k 1 3") ==
        error("ERR TSDB: Error at upsert, update is not supported when DUPLICATE_POLICY is set to "
              "BLOCK mode, or either current or new value is NaN and DUPLICATE_POLICY is "
              "MAX/MIN/SUM"));
  CHECK(client.run("TS.GET k") == sample(1, "5"));
}

TEST_CASE("A sample that comes late into the open bucket counts in it", "[time series]") {
  SeriesServer server;
  TestClient client(server);
  client.run("TS.CREATE k");
  client.run("TS.CREATE sum");
  CHECK(client.run("TS.CREATERULE k sum AGGREGATION sum 10") == kOk);
  client.run("TS.ADD k 1 1");
  client.run("TS.ADD k 15 2");
  client.run("TS.ADD k 12 4");
  CHECK(client.run("TS.RANGE sum - +") == array({sample(0, "1")}));
  // Into one that is closed, too.
  client.run("TS.ADD k 9 8");
  CHECK(client.run("TS.RANGE sum - +") == array({sample(0, "9")}));
  client.run("TS.ADD k 20 1");
  CHECK(client.run("TS.RANGE sum - +") == array({sample(0, "9"), sample(10, "6")}));
}

TEST_CASE("Directives of time series refuse what the reference refuses", "[time series]") {
  PolicyServer server("");
  TestClient client(server);
  const auto refused = [&](const std::string& name, std::string_view value,
                           const std::string& why) {
    return client.run_words({"CONFIG", "SET", name, value}) ==
           error("ERR CONFIG SET failed (possibly related to argument '" + name + "') - " + why);
  };
  CHECK(refused("ts-chunk-size-bytes", "49",
                "TSDB: CHUNK_SIZE value must be a multiple of 8 in the range [48 .. 1048576]"));
  CHECK(client.run("CONFIG SET ts-chunk-size-bytes 48") == kOk);
  CHECK(client.run("CONFIG SET ts-chunk-size-bytes 1048576") == kOk);
  CHECK(client.run("CONFIG SET ts-chunk-size-bytes 40").starts_with("-ERR"));
  CHECK(client.run("CONFIG SET ts-chunk-size-bytes 1048584").starts_with("-ERR"));
  CHECK(refused("ts-ignore-max-val-diff", "x", "Invalid value for `ts-ignore-max-val-diff`"));
  for (const char* const value : {"-0.1", "inf"}) {
    const std::string reply = client.run("CONFIG SET ts-ignore-max-val-diff " + std::string(value));
    CHECK(reply.find(" - Invalid value for `ts-ignore-max-val-diff`. Value must be in the range "
                     "[0.000000 .. 1797693134862315708") != std::string::npos);
    CHECK(reply.ends_with(".000000]\r\n"));
  }
  CHECK(client.run("CONFIG SET ts-ignore-max-val-diff 0") == kOk);
  CHECK(client.run("CONFIG SET ts-ignore-max-val-diff 1.5") == kOk);
  CHECK(client.run("CONFIG GET ts-ignore-max-val-diff") ==
        bulks({"ts-ignore-max-val-diff", "1.500000"}));
  CHECK(refused("ts-compaction-policy", "max", "Invalid compaction policy: max"));
  CHECK(refused("ts-duplicate-policy", "none", "Invalid duplicate policy: none"));
  CHECK(client.run("CONFIG SET ts-encoding zip").find("zip") != std::string::npos);
}

TEST_CASE("Buckets without samples are counted for all series and aggregations of a request",
          "[time series]") {
  SeriesServer server;
  TestClient client(server);
  const std::string too_many = error("ERR TSDB: EMPTY would report too many buckets");
  for (const std::string key : {"a", "b", "c"}) {
    client.run("TS.CREATE " + key + " LABELS kind it");
    client.run("TS.MADD " + key + " 0 1 " + key + " 1900000 1");
  }
  const std::string one = " AGGREGATION sum 1 EMPTY";
  CHECK(client.run("TS.RANGE a - +" + one).starts_with("*1900001\r\n"));
  CHECK(client.run("TS.RANGE a - + AGGREGATION sum,avg,max 1 EMPTY") == too_many);
  CHECK(client.run("TS.RANGE a - + COUNT 2 AGGREGATION sum,avg,max 1 EMPTY").starts_with("*2\r\n"));
  CHECK(client.run("TS.RANGE a - + COUNT 1900000 AGGREGATION sum,avg,max 1 EMPTY") == too_many);
  CHECK(client.run("TS.MRANGE - +" + one + " FILTER kind=it") == too_many);
  CHECK(client.run("TS.MRANGE - + COUNT 3" + one + " FILTER kind=it").starts_with("*3\r\n"));
  CHECK(client.run("TS.NRANGE 3 a b c - + AGGREGATION sum sum sum 1 EMPTY") == too_many);
  std::string many = "sum";
  for (int i = 0; i < 31; ++i) many += ",sum";
  CHECK(client.run("TS.RANGE a - + AGGREGATION " + many + " 1").starts_with("*2\r\n"));
  CHECK(client.run("TS.RANGE a - + AGGREGATION " + many + ",avg 1") ==
        error("ERR TSDB: Too many aggregation types"));
}

TEST_CASE("Buckets between missing values and numbers are counted against the limit",
          "[time series]") {
  SeriesServer server;
  TestClient client(server);
  const std::string too_many = error("ERR TSDB: EMPTY would report too many buckets");
  client.run("TS.ADD k 1000 nan");
  client.run("TS.ADD k 1800000000000 5");
  CHECK(client.run("TS.RANGE k - + AGGREGATION avg 10 EMPTY") == too_many);
  CHECK(client.run("TS.REVRANGE k - + AGGREGATION avg 10 EMPTY") == too_many);
  CHECK(client.run("TS.RANGE k - 1000 AGGREGATION avg 10 EMPTY") == array({sample(1000, "NaN")}));
  client.run("TS.ADD few 3 nan");
  client.run("TS.ADD few 25 5");
  CHECK(client.run("TS.RANGE few - + AGGREGATION avg 10 EMPTY") ==
        array({sample(0, "NaN"), sample(10, "NaN"), sample(20, "5")}));
}

TEST_CASE("Buckets up to the open one of a compaction are counted against the limit",
          "[time series]") {
  SeriesServer server;
  TestClient client(server);
  client.run("TS.CREATE a");
  client.run("TS.CREATE b");
  client.run("TS.CREATERULE a b AGGREGATION sum 10");
  client.run("TS.MADD a 1 1 a 25 2");
  const std::string open = "TS.RANGE b - + LATEST AGGREGATION sum 10 EMPTY";
  CHECK(client.run(open) == array({sample(0, "1"), sample(10, "0"), sample(20, "2")}));
  client.run("TS.ADD a 1800000000000 7");
  CHECK(client.run(open) == error("ERR TSDB: EMPTY would report too many buckets"));
  CHECK(client.run("TS.RANGE b - + AGGREGATION sum 10 EMPTY") ==
        array({sample(0, "1"), sample(10, "0"), sample(20, "2")}));
}

TEST_CASE("Labels and reducers may be called as options are", "[time series]") {
  SeriesServer server;
  TestClient client(server);
  client.run("TS.ADD s1 1 90 LABELS f cpu n x count y");
  client.run("TS.ADD s2 1 45 LABELS f cpu n x count y");
  client.run("TS.ADD s2 2 40");
  const auto group = [](std::string_view name, const std::string& samples) {
    return array({array({bulk(name), array({}), samples})});
  };
  CHECK(client.run("TS.MRANGE - + FILTER f=cpu GROUPBY n REDUCE count") ==
        group("n=x", array({sample(1, "2"), sample(2, "1")})));
  CHECK(client.run("TS.MREVRANGE - + FILTER f=cpu GROUPBY n REDUCE count") ==
        group("n=x", array({sample(2, "1"), sample(1, "2")})));
  CHECK(client.run("TS.MRANGE - + COUNT 1 FILTER f=cpu GROUPBY n REDUCE count") ==
        group("n=x", array({sample(1, "2")})));
  CHECK(client.run("TS.MRANGE - + AGGREGATION count 5 FILTER f=cpu GROUPBY n REDUCE count") ==
        group("n=x", array({sample(0, "2")})));
  CHECK(client.run("TS.MRANGE - + FILTER f=cpu GROUPBY count REDUCE sum") ==
        group("count=y", array({sample(1, "135"), sample(2, "40")})));
  for (const std::string label :
       {"latest", "withlabels", "selected_labels", "align", "aggregation", "empty",
        "buckettimestamp", "filter_by_ts", "filter_by_value", "excludeempty", "filter"}) {
    CAPTURE(label);
    client.run("TS.ADD t 1 3 LABELS of t " + label + " v");
    CHECK(client.run("TS.MRANGE - + FILTER of=t GROUPBY " + label + " REDUCE max") ==
          group(label + "=v", array({sample(1, "3")})));
    client.run("DEL t");
  }
  CHECK(client.run("TS.MRANGE - + FILTER f=cpu GROUPBY n REDUCE sum EXCLUDEEMPTY") ==
        error("ERR TSDB: EXCLUDEEMPTY is not allowed with GROUPBY"));
  // The words of a key and of the ends of a range are no options either.
  client.run("TS.ADD FILTER 1 3");
  client.run("TS.ADD FILTER 2 3");
  CHECK(client.run("TS.RANGE FILTER - + COUNT 1") == array({sample(1, "3")}));
}

TEST_CASE("A sum of values that are all missing is missing, and their count is 0",
          "[time series]") {
  SeriesServer server;
  TestClient client(server);
  client.run("TS.CREATE t1 LABELS f cpu n user");
  client.run("TS.CREATE t2 LABELS f cpu n user");
  client.run("TS.MADD t1 15 1 t1 17 4 t1 51 3 t1 73 5 t1 75 3 t2 3 1 t2 4 2 t2 51 3 t2 60 9");
  const auto reduced = [&](const std::string& reducer) {
    return client.run("TS.MRANGE 0 100 AGGREGATION max 10 EMPTY FILTER f=cpu GROUPBY n REDUCE " +
                      reducer);
  };
  const auto rows = [](std::initializer_list<std::string_view> values) {
    std::string samples = "*" + std::to_string(values.size()) + "\r\n";
    int64_t timestamp = 0;
    for (const std::string_view value : values) {
      samples += sample(timestamp, value);
      timestamp += 10;
    }
    return array({array({bulk("n=user"), array({}), samples})});
  };
  CHECK(reduced("sum") == rows({"2", "4", "NaN", "NaN", "NaN", "6", "9", "5"}));
  CHECK(reduced("count") == rows({"1", "1", "0", "0", "0", "2", "1", "1"}));
  CHECK(reduced("max") == rows({"2", "4", "NaN", "NaN", "NaN", "3", "9", "5"}));
}

TEST_CASE("SELECTED_LABELS names 50 labels at most", "[time series]") {
  SeriesServer server;
  TestClient client(server);
  client.run("TS.ADD s 1 1 LABELS f cpu");
  std::string labels;
  for (int i = 0; i < 50; ++i) labels += " l" + std::to_string(i);
  CHECK(client.run("TS.MGET SELECTED_LABELS" + labels + " FILTER f=cpu").starts_with("*1\r\n"));
  for (const std::string command : {"TS.MGET", "TS.MRANGE - +", "TS.MREVRANGE - +"}) {
    CAPTURE(command);
    CHECK(client.run(command + " SELECTED_LABELS" + labels + " more FILTER f=cpu") ==
          error("ERR TSDB: reached max size for SELECT_LABELS"));
  }
}

TEST_CASE("A mean is there where the sum is too large for a number", "[time series]") {
  SeriesServer server;
  TestClient client(server);
  const std::string large = "1.7976931348623157E308";
  client.run("TS.CREATE k");
  client.run("TS.MADD k 1 " + large + " k 2 " + large + " k 11 " + large + " k 12 -" + large);
  CHECK(client.run("TS.RANGE k 0 3 AGGREGATION avg 5") == array({sample(0, large)}));
  CHECK(client.run("TS.REVRANGE k - + AGGREGATION avg 10") ==
        array({sample(10, "0"), sample(0, large)}));
  client.run("TS.MADD k 21 -" + large + " k 22 -" + large + " k 23 nan k 24 -" + large);
  CHECK(client.run("TS.RANGE k 20 + AGGREGATION avg 10") == array({sample(20, "-" + large)}));
}

TEST_CASE("A missing value that opens a bucket does not count in the one before", "[time series]") {
  SeriesServer server;
  TestClient client(server);
  client.run("TS.CREATE s");
  client.run("TS.CREATE d");
  client.run("TS.CREATERULE s d AGGREGATION twa 10");
  client.run("TS.MADD s 1 5 s 5 7 s 12 nan s 14 9 s 25 nan");
  CHECK(client.run("TS.RANGE d - +") == array({sample(0, "6"), sample(10, "8.555555555555555")}));
  CHECK(client.run("TS.RANGE s 0 9 AGGREGATION twa 10") == array({sample(0, "6")}));
}

TEST_CASE("A count of missing values goes with the last of them", "[time series]") {
  SeriesServer server;
  TestClient client(server);
  client.run("TS.CREATE s DUPLICATE_POLICY LAST");
  client.run("TS.CREATE d");
  client.run("TS.CREATERULE s d AGGREGATION countnan 10");
  client.run("TS.MADD s 1 nan s 2 nan s 12 1");
  CHECK(client.run("TS.RANGE d - +") == array({sample(0, "2")}));
  client.run("TS.ADD s 1 5");
  CHECK(client.run("TS.RANGE d - +") == array({sample(0, "1")}));
  client.run("TS.ADD s 2 5");
  CHECK(client.run("TS.RANGE d - +") == array({}));
  client.run("TS.ADD s 3 nan");
  CHECK(client.run("TS.RANGE d - +") == array({sample(0, "1")}));
}

TEST_CASE("A late value that is missing leaves what samples beyond the retention have told",
          "[time series]") {
  SeriesServer server;
  TestClient client(server);
  client.run("TS.CREATE s RETENTION 20");
  client.run("TS.CREATE d");
  client.run("TS.CREATERULE s d AGGREGATION avg 10");
  client.run("TS.MADD s 1 5 s 12 1 s 25 1");
  CHECK(client.run("TS.ADD s 7 nan") == integer(7));
  CHECK(client.run("TS.RANGE d - +") == array({sample(0, "5"), sample(10, "1")}));
}

TEST_CASE("TS.NRANGE tells the same of a series each time that it is named", "[time series]") {
  SeriesServer server;
  TestClient client(server);
  const auto add = [&](const std::string& key, int first, int step) {
    for (int i = 0; i < 8; ++i)
      client.run("TS.ADD " + key + " " + std::to_string(first + i * step) + " " +
                 std::to_string(i * first));
  };
  for (const char* key : {"a", "copy_of_a", "another_of_a"}) add(key, 3, 5);
  for (const char* key : {"b", "copy_of_b"}) add(key, 10, 3);
  const char* options = GENERATE("", " COUNT 3", " AGGREGATION sum min sum avg sum 10",
                                 " FILTER_BY_VALUE 3 50 AGGREGATION sum min max min last 4 EMPTY");
  for (const std::string command : {"TS.NRANGE 5 ", "TS.NREVRANGE 5 "}) {
    CAPTURE(command, options);
    const std::string told = client.run(command + "a b a a b - +" + options);
    CHECK(told == client.run(command + "a b copy_of_a another_of_a copy_of_b - +" + options));
    CHECK(told.starts_with("*"));
    CHECK(told.size() > 100);
  }
}

}  // namespace latchkey::tests
