#include "persist/aof/aof.h"

#include <sys/wait.h>

#include <csignal>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/hex.h"
#include "commands/groups.h"
#include "persist/aof/aof_dataset.h"
#include "server/observe/dataset_digest.h"
#include "unit/catch.h"
#include "unit/persist/aof/aof_directory_fixture.h"
#include "unit/persist/life.h"

namespace latchkey::tests {

namespace {

using persist::Loading;

constexpr std::string_view kManifest = "appendonlydir/appendonly.aof.manifest";
constexpr std::string_view kIncrement = "appendonlydir/appendonly.aof.1.incr.aof";

}  // namespace

TEST_CASE("A server without files begins with an empty base and an increment") {
  TemporaryDirectory directory;
  Life life(directory);
  CHECK(life.result == Loading::Result::kNoFile);
  CHECK(life.opened);
  CHECK(directory.read(std::string(kManifest)) ==
        "file appendonly.aof.1.base.rdb seq 1 type b\n"
        "file appendonly.aof.1.incr.aof seq 1 type i startoffset 0\n");
  CHECK(directory.exists("appendonlydir/appendonly.aof.1.base.rdb"));
}

TEST_CASE("What a server has written is there in its next life") {
  TemporaryDirectory directory;
  {
    Life life(directory);
    life.client.run("SET name value");
    life.client.run("RPUSH list a b c");
    life.server.tick();
  }
  Life life(directory);
  CHECK(life.result == Loading::Result::kDone);
  CHECK(life.client.run("GET name") == bulk("value"));
  CHECK(life.client.run("LLEN list") == integer(3));
  // And goes on in the same file.
  life.client.run("SET name other");
  life.server.tick();
  CHECK(directory.read(std::string(kIncrement)) ==
        request({"SELECT", "0"}) + request({"SET", "name", "value"}) +
            request({"RPUSH", "list", "a", "b", "c"}) + request({"SELECT", "0"}) +
            request({"SET", "name", "other"}));
}

TEST_CASE("Of what was loaded the base is counted by itself, and everything together") {
  TemporaryDirectory directory;
  const std::string base = request({"SET", "base", "value"});
  const std::string first = request({"SET", "a", "1"});
  const std::string second = request({"SET", "second", "2"});
  directory.write("appendonlydir/appendonly.aof.1.base.aof", base);
  directory.write("appendonlydir/appendonly.aof.1.incr.aof", first);
  directory.write("appendonlydir/appendonly.aof.2.incr.aof", second);
  directory.write(std::string(kManifest),
                  "file appendonly.aof.1.base.aof seq 1 type b\n"
                  "file appendonly.aof.1.incr.aof seq 1 type i\n"
                  "file appendonly.aof.2.incr.aof seq 2 type i\n");
  Life life(directory);
  REQUIRE(life.result == Loading::Result::kDone);
  server::AofFigures figures;
  life.persistence->aof().describe(&figures);
  CHECK(figures.base_bytes == base.size());
  CHECK(figures.current_bytes == base.size() + first.size() + second.size());
  using Catch::Matchers::ContainsSubstring;
  const std::string log = directory.read("log");
  CHECK_THAT(log, ContainsSubstring("DB loaded from base file appendonly.aof.1.base.aof: "));
  CHECK_THAT(log, ContainsSubstring("DB loaded from incr file appendonly.aof.1.incr.aof: "));
  CHECK_THAT(log, ContainsSubstring("DB loaded from incr file appendonly.aof.2.incr.aof: "));
}

TEST_CASE("A file that is loaded again is as large as it was") {
  TemporaryDirectory directory;
  Life life(directory, "enable-debug-command yes\n");
  REQUIRE(life.opened);
  CHECK(life.client.run("SET name value") == kOk);
  life.server.server.tick();
  server::AofFigures before;
  life.persistence->aof().describe(&before);
  CHECK(life.client.run("DEBUG LOADAOF") == kOk);
  server::AofFigures after;
  life.persistence->aof().describe(&after);
  CHECK(after.current_bytes == before.current_bytes);
  CHECK(after.base_bytes == before.base_bytes);
  CHECK(life.client.run("GET name") == bulk("value"));
}

TEST_CASE("Without an append-only file DEBUG LOADAOF fails, with the dataset gone") {
  TemporaryDirectory directory;
  Life life(directory, "enable-debug-command yes\nappendonly no\n");
  REQUIRE(life.opened);
  CHECK(life.client.run("SET name value") == kOk);
  CHECK(life.client.run("DEBUG LOADAOF") ==
        error("ERR Error trying to load the AOF files, check server logs."));
  CHECK(life.client.run("GET name") == kNull);
}

TEST_CASE("The single file of an older server becomes the base") {
  TemporaryDirectory directory;
  directory.write("appendonly.aof", request({"SET", "name", "value"}));
  Life life(directory);
  CHECK(life.client.run("GET name") == bulk("value"));
  CHECK_FALSE(directory.exists("appendonly.aof"));
  CHECK(directory.read(std::string(kManifest)) ==
        "file appendonly.aof seq 1 type b\n"
        "file appendonly.aof.1.incr.aof seq 1 type i startoffset 0\n");
}

TEST_CASE("A move of the old file that was interrupted is finished, and never done twice") {
  TemporaryDirectory directory;
  directory.write("appendonly.aof", request({"SET", "name", "old"}));
  directory.write(std::string(kManifest), "file appendonly.aof seq 1 type b\n");
  SECTION("before the file was moved") {
    Life life(directory);
    CHECK(life.client.run("GET name") == bulk("old"));
    CHECK_FALSE(directory.exists("appendonly.aof"));
  }
  SECTION("after it was moved, with another one there since") {
    directory.write("appendonlydir/appendonly.aof", request({"SET", "name", "new"}));
    Life life(directory);
    CHECK(life.client.run("GET name") == bulk("new"));
    CHECK(directory.exists("appendonly.aof"));
  }
}

TEST_CASE("A server does not start without a file that the manifest names, or with a damaged one") {
  TemporaryDirectory directory;
  directory.write(std::string(kManifest), "file appendonly.aof.1.incr.aof seq 1 type i\n");
  CHECK(Life(directory).result == Loading::Result::kFailed);
  directory.write(std::string(kIncrement), "!!!");
  CHECK(Life(directory).result == Loading::Result::kFailed);
  directory.write(std::string(kManifest), "!!!\n");
  CHECK(Life(directory, "appendonly no").result == Loading::Result::kFailed);
}

TEST_CASE("A server whose manifest is gone leaves the files that it named as they are") {
  TemporaryDirectory directory;
  {
    Life life(directory);
    life.client.run("SET name value");
    life.server.tick();
  }
  const std::string increment = directory.read(std::string(kIncrement));
  std::filesystem::remove(directory.path() / kManifest);
  {
    Life life(directory);
    CHECK(life.result == Loading::Result::kNoFile);
    CHECK(life.client.run("DBSIZE") == integer(0));
    life.client.run("SET name other");
    life.server.tick();
  }
  CHECK(directory.read(std::string(kIncrement)) == increment);
  CHECK(directory.read(std::string(kManifest)) ==
        "file appendonly.aof.2.base.rdb seq 2 type b\n"
        "file appendonly.aof.2.incr.aof seq 2 type i startoffset 0\n");
  Life life(directory);
  CHECK(life.client.run("GET name") == bulk("other"));
}

TEST_CASE("The stream's place goes on where the last increment left it") {
  TemporaryDirectory directory;
  directory.write(std::string(kIncrement), request({"SET", "a", "1"}));
  const std::string line = "file appendonly.aof.1.incr.aof seq 1 type i startoffset 100";
  SECTION("by its size") {
    directory.write(std::string(kManifest), line + "\n");
    Life life(directory);
    CHECK(life.server.server.replication_offset() ==
          100 + static_cast<int64_t>(request({"SET", "a", "1"}).size()));
  }
  SECTION("by what was noted when it was closed, which is forgotten then") {
    directory.write(std::string(kManifest), line + " endoffset 200\n");
    Life life(directory);
    CHECK(life.server.server.replication_offset() == 200);
    CHECK(directory.read(std::string(kManifest)) == line + "\n");
  }
  SECTION("but not from numbers that cannot be counted on from") {
    const std::string base = "file appendonly.aof.1.incr.aof seq 1 type i startoffset ";
    directory.write(std::string(kManifest), base + "9223372036854775807\n");
    {
      Life life(directory);
      CHECK(life.server.server.replication_offset() == 0);
    }
    directory.write(std::string(kManifest), line + " endoffset 9223372036854775807\n");
    Life life(directory);
    CHECK(life.server.server.replication_offset() == 0);
  }
}

TEST_CASE("History is removed at the next start") {
  TemporaryDirectory directory;
  directory.write("appendonlydir/old", "anything");
  directory.write(std::string(kIncrement), request({"SET", "a", "1"}));
  directory.write(std::string(kManifest),
                  "file old seq 1 type h\nfile appendonly.aof.1.incr.aof seq 1 type i\n");
  { Life life(directory); }
  CHECK_FALSE(directory.exists("appendonlydir/old"));
  CHECK(directory.read(std::string(kManifest)) == "file appendonly.aof.1.incr.aof seq 1 type i\n");
}

TEST_CASE("History that names a file of the dataset, or the manifest, removes neither") {
  TemporaryDirectory directory;
  directory.write("appendonlydir/appendonly.aof.1.base.aof", request({"SET", "a", "1"}));
  directory.write(std::string(kIncrement), request({"SET", "b", "2"}));
  const std::string base = "file appendonly.aof.1.base.aof seq 1 type b\n";
  const std::string increment = "file appendonly.aof.1.incr.aof seq 1 type i\n";
  directory.write(std::string(kManifest), base +
                                              "file appendonly.aof.1.base.aof seq 1 type h\n"
                                              "file appendonly.aof.1.incr.aof seq 1 type h\n"
                                              "file appendonly.aof.manifest seq 1 type h\n" +
                                              increment);
  for (int start = 0; start < 2; ++start) {
    CAPTURE(start);
    Life life(directory);
    REQUIRE(life.result == Loading::Result::kDone);
    CHECK(life.client.run("MGET a b") == bulks({"1", "2"}));
    CHECK(directory.read(std::string(kManifest)) == base + increment);
  }
}

TEST_CASE("A dataset of every type comes back from its requests") {
  TemporaryDirectory directory;
  std::string digest;
  {
    Life life(directory, "aof-use-rdb-preamble no\nappendonly no\n");
    for (const char* line : {"SET string value",
                             "SET number 12345",
                             "SET fading x PXAT 9999999999999",
                             "RPUSH list a b c",
                             "SADD set a b c",
                             "SADD numbers 1 2 3",
                             "ZADD zset 1 a 2.5 b inf c -inf d 3.14159265358979 e",
                             "HSET hash a 1 b 2 c 3",
                             "HPEXPIREAT hash 9999999999999 FIELDS 1 a",
                             "XADD stream 1-1 a b c d",
                             "XADD stream 2-1 a b",
                             "XADD stream 3-1 a b",
                             "XDEL stream 2-1",
                             "XGROUP CREATE stream group 0",
                             "XGROUP CREATE stream other 3-1 ENTRIESREAD 2",
                             "XGROUP CREATECONSUMER stream other idle",
                             "XREADGROUP GROUP group alice COUNT 1 STREAMS stream >",
                             "XADD gone 5-5 a b",
                             "XDEL gone 5-5",
                             "XGROUP CREATE empty group $ MKSTREAM",
                             "SELECT 3",
                             "SET three 3"})
      life.client.run(line);
    for (int i = 0; i < 200; ++i) {
      const std::string text = std::to_string(i);
      life.client.run_words({"RPUSH", "long", text});
      life.client.run_words({"SADD", "many", text + "x"});
      life.client.run_words({"HSET", "wide", text, text});
      life.client.run_words({"ZADD", "ranked", text, text + "x"});
    }
    REQUIRE(persist::write_aof_base(life.server.server,
                                    (directory.path() / "appendonly.aof").string(), nullptr));
    digest = base::to_hex(server::dataset_digest(life.server.server));
  }
  Life life(directory);
  CHECK(life.result == Loading::Result::kDone);
  CHECK(base::to_hex(server::dataset_digest(life.server.server)) == digest);
}

TEST_CASE("Values that only their own commands make come back from requests") {
  TemporaryDirectory directory;
  std::string base;
  std::string digest;
  const std::vector<std::string> questions = {
      "ARSCAN array 0 18446744073709551614",
      "ARNEXT array",
      "ARNEXT untouched",
      "ARCOUNT wide",
      "ARGET wide 199",
      "XPENDING stream group - + 9",
      "JSON.GET json",
      "TS.RANGE series - +",
      "BF.EXISTS bloom a",
      "BF.EXISTS bloom b",
      "CF.EXISTS cuckoo a",
      "CMS.QUERY sketch a b",
      "TOPK.LIST top",
      "TDIGEST.QUANTILE digest 0.5",
      "VEMB vectors a",
      "PEXPIRETIME json",
  };
  std::vector<std::string> answers;
  {
    Life life(directory, "aof-use-rdb-preamble no\nappendonly no\n");
    for (const char* line : {"ARMSET array 0 first 100 far 18446744073709551614 last",
                             "ARSEEK array 8",
                             "ARSET untouched 3 x",
                             "XADD stream 1-1 a b",
                             "XADD stream 2-1 a b",
                             "XGROUP CREATE stream group 0",
                             "XREADGROUP GROUP group anna STREAMS stream >",
                             "XNACK stream group FAIL IDS 1 2-1 RETRYCOUNT 7",
                             "JSON.SET json $ {\"a\":[1,2.5]}",
                             "PEXPIREAT json 9999999999999",
                             "TS.ADD series 5 2.5",
                             "BF.ADD bloom a",
                             "CF.ADD cuckoo a",
                             "CMS.INITBYDIM sketch 4 2",
                             "CMS.INCRBY sketch a 5",
                             "TOPK.RESERVE top 2",
                             "TOPK.ADD top a a b",
                             "TDIGEST.CREATE digest",
                             "TDIGEST.ADD digest 1 2 3",
                             "VADD vectors VALUES 2 0.5 1 a"}) {
      INFO(line);
      CHECK_FALSE(life.client.run(line).starts_with('-'));
    }
    for (int i = 0; i < 200; ++i)
      life.client.run_words({"ARSET", "wide", std::to_string(i), std::to_string(i * 10)});
    for (const std::string& question : questions) answers.push_back(life.client.run(question));
    CHECK(answers[0] ==
          array({array({integer(0), bulk("first")}), array({integer(100), bulk("far")}),
                 array({":18446744073709551614\r\n", bulk("last")})}));
    CHECK(answers[1] == integer(8));
    CHECK(answers[2] == integer(0));
    CHECK(answers[3] == integer(200));
    CHECK(answers[4] == bulk("1990"));
    REQUIRE(persist::write_aof_base(life.server.server,
                                    (directory.path() / "appendonly.aof").string(), nullptr));
    base = directory.read("appendonly.aof");
    digest = base::to_hex(server::dataset_digest(life.server.server));
  }
  CHECK(base.find(request({"ARSEEK", "array", "8"})) != std::string::npos);
  CHECK(base.find(request({"ARSEEK", "untouched", "0"})) == std::string::npos);
  CHECK(base.find(request({"XNACK", "stream", "group", "FAIL", "IDS", "1", "2-1", "RETRYCOUNT", "7",
                           "FORCE"})) != std::string::npos);
  // Batches of 64 elements, and what is left.
  CHECK(base.find("*130\r\n$6\r\nARMSET\r\n$4\r\nwide\r\n") != std::string::npos);
  CHECK(base.find("*18\r\n$6\r\nARMSET\r\n$4\r\nwide\r\n") != std::string::npos);
  Life life(directory);
  REQUIRE(life.result == Loading::Result::kDone);
  CHECK(base::to_hex(server::dataset_digest(life.server.server)) == digest);
  for (size_t i = 0; i < questions.size(); ++i) {
    INFO(questions[i]);
    CHECK(life.client.run(questions[i]) == answers[i]);
  }
}

TEST_CASE("The requests of a stream's producers come back as far as their entries are there") {
  TemporaryDirectory directory;
  std::string base;
  std::string ids[4];
  {
    Life life(directory, "aof-use-rdb-preamble no\nappendonly no\n");
    // Requests whose time is over would be forgotten.
    for (int i = 0; i < 4; ++i) {
      ids[i] = std::to_string(life.server.now_ms()) + "-" + std::to_string(i);
      life.client.run("XADD s " + ids[i] + " a b");
    }
    CHECK(life.client.run("XCFGSET s IDMP-DURATION 86400 IDMP-MAXSIZE 7") == kOk);
    CHECK(life.client.run("XIDMPRECORD s p one " + ids[0]) == kOk);
    CHECK(life.client.run("XIDMPRECORD s p two " + ids[1]) == kOk);
    CHECK(life.client.run("XIDMPRECORD s q one " + ids[2]) == kOk);
    life.client.run("XDEL s " + ids[1]);
    // With the limits that streams have anyway.
    life.client.run("XADD usual " + ids[3] + " a b");
    CHECK(life.client.run("XIDMPRECORD usual p one " + ids[3]) == kOk);
    REQUIRE(persist::write_aof_base(life.server.server,
                                    (directory.path() / "appendonly.aof").string(), nullptr));
    base = directory.read("appendonly.aof");
  }
  const auto has = [&](std::initializer_list<std::string_view> words) {
    return base.find(request(words)) != std::string::npos;
  };
  CHECK(has({"XCFGSET", "s", "IDMP-DURATION", "86400", "IDMP-MAXSIZE", "7"}));
  CHECK(has({"XIDMPRECORD", "s", "p", "one", ids[0]}));
  CHECK(has({"XIDMPRECORD", "s", "q", "one", ids[2]}));
  CHECK(has({"XIDMPRECORD", "usual", "p", "one", ids[3]}));
  CHECK(base.find("$3\r\ntwo\r\n") == std::string::npos);
  CHECK(base.find("XCFGSET", base.find("XCFGSET") + 1) == std::string::npos);
}

TEST_CASE("An exit is refused while the first base is written, and not when that is over unseen") {
  TemporaryDirectory directory;
  Life life(directory, "appendonly no\nrdb-key-save-delay 60000000\n");
  life.client.run("SET name value");
  SECTION("written") {
    REQUIRE(life.client.run("CONFIG SET appendonly yes") == kOk);
    CHECK(life.client.run("SHUTDOWN NOSAVE") ==
          error("ERR Errors trying to SHUTDOWN. Check logs."));
    CHECK_FALSE(life.server.server.stop_requested());
  }
  SECTION("written, and the exit is by force") {
    REQUIRE(life.client.run("CONFIG SET appendonly yes") == kOk);
    CHECK(life.client.run("SHUTDOWN NOSAVE FORCE").empty());
    CHECK(life.server.server.stop_requested());
    CHECK_FALSE(life.persistence->child().running());
    CHECK_FALSE(directory.exists("appendonlydir/appendonly.aof.1.base.rdb"));
  }
  SECTION("over") {
    life.client.run("CONFIG SET rdb-key-save-delay 0");
    REQUIRE(life.client.run("CONFIG SET appendonly yes") == kOk);
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(life.persistence->child().pid()), &info, WEXITED | WNOWAIT);
    CHECK(life.client.run("SHUTDOWN NOSAVE").empty());
    CHECK(life.server.server.stop_requested());
    CHECK(directory.exists("appendonlydir/appendonly.aof.1.base.rdb"));
  }
}

