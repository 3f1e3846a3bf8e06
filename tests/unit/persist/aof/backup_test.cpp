#include "persist/aof/backup.h"

#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "unit/catch.h"
#include "unit/faulty_disk.h"
#include "unit/persist/aof/aof_directory_fixture.h"
#include "unit/persist/life.h"

namespace latchkey::tests {

namespace {

using Catch::Matchers::ContainsSubstring;
using persist::Loading;

constexpr char kOff[] = "appendonly no\n";

struct BackedUp : Life {
  explicit BackedUp(const TemporaryDirectory& directory, const std::string& settings = {},
                    base::FileSystem& files = base::disk(),
                    const TemporaryDirectory* logs = nullptr)
      : Life(directory, settings, files, logs) {
    server.server.commands().add(persist::backup_rows());
  }
  std::string status(std::string_view field) {
    const std::string reply = client.run("BACKUP STATUS");
    const std::string name = bulk(field);
    const size_t value = reply.find("\r\n", reply.find(name) + name.size());
    const size_t begin = value + 2;
    return reply.substr(begin, reply.find("\r\n", begin) - begin);
  }
  std::string state() { return status("state"); }
  // START, and the base is there.
  std::string begin() {
    std::string reply = client.run("BACKUP START");
    if (persistence->child().running()) finish_child();
    return reply;
  }
  // How many files BACKUP LIST names.
  size_t files() {
    const std::string reply = client.run("BACKUP LIST");
    return std::stoul(reply.substr(1));
  }
};

// A server that has loaded what was backed up in `directory`.
struct Restored {
  explicit Restored(const TemporaryDirectory& directory, const std::string& settings = kOff)
      : life(other, settings + "preload-file aof:" + (directory.path() / "backupdir").string() +
                        "/appendonly.aof.manifest\n") {}
  TemporaryDirectory other;
  Life life;
};

bool is_empty(const TemporaryDirectory& directory) {
  return std::filesystem::is_empty(directory.path() / "backupdir");
}

}  // namespace

TEST_CASE("A backup holds what was written until it was sealed", "[backup]") {
  const std::string setting = GENERATE(std::string(kOff), std::string("appendonly yes\n"));
  TemporaryDirectory directory;
  BackedUp life(directory, setting);
  CHECK(life.state() == "idle");
  CHECK(life.status("start_time") == "0");
  life.client.run("SET before 1");
  CHECK(life.client.run("BACKUP START") == status("OK"));
  CHECK(life.state() == "snapshotting");
  CHECK(life.files() == 0);
  life.client.run("SET during 2");
  life.finish_child();
  CHECK(life.state() == "incrementing");
  CHECK(life.files() == 1);
  life.client.run("SET after 3");
  CHECK(life.client.run("BACKUP SEAL") == status("OK"));
  life.client.run("SET late 4");
  life.server.tick();
  CHECK(life.state() == "sealed");
  CHECK(life.status("end_time") != "0");
  CHECK(life.files() == 3);
  {
    Restored restored(directory);
    CHECK(restored.life.result == Loading::Result::kDone);
    CHECK(restored.life.client.run("MGET before during after late") ==
          array({bulk("1"), bulk("2"), bulk("3"), std::string(kNull)}));
  }
  CHECK(life.client.run("BACKUP CLEANUP") == status("OK"));
  CHECK(life.state() == "idle");
  CHECK(is_empty(directory));
  // The server's own file goes on, or is away again.
  CHECK(life.persistence->aof().enabled() == (setting != kOff));
  CHECK(directory.exists("appendonlydir") == (setting != kOff));
}

TEST_CASE("The file of a server goes on after a backup", "[backup]") {
  TemporaryDirectory directory;
  {
    BackedUp life(directory);
    life.client.run("SET a 1");
    life.begin();
    life.client.run("SET b 2");
    life.client.run("BACKUP SEAL");
    life.client.run("SET c 3");
    life.server.tick();
  }
  Life life(directory);
  CHECK(life.client.run("MGET a b c") == bulks({"1", "2", "3"}));
}

TEST_CASE("BACKUP refuses what its state does not allow", "[backup]") {
  TemporaryDirectory directory;
  BackedUp life(directory, kOff);
  CHECK(life.client.run("BACKUP SEAL") == error("ERR No backup ready to seal"));
  CHECK(life.client.run("BACKUP ABORT") == error("ERR No backup in progress"));
  CHECK(life.client.run("BACKUP CLEANUP") == status("OK"));
  directory.write("backupdir/stale", "x");
  CHECK(life.client.run("BACKUP START") == error("ERR Backup directory backupdir is not empty"));
  std::filesystem::remove(directory.path() / "backupdir/stale");
  life.begin();
  CHECK(life.client.run("BACKUP START") == error("ERR Backup already in progress"));
  CHECK(life.client.run("BACKUP CLEANUP").find("-ERR Backup in progress") == 0);
  CHECK(life.client.run("BACKUP ABORT") == status("OK"));
  CHECK(life.state() == "failed");
  CHECK(life.status("error") == "aborted by user");
  CHECK(is_empty(directory));
  CHECK_FALSE(life.persistence->aof().enabled());
  // A new one can be begun.
  CHECK(life.begin() == status("OK"));
  CHECK(life.client.run("BACKUP SEAL") == status("OK"));
  CHECK(life.client.run("BACKUP START").find("-ERR The last backup is sealed") == 0);
}

TEST_CASE("A backup waits for another child, and uses a rewrite that runs", "[backup]") {
  TemporaryDirectory directory;
  BackedUp life(directory);
  life.client.run("SET a 1");
  SECTION("a snapshot is written") {
    life.client.run("BGSAVE");
    CHECK(life.client.run("BACKUP START") == status("OK"));
    CHECK(life.state() == "pending");
    life.finish_child();
    life.server.tick();
    CHECK(life.state() == "snapshotting");
    life.finish_child();
  }
  SECTION("the file is rewritten") {
    life.client.run("BGREWRITEAOF");
    CHECK(life.client.run("BACKUP START") == status("OK"));
    CHECK(life.state() == "snapshotting");
    life.finish_child();
  }
  CHECK(life.state() == "incrementing");
  // Until it is sealed, nothing is rewritten.
  CHECK(life.client.run("BGREWRITEAOF") ==
        status("Background append only file rewriting scheduled"));
  life.server.tick();
  CHECK_FALSE(life.persistence->child().running());
  life.client.run("BACKUP SEAL");
  life.server.tick();
  CHECK(life.persistence->child().running());
  life.finish_child();
  CHECK(Restored(directory).life.client.run("GET a") == bulk("1"));
}

TEST_CASE("appendonly switched off ends a backup, switched on keeps its file", "[backup]") {
  TemporaryDirectory directory;
  SECTION("off") {
    BackedUp life(directory);
    life.begin();
    CHECK(life.client.run("CONFIG SET appendonly no") == status("OK"));
    CHECK(life.state() == "failed");
    CHECK(life.status("error") == "appendonly is stopped");
    CHECK(is_empty(directory));
  }
  SECTION("on") {
    BackedUp life(directory, kOff);
    life.begin();
    life.client.run("CONFIG SET appendonly yes");
    life.client.run("SET a 1");
    CHECK(life.client.run("BACKUP SEAL") == status("OK"));
    life.client.run("BACKUP CLEANUP");
    CHECK(life.persistence->aof().enabled());
    life.client.run("SET b 2");
    life.server.tick();
    Life next(directory);
    CHECK(next.client.run("MGET a b") == bulks({"1", "2"}));
  }
}

TEST_CASE("No backup is begun or sealed while a replica loads a dataset", "[backup]") {
  TemporaryDirectory directory;
  BackedUp life(directory);
  life.client.run("SET a 1");
  SECTION("the gate refuses it as it refuses a rewrite") {
    life.server.server.set_state(server::kStateAsyncLoading, true);
    const std::string refusal = life.client.run("BGREWRITEAOF");
    CHECK(refusal.starts_with("-LOADING "));
    CHECK(life.client.run("BACKUP START") == refusal);
    CHECK(life.client.run("BACKUP SEAL") == refusal);
    life.server.server.set_state(server::kStateAsyncLoading, false);
    CHECK(life.state() == "idle");
  }
  SECTION("the dataset is being replaced") {
    persist::Aof& aof = life.persistence->aof();
    aof.begin_replacement();
    CHECK(life.client.run("BACKUP START") ==
          error("ERR Can't begin the backup while the dataset is being replaced"));
    CHECK(life.state() == "idle");
    CHECK_FALSE(aof.enabled());
    aof.end_replacement();
    CHECK(aof.enabled());
    life.finish_child();
    CHECK(life.begin() == status("OK"));
    CHECK(life.state() == "incrementing");
  }
}

TEST_CASE("A backup leaves the file on that a replica could not switch on at first", "[backup]") {
  TemporaryDirectory directory;
  {
    BackedUp life(directory);
    life.client.run("SET a 1");
    persist::Aof& aof = life.persistence->aof();
    aof.begin_replacement();
    std::filesystem::remove_all(directory.path() / "appendonlydir");
    directory.write("appendonlydir", "not a directory");
    aof.end_replacement();
    REQUIRE_FALSE(aof.enabled());
    std::filesystem::remove(directory.path() / "appendonlydir");
    CHECK(life.begin() == status("OK"));
    life.client.run("SET b 2");
    std::string last;
    SECTION("sealed") {
      last = "BACKUP SEAL";
    }
    SECTION("aborted") {
      last = "BACKUP ABORT";
    }
    CHECK(life.client.run(last) == status("OK"));
    CHECK(life.info_has("aof_enabled:1"));
    life.client.run("SET c 3");
    life.server.tick();
    if (life.state() == "sealed") {
      CHECK(Restored(directory).life.client.run("MGET a b c") ==
            array({bulk("1"), bulk("2"), std::string(kNull)}));
    }
  }
  Life next(directory);
  CHECK(next.client.run("MGET a b c") == bulks({"1", "2", "3"}));
}

TEST_CASE("CONFIG SET dir is refused as long as a backup has files", "[backup]") {
  TemporaryDirectory directory;
  TemporaryDirectory other;
  const std::string manifest = "appendonlydir/appendonly.aof.manifest";
  const std::string base = "appendonlydir/appendonly.aof.1.base.rdb";
  for (const std::string& name : {manifest, base}) other.write(name, "of another server");
  BackedUp life(directory, std::string(kOff) + "enable-protected-configs yes\n");
  const std::string change = "CONFIG SET dir " + other.path().string();
  const std::string refused = "ERR CONFIG SET failed (possibly related to argument 'dir') - ";
  life.begin();
  CHECK(life.client.run(change) == error(refused + "a backup is in progress"));
  CHECK(life.client.run("CONFIG GET dir") == bulks({"dir", directory.path().string()}));
  SECTION("aborted") {
    CHECK(life.client.run("BACKUP ABORT") == status("OK"));
  }
  SECTION("sealed") {
    CHECK(life.client.run("BACKUP SEAL") == status("OK"));
    CHECK(life.client.run(change) ==
          error(refused + "the last backup is sealed, call BACKUP CLEANUP first"));
    CHECK(life.client.run("BACKUP CLEANUP") == status("OK"));
  }
  CHECK_FALSE(directory.exists("appendonlydir"));
  CHECK(is_empty(directory));
  for (const std::string& name : {manifest, base}) CHECK(other.exists(name));
  CHECK(life.client.run(change) == kOk);
}

TEST_CASE("An exit ends a backup, and is not refused because of one", "[backup]") {
  TemporaryDirectory directory;
  SECTION("while its first base is written") {
    BackedUp life(directory, std::string(kOff) + "rdb-key-save-delay 60000000\n");
    life.client.run("SET a 1");
    REQUIRE(life.client.run("BACKUP START") == status("OK"));
    CHECK(life.client.run("SHUTDOWN NOSAVE").empty());
    CHECK(life.server.server.stop_requested());
    CHECK_FALSE(life.persistence->child().running());
    CHECK_FALSE(directory.exists("appendonlydir"));
  }
  SECTION("while its first base is there, unseen") {
    BackedUp life(directory, kOff);
    life.client.run("SET a 1");
    REQUIRE(life.client.run("BACKUP START") == status("OK"));
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(life.persistence->child().pid()), &info, WEXITED | WNOWAIT);
    CHECK(life.client.run("SHUTDOWN NOSAVE").empty());
    CHECK(life.server.server.stop_requested());
    CHECK_FALSE(life.persistence->aof().file().is_open());
    CHECK_FALSE(directory.exists("appendonlydir"));
  }
  SECTION("while writes are added") {
    BackedUp life(directory, kOff);
    life.client.run("SET a 1");
    life.begin();
    REQUIRE(directory.exists("appendonlydir"));
    CHECK(life.client.run("SHUTDOWN NOSAVE").empty());
    CHECK(life.server.server.stop_requested());
    CHECK(life.status("error") == "the server is shutting down");
    CHECK_FALSE(directory.exists("appendonlydir"));
  }
  SECTION("by force, although the snapshot fails") {
    BackedUp life(directory, std::string(kOff) + "dbfilename dump.rdb\n");
    life.client.run("SET a 1");
    life.begin();
    std::filesystem::create_directory(directory.path() / "dump.rdb");
    CHECK_FALSE(life.client.run("SHUTDOWN SAVE").empty());
    CHECK(life.state() == "incrementing");
    CHECK(life.client.run("SHUTDOWN SAVE FORCE").empty());
    CHECK(life.server.server.stop_requested());
    CHECK_FALSE(directory.exists("appendonlydir"));
  }
  SECTION("of a server whose file stays") {
    {
      BackedUp life(directory);
      life.client.run("SET a 1");
      life.begin();
      life.client.run("SET b 2");
      CHECK(life.client.run("SHUTDOWN NOSAVE").empty());
      CHECK(life.server.server.stop_requested());
    }
    Life next(directory);
    CHECK(next.client.run("MGET a b") == bulks({"1", "2"}));
  }
  CHECK(is_empty(directory));
}

