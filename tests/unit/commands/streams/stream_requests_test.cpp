// Streams that remember the requests of producers: XADD with IDMP and IDMPAUTO, XCFGSET,
// XIDMPRECORD.
#include <string>

#include "commands/groups.h"
#include "persist/rows.h"
#include "unit/catch.h"
#include "unit/propagation_recorder.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct ProducerServer : ServerFixture {
  explicit ProducerServer(std::string_view settings = {})
      : ServerFixture({commands::config_rows(), commands::key_rows(), commands::stream_group_rows(),
                       commands::stream_info_rows(), commands::stream_request_rows(),
                       commands::stream_rows(), commands::string_rows(), persist::dump_rows()},
                      settings),
        client(*this) {}
  std::string run(std::string_view line) { return client.run(line); }
  // A figure of XINFO STREAM.
  int64_t figure(std::string_view name) {
    const std::string text = run("XINFO STREAM s");
    const std::string key = bulk(name) + ":";
    const size_t at = text.find(key);
    return at == std::string::npos ? -1 : std::stoll(text.substr(at + key.size()));
  }
  TestClient client;
};

}  // namespace

TEST_CASE("XADD with IDMP adds the entry of a request once", "[stream_requests]") {
  ProducerServer server;
  const std::string first = server.run("XADD s IDMP p r1 * a 1");
  server.advance_ms(5);
  CHECK(server.run("XADD s IDMP p r1 * a 2") == first);
  CHECK(server.run("XADD s IDMP p r2 * a 1") != first);
  CHECK(server.run("XADD s IDMP other r1 * a 1") != first);
  CHECK(server.run("XLEN s") == integer(3));
  CHECK(server.figure("pids-tracked") == 2);
  CHECK(server.figure("iids-tracked") == 3);
  CHECK(server.figure("iids-added") == 3);
  CHECK(server.figure("iids-duplicates") == 1);
}

TEST_CASE("IDMPAUTO names a request after its fields in any order", "[stream_requests]") {
  ProducerServer server;
  const std::string first = server.run("XADD s IDMPAUTO p * a b c d");
  CHECK(server.run("XADD s IDMPAUTO p * c d a b") == first);
  CHECK(server.run("XADD s IDMPAUTO p * a d c b") != first);
  CHECK(server.run("XADD s IDMPAUTO p * ab c") != server.run("XADD s IDMPAUTO p * a bc"));
  CHECK(server.run("XADD s IDMPAUTO other * a b c d") != first);
  CHECK(server.run("XLEN s") == integer(5));
}

TEST_CASE("XADD refuses requests of producers that name an id or nothing", "[stream_requests]") {
  ProducerServer server;
  const std::string needs_automatic =
      error("ERR syntax error, IDMP/IDMPAUTO can be used only with auto-generated IDs");
  CHECK(server.run("XADD s IDMP p r 5-5 a 1") == needs_automatic);
  CHECK(server.run("XADD s IDMPAUTO p 5-* a 1") == needs_automatic);
  const std::string twice = error("ERR syntax error, IDMP/IDMPAUTO specified multiple times");
  CHECK(server.run("XADD s IDMP p r IDMP p r * a 1") == twice);
  CHECK(server.run("XADD s IDMPAUTO p IDMP p r * a 1") == twice);
  CHECK(server.run("XADD s IDMP  r * a 1") ==
        error("ERR syntax error, IDMP requires a non-empty producer ID"));
  CHECK(server.run("XADD s IDMP p  * a 1") ==
        error("ERR syntax error, IDMP requires a non-empty idempotent ID"));
  CHECK(server.run("XADD s IDMPAUTO  * a 1") ==
        error("ERR syntax error, IDMPAUTO requires a non-empty producer ID"));
  CHECK(server.run("XADD s IDMP p * a 1") ==
        error("ERR Invalid stream ID specified as stream command argument"));
  CHECK(server.run("XADD s IDMP p r") == error("ERR wrong number of arguments for 'xadd' command"));
  CHECK(server.run("EXISTS s") == integer(0));
}

TEST_CASE("A request is forgotten when its time is over, or for newer ones", "[stream_requests]") {
  ProducerServer server;
  server.run("XADD s 1-0 a 1");
  CHECK(server.run("XCFGSET s IDMP-DURATION 2 IDMP-MAXSIZE 3") == kOk);
  const std::string first = server.run("XADD s IDMP p r1 * a 1");
  server.advance_ms(1999);
  CHECK(server.run("XADD s IDMP p r1 * a 1") == first);
  server.advance_ms(1);
  CHECK(server.figure("pids-tracked") == 0);
  const std::string second = server.run("XADD s IDMP p r1 * a 1");
  CHECK(second != first);
  CHECK(server.run("XADD s IDMP p r1 * a 1") == second);
  server.run("XADD s IDMP p r2 * a 1");
  server.run("XADD s IDMP p r3 * a 1");
  CHECK(server.run("XADD s IDMP p r1 * a 1") == second);
  server.run("XADD s IDMP p r4 * a 1");
  CHECK(server.figure("iids-tracked") == 3);
  CHECK(server.run("XADD s IDMP p r1 * a 1") != second);
}