TEST_CASE("WAITAOF waits for this server's disk") {
  TemporaryDirectory directory;
  Life life(directory, "appendfsync no");
  CHECK(life.client.run("WAITAOF 0 0 0") == array({integer(1), integer(0)}));
  CHECK(life.client.run("WAITAOF 2 0 0") ==
        error("ERR value is out of range, value must between 0 and 1"));
  CHECK(life.client.run("WAITAOF one 0 0") == error("ERR value is not an integer or out of range"));
  CHECK(life.client.run("WAITAOF 1 -1 0") == error("ERR value is out of range, must be positive"));
  CHECK(life.client.run("WAITAOF 1 0 -1") == error("ERR timeout is negative"));
  life.client.run("SET name value");
  CHECK(life.client.run("WAITAOF 1 0 50").empty());
  life.server.tick();
  CHECK(life.client.take_output().empty());
  life.server.advance_ms(50);
  life.server.tick();
  CHECK(life.client.take_output() == array({integer(0), integer(0)}));
  CHECK(life.client.run("WAITAOF 1 0 0").empty());
  TestClient other(life.server);
  CHECK(other.run("CONFIG SET appendfsync always") == kOk);
  life.server.tick();
  CHECK(life.client.take_output() == array({integer(1), integer(0)}));
}

