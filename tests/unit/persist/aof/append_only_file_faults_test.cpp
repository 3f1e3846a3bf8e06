// The append-only file on a disk of which each call fails in turn: what it says is safe is, a
// failure is told, and everything is on disk when the disk works again.
#include <fcntl.h>

#include <array>
#include <string>

#include "commands/groups.h"
#include "persist/aof/append_only_file.h"
#include "unit/catch.h"
#include "unit/faulty_disk.h"
#include "unit/persist/aof/aof_directory_fixture.h"

namespace latchkey::tests {

namespace {

using persist::AppendOnlyFile;

constexpr std::array<const char*, 2> kFiles = {"first", "second"};

struct Appending {
  Appending(const TemporaryDirectory& the_directory, FaultyDisk& the_disk,
            const std::string& settings)
      : directory(the_directory),
        disk(the_disk),
        server({commands::string_rows()}, directory.setting() + settings, disk),
        client(server),
        file(server.server, worker, [this] { ++fatal; }) {
    file.on_problem_changed([this](const std::string& text) { problem = text; });
    file.start();
    open();
  }
  // Goes on in the next file, which is on the disk.
  void open() {
    const std::string path = directory.path() / kFiles[opened];
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    REQUIRE(descriptor >= 0);
    file.open(descriptor, 0);
    ++opened;
  }
  void set(std::string_view value) {
    client.run_words({"SET", "name", value});
    std::string& stream = streams.at(opened - 1);
    if (stream.empty()) stream = request({"SELECT", "0"});
    stream += request({"SET", "name", value});
  }
  void pass_second() {
    server.advance_ms(1000);
    file.flush();
    // At the end of a sync it may find that another one is due.
    do {
      worker.drain();
      file.tick();
    } while (file.pending_syncs() != 0);
  }
  int64_t offset() { return server.server.replication_offset(); }
  bool all_is_safe() { return file.synced_offset() == offset(); }

