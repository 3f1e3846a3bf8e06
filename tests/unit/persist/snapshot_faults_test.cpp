// Snapshots on a disk of which each call fails in turn.
#include <csignal>
#include <string>

#include "persist/snapshot_file.h"
#include "unit/catch.h"
#include "unit/faulty_disk.h"
#include "unit/persist/life.h"

namespace latchkey::tests {

namespace {

using persist::Loading;

// With save points, so that a failed snapshot stops writes; none of them is met.
const std::string kSettings = "appendonly no\nsave 86400 1000000\n";

// What the snapshot in the directory holds under `name`.
std::string value_on_disk(const TemporaryDirectory& directory, const TemporaryDirectory& logs,
                          std::string_view name) {
  Life life(directory, kSettings, base::disk(), &logs);
  return life.result == Loading::Result::kDone ? life.client.run("GET " + std::string(name))
                                               : "not loaded";
}

// Whether the log tells of the failure, with the system's reason.
bool log_tells(const TemporaryDirectory& logs, const Trial& trial) {
  const std::string log = logs.read("log");
  const char* reason = strerror(trial.fault.kind == FaultKind::kFull ? ENOSPC : EIO);
  const size_t at = log.find(reason);
  return at != std::string::npos && log.rfind(" # ", at) > log.rfind('\n', at);
}

void expect_clean(const TemporaryDirectory& directory) {
  CHECK(files_with(directory.path(), "temp-").empty());
}

}  // namespace

TEST_CASE("SAVE on a disk that fails: the old snapshot or the new one, and an error that is told",
          "[snapshot-faults]") {
  const size_t count = fail_each_call([](const Trial& trial) {
    TemporaryDirectory directory;
    TemporaryDirectory logs;
    FaultyDisk disk(directory.path());
    const size_t descriptors = open_descriptors();
    bool saved = false;
    {
      Life life(directory, kSettings, disk, &logs);
      life.client.run("SET name old");
      REQUIRE(life.client.run("SAVE") == kOk);
      life.client.run("SET name new");
      disk.fail(trial.fault);
      const std::string reply = life.client.run("SAVE");
      saved = reply == kOk;
      CAPTURE(told(trial, disk), saved);
      if (!saved) {
        CHECK(reply == error("ERR"));
        CHECK(disk.has_failed());
        CHECK(log_tells(logs, trial));
        CHECK(life.server.server.events().total() == 2);
        CHECK(life.info_has("rdb_changes_since_last_save:1"));
      }
      if (trial.fault.kind == FaultKind::kOnce) expect_clean(directory);
      if (trial.fault.kind != FaultKind::kPowerCut) {
        disk.heal();
        const std::string there = value_on_disk(directory, logs, "name");
        CHECK((there == bulk("new") || (there == bulk("old") && !saved)));
        CHECK(life.client.run("SAVE") == kOk);
        CHECK(life.client.run("SET name newer") == kOk);
        expect_clean(directory);
        saved = true;
      }
      disk.cut_power();
    }
    CAPTURE(told(trial, disk), saved);
    CHECK(open_descriptors() == descriptors);
    disk.restore(trial.lost);
    const std::string there = value_on_disk(directory, logs, "name");
    CHECK((there == bulk("new") || (there == bulk("old") && !saved)));
    return disk.has_failed();
  });
  CHECK(count > 30);
}

TEST_CASE("BGSAVE on a disk that fails has writes refused until the next one succeeds",
          "[snapshot-faults]") {
  const size_t count = fail_each_call([](const Trial& trial) {
    TemporaryDirectory directory;
    TemporaryDirectory logs;
    FaultyDisk disk(directory.path());
    const size_t descriptors = open_descriptors();
    bool saved = false;
    {
      Life life(directory, kSettings, disk, &logs);
      life.client.run("SET name old");
      REQUIRE(life.client.run("SAVE") == kOk);
      life.client.run("SET name new");
      disk.fail(trial.fault);
      REQUIRE(life.client.run("BGSAVE") == status("Background saving started"));
      life.finish_child();
      saved = life.info_has("rdb_last_bgsave_status:ok");
      CAPTURE(told(trial, disk), saved);
      if (!saved) {
        CHECK(disk.has_failed());
        CHECK(log_tells(logs, trial));
        CHECK(life.info_has("rdb_changes_since_last_save:1"));
      }
      CHECK(life.client.run("SET other value").starts_with("-MISCONF") == !saved);
      if (trial.fault.kind == FaultKind::kOnce) expect_clean(directory);
      if (trial.fault.kind != FaultKind::kPowerCut) {
        disk.heal();
        REQUIRE(life.client.run("BGSAVE") == status("Background saving started"));
        life.finish_child();
        CHECK(life.info_has("rdb_last_bgsave_status:ok"));
        CHECK(life.client.run("SET other value") == kOk);
        saved = true;
      }
      disk.cut_power();
    }
    CAPTURE(told(trial, disk), saved);
    CHECK(open_descriptors() == descriptors);
    disk.restore(trial.lost);
    const std::string there = value_on_disk(directory, logs, "name");
    CHECK((there == bulk("new") || (there == bulk("old") && !saved)));
    return disk.has_failed();
  });
  CHECK(count > 30);
}

TEST_CASE("A snapshot that cannot be read is not taken for a smaller one, and is left as it is",
          "[snapshot-faults]") {
  const size_t count = fail_each_call([](const Trial& trial) {
    TemporaryDirectory directory;
    TemporaryDirectory logs;
    {
      Life life(directory, kSettings, base::disk(), &logs);
      life.client.run("SET name value");
      life.client.run_words({"SET", "large", std::string(200'000, 'x')});
      REQUIRE(life.client.run("CONFIG SET rdbcompression no") == kOk);
      REQUIRE(life.client.run("SAVE") == kOk);
    }
    FaultyDisk disk(directory.path());
    const std::string before = directory.read("dump.rdb");
    disk.fail(trial.fault);
    {
      Life life(directory, kSettings, disk, &logs);
      CAPTURE(told(trial, disk));
      if (life.result == Loading::Result::kDone) {
        CHECK(life.client.run("GET large") == bulk(std::string(200'000, 'x')));
        CHECK(life.client.run("GET name") == bulk("value"));
        CHECK((!disk.has_failed() || disk.failed_call().starts_with("close")));
      } else {
        CHECK(life.result == Loading::Result::kFailed);
        CHECK(logs.read("log").find("Fatal error") != std::string::npos);
      }
    }
    CHECK(directory.read("dump.rdb") == before);
    return disk.has_failed();
  });
  CHECK(count > 10);
}

TEST_CASE("A child that is killed leaves a temporary file, which its server removes",
          "[snapshot-faults]") {
  TemporaryDirectory directory;
  FaultyDisk disk(directory.path());
  Life life(directory, kSettings + "rdb-key-save-delay 60000000\n", disk);
  life.client.run("SET name value");
  REQUIRE(life.client.run("BGSAVE") == status("Background saving started"));
  kill(life.persistence->child().pid(), SIGKILL);
  disk.fail({});
  life.finish_child();
  // Removing it is all that is done then, and that it fails stops nothing.
  CHECK(disk.failed_call().starts_with("remove temp-"));
  CHECK(life.info_has("rdb_last_bgsave_status:err"));
  CHECK(life.client.run("CONFIG SET rdb-key-save-delay 0") == kOk);
  CHECK(life.client.run("SAVE") == kOk);
}

}  // namespace latchkey::tests