TEST_CASE("A directory of another file stays when a backup has used it", "[backup]") {
  TemporaryDirectory directory;
  directory.write("appendonlydir/other", "x");
  BackedUp life(directory, kOff);
  life.begin();
  life.client.run("BACKUP SEAL");
  life.client.run("BACKUP CLEANUP");
  CHECK(directory.exists("appendonlydir/other"));
}

TEST_CASE("A sealed backup goes after backup-sealed-ttl", "[backup]") {
  TemporaryDirectory directory;
  BackedUp life(directory, "backup-sealed-ttl 10\n");
  life.begin();
  life.client.run("BACKUP SEAL");
  life.server.advance_ms(9000);
  life.server.tick();
  CHECK(life.state() == "sealed");
  life.server.advance_ms(1500);
  life.server.tick();
  CHECK(life.state() == "idle");
  CHECK(is_empty(directory));
}

TEST_CASE("preload-file takes the place of the server's own files", "[backup]") {
  TemporaryDirectory directory;
  {
    BackedUp life(directory, kOff);
    life.client.run("SET a 1");
    life.begin();
    life.client.run("BACKUP SEAL");
    life.client.run("SAVE");
  }
  SECTION("a manifest, while the file is switched on") {
    TemporaryDirectory other;
    other.write("appendonlydir/appendonly.aof.1.incr.aof", request({"SET", "own", "1"}));
    other.write("appendonlydir/appendonly.aof.manifest",
                "file appendonly.aof.1.incr.aof seq 1 type i\n");
    {
      Life life(other, "preload-file aof:" + (directory.path() / "backupdir").string() +
                           "/appendonly.aof.manifest\n");
      REQUIRE(life.opened);
      CHECK(life.client.run("MGET a own") == array({bulk("1"), std::string(kNull)}));
      life.finish_child();
      life.client.run("SET b 2");
      life.pass_second();
      CHECK_FALSE(other.exists("appendonlydir/appendonly.aof.1.incr.aof"));
    }
    Life next(other);
    CHECK(next.client.run("MGET a b own") == array({bulk("1"), bulk("2"), std::string(kNull)}));
  }
  SECTION("a snapshot") {
    TemporaryDirectory other;
    Life life(other, std::string(kOff) +
                         "preload-file rdb:" + (directory.path() / "dump.rdb").string() + "\n");
    CHECK(life.result == Loading::Result::kDone);
    CHECK(life.client.run("GET a") == bulk("1"));
  }
  SECTION("its own manifest is loaded as at any start") {
    TemporaryDirectory other;
    other.write("appendonlydir/appendonly.aof.1.incr.aof", request({"SET", "own", "1"}));
    const auto manifest = other.path() / "appendonlydir" / "appendonly.aof.manifest";
    other.write("appendonlydir/appendonly.aof.manifest",
                "file appendonly.aof.1.incr.aof seq 1 type i\n");
    Life life(other, "preload-file aof:" + manifest.string() + "\n");
    REQUIRE(life.opened);
    CHECK(life.client.run("GET own") == bulk("1"));
    CHECK_FALSE(life.persistence->child().running());
  }
  SECTION("a file that is not there ends the start") {
    TemporaryDirectory other;
    CHECK(Life(other, std::string(kOff) + "preload-file rdb:/nowhere/x.rdb\n").result ==
          Loading::Result::kFailed);
    CHECK(Life(other, "preload-file aof:/nowhere/x.manifest\n").result == Loading::Result::kFailed);
  }
}

