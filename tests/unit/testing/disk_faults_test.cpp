// What FAULT makes of the disk: the append-only file and snapshots fail as they would on a full or
// broken one, and recover.
#include <fcntl.h>

#include <string>

#include "base/worker.h"
#include "persist/aof/append_only_file.h"
#include "persist/snapshot_file.h"
#include "unit/catch.h"
#include "unit/persist/aof/aof_directory_fixture.h"
#include "unit/testing/tested_server.h"

namespace latchkey::tests {

namespace {

struct Writing {
  explicit Writing(const std::string& settings = {}) : server(directory.setting() + settings) {
    file.on_problem_changed([this](const std::string& text) { problem = text; });
    file.start();
    const int descriptor =
        ::open((directory.path() / "file").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    REQUIRE(descriptor >= 0);
    file.open(descriptor, 0);
  }
  void fault(const std::string& definition) {
    CHECK(client.run("FAULT ADD " + definition).starts_with(":"));
  }
  bool is_written() { return directory.read("file").find("name") != std::string::npos; }

  TemporaryDirectory directory;
  TestedServer server;
  TestClient client{server};
  base::Worker worker{"disk"};
  int fatal = 0;
  persist::AppendOnlyFile file{server.server, worker, [this] { ++fatal; }};
  std::string problem;
};

}  // namespace

TEST_CASE("What DISK-FULL keeps from the file is written when the disk has room again") {
  Writing writing;
  writing.fault("TIMES 2 DO DISK-FULL");
  writing.client.run("SET name value");
  writing.file.flush();
  CHECK_FALSE(writing.is_written());
  CHECK(writing.problem == "No space left on device");
  writing.file.tick();
  CHECK_FALSE(writing.is_written());
  writing.file.tick();
  CHECK(writing.is_written());
  CHECK(writing.problem.empty());
  CHECK(writing.server.hits() == 2);
}

TEST_CASE("FSYNC-ERROR has a sync each second fail until it is over") {
  Writing writing("appendfsync everysec\n");
  writing.fault("TIMES 2 DO FSYNC-ERROR");
  for (int second = 0; second < 2; ++second) {
    writing.server.advance_ms(1000);
    if (second == 0) writing.client.run("SET name value");
    writing.file.tick();
    writing.file.flush();
    CHECK(writing.problem == "Input/output error");
  }
  CHECK(writing.is_written());
  CHECK(writing.file.synced_offset() < writing.server.server.replication_offset());
  writing.server.advance_ms(1000);
  writing.file.tick();
  writing.worker.drain();
  writing.file.tick();
  CHECK(writing.problem.empty());
  CHECK(writing.file.synced_offset() == writing.server.server.replication_offset());
}

TEST_CASE("With appendfsync always a failed sync is fatal") {
  Writing writing("appendfsync always\n");
  writing.fault("DO FSYNC-ERROR");
  writing.client.run("SET name value");
  writing.file.flush();
  CHECK(writing.fatal == 1);
}

TEST_CASE("A snapshot that is to fail leaves the old file alone") {
  Writing writing;
  server::Server& server = writing.server.server;
  CHECK(persist::write_snapshot(server, "snapshot", nullptr, 0));
  const std::string before = writing.directory.read("snapshot");
  writing.client.run("SET name value");
  for (const int error : {ENOSPC, EIO}) {
    CHECK_FALSE(persist::write_snapshot(server, "snapshot", nullptr, error));
    CHECK(writing.directory.read("snapshot") == before);
  }
  CHECK(persist::write_snapshot(server, "snapshot", nullptr, 0));
  CHECK(writing.directory.read("snapshot") != before);
}

}  // namespace latchkey::tests
