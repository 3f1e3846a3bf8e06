// Snapshots of whole servers, in directories of their own. Children are real ones; time is not.
#include "persist/snapshots.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "base/file.h"
#include "commands/groups.h"
#include "persist/persistence.h"
#include "persist/rows.h"
#include "persist/snapshot_file.h"
#include "server/observe/info.h"
#include "server/process/shutdown.h"
#include "unit/catch.h"
#include "unit/propagation_recorder.h"
#include "unit/server_fixture.h"

namespace latchkey::persist {

namespace {

namespace fs = std::filesystem;
using tests::bulk;
using tests::error;
using tests::integer;
using tests::kOk;
using tests::TestClient;

struct Directory {
  Directory() {
    std::string pattern = fs::temp_directory_path() / "latchkey-snapshots-XXXXXX";
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~Directory() { fs::remove_all(path); }
  fs::path path;
};

class SnapshotServer : public tests::ServerFixture {
 public:
  explicit SnapshotServer(const Directory& directory, const std::string& settings = {})
      : ServerFixture({commands::string_rows(), commands::key_rows(), commands::database_rows(),
                       commands::debug_rows(), commands::server_rows(), commands::config_rows(),
                       commands::connection_rows(), commands::info_rows(),
                       commands::transaction_rows(), snapshot_rows()},
                      "dir " + directory.path.string() +
                          "\nenable-debug-command yes\nenable-protected-configs yes\n" + settings),
        log_file(directory.path / "log"),
        persistence(std::make_shared<Persistence>(server, ChildProcessParts{})) {
    log.set_level(base::LogLevel::kNotice);
    log.set_file(log_file);
    server.add_layer(persistence);
  }

