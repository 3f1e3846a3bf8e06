// The snapshots that a master's child makes for replicas: by file, by pipe and by the replica's
// socket. The test plays the replicas; the child is a real one.
#include <csignal>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "composition/whole_server.h"
#include "net/loop.h"
#include "persist/persistence.h"
#include "persist/rdb/byte_stream.h"
#include "persist/rdb/rdb_file.h"
#include "replication/replication.h"
#include "unit/catch.h"
#include "unit/cluster/calling_node.h"
#include "unit/replication/played_master.h"
#include "unit/required.h"
#include "unit/temporary_directory.h"

namespace latchkey::tests {

namespace {

struct Scene {
  explicit Scene(const std::string& settings)
      : whole(required(composition::WholeServer::make_space(
            directory.setting() + "save \"\"\nrepl-diskless-sync-delay 0\n" + settings,
            {.clock = clock, .log = quiet(), .loop = &loop}))),
        server(whole->server()),
        user(server) {
    user.run("SET name value");
    user.run("SELECT 3");
    user.run("SET other value");
    user.run("SELECT 0");
  }
  ~Scene() {
    whole.reset();
    turn(loop);
  }

  persist::BackgroundChild& child() { return server.layer<persist::Persistence>().child(); }
  void pass(int64_t ms) {
    clock.advance_ms(ms);
    server.refresh_clock();
    server.tick();
    turn(loop);
  }
  // Until the child has ended, and the replica has what it was sent.
  std::string finish(CallingNode& replica) {
    std::string heard;
    constexpr int kMostTurns = 1'000'000;
    for (int i = 0; i < kMostTurns && child().running(); ++i) {
      heard += replica.received();
      server.tick();
      std::this_thread::yield();
    }
    CHECK_FALSE(child().running());
    for (int i = 0; i < 10; ++i) heard += replica.received();
    return heard;
  }
  bool logged(std::string_view text) const {
    return directory.read("log").find(text) != std::string::npos;
  }

  net::Loop loop;
  TemporaryDirectory directory;
  base::VirtualClock clock;
  base::Logger log;
  std::unique_ptr<composition::WholeServer> whole;
  server::Server& server;
  TestClient user;

