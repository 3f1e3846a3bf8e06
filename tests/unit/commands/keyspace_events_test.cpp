// What the commands have written to the replication stream. Requests that stand there as they came
// are not shown: those whose handlers say something else are.
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "commands/groups.h"
#include "script/engine.h"
#include "script/rows.h"
#include "unit/catch.h"
#include "unit/propagation_recorder.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

using namespace commands;

struct Case {
  std::string_view request;
  // As PropagationRecorder shows it; <in N> stands for the Unix time N seconds from now in
  // milliseconds.
  std::string_view effects;
};

// Replaces <in N> and <at N> (the same in seconds).
std::string with_times(std::string_view text, int64_t now_ms) {
  std::string result(text);
  for (const bool in_seconds : {false, true}) {
    const std::string_view mark = in_seconds ? "<at " : "<in ";
    for (size_t at = result.find(mark); at != std::string::npos; at = result.find(mark)) {
      const size_t end = result.find('>', at);
      const int64_t seconds = std::stoll(result.substr(at + mark.size(), end - at - mark.size()));
      const int64_t time_ms = now_ms + seconds * 1000;
      result.replace(at, end + 1 - at, std::to_string(in_seconds ? time_ms / 1000 : time_ms));
    }
  }
  return result;
}

void check(std::span<const Case> cases) {
  ServerFixture server(
      {string_rows(),     string_batch_rows(), string_condition_rows(), counter_rows(),
       key_rows(),        expire_rows(),       database_rows(),         transaction_rows(),
       list_rows(),       list_move_rows(),    list_wait_rows(),        set_rows(),
       set_random_rows(), sorted_set_rows(),   sorted_set_pop_rows(),   sorted_set_wait_rows(),
       hash_rows(),       hash_counter_rows(), hash_deadline_rows(),    geo_rows(),
       stream_rows(),     stream_group_rows(), stream_read_rows(),      stream_pending_rows(),
       pubsub_rows(),     config_rows(),       script::script_rows()});
  server.server.add_layer(std::make_shared<script::Engine>(server.server));
  TestClient client(server);
  PropagationRecorder stream(server);
  client.run("SET first 1");
  stream.take();
  for (const Case& step : cases) {
    const std::string request = with_times(step.request, server.now_ms());
    const std::string reply = client.run(request);
    INFO(request << " => " << reply);
    CHECK(stream.take() == with_times(step.effects, server.now_ms()));
  }
}

}  // namespace

TEST_CASE("Times of strings are written as Unix times") {
  static constexpr Case kCases[] = {
      {"SET a 1 EX 1000", "SET a 1 PXAT <in 1000>"},
      {"SET a 1 PX 10000", "SET a 1 PXAT <in 10>"},
      {"SET a 1 EXAT <at 100>", "SET a 1 PXAT <in 100>"},
      {"SET a 1 pxat <in 100>", "SET a 1 pxat <in 100>"},
      {"SET a 1 KEEPTTL", "SET a 1 KEEPTTL"},
      {"SET a 1 NX EX 10", ""},
      {"SET a 2 XX GET", "SET a 2 XX"},
      {"SET a 2 EX 10 GET XX", "SET a 2 PXAT <in 10>"},
      {"SETEX a 10 v", "SET a v PXAT <in 10>"},
      {"PSETEX a 10000 v", "SET a v PXAT <in 10>"},
      {"GETSET a c", "SET a c"},
      {"GETEX a EX 10", "PEXPIREAT a <in 10>"},
      {"GETEX a PERSIST", "PERSIST a"},
      {"GETEX a", ""},
      {"GETEX a PXAT 1", "DEL a"},
      {"MSETEX 2 a 1 b 2 NX EX 10", "MSETEX 2 a 1 b 2 PXAT <in 10>"},
      {"GETDEL a", "DEL a"},
      {"GETDEL a", ""},
      {"DELEX b IFEQ 3", ""},
      {"DELEX b IFEQ 2", "DEL b"},
      {"SET b 1", "SET b 1"},
      {"DELEX b", "DELEX b"},
      {"DELEX b", ""},
      {"INCRBYFLOAT f 1.5", "SET f 1.5 KEEPTTL"},
  };
  check(kCases);
}

TEST_CASE("Deadlines of keys are written as Unix times, and those that have passed as removals") {
  static constexpr Case kCases[] = {
      {"EXPIRE first 10 NX", "PEXPIREAT first <in 10> NX"},
      {"PEXPIRE first 20000", "PEXPIREAT first <in 20>"},
      {"EXPIREAT first <at 10>", "PEXPIREAT first <in 10>"},
      {"pexpireat first <in 20>", "pexpireat first <in 20>"},
      {"EXPIRE first 30 NX", ""},
      {"EXPIRE first -1", "DEL first"},
      {"CONFIG SET lazyfree-lazy-expire yes", ""},
      {"SET a 1", "SET a 1"},
      {"EXPIREAT a 1", "UNLINK a"},
  };
  check(kCases);
}