TEST_CASE("WAITAOF waits for what its own client has written") {
  TemporaryDirectory directory;
  Life life(directory, "appendfsync no");
  TestClient other(life.server);
  CHECK(life.client.run("SET name value") == kOk);
  CHECK(life.client.run("WAITAOF 1 0 0").empty());
  CHECK(other.run("WAITAOF 1 0 0") == array({integer(1), integer(0)}));
  CHECK(other.run("SET other value") == kOk);
  CHECK(other.run("WAITAOF 1 0 0").empty());
}

TEST_CASE("WAITAOF asks replicas when it waits for them, and only then") {
  TemporaryDirectory directory;
  Life life(directory, "appendfsync no");
  persist::Aof& aof = life.persistence->aof();
  size_t copies = 0;
  int asked = 0;
  life.client.run("SET name value");
  SECTION("there are replicas") {
    aof.waits().set_replica_disks(
        {.count = [&](int64_t) { return copies; }, .ask = [&] { ++asked; }});
    CHECK(life.client.run("WAITAOF 1 0 0").empty());
    CHECK(asked == 0);
    TestClient other(life.server);
    CHECK(other.run("WAITAOF 0 1 0").empty());
    CHECK(asked == 1);
    copies = 1;
    aof.waits().serve();
    CHECK(other.take_output() == array({integer(1), integer(1)}));
    CHECK(life.client.take_output().empty());
    CHECK(other.run("WAITAOF 0 1 0") == array({integer(1), integer(1)}));
    CHECK(asked == 1);
  }
  SECTION("there is nobody to ask") {
    CHECK(life.client.run("WAITAOF 0 1 50").empty());
    life.server.advance_ms(50);
    life.server.tick();
    CHECK(life.client.take_output() == array({integer(0), integer(0)}));
  }
}