 private:
  base::Logger& quiet() {
    log.set_level(base::LogLevel::kNotice);
    log.set_file(directory.path() / "log");
    return log;
  }
};

// The dataset after "$EOF:<mark>\r\n", up to the mark.
std::string marked_dataset(const std::string& heard) {
  constexpr size_t kMarkBytes = 40;
  const size_t start = heard.find("$EOF:");
  REQUIRE(start != std::string::npos);
  const std::string mark = heard.substr(start + 5, kMarkBytes);
  const size_t begin = start + 5 + kMarkBytes + 2;
  const size_t end = heard.find(mark, begin);
  REQUIRE(end != std::string::npos);
  CHECK(heard.size() == end + kMarkBytes);
  return heard.substr(begin, end - begin);
}

// The dataset after "$<size>\r\n".
std::string sized_dataset(const std::string& heard) {
  const size_t start = heard.find('$');
  REQUIRE(start != std::string::npos);
  const size_t begin = heard.find("\r\n", start) + 2;
  const auto size = std::stoul(heard.substr(start + 1));
  REQUIRE(heard.size() >= begin + size);
  return heard.substr(begin, size);
}

// What a replica reads of it.
void check_dataset(const std::string& dataset, Scene& scene) {
  ReplicaServer reader;
  persist::MemorySource source(dataset);
  const persist::ReadReport report = persist::read_dataset(source, reader.server, {});
  REQUIRE(report.ok);
  CHECK(report.keys_loaded == 2);
  REQUIRE(report.find_aux("repl-id") != nullptr);
  CHECK(*report.find_aux("repl-id") == scene.server.replication_id());
  REQUIRE(report.find_aux("repl-offset") != nullptr);
  CHECK(*report.find_aux("repl-offset") == std::to_string(scene.server.replication_offset()));
  REQUIRE(report.find_aux("repl-stream-db") != nullptr);
  TestClient client(reader);
  CHECK(client.run("GET name") == bulk("value"));
}

}  // namespace

TEST_CASE("A replica gets the dataset through a pipe, and then the stream", "[child-snapshots]") {
  Scene scene("repl-diskless-sync yes\n");
  CallingNode replica(scene.loop, scene.server);
  REQUIRE(replica.ask({"REPLCONF", "capa", "eof", "capa", "psync2"}) == kOk);
  std::string heard = replica.ask({"PSYNC", "?", "-1"});
  CHECK(heard.starts_with("+FULLRESYNC "));
  if (!scene.child().running()) scene.pass(1000);
  REQUIRE(scene.child().running());
  heard += scene.finish(replica);
  check_dataset(marked_dataset(heard), scene);
  CHECK(scene.logged("Background RDB transfer terminated with success"));
  CHECK(scene.logged("to parent process pipe"));
  replica.says(bulks({"REPLCONF", "ACK", std::to_string(scene.server.replication_offset())}));
  scene.user.run("SET later 1");
  scene.pass(100);
  CHECK(replica.received().find(bulks({"SET", "later", "1"})) != std::string::npos);
}

TEST_CASE("A replica that has no mark for the end gets the dataset as a file",
          "[child-snapshots]") {
  Scene scene("repl-diskless-sync no\n");
  CallingNode replica(scene.loop, scene.server);
  CHECK(replica.ask({"PSYNC", "?", "-1"}).starts_with("+FULLRESYNC "));
  if (!scene.child().running()) scene.pass(1000);
  REQUIRE(scene.child().running());
  const std::string dataset = sized_dataset(scene.finish(replica));
  check_dataset(dataset, scene);
  CHECK(scene.directory.read("dump.rdb") == dataset);
}

TEST_CASE("A replica gets the file that was made for it, whatever snapshots are called meanwhile",
          "[child-snapshots]") {
  Scene scene("repl-diskless-sync no\nenable-protected-configs yes\n");
  TemporaryDirectory elsewhere;
  scene.directory.write("earlier.rdb", "another dataset");
  CallingNode replica(scene.loop, scene.server);
  CHECK(replica.ask({"PSYNC", "?", "-1"}).starts_with("+FULLRESYNC "));
  if (!scene.child().running()) scene.pass(1000);
  REQUIRE(scene.child().running());
  SECTION("by another name") {
    CHECK(scene.user.run("CONFIG SET dbfilename earlier.rdb") == kOk);
  }
  SECTION("in another directory") {
    CHECK(scene.user.run("CONFIG SET dir " + elsewhere.path().string()) == kOk);
  }
  check_dataset(sized_dataset(scene.finish(replica)), scene);
}

TEST_CASE("A replica with a channel gets the dataset there, and the stream by the other connection",
          "[child-snapshots]") {
  Scene scene("repl-diskless-sync yes\nrepl-rdb-channel yes\n");
  CallingNode main(scene.loop, scene.server);
  CallingNode channel(scene.loop, scene.server);
  REQUIRE(main.ask({"REPLCONF", "listening-port", "7777", "capa", "eof", "capa", "psync2", "capa",
                    "rdb-channel-repl"}) == kOk);
  const std::string answer = main.ask({"PSYNC", "?", "-1"});
  REQUIRE(answer.starts_with("+RDBCHANNELSYNC "));
  const std::string id = answer.substr(16, answer.size() - 18);
  REQUIRE(channel.ask({"REPLCONF", "capa", "eof", "rdb-only", "1", "rdb-channel", "1",
                       "main-ch-client-id", id}) == kOk);
  std::string heard = channel.ask({"PSYNC", "?", "-1"});
  CHECK(heard.starts_with("+FULLRESYNC "));
  if (!scene.child().running()) scene.pass(1000);
  REQUIRE(scene.child().running());
  heard += scene.finish(channel);
  check_dataset(marked_dataset(heard), scene);
  scene.user.run("SET later 1");
  scene.pass(100);
  CHECK(main.received().find(bulks({"SET", "later", "1"})) != std::string::npos);
}

TEST_CASE("A replica with Valkey's form of a channel gets the dataset from the child itself",
          "[child-snapshots]") {
  Scene scene("repl-diskless-sync yes\nrepl-rdb-channel yes\n");
  CallingNode main(scene.loop, scene.server);
  CallingNode channel(scene.loop, scene.server);
  REQUIRE(main.ask({"REPLCONF", "listening-port", "7777", "capa", "eof", "capa", "psync2", "capa",
                    "dual-channel"}) == kOk);
  REQUIRE(main.ask({"PSYNC", "?", "-1"}) == "+DUALCHANNELSYNC\r\n");
  REQUIRE(channel.ask({"REPLCONF", "capa", "eof", "rdb-only", "1", "rdb-channel", "1",
                       "listening-port", "7777"}) == kOk);
  std::string heard = channel.ask({"SYNC"});
  if (!scene.child().running()) scene.pass(1000);
  REQUIRE(scene.child().running());
  heard += scene.finish(channel);
  CHECK(heard.starts_with("$ENDOFF:" + std::to_string(scene.server.replication_offset()) + " " +
                          scene.server.replication_id() + " 0 "));
  check_dataset(marked_dataset(heard), scene);
  CHECK(scene.logged("to direct socket to replica"));
}

TEST_CASE("A replica whose snapshot's child is killed is disconnected", "[child-snapshots]") {
  Scene scene("repl-diskless-sync yes\nrdb-key-save-delay 60000000\n");
  CallingNode replica(scene.loop, scene.server);
  REQUIRE(replica.ask({"REPLCONF", "capa", "eof"}) == kOk);
  CHECK(replica.ask({"PSYNC", "?", "-1"}).starts_with("+FULLRESYNC "));
  if (!scene.child().running()) scene.pass(1000);
  REQUIRE(scene.child().running());
  ::kill(scene.child().pid(), SIGKILL);
  scene.finish(replica);
  scene.pass(1000);
  CHECK(scene.logged("Background transfer terminated by signal 9"));
  CHECK(replica.is_over());
}

}  // namespace latchkey::tests
