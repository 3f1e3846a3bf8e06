// The files of a whole server with appendonly yes on a disk of which each call fails in turn:
// starting, rewriting, switching it on and off, ending. In each scene numbers are pushed to a list;
// what the directory holds in the end is the list as it was at some time, with all that was safe.

#include <string>
#include <vector>

#include "base/file.h"
#include "unit/catch.h"
#include "unit/faulty_disk.h"
#include "unit/persist/aof/aof_directory_fixture.h"
#include "unit/persist/life.h"

namespace latchkey::tests {

namespace {

using persist::Loading;

const std::string kSettings = "appendfsync everysec\n";
const std::string kRewriting = status("Background append only file rewriting started");

// The numbers that were pushed, and those of them that are safe.
struct Pushed {
  int count = 0;
  int safe = 0;

  // The server may refuse it.
  void push(Life& life) {
    if (life.client.run("RPUSH list " + std::to_string(count + 1)) == integer(count + 1)) ++count;
  }
  void note(Life& life) {
    const persist::AppendOnlyFile& file = life.persistence->aof().file();
    if (file.is_open() && file.synced_offset() == life.server.server.replication_offset())
      safe = count;
  }
  // The numbers in the list of a server that has started with what was there.
  void check(Life& life) const {
    const int length = std::stoi(life.client.run("LLEN list").substr(1));
    CHECK(length >= safe);
    CHECK(length <= count);
    std::string numbers = "*" + std::to_string(length) + "\r\n";
    for (int i = 1; i <= length; ++i) numbers += bulk(std::to_string(i));
    CHECK(life.client.run("LRANGE list 0 -1") == numbers);
  }
};

void finish_child(Life& life) {
  if (life.persistence->child().running()) life.finish_child();
}

bool log_has(const TemporaryDirectory& logs, std::string_view text) {
  return logs.read("log").find(text) != std::string::npos;
}

bool log_tells(const TemporaryDirectory& logs, const Trial& trial) {
  if (trial.fault.kind != FaultKind::kFull) return log_has(logs, strerror(EIO));
  return log_has(logs, strerror(ENOSPC)) || log_has(logs, "Short write");
}

// Only what the manifest names is there, and no temporary file.
void expect_clean(const TemporaryDirectory& directory) {
  CHECK(files_with(directory.path(), "temp-") == std::vector<std::string>());
  const std::string manifest = directory.read("appendonlydir/appendonly.aof.manifest");
  for (const std::string& name : files_with(directory.path() / "appendonlydir", "appendonly")) {
    if (name.ends_with(".manifest")) continue;
    CAPTURE(name);
    CHECK(manifest.find(" " + name + " ") != std::string::npos);
  }
}

enum class Healed : uint8_t { kNo, kYes };

struct Stage {
  TemporaryDirectory directory;
  TemporaryDirectory logs;
  FaultyDisk disk{directory.path()};
  Pushed pushed;
  Healed healed = Healed::kNo;