TEST_CASE("preload-file and backupdirname are checked", "[backup]") {
  server::Config config;
  for (const char* line :
       {"preload-file aof:/tmp/x", "preload-file rdb:/tmp/x", "preload-file other:/tmp/x.rdb",
        "preload-file rdb", "backupdirname a/b", "backupdirname \"\""}) {
    INFO(line);
    CHECK_FALSE(config.load("", std::string(line) + "\n"));
  }
  CHECK(config.load("", "preload-file rdb:/tmp/x.rdb\nbackupdirname mine\n"));
}

TEST_CASE("A backup on a disk that fails leaves a server with its file", "[backup]") {
  TemporaryDirectory logs;
  const auto scene = [&](const Trial& trial) {
    TemporaryDirectory directory;
    FaultyDisk disk(directory.path());
    const bool loses_power = trial.fault.kind == FaultKind::kPowerCut;
    std::string state;
    {
      BackedUp life(directory, {}, disk, &logs);
      life.client.run("SET a 1");
      life.pass_second();
      disk.fail(trial.fault);
      life.begin();
      life.client.run("BACKUP SEAL");
      if (!disk.has_failed()) return false;
      INFO(told(trial, disk));
      state = life.state();
      if (state == "failed" && !loses_power) CHECK(is_empty(directory));
      // What could not be synced is synced within a second, and writes are taken again.
      if (!loses_power) {
        disk.heal();
        life.pass_second();
        CHECK(life.client.run("SET c 3") == status("OK"));
      }
    }
    INFO(told(trial, disk));
    if (loses_power) disk.restore(trial.lost);
    Life next(directory, {}, base::disk(), &logs);
    CHECK(next.opened);
    CHECK(next.client.run("GET a") == bulk("1"));
    if (state == "sealed") CHECK(Restored(directory).life.client.run("GET a") == bulk("1"));
    return true;
  };
  size_t calls = 0;
  for (Trial trial : {Trial{{.kind = FaultKind::kOnce}, Lost::kEverything},
                      Trial{{.kind = FaultKind::kPowerCut}, Lost::kEverything}}) {
    for (; scene(trial); ++trial.fault.at) ++calls;
  }
  CHECK(calls > 30);
}

TEST_CASE("BACKUP HELP names all subcommands") {
  TemporaryDirectory directory;
  BackedUp life(directory);
  const std::string help = life.client.run("BACKUP HELP");
  CHECK(help.starts_with("*15\r\n+BACKUP <subcommand> [<arg> [value] [opt] ...]. "));
  for (const char* name : {"ABORT", "CLEANUP", "LIST", "SEAL", "START", "STATUS", "HELP"})
    CHECK(help.find(status(name)) != std::string::npos);
}

}  // namespace latchkey::tests