TEST_CASE("Flushing is written even where there is nothing to flush") {
  static constexpr Case kCases[] = {
      {"FLUSHDB", "FLUSHDB"},
      {"FLUSHDB", "FLUSHDB"},
      {"FLUSHALL SYNC", "FLUSHALL SYNC"},
  };
  check(kCases);
}

TEST_CASE("Pops are written as what was popped, and moves as moves that do not wait") {
  static constexpr Case kCases[] = {
      {"RPUSH l 1 2 3 4 5 6 7 8", "RPUSH l 1 2 3 4 5 6 7 8"},
      {"LMPOP 2 none l LEFT COUNT 2", "LPOP l 2"},
      {"BLMPOP 0 1 l RIGHT", "RPOP l 1"},
      {"BLPOP none l 0", "LPOP l"},
      {"BRPOP l 0", "RPOP l"},
      {"BLMOVE l m left RIGHT 0", "LMOVE l m left RIGHT"},
      {"BRPOPLPUSH l m 0", "RPOPLPUSH l m"},
      {"LMOVE l m LEFT LEFT", "LMOVE l m LEFT LEFT"},
      {"SADD s 1", "SADD s 1"},
      {"SPOP s", "SREM s 1"},
      {"SADD s 1 2", "SADD s 1 2"},
      {"SPOP s 2", "DEL s"},
      {"ZADD z 1 a 2 b 3 c 4 d", "ZADD z 1 a 2 b 3 c 4 d"},
      {"ZMPOP 2 none z MIN COUNT 1", "ZPOPMIN z 1"},
      {"BZMPOP 0 1 z MAX COUNT 1", "ZPOPMAX z 1"},
      {"BZPOPMIN z 0", "ZPOPMIN z"},
      {"BZPOPMAX z 0", "ZPOPMAX z"},
      {"GEOADD g NX CH 1 1 a 2 2 b", "zadd g NX CH 3377822707026402 a 3378191666521995 b"},
      {"GEOADD g 1 1 a", ""},
  };
  check(kCases);
}

TEST_CASE("Members popped by the thousand are written as several requests") {
  ServerFixture server({set_rows(), set_random_rows()});
  TestClient client(server);
  PropagationRecorder stream(server);
  std::string add = "SADD s";
  for (int i = 0; i < 3000; ++i) add += " " + std::to_string(i);
  client.run(add);
  const auto requests = [&](const std::string& pop) {
    stream.take();
    client.run(pop);
    const std::string text = stream.take();
    size_t count = 0;
    for (size_t at = text.find("SREM"); at != std::string::npos; at = text.find("SREM", at + 1))
      ++count;
    return count;
  };
  CHECK(requests("SPOP s 1024") == 1);
  CHECK(requests("SPOP s 1025") == 2);
}

TEST_CASE("A blocking pop that is refused for its type is not written") {
  static constexpr Case kCases[] = {
      {"BLPOP first 0", ""},
      {"BRPOPLPUSH first l 0", ""},
      {"BZPOPMIN first 0", ""},
  };
  check(kCases);
}

TEST_CASE("Deadlines of fields are written as Unix times, of those fields that got one") {
  static constexpr Case kCases[] = {
      {"HSET h a 1 b 2 c 3", "HSET h a 1 b 2 c 3"},
      {"HINCRBYFLOAT h a 1.5", "HSETEX h KEEPTTL FIELDS 1 a 2.5"},
      {"HEXPIRE h 10 FIELDS 1 a", "HPEXPIREAT h <in 10> FIELDS 1 a"},
      {"HEXPIRE h 20 XX FIELDS 3 a b none", "HPEXPIREAT h <in 20> XX FIELDS 1 a"},
      {"hpexpireat h <in 30> FIELDS 1 a", "hpexpireat h <in 30> FIELDS 1 a"},
      {"hpexpireat h <in 30> FIELDS 2 a none", "hpexpireat h <in 30> FIELDS 1 a"},
      {"HPEXPIREAT h <in 30> NX FIELDS 1 a", ""},
      {"HGETEX h EX 10 FIELDS 2 b none", "HPEXPIREAT h <in 10> FIELDS 2 b none"},
      {"HGETEX h PERSIST FIELDS 2 b none", "HPERSIST h FIELDS 2 b none"},
      {"HGETEX h PERSIST FIELDS 1 b", ""},
      {"HGETEX h FIELDS 1 b", ""},
      {"HSETEX h EX 10 FIELDS 1 b 5", "HSETEX h PXAT <in 10> FIELDS 1 b 5"},
      {"HSETEX h FXX EXAT <at 9> FIELDS 1 b 6", "HSETEX h FXX PXAT <in 9> FIELDS 1 b 6"},
      {"HSETEX h KEEPTTL FIELDS 1 b 7", "HSETEX h KEEPTTL FIELDS 1 b 7"},
      {"HPEXPIREAT h 1 FIELDS 2 a b", "MULTI; HDEL h a; HDEL h b; EXEC"},
      {"HSETEX h PXAT 1 FIELDS 1 a 2", "HDEL h a"},
      {"HGETDEL h FIELDS 1 none", ""},
      {"HGETDEL h FIELDS 2 c none", "HDEL h c none"},
  };
  check(kCases);
}

