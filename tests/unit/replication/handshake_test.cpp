#include "replication/handshake.h"

#include <string>

#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

using replication::Handshake;
using replication::Introduction;
using Result = Handshake::Result;

const std::string kId(40, 'a');
const std::string kOtherId(40, 'b');

struct Talk {
  explicit Talk(Introduction introduction) : handshake(std::move(introduction), log) {
    log.set_level(base::LogLevel::kNothing);
  }
  // What is said after the answer.
  std::string after(std::string_view answer) {
    std::string said;
    result = handshake.read(answer, &said);
    return said;
  }
  base::Logger log;
  Handshake handshake;
  Result result = Result::kGoesOn;
};

// One that has come to the point where PSYNC has been said.
struct Asked : Talk {
  explicit Asked(std::optional<Introduction::Place> resume = {})
      : Talk({.user = "", .password = "", .port = 7000, .ip = "", .resume = std::move(resume)}) {
    handshake.begin();
    after("+PONG");
    after("+OK");
    asked = after("+OK");
  }
  std::string asked;
};

}  // namespace

TEST_CASE("A replica introduces itself and asks for the dataset") {
  Talk talk({.user = "", .password = "", .port = 7000, .ip = "", .resume = {}});
  CHECK(talk.handshake.begin() == bulks({"PING"}));
  CHECK(talk.after("+PONG") ==
        bulks({"REPLCONF", "listening-port", "7000"}) +
            bulks({"REPLCONF", "capa", "eof", "capa", "psync2", "capa", "clock"}));
  CHECK(talk.after("+OK").empty());
  CHECK(talk.after("+OK") == bulks({"PSYNC", "?", "-1"}));
  CHECK(talk.after("+FULLRESYNC " + kId + " 17").empty());
  CHECK(talk.result == Result::kFullResync);
  CHECK(talk.handshake.id() == kId);
  CHECK(talk.handshake.offset() == 17);
}

TEST_CASE("A password is given before anything else is said, with a user if there is one") {
  Talk plain({.user = "", .password = "secret", .port = 1, .ip = "", .resume = {}});
  plain.handshake.begin();
  CHECK(plain.after("-NOAUTH Authentication required.") == bulks({"AUTH", "secret"}));
  Talk named({.user = "anna", .password = "secret", .port = 1, .ip = "", .resume = {}});
  named.handshake.begin();
  CHECK(named.after("+PONG") == bulks({"AUTH", "anna", "secret"}));
  named.after("-WRONGPASS invalid");
  CHECK(named.result == Result::kFailed);
}

TEST_CASE("An address that is announced is said between port and capabilities") {
  Talk talk({.user = "", .password = "", .port = 7000, .ip = "10.0.0.1", .resume = {}});
  talk.handshake.begin();
  CHECK(talk.after("+PONG") ==
        bulks({"REPLCONF", "listening-port", "7000"}) +
            bulks({"REPLCONF", "ip-address", "10.0.0.1"}) +
            bulks({"REPLCONF", "capa", "eof", "capa", "psync2", "capa", "clock"}));
  talk.after("+OK");
  CHECK(talk.after("+OK").empty());
  CHECK(talk.after("+OK") == bulks({"PSYNC", "?", "-1"}));
}

TEST_CASE("A master that knows no REPLCONF is asked all the same, and one without PSYNC by SYNC") {
  Talk talk({.user = "", .password = "", .port = 7000, .ip = "", .resume = {}});
  talk.handshake.begin();
  talk.after("+PONG");
  talk.after("-ERR unknown command");
  CHECK(talk.after("-ERR unknown command") == bulks({"PSYNC", "?", "-1"}));
  CHECK(talk.after("-ERR unknown command") == "SYNC\r\n");
  CHECK(talk.result == Result::kSync);
  CHECK(talk.handshake.offset() == -1);
}

TEST_CASE("A replica that was there before asks for the first byte it lacks") {
  Asked same({{kId, 101}});
  CHECK(same.asked == bulks({"PSYNC", kId, "101"}));
  same.after("+CONTINUE");
  CHECK(same.result == Result::kContinue);
  CHECK(same.handshake.id() == kId);
  Asked renamed({{kId, 101}});
  renamed.after("+CONTINUE " + kOtherId);
  CHECK(renamed.result == Result::kContinue);
  CHECK(renamed.handshake.id() == kOtherId);
}

TEST_CASE("A replica that offers to may be told to fetch the dataset by an RDB channel") {
  Talk talk({.user = "",
             .password = "",
             .port = 7000,
             .ip = "",
             .resume = {},
             .offers_rdb_channel = true});
  talk.handshake.begin();
  CHECK(talk.after("+PONG") == bulks({"REPLCONF", "listening-port", "7000"}) +
                                   bulks({"REPLCONF", "capa", "eof", "capa", "psync2", "capa",
                                          "clock", "capa", "rdb-channel-repl"}));
  talk.after("+OK");
  talk.after("+OK");
  talk.after("+RDBCHANNELSYNC 17");
  CHECK(talk.result == Result::kRdbChannel);
  CHECK(talk.handshake.main_client_id() == "17");
}