  // Waits for the child in the kernel; the server does not see it yet.
  void wait_for_child() {
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(persistence->child().pid()), &info, WEXITED | WNOWAIT);
  }
  void finish_child() {
    wait_for_child();
    tick();
  }
  bool child_runs() const { return persistence->child().running(); }
  std::string read_log() const { return base::read_file(log_file).value_or(""); }
  bool logged(std::string_view text) const { return read_log().find(text) != std::string::npos; }
  server::PersistenceFigures figures() { return server.figures().persistence(); }
  std::string log_file;
  std::shared_ptr<Persistence> persistence;
};

constexpr std::string_view kStarted = "+Background saving started\r\n";
constexpr std::string_view kScheduled = "+Background saving scheduled\r\n";

}  // namespace

TEST_CASE("SAVE writes a file that another server starts with") {
  Directory directory;
  SnapshotServer first(directory);
  TestClient client(first);
  client.run("SET name anna");
  client.run("SET soon gone PX 1000");
  CHECK(client.run("SAVE") == kOk);
  CHECK(first.logged("* DB saved on disk"));
  CHECK(first.figures().changes_since_save == 0);
  CHECK(first.figures().saves == 1);

  SnapshotServer second(directory);
  second.advance_ms(2000);
  CHECK(second.persistence->loading().load_at_start() == Loading::Result::kDone);
  TestClient reader(second);
  CHECK(reader.run("GET name") == bulk("anna"));
  CHECK(reader.run("EXISTS soon") == integer(0));
  CHECK(second.figures().keys_loaded == 1);
  CHECK(second.figures().keys_expired == 1);
  CHECK(second.figures().changes_since_save == 0);
  CHECK(second.logged("DB loaded from disk: 0.000 seconds"));
}

TEST_CASE("A server without a file starts empty, and says nothing of it") {
  Directory directory;
  SnapshotServer server(directory);
  CHECK(server.persistence->loading().load_at_start() == Loading::Result::kNoFile);
  CHECK(server.read_log().empty());
}

TEST_CASE("A file that is damaged is refused with offset and reason") {
  Directory directory;
  {
    SnapshotServer server(directory);
    TestClient client(server);
    client.run("SET name anna");
    client.run("SAVE");
  }
  const std::string path = directory.path / "dump.rdb";
  const auto whole = base::read_file(path);
  REQUIRE(whole);
  SnapshotServer server(directory);
  SECTION("cut short") {
    REQUIRE(base::write_file(path, whole->substr(0, whole->size() - 12)));
    CHECK(server.persistence->loading().load_at_start() == Loading::Result::kFailed);
    CHECK(server.logged("# Short read or OOM loading DB. Unrecoverable error, aborting now."));
    CHECK(server.logged("# Internal error in RDB reading offset"));
    CHECK(server.logged("# Terminating server after rdb file reading failure."));
  }
  SECTION("another checksum") {
    std::string changed = *whole;
    changed.back() = static_cast<char>(changed.back() ^ 1);
    REQUIRE(base::write_file(path, changed));
    CHECK(server.persistence->loading().load_at_start() == Loading::Result::kFailed);
    CHECK(server.logged("RDB CRC error"));
    CHECK(server.logged("# Terminating server after rdb file reading failure."));
  }
  SECTION("another kind of file") {
    REQUIRE(base::write_file(path, "not an RDB file at all"));
    CHECK(server.persistence->loading().load_at_start() == Loading::Result::kFailed);
    CHECK(server.logged("# Wrong signature trying to load DB from file"));
    CHECK(server.logged("Look into it with: redis-check-rdb " + path));
    CHECK(server.logged("# Fatal error loading the DB, check server logs. Exiting."));
  }
}

TEST_CASE("BGSAVE keeps what changes while the child writes") {
  Directory directory;
  SnapshotServer server(directory);
  TestClient client(server);
  client.run("SET a 1");
  client.run("SET b 1");
  CHECK(client.run("BGSAVE") == kStarted);
  client.run("SET a 2");
  CHECK(server.figures().saving);
  CHECK(server.figures().keys_total == 2);
  CHECK(server.figures().save_duration_s == 0);
  CHECK(client.run("BGSAVE") == error("ERR Background save already in progress"));
  CHECK(client.run("SAVE") == error("ERR Background save already in progress"));
  server.advance_ms(3000);
  server.finish_child();
  CHECK_FALSE(server.child_runs());
  CHECK(server.figures().changes_since_save == 1);
  CHECK(server.figures().last_save_ok);
  CHECK(server.figures().last_save_duration_s == 3);
  CHECK(server.figures().save_duration_s == -1);
  CHECK(server.figures().last_save_copied_bytes > 0);
  CHECK(client.run("LASTSAVE") == integer(server.now_ms() / 1000));
  CHECK(server.logged("* Background saving terminated with success"));

  SnapshotServer second(directory);
  second.persistence->loading().load_at_start();
  CHECK(TestClient(second).run("GET a") == bulk("1"));
}

TEST_CASE("BGSAVE in a transaction waits for its end") {
  Directory directory;
  SnapshotServer server(directory);
  TestClient client(server);
  client.run("MULTI");
  client.run("SET a 1");
  client.run("BGSAVE");
  CHECK(client.run("EXEC") == tests::array({std::string(kOk), std::string(kScheduled)}));
  CHECK_FALSE(server.child_runs());
  server.tick();
  CHECK(server.child_runs());
  server.finish_child();
  server.tick();
  CHECK_FALSE(server.child_runs());
}

TEST_CASE("BGSAVE beside another child is refused, or waits for its end") {
  Directory directory;
  SnapshotServer server(directory);
  TestClient client(server);
  REQUIRE(server.persistence->child().start({.kind = ChildKind::kAofRewrite,
                                             .work = [](ChildProgress&) { return true; },
                                             .ended = nullptr}));
  CHECK(client.run("BGSAVE").starts_with("-ERR Another child process is active (AOF?)"));
  CHECK(client.run("BGSAVE nonsense") == error("ERR syntax error"));
  CHECK(client.run("BGSAVE SCHEDULE") == kScheduled);
  server.finish_child();
  CHECK(server.persistence->child().running(ChildKind::kRdbToDisk));
  server.finish_child();
  CHECK(server.figures().last_save_ok);
}

TEST_CASE("BGSAVE CANCEL stops the child, which is no failure") {
  Directory directory;
  SnapshotServer server(directory, "save 3600 1000\nrdb-key-save-delay 60000000");
  TestClient client(server);
  REQUIRE(base::write_file(directory.path / "dump.rdb", "old"));
  client.run("SET a 1");
  const std::string nothing_to_cancel =
      error("ERR Background saving is currently not in progress or scheduled");
  CHECK(client.run("BGSAVE CANCEL") == nothing_to_cancel);
  REQUIRE(client.run("BGSAVE") == kStarted);
  CHECK(client.run("BGSAVE CANCEL more") == error("ERR syntax error"));
  CHECK(client.run("BGSAVE cancel") == "+Background saving cancelled\r\n");
  server.finish_child();
  CHECK_FALSE(server.child_runs());
  CHECK(server.figures().last_save_ok);
  CHECK(base::read_file(directory.path / "dump.rdb") == "old");
  CHECK(client.run("SET a 2") == kOk);
  CHECK(client.run("BGSAVE CANCEL") == nothing_to_cancel);
}

TEST_CASE("BGSAVE CANCEL forgets what is scheduled, and leaves another child alone") {
  Directory directory;
  SnapshotServer server(directory);
  TestClient client(server);
  REQUIRE(server.persistence->child().start({.kind = ChildKind::kAofRewrite,
                                             .work = [](ChildProgress&) { return true; },
                                             .ended = nullptr}));
  CHECK(client.run("BGSAVE SCHEDULE") == kScheduled);
  CHECK(client.run("BGSAVE CANCEL") == "+Scheduled background saving cancelled\r\n");
  CHECK(server.persistence->child().running(ChildKind::kAofRewrite));
  server.finish_child();
  CHECK_FALSE(server.child_runs());
}

TEST_CASE("A save point is met when there are changes enough and the last snapshot is old enough") {
  Directory directory;
  SnapshotServer server(directory, "save 10 2");
  TestClient client(server);
  client.run("SET a 1");
  server.advance_ms(11'000);
  server.tick();
  CHECK_FALSE(server.child_runs());
  client.run("SET a 2");
  server.tick();
  CHECK(server.child_runs());
  CHECK(server.logged("* 2 changes in 10 seconds. Saving..."));
  server.finish_child();
  client.run("SET a 3");
  client.run("SET a 4");
  server.advance_ms(10'000);
  server.tick();
  CHECK_FALSE(server.child_runs());
  server.advance_ms(1000);
  server.tick();
  CHECK(server.child_runs());
  server.finish_child();
}

TEST_CASE("After a snapshot that failed writes are refused until one succeeds") {
  Directory directory;
  SnapshotServer server(directory, "save 1 1");
  TestClient client(server);
  client.run("SET a 1");
  // In the way of the rename.
  REQUIRE(fs::create_directory(directory.path / "dump.rdb"));
  server.advance_ms(2000);
  server.tick();
  REQUIRE(server.child_runs());
  server.finish_child();
  CHECK_FALSE(server.figures().last_save_ok);
  const auto failures = [&] {
    constexpr std::string_view kField = "rdb_saves_consecutive_failures:";
    const std::string told = client.run("INFO persistence");
    return told.substr(told.find(kField) + kField.size(), 1);
  };
  CHECK(failures() == "1");
  CHECK(server.logged("# Background saving error"));
  CHECK(client.run("SET a 2").starts_with("-MISCONF Redis is configured to save RDB snapshots"));
  CHECK(client.run("PING").starts_with("-MISCONF "));
  CHECK(client.run("GET a") == bulk("1"));

  SECTION("it is not tried again before five seconds are over") {
    server.advance_ms(5000);
    server.tick();
    CHECK_FALSE(server.child_runs());
    server.advance_ms(1000);
    server.tick();
    server.finish_child();
    CHECK(failures() == "2");
    server.advance_ms(6000);
    REQUIRE(fs::remove(directory.path / "dump.rdb"));
    server.tick();
    REQUIRE(server.child_runs());
    server.finish_child();
    CHECK(failures() == "0");
    CHECK(client.run("SET a 2") == kOk);
  }
  SECTION("unless the configuration says otherwise") {
    CHECK(client.run("CONFIG SET stop-writes-on-bgsave-error no") == kOk);
    CHECK(client.run("SET a 2") == kOk);
    CHECK(client.run("CONFIG SET stop-writes-on-bgsave-error yes") == kOk);
    CHECK(client.run("SET a 2").starts_with("-MISCONF"));
    CHECK(client.run_words({"CONFIG", "SET", "save", ""}) == kOk);
    CHECK(client.run("SET a 2") == kOk);
  }
  SECTION("SAVE by hand will do") {
    CHECK(client.run("SAVE") == error("ERR"));
    REQUIRE(fs::remove(directory.path / "dump.rdb"));
    CHECK(client.run("SAVE") == kOk);
    CHECK(client.run("PING") == tests::status("PONG"));
  }
}

TEST_CASE("A child that is killed leaves the old file and nothing else") {
  Directory directory;
  SnapshotServer server(directory, "save 3600 1000\nrdb-key-save-delay 60000000");
  TestClient client(server);
  REQUIRE(base::write_file(directory.path / "dump.rdb", "old"));
  client.run("SET a 1");
  REQUIRE(client.run("BGSAVE") == kStarted);
  const pid_t pid = server.persistence->child().pid();
  kill(pid, SIGKILL);
  server.finish_child();
  CHECK(server.logged("# Background saving terminated by signal 9"));
  CHECK_FALSE(server.figures().last_save_ok);
  CHECK(base::read_file(directory.path / "dump.rdb") == "old");
  CHECK_FALSE(fs::exists(directory.path / ("temp-" + std::to_string(pid) + ".rdb")));
  CHECK(client.run("SET a 2").starts_with("-MISCONF"));
}

TEST_CASE("FLUSHALL stops the child, which is no failure, and saves that there is nothing") {
  Directory directory;
  SnapshotServer server(directory, "save 3600 1000\nrdb-key-save-delay 60000000");
  TestClient client(server);
  client.run("SET a 1");
  REQUIRE(client.run("BGSAVE") == kStarted);
  CHECK(client.run("FLUSHALL") == kOk);
  CHECK(server.figures().changes_since_save == 0);
  CHECK(server.figures().saves == 1);
  server.finish_child();
  CHECK(server.logged("# Background saving terminated by signal 10"));
  CHECK(server.figures().last_save_ok);
  SnapshotServer second(directory);
  CHECK(second.persistence->loading().load_at_start() == Loading::Result::kDone);
  CHECK(second.figures().keys_loaded == 0);
}

TEST_CASE("A child that has ended unseen before FLUSHALL does not bring changes back") {
  Directory directory;
  SnapshotServer server(directory, "save 3600 1000");
  TestClient client(server);
  client.run("SET a 1");
  REQUIRE(client.run("BGSAVE") == kStarted);
  server.wait_for_child();
  client.run("SET a 2");
  CHECK(client.run("FLUSHALL") == kOk);
  server.tick();
  CHECK_FALSE(server.child_runs());
  CHECK(server.figures().changes_since_save == 0);
}

TEST_CASE("FLUSHALL without save points saves nothing") {
  Directory directory;
  SnapshotServer server(directory, "save \"\"");
  TestClient client(server);
  client.run("SET a 1");
  client.run("SET b 1");
  CHECK(client.run("FLUSHALL") == kOk);
  CHECK(server.figures().changes_since_save == 4);
  CHECK_FALSE(fs::exists(directory.path / "dump.rdb"));
}

TEST_CASE("An exit saves when there are save points, or when it is asked to") {
  Directory directory;
  const fs::path file = directory.path / "dump.rdb";
  SECTION("with save points") {
    SnapshotServer server(directory, "save 3600 1");
    SECTION("by itself") {
      CHECK(TestClient(server).run("SHUTDOWN").empty());
      CHECK(fs::exists(file));
      CHECK(server.logged("* Saving the final RDB snapshot before exiting."));
    }
    SECTION("but not NOSAVE") {
      CHECK(TestClient(server).run("SHUTDOWN NOSAVE").empty());
      CHECK_FALSE(fs::exists(file));
    }
  }
  SECTION("without") {
    SnapshotServer server(directory, "save \"\"");
    SECTION("not by itself") {
      CHECK(TestClient(server).run("SHUTDOWN").empty());
      CHECK_FALSE(fs::exists(file));
    }
    SECTION("with SAVE") {
      CHECK(TestClient(server).run("SHUTDOWN SAVE").empty());
      CHECK(fs::exists(file));
    }
  }
}

TEST_CASE("An exit that cannot save does not happen, unless by force") {
  Directory directory;
  SnapshotServer server(directory, "save 3600 1");
  REQUIRE(fs::create_directory(directory.path / "dump.rdb"));
  TestClient client(server);
  CHECK(client.run("SHUTDOWN") == error("ERR Errors trying to SHUTDOWN. Check logs."));
  CHECK(server.logged("# Error trying to save the DB, can't exit."));
  CHECK_FALSE(server.server.stop_requested());
  CHECK(client.run("SHUTDOWN FORCE").empty());
  CHECK(server.logged("# Error trying to save the DB. Exit anyway."));
  CHECK(server.server.stop_requested());
}

TEST_CASE("An exit does not wait for a child that saves, and clears up after it") {
  Directory directory;
  SnapshotServer server(directory, "save \"\"\nrdb-key-save-delay 60000000");
  TestClient client(server);
  client.run("SET a 1");
  REQUIRE(client.run("BGSAVE") == kStarted);
  const pid_t pid = server.persistence->child().pid();
  CHECK(client.run("SHUTDOWN NOSAVE").empty());
  CHECK(server.logged("# There is a child saving an .rdb. Killing it!"));
  CHECK_FALSE(server.child_runs());
  CHECK_FALSE(fs::exists(directory.path / ("temp-" + std::to_string(pid) + ".rdb")));
}

TEST_CASE("A directory that is gone is named as the reason") {
  Directory directory;
  const fs::path inner = directory.path / "inner";
  REQUIRE(fs::create_directory(inner));
  SnapshotServer server(directory);
  TestClient client(server);
  REQUIRE(client.run("CONFIG SET dir " + inner.string()) == kOk);
  fs::remove(inner);
  CHECK(client.run("SAVE") == error("ERR"));
  CHECK(server.logged("# Failed opening the temp RDB file temp-" + std::to_string(getpid()) +
                      ".rdb (in server root dir "));
  CHECK(server.logged("for saving: No such file or directory"));
}

TEST_CASE("DEBUG RELOAD tells followers of keys that have expired when they are loaded") {
  const Directory directory;
  SnapshotServer server(directory);
  TestClient client(server);
  client.run("SET stays value");
  client.run("SET goes value PX 100");
  CHECK(client.run("SAVE") == kOk);
  server.advance_ms(200);
  tests::PropagationRecorder stream(server);
  CHECK(client.run("DEBUG RELOAD NOSAVE") == kOk);
  CHECK(stream.take() == "SELECT 0; DEL goes");
}

TEST_CASE("DEBUG RELOAD keeps the dataset when the file is of a version that is not loaded") {
  const Directory directory;
  SnapshotServer server(directory);
  TestClient client(server);
  client.run("SET name value");
  std::ofstream(directory.path / "dump.rdb") << "REDIS0987";
  CHECK(client.run("DEBUG RELOAD NOSAVE") ==
        error("ERR Error trying to load the RDB dump, check server logs."));
  CHECK(client.run("GET name") == bulk("value"));
  CHECK(server.logged("# Can't handle RDB format version 987"));
}

TEST_CASE("DEBUG RELOAD brings everything back from disk") {
  Directory directory;
  SnapshotServer server(directory);
  TestClient client(server);
  client.run("SET a 1");
  client.run("SELECT 3");
  client.run("SET b 2");
  const std::string digest = client.run("DEBUG DIGEST");
  CHECK(client.run("DEBUG RELOAD") == kOk);
  CHECK(client.run("DEBUG DIGEST") == digest);
  CHECK(server.logged("* DB reloaded by DEBUG RELOAD"));

  SECTION("NOSAVE: as the file has it") {
    client.run("SET b 3");
    CHECK(client.run("DEBUG RELOAD NOSAVE") == kOk);
    CHECK(client.run("GET b") == bulk("2"));
  }
  SECTION("NOFLUSH MERGE: over what is there") {
    client.run("SET b 3");
    client.run("SET c 4");
    CHECK(client.run("DEBUG RELOAD NOSAVE NOFLUSH MERGE") == kOk);
    CHECK(client.run("GET b") == bulk("2"));
    CHECK(client.run("GET c") == bulk("4"));
  }
  SECTION("NOFLUSH alone finds its keys in the way") {
    CHECK(client.run("DEBUG RELOAD NOFLUSH") ==
          error("ERR Error trying to load the RDB dump, check server logs."));
    CHECK(server.logged("RDB has duplicated key"));
  }
  SECTION("other words are none of its options") {
    CHECK(client.run("DEBUG RELOAD fast") ==
          error("ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options."));
  }
}

TEST_CASE("CONFIG SET moves the directory when the dataset is loaded, not before") {
  Directory directory;
  SnapshotServer server(directory);
  TestClient client(server);
  server.server.set_state(server::kStateLoading, true);
  CHECK(client.run("CONFIG SET dir /tmp maxmemory 0") ==
        error("LOADING Redis is loading the dataset in memory"));
  CHECK(client.run("CONFIG SET nonsense 1 dir /tmp").starts_with("-ERR Unknown option"));
  CHECK(client.run("CONFIG SET loglevel notice") == kOk);
}

TEST_CASE(
    "CONFIG RESETSTAT forgets how many forks and snapshots there were, not that all is saved") {
  Directory directory;
  SnapshotServer server(directory);
  TestClient client(server);
  REQUIRE(client.run("BGSAVE") == kStarted);
  server.finish_child();
  CHECK(server.figures().forks == 1);
  CHECK(server.figures().saves == 1);
  client.run("CONFIG RESETSTAT");
  CHECK(server.figures().forks == 0);
  CHECK(server.figures().saves == 0);
}

}  // namespace latchkey::persist
