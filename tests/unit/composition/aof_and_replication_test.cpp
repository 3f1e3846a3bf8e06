#include "composition/aof_and_replication.h"

#include <memory>
#include <string>

#include "composition/whole_server.h"
#include "persist/persistence.h"
#include "replication/replication.h"
#include "unit/catch.h"
#include "unit/replication/fake_snapshots.h"
#include "unit/required.h"
#include "unit/server_fixture.h"
#include "unit/temporary_directory.h"

namespace latchkey::tests {

namespace {

using composition::WholeServer;

// A whole server with an append-only file, whose replicas the test plays.
struct Master {
  explicit Master(std::string_view settings = {}) {
    log.set_level(base::LogLevel::kNothing);
    whole = required(WholeServer::make_space(
        directory.setting() + "repl-diskless-sync-delay 0\n" + std::string(settings),
        {.clock = clock, .log = log, .snapshots = [this](server::Server&) {
           auto maker = std::make_unique<FakeSnapshots>();
           snapshots = maker.get();
           return maker;
         }}));
    REQUIRE(whole->load_dataset() == persist::Loading::Result::kNoFile);
    REQUIRE(whole->adopt_dataset());
    REQUIRE(whole->open_append_only_file());
  }

  server::Server& server() { return whole->server(); }
  replication::Replication& replication() { return server().layer<replication::Replication>(); }
  int64_t offset() { return server().replication_offset(); }
  void tick() { server().tick(); }

  TemporaryDirectory directory;
  base::VirtualClock clock;
  base::Logger log;
  FakeSnapshots* snapshots = nullptr;
  std::unique_ptr<WholeServer> whole;
};

// An online replica.
struct Replica : TestClient {
  explicit Replica(Master& master) : TestClient(master.server()) {
    run("REPLCONF listening-port 7777 capa psync2");
    run("PSYNC ? -1");
    master.snapshots->write("D");
    if (master.snapshots->end_writing()) master.tick();
    master.snapshots->end();
    master.tick();
    take_output();
  }
  void acknowledge(int64_t offset, int64_t synced) {
    run("REPLCONF ACK " + std::to_string(offset) + " FACK " + std::to_string(synced));
  }
};

constexpr std::string_view kWithFile = "appendonly yes\nappendfsync always\n";

}  // namespace

TEST_CASE("The stream is counted in requests until there is a replica, then in bytes",
          "[composition]") {
  Master master(kWithFile);
  TestClient client(master.server());
  CHECK(client.run("SET name value") == kOk);
  const int64_t alone = master.offset();
  CHECK(client.run("SET name value") == kOk);
  CHECK(master.offset() == alone + 1);

  Replica replica(master);
  const int64_t before = master.offset();
  CHECK(client.run("SET name value") == kOk);
  master.tick();
  const std::string sent = replica.take_output();
  CHECK(sent.find("SET") != std::string::npos);
  CHECK(master.offset() == before + static_cast<int64_t>(sent.size()));
}

TEST_CASE("WAITAOF asks replicas how far they are, and is served when they answer",
          "[composition]") {
  Master master(kWithFile);
  Replica replica(master);
  TestClient client(master.server());
  CHECK(client.run("SET name value") == kOk);
  master.tick();
  replica.take_output();
  const int64_t offset = master.offset();

  CHECK(client.run("WAITAOF 1 1 0").empty());
  master.tick();
  CHECK(replica.take_output().find("GETACK") != std::string::npos);
  // Received, but not on its disk.
  replica.acknowledge(offset, offset - 1);
  master.tick();
  CHECK(client.take_output().empty());
  replica.acknowledge(offset, offset);
  master.tick();
  CHECK(client.take_output() == array({integer(1), integer(1)}));
}

TEST_CASE("A replica tells how far its own file is synced, if it has one", "[composition]") {
  SECTION("with a file") {
    Master server(kWithFile);
    TestClient client(server.server());
    client.run("SET name value");
    server.tick();
    CHECK(server.replication().synced_offset() == server.offset());
  }
  SECTION("without") {
    Master server;
    CHECK(server.replication().synced_offset() == -1);
  }
}

}  // namespace latchkey::tests