TEST_CASE("On the RDB channel a replica says at once whose dataset it wants") {
  const Introduction introduction{.user = "",
                                  .password = "secret",
                                  .port = 7000,
                                  .ip = "host",
                                  .resume = {},
                                  .offers_rdb_channel = true,
                                  .main_client_id = "17"};
  Talk talk(introduction);
  CHECK(talk.handshake.begin() == bulks({"AUTH", "secret"}));
  CHECK(talk.after("+OK") == bulks({"REPLCONF", "ip-address", "host"}) +
                                 bulks({"REPLCONF", "capa", "eof", "rdb-only", "1", "rdb-channel",
                                        "1", "main-ch-client-id", "17", "listening-port", "7000"}));
  CHECK(talk.after("+OK").empty());
  CHECK(talk.after("+OK") == bulks({"PSYNC", "?", "-1"}));
  talk.after("+FULLRESYNC " + kId + " 17");
  CHECK(talk.result == Result::kFullResync);

  Talk refused(introduction);
  refused.handshake.begin();
  refused.after("+OK");
  refused.after("+OK");
  refused.after("-ERR Unrecognized RDB client id: 17");
  CHECK(refused.result == Result::kFailed);
}

TEST_CASE("A master that refuses the announced address may still give the dataset by the channel") {
  Talk talk({.user = "",
             .password = "",
             .port = 7000,
             .ip = std::string(256, 'a'),
             .resume = {},
             .main_client_id = "17"});
  talk.handshake.begin();
  talk.after("-ERR REPLCONF ip-address provided by replica instance is too long: 256 bytes");
  CHECK(talk.result == Result::kGoesOn);
  CHECK(talk.after("+OK") == bulks({"PSYNC", "?", "-1"}));
}

namespace {

// Main connection and RDB channel of Valkey's form, up to what brings the dataset.
struct DualTalk {
  DualTalk()
      : main({.user = "",
              .password = "",
              .port = 7000,
              .ip = "",
              .resume = {},
              .offers_dual_channel = true}),
        channel({.user = "",
                 .password = "",
                 .port = 7000,
                 .ip = "host",
                 .resume = {},
                 .is_dual_channel = true}) {
    main.handshake.begin();
    main.after("+PONG");
    main.after("+OK");
    main.after("+OK");
    main.after("+DUALCHANNELSYNC");
    channel.handshake.begin();
    channel.after("+OK");
    channel.after("+OK");
  }
  Talk main;
  Talk channel;
};

}  // namespace

TEST_CASE("In Valkey's form the channel tells the main connection where to continue") {
  Talk offer({.user = "",
              .password = "",
              .port = 7000,
              .ip = "",
              .resume = {},
              .version = "8.1.1",
              .offers_dual_channel = true});
  offer.handshake.begin();
  CHECK(
      offer.after("+PONG").ends_with(bulks({"REPLCONF", "capa", "eof", "capa", "psync2", "capa",
                                            "clock", "capa", "dual-channel", "version", "8.1.1"})));
  Talk channel({.user = "",
                .password = "",
                .port = 7000,
                .ip = "host",
                .resume = {},
                .is_dual_channel = true});
  CHECK(channel.handshake.begin() == bulks({"REPLCONF", "ip-address", "host"}) +
                                         bulks({"REPLCONF", "capa", "eof", "rdb-only", "1",
                                                "rdb-channel", "1", "listening-port", "7000"}));
  CHECK(channel.after("+OK").empty());
  CHECK(channel.after("+OK") == "SYNC\r\n");

  DualTalk dual;
  CHECK(dual.main.result == Result::kDualChannel);
  CHECK(dual.main.handshake.waits_for_channel());
  dual.channel.after("");
  dual.channel.after("$ENDOFF:17 " + kId + " 3 5");
  REQUIRE(dual.channel.result == Result::kFullResync);
  CHECK(dual.channel.handshake.id() == kId);
  CHECK(dual.channel.handshake.offset() == 17);
  CHECK(dual.channel.handshake.database() == 3);
  std::string said;
  dual.main.handshake.join(dual.channel.handshake, &said);
  CHECK(said == bulks({"REPLCONF", "set-rdb-client-id", "5"}));
  CHECK(dual.main.after("+OK") == bulks({"PSYNC", kId, "18"}));
  dual.main.after("+CONTINUE " + kOtherId);
  CHECK(dual.main.result == Result::kJoined);
  CHECK(dual.main.handshake.id() == kOtherId);
}

