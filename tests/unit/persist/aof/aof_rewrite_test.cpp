// When the append-only file is rewritten, and what becomes of a file that is switched on while
// something else goes on. Children are real ones; time is not.
#include "persist/aof/aof_rewrite.h"

#include <sys/stat.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string>

#include "persist/aof/aof.h"
#include "unit/catch.h"
#include "unit/persist/aof/aof_directory_fixture.h"
#include "unit/persist/life.h"
#include "unit/propagation_recorder.h"

namespace latchkey::tests {

namespace {

using Catch::Matchers::ContainsSubstring;
using persist::Loading;

constexpr std::string_view kManifest = "appendonlydir/appendonly.aof.manifest";
// Children that write a key wait for this long, and so until they are ended.
constexpr char kSlow[] = "rdb-key-save-delay 60000000\n";
constexpr char kStarted[] = "+Background append only file rewriting started\r\n";

// A request of so many bytes, from 37 to 126.
std::string request_of(size_t bytes) {
  constexpr size_t kBesideValue = 27;
  std::string whole = request({"SET", "a", std::string(bytes - kBesideValue, 'v')});
  REQUIRE(whole.size() == bytes);
  return whole;
}

// Files with a base and an increment of so many bytes.
void write_files(const TemporaryDirectory& directory, size_t base, size_t increment) {
  directory.write("appendonlydir/appendonly.aof.1.base.aof", request_of(base));
  directory.write("appendonlydir/appendonly.aof.1.incr.aof", request_of(increment));
  directory.write(std::string(kManifest),
                  "file appendonly.aof.1.base.aof seq 1 type b\n"
                  "file appendonly.aof.1.incr.aof seq 1 type i\n");
}

bool rewrites(Life& life) {
  return life.info_has("aof_rewrite_in_progress:1");
}

void kill_child(Life& life) {
  kill(life.persistence->child().pid(), SIGKILL);
  life.finish_child();
}

}  // namespace

TEST_CASE("A file is rewritten when it has grown by the percentage that is set", "[aof]") {
  struct Growth {
    size_t increment;
    int percentage;
    int least;
    bool rewritten;
  };
  // The base has 100 bytes.
  for (const Growth& each :
       {Growth{99, 100, 0, false}, Growth{100, 100, 0, true}, Growth{100, 101, 0, false},
        Growth{100, 0, 0, false}, Growth{100, 100, 200, false}, Growth{100, 100, 199, true}}) {
    CAPTURE(each.increment, each.percentage, each.least);
    TemporaryDirectory directory;
    write_files(directory, 100, each.increment);
    Life life(directory, kSlow + std::string("auto-aof-rewrite-percentage ") +
                             std::to_string(each.percentage) + "\nauto-aof-rewrite-min-size " +
                             std::to_string(each.least) + "\n");
    REQUIRE(life.result == Loading::Result::kDone);
    life.pass_second();
    CHECK(rewrites(life) == each.rewritten);
    if (!each.rewritten) continue;
    CHECK_THAT(directory.read("log"),
               ContainsSubstring("Starting automatic rewriting of AOF on 100% growth"));
    kill_child(life);
  }
}

TEST_CASE("After three rewrites that failed the next one waits, each time twice as long", "[aof]") {
  TemporaryDirectory directory;
  write_files(directory, 100, 100);
  Life life(directory,
            kSlow + std::string("auto-aof-rewrite-percentage 100\nauto-aof-rewrite-min-size 0\n"));
  for (int i = 0; i < 3; ++i) {
    if (!rewrites(life)) life.server.tick();
    REQUIRE(rewrites(life));
    kill_child(life);
  }
  CHECK(life.info_has("aof_rewrites_consecutive_failures:3"));
  for (const int minutes : {1, 2, 4, 8, 16, 32, 60, 60}) {
    CAPTURE(minutes);
    life.server.tick();
    CHECK_FALSE(rewrites(life));
    CHECK_THAT(directory.read("log"),
               ContainsSubstring("will retry in " + std::to_string(minutes) + " minutes\n"));
    life.server.advance_ms((minutes * 60 - 1) * 1000);
    life.server.tick();
    CHECK_FALSE(rewrites(life));
    life.server.advance_ms(1000);
    life.server.tick();
    REQUIRE(rewrites(life));
    kill_child(life);
  }
  // Who asks for one gets it at once.
  life.server.tick();
  REQUIRE_FALSE(rewrites(life));
  life.client.run("CONFIG SET rdb-key-save-delay 0");
  REQUIRE(life.client.run("BGREWRITEAOF") == kStarted);
  life.finish_child();
  CHECK(life.info_has("aof_rewrites_consecutive_failures:0"));
}

TEST_CASE("A server without an append-only file can be asked for a base alone", "[aof]") {
  TemporaryDirectory directory;
  Life life(directory, "appendonly no\n");
  life.client.run("SET name value");
  REQUIRE(life.client.run("BGREWRITEAOF") == kStarted);
  life.finish_child();
  CHECK(directory.read(std::string(kManifest)) == "file appendonly.aof.1.base.rdb seq 1 type b\n");
  CHECK(life.info_has("aof_enabled:0"));
  CHECK(life.info_has("aof_last_bgrewrite_status:ok"));
}

TEST_CASE("A second rewrite is refused, and one beside a snapshot comes after it", "[aof]") {
  TemporaryDirectory directory;
  Life life(directory, kSlow);
  life.client.run("SET name value");
  REQUIRE(life.client.run("BGREWRITEAOF") == kStarted);
  CHECK(life.client.run("BGREWRITEAOF") ==
        error("ERR Background append only file rewriting already in progress"));
  kill_child(life);
  REQUIRE(life.client.run("BGSAVE") == status("Background saving started"));
  CHECK(life.client.run("BGREWRITEAOF") ==
        status("Background append only file rewriting scheduled"));
  CHECK(life.info_has("aof_rewrite_scheduled:1"));
  life.client.run("CONFIG SET rdb-key-save-delay 0");
  kill_child(life);
  life.server.tick();
  REQUIRE(rewrites(life));
  CHECK(life.info_has("aof_rewrite_scheduled:0"));
  life.finish_child();
  CHECK(directory.exists("appendonlydir/appendonly.aof.2.base.rdb"));
}

TEST_CASE("A file that is switched on beside something else begins when that is over", "[aof]") {
  TemporaryDirectory directory;
  Life life(directory, std::string(kSlow) + "appendonly no\n");
  life.client.run("SET name value");
  SECTION("a snapshot is written") {
    REQUIRE(life.client.run("BGSAVE") == status("Background saving started"));
    CHECK(life.client.run("CONFIG SET appendonly yes") == kOk);
    CHECK(life.info_has("aof_rewrite_scheduled:1"));
    CHECK_FALSE(rewrites(life));
    life.client.run("CONFIG SET rdb-key-save-delay 0");
    kill_child(life);
  }
  SECTION("it is a transaction that switches it on") {
    life.client.run("CONFIG SET rdb-key-save-delay 0");
    CHECK(life.client.run("MULTI") == kOk);
    CHECK(life.client.run("CONFIG SET appendonly yes") == kQueued);
    CHECK(life.client.run("EXEC") == array({std::string(kOk)}));
    CHECK(life.info_has("aof_rewrite_scheduled:1"));
  }
  SECTION("it is a transaction beside another rewrite, which is ended") {
    REQUIRE(life.client.run("BGREWRITEAOF") == kStarted);
    life.client.run("CONFIG SET rdb-key-save-delay 0");
    CHECK(life.client.run("MULTI") == kOk);
    CHECK(life.client.run("CONFIG SET appendonly yes") == kQueued);
    CHECK(life.client.run("EXEC") == array({std::string(kOk)}));
    CHECK_FALSE(rewrites(life));
    CHECK(life.info_has("aof_rewrite_scheduled:1"));
  }
  SECTION("another rewrite goes on, which is ended") {
    REQUIRE(life.client.run("BGREWRITEAOF") == kStarted);
    const pid_t first = life.persistence->child().pid();
    life.client.run("CONFIG SET rdb-key-save-delay 0");
    CHECK(life.client.run("CONFIG SET appendonly yes") == kOk);
    REQUIRE(rewrites(life));
    CHECK(life.persistence->child().pid() != first);
    CHECK(life.info_has("aof_last_bgrewrite_status:ok"));
  }
  if (!rewrites(life)) life.server.tick();
  REQUIRE(rewrites(life));
  life.client.run("SET later value");
  life.finish_child();
  CHECK(life.info_has("aof_enabled:1"));
  CHECK(life.info_has("aof_rewrite_scheduled:0"));
  CHECK(directory.read(std::string(kManifest)) ==
        "file appendonly.aof.1.base.rdb seq 1 type b\n"
        "file appendonly.aof.1.incr.aof seq 1 type i startoffset 0\n");
  life.server.tick();
  Life next(directory);
  CHECK(next.client.run("MGET name later") == bulks({"value", "value"}));
}

TEST_CASE("A file that is switched on behind changes of the same request begins later", "[aof]") {
  TemporaryDirectory directory;
  Life life(directory, "appendonly no\n");
  // Somebody reads what is propagated while the file is off.
  PropagationRecorder replica(life.server, server::kPropagateToReplicas);
  life.client.run("SET name value");
  // As CHECKPOINT ROLLBACK does: databases, and then settings.
  server::Propagation& propagation = life.server.server.propagation();
  propagation.begin_unit();
  CHECK(life.client.run("SWAPDB 0 1") == kOk);
  CHECK(life.client.run("CONFIG SET appendonly yes") == kOk);
  propagation.end_unit();
  CHECK_FALSE(rewrites(life));
  CHECK(life.info_has("aof_rewrite_scheduled:1"));
  if (!rewrites(life)) life.server.tick();
  REQUIRE(rewrites(life));
  life.client.run("SET later value");
  life.finish_child();
  life.server.tick();
  Life next(directory);
  CHECK(next.client.run("MGET name later") == array({std::string(kNull), bulk("value")}));
  CHECK(next.client.run("SELECT 1") == kOk);
  CHECK(next.client.run("GET name") == bulk("value"));
}

TEST_CASE("A rewrite leaves files alone that have the names of its next ones", "[aof]") {
  TemporaryDirectory directory;
  directory.write("appendonlydir/appendonly.aof.2.base.aof", request({"SET", "a", "1"}));
  directory.write("appendonlydir/appendonly.aof.2.incr.aof", request({"SET", "b", "2"}));
  directory.write(std::string(kManifest),
                  "file appendonly.aof.2.base.aof seq 1 type b\n"
                  "file appendonly.aof.2.incr.aof seq 1 type i\n");
  Life life(directory, "aof-use-rdb-preamble no\n");
  REQUIRE(life.client.run("BGREWRITEAOF") == kStarted);
  CHECK(directory.read("appendonlydir/appendonly.aof.2.incr.aof") == request({"SET", "b", "2"}));
  life.finish_child();
  CHECK(directory.read(std::string(kManifest))
            .starts_with("file appendonly.aof.3.base.aof seq 3 type b\n"
                         "file appendonly.aof.3.incr.aof seq 3 type i"));
  life.client.run("SET c 3");
  life.server.tick();
  Life next(directory);
  CHECK(next.client.run("MGET a b c") == bulks({"1", "2", "3"}));
}

TEST_CASE("An exit ends a rewrite that goes on", "[aof]") {
  TemporaryDirectory directory;
  Life life(directory, kSlow);
  life.client.run("SET name value");
  REQUIRE(life.client.run("BGREWRITEAOF") == kStarted);
  CHECK(life.client.run("SHUTDOWN NOSAVE").empty());
  CHECK(life.server.server.stop_requested());
  CHECK_FALSE(life.persistence->child().running());
}

TEST_CASE("What a rewrite has replaced is removed when the setting allows it", "[aof]") {
  TemporaryDirectory directory;
  Life life(directory, "aof-disable-auto-gc yes\n");
  life.client.run("SET name value");
  REQUIRE(life.client.run("BGREWRITEAOF") == kStarted);
  life.finish_child();
  CHECK(directory.read(std::string(kManifest)).find(" type h\n") != std::string::npos);
  CHECK(directory.exists("appendonlydir/appendonly.aof.1.base.rdb"));
  CHECK(life.client.run("CONFIG SET aof-disable-auto-gc no") == kOk);
  CHECK(directory.read(std::string(kManifest)).find(" type h\n") == std::string::npos);
}

TEST_CASE("A snapshot from a master becomes the base under a second name in Valkey 9.1", "[aof]") {
  TemporaryDirectory directory;
  const std::string snapshot = directory.path() / "dump.rdb";
  const std::string settings = "emulate \"valkey 9.1\"\n";
  {
    Life life(directory, settings);
    life.client.run("SET name value");
    persist::Aof& aof = life.persistence->aof();
    REQUIRE(life.client.run("SAVE") == kOk);
    life.server.tick();
    const uint64_t rewrites_before = [&] {
      server::AofFigures figures;
      aof.describe(&figures);
      return figures.rewrites;
    }();
    aof.begin_replacement();
    CHECK_FALSE(aof.enabled());
    SECTION("the file can be linked") {
      aof.end_replacement(snapshot);
      CHECK_FALSE(rewrites(life));
      server::AofFigures figures;
      aof.describe(&figures);
      CHECK(figures.rewrites == rewrites_before);
      CHECK(figures.base_bytes == std::filesystem::file_size(snapshot));
      CHECK(figures.current_bytes == figures.base_bytes);
      CHECK(directory.read("appendonlydir/appendonly.aof.2.base.rdb") ==
            directory.read("dump.rdb"));
    }
    SECTION("the file is gone, and a rewrite makes the base") {
      std::filesystem::remove(snapshot);
      aof.end_replacement(snapshot);
      REQUIRE(rewrites(life));
      CHECK_THAT(directory.read("log"),
                 ContainsSubstring("Cannot reuse the RDB file from the master as AOF base file, "
                                   "but will write one: No such file or directory"));
      life.finish_child();
    }
    CHECK(life.info_has("aof_enabled:1"));
    life.client.run("SET later value");
    life.server.tick();
  }
  Life next(directory, settings);
  CHECK(next.client.run("MGET name later") == bulks({"value", "value"}));
}

TEST_CASE("Where Redis writes a base, so does a replica", "[aof]") {
  TemporaryDirectory directory;
  Life life(directory, "emulate \"redis 8.6\"\n");
  life.client.run("SET name value");
  REQUIRE(life.client.run("SAVE") == kOk);
  life.persistence->aof().begin_replacement();
  life.persistence->aof().end_replacement(directory.path() / "dump.rdb");
  CHECK(rewrites(life));
  life.finish_child();
}

TEST_CASE("A replica that cannot switch its file on again tries ten times, and exits", "[aof]") {
  TemporaryDirectory directory;
  Life life(directory);
  life.client.run("SET name value");
  persist::Aof& aof = life.persistence->aof();
  aof.begin_replacement();
  std::filesystem::remove_all(directory.path() / "appendonlydir");
  directory.write("appendonlydir", "not a directory");
  aof.end_replacement("");
  CHECK_FALSE(aof.enabled());
  for (int tries = 1; tries < 9; ++tries) {
    life.server.advance_ms(999);
    life.server.tick();
    life.server.advance_ms(1);
    life.server.tick();
    CHECK_FALSE(life.server.server.stop_requested());
  }
  const auto tried = [&] {
    const std::string log = directory.read("log");
    size_t times = 0;
    for (size_t at = 0; (at = log.find("Trying it again in one second.", at)) != log.npos; ++at)
      ++times;
    return times;
  };
  CHECK(tried() == 9);
  SECTION("in vain") {
    life.server.advance_ms(999);
    life.server.tick();
    CHECK_FALSE(life.server.server.stop_requested());
    life.server.advance_ms(1);
    life.server.tick();
    CHECK(life.server.server.stop_requested());
    CHECK(tried() == 9);
  }
  SECTION("until the last time, which succeeds") {
    std::filesystem::remove(directory.path() / "appendonlydir");
    life.server.advance_ms(1000);
    life.server.tick();
    CHECK_FALSE(life.server.server.stop_requested());
    CHECK(aof.enabled());
    REQUIRE(rewrites(life));
    life.finish_child();
    CHECK(directory.exists(std::string(kManifest)));
  }
}

TEST_CASE("A manifest that preload-file names is read, or the server does not start", "[aof]") {
  TemporaryDirectory directory;
  const std::string settings =
      "appendonly no\npreload-file aof:" + (directory.path() / "other.manifest").string() + "\n";
  CHECK(Life(directory, settings).result == Loading::Result::kFailed);
  directory.write("other.manifest", "file base seq one type b\n");
  CHECK(Life(directory, settings).result == Loading::Result::kFailed);
  directory.write("other.manifest", "file base seq 1 type b\n");
  directory.write("base", request({"SET", "name", "value"}));
  Life life(directory, settings);
  CHECK(life.result == Loading::Result::kDone);
  CHECK(life.client.run("GET name") == bulk("value"));
}

TEST_CASE("A manifest that preload-file names is neither endless nor a pipe", "[aof]") {
  TemporaryDirectory directory;
  const std::string path = directory.path() / "other.manifest";
  const std::string settings = "appendonly no\npreload-file aof:" + path + "\n";
  // Mostly a hole.
  directory.write("other.manifest", "file base seq 1 type b\n");
  std::filesystem::resize_file(path, (uintmax_t{64} << 20) + 1);
  CHECK(Life(directory, settings).result == Loading::Result::kFailed);
  REQUIRE_THAT(directory.read("log"), ContainsSubstring("for reading: File too large"));
  std::filesystem::remove(path);
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  CHECK(Life(directory, settings).result == Loading::Result::kFailed);
  CHECK_THAT(directory.read("log"), ContainsSubstring("for reading: It is a pipe or a device"));
}

TEST_CASE("A replica does not wait for disks", "[aof]") {
  TemporaryDirectory directory;
  Life life(directory);
  life.server.server.set_state(server::kStateReplica, true);
  CHECK(life.client.run("WAITAOF 0 0 0") ==
        error("ERR WAITAOF cannot be used with replica instances. Please also note that writes to "
              "replicas are just local and are not propagated."));
}

TEST_CASE("DEBUG sets how long writes take, and reloads only files that can be read", "[aof]") {
  TemporaryDirectory directory;
  Life life(directory, "enable-debug-command yes\n");
  life.client.run("SET name value");
  life.server.tick();
  CHECK(life.client.run("DEBUG AOF-FLUSH-SLEEP 0") == kOk);
  directory.write("appendonlydir/appendonly.aof.1.incr.aof", "!!!");
  CHECK(life.client.run("DEBUG LOADAOF") ==
        error("ERR Error trying to load the AOF files, check server logs."));
}

}  // namespace latchkey::tests
