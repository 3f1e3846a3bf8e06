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
  CHECK(talk.after("+OK") ==
        bulks({"REPLCONF", "capa", "eof", "rdb-only", "1", "rdb-channel", "1", "main-ch-client-id",
               "17", "listening-port", "7000", "ip-address", "host"}));
  CHECK(talk.after("+OK") == bulks({"PSYNC", "?", "-1"}));
  talk.after("+FULLRESYNC " + kId + " 17");
  CHECK(talk.result == Result::kFullResync);

  Talk refused(introduction);
  refused.handshake.begin();
  refused.after("+OK");
  refused.after("-ERR Unrecognized RDB client id: 17");
  CHECK(refused.result == Result::kFailed);
}

TEST_CASE("A replica that is to take over is asked by PSYNC, and may decline") {
  Talk talk({.user = "",
             .password = "",
             .port = 7000,
             .ip = "",
             .resume = Introduction::Place{kId, 5},
             .hands_over = true});
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

}  // namespace latchkey::tests