TEST_CASE("A rewrite whose child dies has failed until one succeeds") {
  TemporaryDirectory directory;
  Life life(directory, "rdb-key-save-delay 60000000\n");
  const std::string started = status("Background append only file rewriting started");
  const std::string manifest = directory.read(std::string(kManifest));
  life.client.run("SET name value");
  CHECK(life.info_has("aof_last_bgrewrite_status:ok"));
  REQUIRE(life.client.run("BGREWRITEAOF") == started);
  CHECK(life.info_has("aof_rewrite_in_progress:1"));
  kill(life.persistence->child().pid(), SIGKILL);
  life.finish_child();
  CHECK(life.info_has("aof_rewrite_in_progress:0"));
  CHECK(life.info_has("aof_last_bgrewrite_status:err"));
  CHECK(life.info_has("aof_rewrites_consecutive_failures:1"));
  life.client.run("CONFIG SET rdb-key-save-delay 0");
  REQUIRE(life.client.run("BGREWRITEAOF") == started);
  life.finish_child();
  CHECK(life.info_has("aof_last_bgrewrite_status:ok"));
  CHECK(life.info_has("aof_rewrites_consecutive_failures:0"));
  CHECK(directory.read(std::string(kManifest)) != manifest);
}

TEST_CASE("A rewrite that the server itself stops has not failed") {
  TemporaryDirectory directory;
  Life life(directory, "rdb-key-save-delay 60000000\n");
  life.client.run("SET name value");
  REQUIRE_FALSE(life.client.run("BGREWRITEAOF").starts_with('-'));
  CHECK(life.client.run("CONFIG SET appendonly no") == kOk);
  CHECK(life.info_has("aof_rewrite_in_progress:0"));
  CHECK(life.info_has("aof_last_bgrewrite_status:ok"));
  CHECK(life.info_has("aof_rewrites_consecutive_failures:0"));
}