TEST_CASE("XCFGSET forgets requests only if a limit changes", "[stream_requests]") {
  ProducerServer server;
  const std::string first = server.run("XADD s IDMP p r1 * a 1");
  server.events();
  CHECK(server.run("XCFGSET s IDMP-MAXSIZE 100 IDMP-DURATION 100") == kOk);
  CHECK(server.events().empty());
  CHECK(server.run("XADD s IDMP p r1 * a 1") == first);
  const uint64_t changes = server.server.events().total();
  CHECK(server.run("XCFGSET s IDMP-MAXSIZE 10000") == kOk);
  CHECK(server.server.events().total() == changes + 1);
  CHECK(server.events().empty());
  CHECK(server.figure("idmp-maxsize") == 10000);
  CHECK(server.figure("idmp-duration") == 100);
  CHECK(server.figure("iids-tracked") == 0);
  CHECK(server.figure("iids-added") == 1);

  CHECK(server.run("XCFGSET s IDMP-MAXSIZE 10001") ==
        error("ERR IDMP-MAXSIZE must be between 1 and 10000 entries"));
  CHECK(server.run("XCFGSET s IDMP-DURATION 0") ==
        error("ERR IDMP-DURATION must be between 1 and 86400 seconds"));
  CHECK(server.run("XCFGSET s IDMP-DURATION 1 IDMP-DURATION 1") ==
        error("ERR IDMP-DURATION specified multiple times"));
  CHECK(server.run("XCFGSET s") == error("ERR At least one parameter must be specified"));
  CHECK(server.run("XCFGSET s IDMP-DURATION") == error("ERR syntax error"));
  CHECK(server.run("XCFGSET missing IDMP-DURATION 0") == error("ERR no such key"));
  server.run("SET name x");
  CHECK(server.run("XCFGSET name IDMP-DURATION 1") == kWrongType);
}

TEST_CASE("XIDMPRECORD says which entry a request has added", "[stream_requests]") {
  ProducerServer server;
  const std::string now = std::to_string(server.now_ms());
  server.run("XADD s " + now + "-1 a 1");
  server.run("XADD s " + now + "-2 a 1");
  CHECK(server.run("XIDMPRECORD s p r " + now + "-1") == kOk);
  CHECK(server.run("XIDMPRECORD s p r " + now + "-1") == kOk);
  CHECK(server.run("XIDMPRECORD s p r " + now + "-2") ==
        error("ERR IID already exists for this producer with a different stream ID"));
  CHECK(server.run("XADD s IDMP p r * a 2") == bulk(now + "-1"));
  CHECK(server.run("XIDMPRECORD s p other 7-7") == error("ERR No such message in stream"));
  CHECK(server.run("XIDMPRECORD s  r 1-1") == error("ERR producer ID must be non-empty"));
  CHECK(server.run("XIDMPRECORD s p  1-1") == error("ERR idempotent ID must be non-empty"));
  CHECK(server.run("XIDMPRECORD missing p r 1-1") == error("ERR no such key"));
}

TEST_CASE("New streams have the limits of the configuration", "[stream_requests]") {
  ProducerServer server("stream-idmp-duration 7\nstream-idmp-maxsize 5\n");
  server.run("XADD s 1-1 a 1");
  CHECK(server.figure("idmp-duration") == 7);
  CHECK(server.run("CONFIG SET stream-idmp-maxsize 6") == kOk);
  CHECK(server.figure("idmp-maxsize") == 5);
  server.run("DEL s");
  server.run("XGROUP CREATE s g 0 MKSTREAM");
  CHECK(server.figure("idmp-maxsize") == 6);
}

TEST_CASE("Requests of producers are propagated with the id of their entry", "[stream_requests]") {
  ProducerServer server;
  PropagationRecorder stream(server);
  const std::string now = std::to_string(server.now_ms());
  server.run("XADD s IDMP p r MAXLEN ~ 10 * a 1");
  CHECK(stream.take() == "SELECT 0; XADD s IDMP p r MAXLEN = 1 " + now + "-0 a 1");
  server.run("XADD s IDMP p r * a 2");
  CHECK(stream.take() == "XADD s IDMP p r " + now + "-0 a 2");
}

TEST_CASE("A dump remembers the requests of producers", "[stream_requests]") {
  ProducerServer server;
  const std::string plain = server.run("XADD t 1-1 a 1");
  const std::string first = server.run("XADD s IDMP p r1 * a 1");
  server.run("XADD s IDMPAUTO q * a 1");
  server.run("XADD s IDMP p r1 * a 1");
  const auto dump = [&](std::string_view key) {
    const std::string reply = server.client.run_words({"DUMP", key});
    const size_t at = reply.find("\r\n") + 2;
    return reply.substr(at, reply.size() - at - 2);
  };
  // Only what older servers do not know has the type and the version that they refuse.
  CHECK(dump("t").front() == 21);
  CHECK(dump("t").end()[-10] == 12);
  CHECK(dump("s").front() == 26);
  CHECK(dump("s").end()[-10] == 13);
  const std::string kept = dump("s");
  CHECK(server.run("DEL s") == integer(1));
  CHECK(server.client.run_words({"RESTORE", "s", "0", kept}) == kOk);
  CHECK(dump("s") == kept);
  CHECK(server.figure("iids-tracked") == 2);
  CHECK(server.figure("iids-duplicates") == 1);
  CHECK(server.run("XADD s IDMP p r1 * a 2") == first);
}

TEST_CASE("A copy of a stream remembers for itself", "[stream_requests]") {
  ProducerServer server;
  const std::string first = server.run("XADD s IDMP p r1 * a 1");
  server.run("COPY s copy");
  server.run("XCFGSET s IDMP-DURATION 5");
  CHECK(server.run("XADD copy IDMP p r1 * a 1") == first);
  server.advance_ms(1);
  CHECK(server.run("XADD s IDMP p r1 * a 1") != first);
}

}  // namespace latchkey::tests