  bool heals(const Trial& trial) const {
    return healed == Healed::kYes && trial.fault.kind != FaultKind::kPowerCut;
  }
};

// What a server makes of the files that are there.
void check(Stage& stage) {
  std::string list;
  // What the first of them makes of the files is not to bring anything else back.
  for (int i = 0; i < 2; ++i) {
    Life life(stage.directory, kSettings, stage.disk, &stage.logs);
    if (!life.opened) FAIL_CHECK(stage.logs.read("log"));
    if (i == 0) {
      stage.pushed.check(life);
      list = life.client.run("LRANGE list 0 -1");
    }
    CHECK(life.client.run("LRANGE list 0 -1") == list);
  }
}

// Runs `prepare(stage)` on a disk that works, then `act(stage, trial)` while it fails, and has a
// server start with what is left when the power is cut then.
template <typename Prepare, typename Act>
void fail_each_call_of(Prepare prepare, Act act) {
  size_t count = 0;
  for (const Healed healed : {Healed::kNo, Healed::kYes}) {
    count += fail_each_call([&](const Trial& trial) {
      const bool loses_power = trial.fault.kind == FaultKind::kPowerCut;
      // Without power nothing is healed; and what it may take is looked at after one trial.
      if (loses_power && (healed == Healed::kYes || trial.lost != Lost::kEverything)) return false;
      Stage stage;
      stage.healed = healed;
      const size_t descriptors = open_descriptors();
      prepare(stage);
      stage.disk.restore(Lost::kEverything);
      stage.disk.fail(trial.fault);
      act(stage, trial);
      stage.disk.cut_power();
      CAPTURE(told(trial, stage.disk), static_cast<int>(healed));
      CHECK(open_descriptors() == descriptors);
      const bool failed = stage.disk.has_failed();
      std::vector<FaultyDisk::Contents> states{stage.disk.left(Lost::kEverything)};
      if (loses_power) {
        for (const Lost lost : {Lost::kNothing, Lost::kContents, Lost::kNames})
          states.push_back(stage.disk.left(lost));
      }
      for (const FaultyDisk::Contents& state : states) {
        CAPTURE(&state - states.data());
        stage.disk.restore(state);
        check(stage);
      }
      return failed;
    });
  }
  CHECK(count > 30);
}

// A server that has pushed three numbers, which are safe.
void push_three(Stage& stage, const std::string& settings = {}) {
  Life life(stage.directory, kSettings + settings, stage.disk, &stage.logs);
  REQUIRE(life.opened);
  for (int i = 0; i < 3; ++i) stage.pushed.push(life);
  life.pass_second();
  stage.pushed.note(life);
  REQUIRE(stage.pushed.safe == 3);
}

// Everything that was pushed becomes safe, and a rewrite succeeds.
void expect_recovery(Stage& stage, Life& life, const Trial& trial) {
  for (int i = 0; i < 3; ++i) life.pass_second();
  finish_child(life);
  const int before = stage.pushed.count;
  stage.pushed.push(life);
  CHECK(stage.pushed.count == before + 1);
  CHECK(life.client.run("BGREWRITEAOF") == kRewriting);
  finish_child(life);
  CHECK(life.info_has("aof_last_bgrewrite_status:ok"));
  CHECK(life.info_has("aof_last_write_status:ok"));
  life.pass_second();
  stage.pushed.note(life);
  CHECK(stage.pushed.safe == stage.pushed.count);
  if (trial.fault.kind == FaultKind::kOnce && !stage.disk.failed_call().starts_with("remove"))
    expect_clean(stage.directory);
}

// Pushes and rewrites; `begin` asks for the rewrite, and returns whether it was said to have begun.
template <typename Begin>
void push_and_rewrite(Stage& stage, Life& life, const Trial& trial, Begin begin) {
  Pushed& pushed = stage.pushed;
  pushed.push(life);
  const bool begun = begin();
  pushed.push(life);
  life.pass_second();
  pushed.note(life);
  finish_child(life);
  pushed.push(life);
  life.pass_second();
  pushed.note(life);
  CAPTURE(told(trial, stage.disk), static_cast<int>(stage.healed), begun);
  if (!begun) {
    CHECK(stage.disk.has_failed());
    CHECK(log_tells(stage.logs, trial));
  }
  if (life.info_has("aof_last_bgrewrite_status:err")) CHECK(log_tells(stage.logs, trial));
  if (!stage.disk.has_failed()) CHECK(pushed.safe == pushed.count);
}

}  // namespace

TEST_CASE("A rewrite on a disk that fails leaves the files before it or those after it",
          "[aof-faults]") {
  fail_each_call_of([](Stage& stage) { push_three(stage); },
                    [](Stage& stage, const Trial& trial) {
                      stage.disk.heal();
                      Life life(stage.directory, kSettings, stage.disk, &stage.logs);
                      REQUIRE(life.opened);
                      stage.disk.fail(trial.fault);
                      push_and_rewrite(stage, life, trial, [&] {
                        const std::string reply = life.client.run("BGREWRITEAOF");
                        if (reply == kRewriting) return true;
                        CHECK(reply.starts_with("-ERR Can't execute an AOF background rewriting."));
                        CHECK(life.info_has("aof_last_bgrewrite_status:err"));
                        return false;
                      });
                      if (!stage.heals(trial)) return;
                      stage.disk.heal();
                      expect_recovery(stage, life, trial);
                    });
}

TEST_CASE("A rewrite of a file that cannot be written to makes up for it, or leaves it as it was",
          "[aof-faults]") {
  fail_each_call_of([](Stage& stage) { push_three(stage); },
                    [](Stage& stage, const Trial& trial) {
                      stage.disk.heal();
                      Life life(stage.directory, kSettings, stage.disk, &stage.logs);
                      REQUIRE(life.opened);
                      stage.disk.refuse_writes(".1.incr.aof");
                      stage.disk.fail(trial.fault);
                      push_and_rewrite(stage, life, trial, [&] {
                        life.server.tick();
                        return life.client.run("BGREWRITEAOF") == kRewriting;
                      });
                      if (!stage.disk.has_failed()) {
                        CHECK(log_has(stage.logs, "the new base will hold all"));
                        CHECK(stage.pushed.count == 5);
                        CHECK(life.info_has("aof_last_write_status:ok"));
                        CHECK(life.info_has("aof_last_bgrewrite_status:ok"));
                      }
                      if (!stage.heals(trial)) return;
                      stage.disk.heal();
                      expect_recovery(stage, life, trial);
                    });
}

TEST_CASE("Switching appendonly on with a disk that fails", "[aof-faults]") {
  // Files of an earlier time, to which numbers have been added since, or none.
  const bool with_files = GENERATE(false, true);
  fail_each_call_of(
      [&](Stage& stage) {
        if (with_files) push_three(stage);
      },
      [&](Stage& stage, const Trial& trial) {
        stage.disk.heal();
        Life life(stage.directory, kSettings + (with_files ? "" : "appendonly no\n"), stage.disk,
                  &stage.logs);
        REQUIRE(life.opened);
        REQUIRE(life.client.run("CONFIG SET appendonly no") == kOk);
        stage.disk.fail(trial.fault);
        const auto switch_on = [&] {
          const std::string reply = life.client.run("CONFIG SET appendonly yes");
          if (reply == kOk) return true;
          CHECK(reply.find("Unable to turn on AOF. Check server logs.") != std::string::npos);
          CHECK(life.info_has("aof_enabled:0"));
          return false;
        };
        push_and_rewrite(stage, life, trial, switch_on);
        if (!stage.heals(trial)) return;
        stage.disk.heal();
        CHECK(switch_on());
        finish_child(life);
        life.pass_second();
        expect_recovery(stage, life, trial);
        CHECK(life.info_has("aof_enabled:1"));
      });
}

TEST_CASE("A first rewrite that fails is begun again by itself", "[aof-faults]") {
  TemporaryDirectory directory;
  FaultyDisk disk(directory.path());
  Life life(directory, "appendonly no\n", disk);
  Pushed pushed;
  pushed.push(life);
  REQUIRE(life.client.run("CONFIG SET appendonly yes") == kOk);
  disk.fail({.kind = FaultKind::kForGood});
  life.finish_child();
  CHECK(life.info_has("aof_last_bgrewrite_status:err"));
  disk.heal();
  life.pass_second();
  finish_child(life);
  pushed.push(life);
  life.pass_second();
  pushed.note(life);
  CHECK(pushed.safe == 2);
}

TEST_CASE("Switching appendonly off with a disk that fails loses nothing", "[aof-faults]") {
  fail_each_call_of([](Stage& stage) { push_three(stage); },
                    [](Stage& stage, const Trial& trial) {
                      stage.disk.heal();
                      Life life(stage.directory, kSettings, stage.disk, &stage.logs);
                      stage.pushed.push(life);
                      life.server.tick();
                      stage.disk.fail(trial.fault);
                      CHECK(life.client.run("CONFIG SET appendonly no") == kOk);
                      CHECK(life.info_has("aof_enabled:0"));
                      CAPTURE(told(trial, stage.disk));
                      const bool told_of = log_tells(stage.logs, trial);
                      CHECK((!stage.disk.has_failed() || told_of ||
                             stage.disk.failed_call().starts_with("close")));
                      if (!told_of && trial.fault.kind == FaultKind::kOnce)
                        stage.pushed.safe = stage.pushed.count;
                      if (!stage.heals(trial)) return;
                      stage.disk.heal();
                      CHECK(life.client.run("CONFIG SET appendonly yes") == kOk);
                      finish_child(life);
                      expect_recovery(stage, life, trial);
                    });
}

TEST_CASE("An exit on a disk that fails loses nothing that was safe", "[aof-faults]") {
  fail_each_call_of([](Stage& stage) { push_three(stage); },
                    [](Stage& stage, const Trial& trial) {
                      stage.disk.heal();
                      Life life(stage.directory, kSettings, stage.disk, &stage.logs);
                      stage.pushed.push(life);
                      stage.disk.fail(trial.fault);
                      CHECK(life.client.run("SHUTDOWN").empty());
                      CHECK(life.server.server.stop_requested());
                      CAPTURE(told(trial, stage.disk));
                      if (!stage.disk.has_failed()) {
                        stage.pushed.safe = stage.pushed.count;
                      } else if (!stage.disk.failed_call().starts_with("close")) {
                        CHECK(log_tells(stage.logs, trial));
                      }
                    });
}

namespace {

// A start that may fail, and the pushes after one that does not; the next one succeeds.
void start_and_push(Stage& stage, const Trial& trial) {
  bool opened = false;
  {
    Life life(stage.directory, kSettings, stage.disk, &stage.logs);
    opened = life.opened;
    CAPTURE(told(trial, stage.disk), static_cast<int>(stage.healed));
    if (opened) {
      stage.pushed.check(life);
      stage.pushed.push(life);
      life.pass_second();
      stage.pushed.note(life);
      if (stage.heals(trial)) {
        stage.disk.heal();
        expect_recovery(stage, life, trial);
      }
    } else {
      CHECK(stage.disk.has_failed());
      CHECK(log_tells(stage.logs, trial));
    }
  }
  if (opened || !stage.heals(trial)) return;
  stage.disk.heal();
  Life life(stage.directory, kSettings, stage.disk, &stage.logs);
  CAPTURE(told(trial, stage.disk));
  REQUIRE(life.opened);
  stage.pushed.check(life);
  expect_recovery(stage, life, trial);
}

}  // namespace

TEST_CASE("A start without files on a disk that fails", "[aof-faults]") {
  fail_each_call_of([](Stage&) {}, start_and_push);
}

TEST_CASE("A start with files on a disk that fails neither loses nor shortens them",
          "[aof-faults]") {
  fail_each_call_of([](Stage& stage) { push_three(stage); }, start_and_push);
}

TEST_CASE("A start that has history to remove on a disk that fails", "[aof-faults]") {
  fail_each_call_of(
      [](Stage& stage) {
        push_three(stage);
        Life life(stage.directory, kSettings + "aof-disable-auto-gc yes\n", stage.disk,
                  &stage.logs);
        REQUIRE(life.client.run("BGREWRITEAOF") == kRewriting);
        life.finish_child();
        REQUIRE(stage.directory.read("appendonlydir/appendonly.aof.manifest").find(" type h") !=
                std::string::npos);
      },
      start_and_push);
}

TEST_CASE("A start with the single file of an older server on a disk that fails", "[aof-faults]") {
  fail_each_call_of(
      [](Stage& stage) {
        std::string text = request({"SELECT", "0"});
        for (const char* number : {"1", "2", "3"}) text += request({"RPUSH", "list", number});
        stage.directory.write("appendonly.aof", text);
        stage.disk.sync_all();
        stage.pushed = {.count = 3, .safe = 3};
      },
      start_and_push);
}

TEST_CASE("A start that has half a request to cut off on a disk that fails", "[aof-faults]") {
  fail_each_call_of(
      [](Stage& stage) {
        push_three(stage);
        const std::string name = "appendonlydir/appendonly.aof.1.incr.aof";
        const std::string text = stage.directory.read(name);
        stage.directory.write(name, text + request({"RPUSH", "list", "4"}).substr(0, 20));
        stage.disk.sync_all();
      },
      start_and_push);
}

}  // namespace latchkey::tests