  const TemporaryDirectory& directory;
  FaultyDisk& disk;
  ServerFixture server;
  TestClient client;
  base::Worker worker{"disk"};
  AppendOnlyFile file;
  size_t opened = 0;
  std::array<std::string, kFiles.size()> streams;  // what is to be in each file
  int fatal = 0;
  std::string problem;
};

// Of the stream of one file, how much is known to be safe.
struct Safe {
  std::array<size_t, kFiles.size()> bytes{};
  void note(const Appending& a) {
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = a.streams[i].size();
  }
};

enum class Healed : uint8_t { kNo, kYes };

// Appends to two files, the second taking the first one's place, and checks what is on the disk
// when power is lost then, or when the disk works again before. Whether a call failed.
bool append_on(const std::string& settings, const Trial& trial, Healed healed) {
  // Without power nothing is healed.
  if (healed == Healed::kYes && trial.fault.kind == FaultKind::kPowerCut) return false;
  TemporaryDirectory directory;
  for (const char* name : kFiles) directory.write(name, "");
  FaultyDisk disk(directory.path());
  const size_t descriptors = open_descriptors();
  Safe safe;
  std::array<std::string, kFiles.size()> streams;
  {
    Appending a(directory, disk, settings);
    disk.fail(trial.fault);
    for (const char* value : {"one", "two", "three", "four", "five", "six"}) {
      a.set(value);
      a.file.flush();
      // The process would have ended.
      if (a.fatal != 0) break;
      if (std::string_view(value) == "three" && a.file.buffered_bytes() == 0) a.open();
      a.pass_second();
      if (a.fatal != 0) break;
      CAPTURE(told(trial, disk), value);
      if (a.all_is_safe()) {
        safe.note(a);
      } else {
        CHECK_FALSE(a.problem.empty());
        CHECK(a.file.has_problem());
      }
    }
    CAPTURE(told(trial, disk), a.fatal, static_cast<int>(healed));
    if (a.fatal != 0) CHECK(disk.has_failed());
    if (healed == Healed::kYes && a.fatal == 0) {
      disk.heal();
      for (int i = 0; i < 3; ++i) a.pass_second();
      CHECK(a.all_is_safe());
      CHECK(a.problem.empty());
      safe.note(a);
    }
    disk.cut_power();
    streams = a.streams;
  }
  CAPTURE(told(trial, disk), static_cast<int>(healed));
  CHECK(open_descriptors() == descriptors);
  disk.restore(trial.lost);
  for (size_t i = 0; i < kFiles.size(); ++i) {
    const std::string text = directory.read(kFiles[i]);
    CHECK(streams[i].starts_with(text));
    CHECK(text.size() >= safe.bytes[i]);
    // Half a request may stand at the end only if it could not be removed.
    if (trial.fault.kind == FaultKind::kOnce && healed == Healed::kYes && !text.empty())
      CHECK(text.ends_with("\r\n"));
  }
  return disk.has_failed();
}

void append_on_each(const std::string& settings) {
  size_t count = 0;
  for (const Healed healed : {Healed::kNo, Healed::kYes})
    count += fail_each_call([&](const Trial& trial) { return append_on(settings, trial, healed); });
  CHECK(count > 50);
}

}  // namespace

TEST_CASE(
    "appendfsync everysec: nothing counts as safe that is not, and a disk that works again "
    "has everything",
    "[aof-faults]") {
  append_on_each("appendfsync everysec");
}

TEST_CASE("appendfsync always: what was acknowledged is safe, or the server has ended",
          "[aof-faults]") {
  append_on_each("appendfsync always");
}

TEST_CASE("A sync that failed is tried again although nothing is written, since nothing may be",
          "[aof-faults]") {
  TemporaryDirectory directory;
  for (const char* name : kFiles) directory.write(name, "");
  FaultyDisk disk(directory.path());
  Appending a(directory, disk, "appendfsync everysec");
  a.set("one");
  a.file.flush();
  disk.fail({.kind = FaultKind::kForGood});
  a.pass_second();
  CHECK(a.problem == "Input/output error");
  CHECK(a.file.synced_offset() == 0);
  a.pass_second();
  CHECK(a.problem == "Input/output error");
  disk.heal();
  a.pass_second();
  CHECK(a.problem.empty());
  CHECK(a.file.synced_offset() == 1);
}

TEST_CASE("A file that is given up takes its failures with it", "[aof-faults]") {
  TemporaryDirectory directory;
  for (const char* name : kFiles) directory.write(name, "");
  FaultyDisk disk(directory.path());
  const size_t descriptors = open_descriptors();
  {
    Appending a(directory, disk, "appendfsync everysec");
    a.set("one");
    const bool written = GENERATE(false, true);
    if (written) a.file.flush();
    disk.fail({.kind = FaultKind::kForGood});
    a.pass_second();
    CHECK_FALSE(a.problem.empty());
    if (GENERATE(false, true)) {
      a.file.abandon();
    } else {
      a.file.close();
      a.file.stop();
    }
    CHECK(a.problem.empty());
    CHECK_FALSE(a.file.has_problem());
    CHECK_FALSE(a.file.last_write_failed());
    disk.heal();
  }
  CHECK(open_descriptors() == descriptors);
}

TEST_CASE("A short write is taken back, and what cannot be is completed", "[aof-faults]") {
  TemporaryDirectory directory;
  for (const char* name : kFiles) directory.write(name, "");
  FaultyDisk disk(directory.path());
  Appending a(directory, disk, "appendfsync everysec");
  a.set("one");
  a.file.flush();
  const std::string first = a.streams[0];
  a.set(std::string(1000, 'x'));
  SECTION("by truncating the file") {
    disk.fail({.kind = FaultKind::kFull});
    a.file.flush();
    CHECK(directory.read(kFiles[0]) == first);
  }
  SECTION("or not, when that fails too") {
    disk.fail({.kind = FaultKind::kFull, .fails_truncation = true});
    a.file.flush();
    const std::string text = directory.read(kFiles[0]);
    CHECK(text.size() > first.size());
    CHECK(text.size() < a.streams[0].size());
    CHECK(a.file.dataset_bytes() == text.size());
  }
  CHECK(a.file.last_write_failed());
  CHECK(a.problem == "No space left on device");
  CHECK(a.fatal == 0);
  disk.heal();
  a.set("three");
  a.file.tick();
  CHECK(directory.read(kFiles[0]) == a.streams[0]);
  CHECK(a.file.dataset_bytes() == a.streams[0].size());
  CHECK_FALSE(a.file.last_write_failed());
  CHECK(a.problem.empty());
}

}  // namespace latchkey::tests