TEST_CASE("Entries of streams are written with their ids, and trimming exactly") {
  static constexpr Case kCases[] = {
      {"XADD y 1-* f v", "XADD y 1-0 f v"},
      {"XADD y * f v", "XADD y <in 0>-0 f v"},
      {"XADD y MAXLEN ~ 1 99999999999999-1 f v", "XADD y MAXLEN = 3 99999999999999-1 f v"},
      {"XADD y MINID ~ 9 99999999999999-2 f v", "XADD y MINID = 1-0 99999999999999-2 f v"},
      {"XTRIM y MAXLEN ~ 1", ""},
      {"XTRIM y MAXLEN 2", "XTRIM y MAXLEN 2"},
      {"CONFIG SET stream-node-max-entries 1", ""},
      {"XADD q 1-1 f v", "XADD q 1-1 f v"},
      {"XADD q 2-1 f v", "XADD q 2-1 f v"},
      {"XADD q 3-1 f v", "XADD q 3-1 f v"},
      {"XTRIM q MINID ~ 2 LIMIT 10", "XTRIM q MINID = 2-1 LIMIT 10"},
      {"XTRIM q MINID ~ 9", "XTRIM q MINID = 18446744073709551615-18446744073709551615"},
      {"XADD none MAXLEN 3 bad f v", ""},
      {"XADD none NOMKSTREAM 1-1 f v", ""},
  };
  check(kCases);
}

TEST_CASE("What a group's consumers are given is written as claims and as the group's place") {
  static constexpr Case kCases[] = {
      {"XADD y 1-1 f v", "XADD y 1-1 f v"},
      {"XADD y 2-1 f v", "XADD y 2-1 f v"},
      {"XADD y 3-1 f v", "XADD y 3-1 f v"},
      {"XGROUP CREATE y g 0", "XGROUP CREATE y g 0"},
      {"XREADGROUP GROUP g c COUNT 1 STREAMS y >",
       "MULTI; XCLAIM y g c 0 1-1 TIME <in 0> RETRYCOUNT 1 FORCE JUSTID LASTID 0-0; "
       "XGROUP SETID y g 1-1 ENTRIESREAD 1; EXEC"},
      {"XREADGROUP GROUP g d COUNT 1 NOACK STREAMS y >",
       "MULTI; XGROUP CREATECONSUMER y g d; XGROUP SETID y g 2-1 ENTRIESREAD 2; EXEC"},
      {"XREADGROUP GROUP g d COUNT 1 NOACK STREAMS y >", "XGROUP SETID y g 3-1 ENTRIESREAD 3"},
      {"XREADGROUP GROUP g c STREAMS y 0", ""},
      {"XREADGROUP GROUP g e STREAMS y >", ""},
      {"XCLAIM y g e 0 99-1", ""},
      {"XCLAIM y g e 0 1-1", "XCLAIM y g e 0 1-1 TIME <in 0> RETRYCOUNT 3 FORCE JUSTID LASTID 3-1"},
      {"XCLAIM y g e 0 9-9 LASTID 5-1", "XGROUP SETID y g 5-1 ENTRIESREAD 3"},
      {"XAUTOCLAIM y g f 0 0 JUSTID",
       "XCLAIM y g f 0 1-1 TIME <in 0> RETRYCOUNT 3 FORCE JUSTID LASTID 5-1"},
      {"XDEL y 1-1", "XDEL y 1-1"},
      {"XAUTOCLAIM y g c 0 0",
       "XCLAIM y g f 0 1-1 TIME <in 0> RETRYCOUNT 3 FORCE JUSTID LASTID 5-1"},
      {"XACK y g 1-1", ""},
  };
  check(kCases);
}

TEST_CASE("Messages are for replicas only") {
  ServerFixture server({pubsub_rows()});
  TestClient client(server);
  PropagationRecorder file(server);
  PropagationRecorder replica(server, server::kPropagateToReplicas);
  client.run("PUBLISH channel message");
  CHECK(file.take().empty());
  CHECK(replica.take() == "SELECT 0; PUBLISH channel message");
}

}  // namespace latchkey::tests