TEST_CASE("WAITAOF cannot wait for a file that there is none of, or no longer") {
  TemporaryDirectory directory;
  const std::string refusal =
      error("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.");
  Life life(directory, "appendfsync no");
  life.client.run("SET name value");
  CHECK(life.client.run("WAITAOF 1 0 0").empty());
  TestClient silent(life.server);
  silent.run("SET name value");
  silent.run("CLIENT REPLY OFF");
  CHECK(silent.run("WAITAOF 1 0 0").empty());
  TestClient other(life.server);
  CHECK(other.run("CONFIG SET appendonly no") == kOk);
  CHECK(life.client.take_output() == refusal);
  CHECK(silent.take_output().empty());
  CHECK(other.run("INFO errorstats").find("errorstat_ERR:count=2") != std::string::npos);
  CHECK(other.run("WAITAOF 1 0 0") == refusal);
  CHECK(other.run("WAITAOF 0 0 0") == array({integer(0), integer(0)}));
  CHECK(directory.read(std::string(kManifest)) ==
        "file appendonly.aof.1.base.rdb seq 1 type b\n"
        "file appendonly.aof.1.incr.aof seq 1 type i startoffset 0 endoffset 2\n");
}

TEST_CASE("After a rewrite that was stopped, one that is killed is told of") {
  TemporaryDirectory directory;
  Life life(directory, "rdb-key-save-delay 60000000\n");
  life.client.run("SET name value");
  REQUIRE_FALSE(life.client.run("BGREWRITEAOF").starts_with('-'));
  life.persistence->aof().rewrite().cancel();
  const std::string told = "Background AOF rewrite terminated by signal 9";
  CHECK(directory.read("log").find("terminated by signal") == std::string::npos);
  REQUIRE_FALSE(life.client.run("BGREWRITEAOF").starts_with('-'));
  kill(life.persistence->child().pid(), SIGKILL);
  life.finish_child();
  CHECK(directory.read("log").find(told) != std::string::npos);
}

TEST_CASE("A file is closed when it is switched off behind a first base that is there unseen") {
  TemporaryDirectory directory;
  Life life(directory, "appendonly no\n");
  life.client.run("SET name value");
  REQUIRE(life.client.run("CONFIG SET appendonly yes") == kOk);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(life.persistence->child().pid()), &info, WEXITED | WNOWAIT);
  REQUIRE(life.client.run("CONFIG SET appendonly no") == kOk);
  CHECK_FALSE(life.persistence->aof().enabled());
  CHECK_FALSE(life.persistence->aof().file().is_open());
}

TEST_CASE("A first rewrite that was stopped is not begun again") {
  TemporaryDirectory directory;
  Life life(directory, "appendonly no\nrdb-key-save-delay 60000000\n");
  life.client.run("SET name value");
  REQUIRE(life.client.run("CONFIG SET appendonly yes") == kOk);
  REQUIRE(life.client.run("CONFIG SET appendonly no") == kOk);
  life.pass_second();
  CHECK_FALSE(life.persistence->child().running());
  CHECK(life.info_has("aof_rewrite_scheduled:0"));
}

}  // namespace latchkey::tests