TEST_CASE("The place that a channel is told is checked") {
  for (const std::string& line :
       {"$ENDOFF:" + kId, "$ENDOFF:-1 " + kId + " 0 5", "$ENDOFF:x " + kId + " 0 5",
        std::string("$ENDOFF:1 short 0 5"), "$ENDOFF:1 " + kId + " -2 5",
        "$ENDOFF:1 " + kId + " 0 0", "$ENDOFF:1 " + kId + " 0", "$ENDOFF:1 " + kId + " 0 5 6",
        "$ENDOFF:9223372036854775807 " + kId + " 0 5", std::string("$ENDOFF:"), std::string("$17"),
        std::string("-ERR no"), "+FULLRESYNC " + kId + " 17"}) {
    DualTalk dual;
    dual.channel.after(line);
    CHECK(dual.channel.result == Result::kFailed);
  }
}

TEST_CASE("A main connection that waits for its channel, or joins, is not told anything else") {
  DualTalk early;
  early.main.after("+CONTINUE");
  CHECK(early.main.result == Result::kFailed);
  for (const std::string& line : {"+FULLRESYNC " + kId + " 17", std::string("+DUALCHANNELSYNC"),
                                  std::string("-NOMASTERLINK")}) {
    DualTalk dual;
    dual.channel.after("$ENDOFF:17 " + kId + " 0 5");
    std::string said;
    dual.main.handshake.join(dual.channel.handshake, &said);
    // The master may have the stream, though not the channel any more.
    CHECK(dual.main.after("-ERR Unrecognized RDB client id: 5") == bulks({"PSYNC", kId, "18"}));
    dual.main.after(line);
    CHECK(dual.main.result == Result::kFailed);
  }
  Talk not_offered({.user = "", .password = "", .port = 7000, .ip = "", .resume = {}});
  not_offered.handshake.begin();
  not_offered.after("+PONG");
  not_offered.after("+OK");
  not_offered.after("+OK");
  CHECK(not_offered.after("+DUALCHANNELSYNC") == "SYNC\r\n");
}

TEST_CASE("A replica that is to take over is asked by PSYNC, and may decline") {
  Talk talk({.user = "",
             .password = "",
             .port = 7000,
             .ip = "",
             .resume = Introduction::Place{kId, 5},
             .requests_failover = true});
  talk.handshake.begin();
  talk.after("+PONG");
  talk.after("+OK");
  CHECK(talk.after("+OK") == bulks({"PSYNC", kId, "5", "FAILOVER"}));
  CHECK(talk.after("-ERR PSYNC FAILOVER replid must match my replid.").empty());
  CHECK(talk.result == Result::kDeclined);
}

TEST_CASE("Empty lines tell that the master is alive, and no more") {
  Asked talk;
  CHECK(talk.after("").empty());
  CHECK(talk.result == Result::kGoesOn);
}

TEST_CASE("What makes no sense ends the handshake") {
  const auto result_of = [](std::string_view answer) {
    Asked talk;
    talk.after(answer);
    return talk.result;
  };
  CHECK(result_of("+FULLRESYNC short 17") == Result::kFailed);
  CHECK(result_of("+FULLRESYNC " + kId) == Result::kFailed);
  CHECK(result_of("+FULLRESYNC " + kId + " -5") == Result::kFailed);
  CHECK(result_of("+FULLRESYNC " + kId + " 99999999999999999999") == Result::kFailed);
  // What is counted on from there would overflow.
  CHECK(result_of("+FULLRESYNC " + kId + " 9223372036854775807") == Result::kFailed);
  CHECK(result_of("+FULLRESYNC " + kId + " 4611686018427387905") == Result::kFailed);
  CHECK(result_of("+FULLRESYNC " + kId + " 4611686018427387904") == Result::kFullResync);
  CHECK(result_of("+CONTINUE " + kId) == Result::kFailed);
  CHECK(result_of("-NOMASTERLINK Can't SYNC while not connected with my master") ==
        Result::kFailed);
  CHECK(result_of("-LOADING Redis is loading the dataset in memory") == Result::kFailed);
  CHECK(result_of("-BUSY Redis is busy running a script.") == Result::kFailed);
  Talk talk({.user = "", .password = "", .port = 7000, .ip = "", .resume = {}});
  talk.handshake.begin();
  talk.after("HTTP/1.1 200 OK");
  CHECK(talk.result == Result::kFailed);
}

TEST_CASE("A replica tells a master of Valkey which node of the cluster it is") {
  const std::string node(40, 'c');
  Talk talk({.user = "",
             .password = "",
             .port = 7000,
             .ip = "",
             .resume = {},
             .version = "9.1.2",
             .cluster_node_id = node});
  talk.handshake.begin();
  CHECK(talk.after("+PONG") ==
        bulks({"REPLCONF", "listening-port", "7000"}) +
            bulks({"REPLCONF", "capa", "eof", "capa", "psync2", "capa", "clock", "version", "9.1.2",
                   "set-cluster-node-id", node}));
}

}  // namespace latchkey::tests
