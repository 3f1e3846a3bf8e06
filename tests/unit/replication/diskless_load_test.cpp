// A replica that loads its master's dataset as it comes, over a socket: the test plays the master.
#include <memory>
#include <string>
#include <string_view>

#include "composition/whole_server.h"
#include "net/loop.h"
#include "replication/replica_role.h"
#include "replication/replication.h"
#include "server/function_libraries.h"
#include "unit/catch.h"
#include "unit/cluster/played_node.h"
#include "unit/replication/played_master.h"
#include "unit/required.h"
#include "unit/temporary_directory.h"

namespace latchkey::tests {

namespace {

constexpr char kCode[] = "#!lua name=theirs\nredis.register_function('f', function() return 7 end)";

// The dataset of a master, with two keys and a function.
std::string masters_dataset() {
  ReplicaServer source;
  TestClient author(source);
  author.run("SET name theirs");
  author.run("SELECT 3");
  author.run("SET other theirs");
  REQUIRE(source.server.functions()->load(kCode, /*replace=*/false));
  return source.dataset();
}

const std::string kFull = "+FULLRESYNC " + kId + " 100\r\n";
const std::string kMarked = kFull + "$EOF:" + kMark + "\r\n";

struct Scene {
  explicit Scene(const std::string& settings)
      : master(loop),
        whole(required(composition::WholeServer::make_space(
            directory.setting() + "enable-debug-command yes\n" + settings,
            {.clock = clock, .log = quiet(), .loop = &loop}))),
        server(whole->server()),
        user(server) {
    dataset = masters_dataset();
  }
  ~Scene() {
    whole.reset();
    turn(loop);
  }

  replication::ReplicaRole& role() {
    return server.layer<replication::Replication>().replica_role();
  }
  bool is_linked() { return role().session() != nullptr; }
  std::string run(std::string_view line) { return user.run(line); }
  // Seconds pass, with what the server does in each.
  void pass(int seconds) {
    for (; seconds > 0; --seconds) {
      clock.advance_ms(1000);
      server.refresh_clock();
      server.tick();
      turn(loop);
    }
  }
  // As many turns as a dataset of this size needs.
  void settle() { turn(loop, 20); }
  PlayedChannel& connection() {
    return master.accept([this] { return ++waited_ > kMostTurns; });
  }
  // Begins to follow the master, to the point where it is asked for its dataset.
  PlayedChannel& follow() {
    if (!server.is_replica())
      REQUIRE(run("REPLICAOF 127.0.0.1 " + std::to_string(master.port())) == kOk);
    server.tick();
    PlayedChannel& channel = connection();
    asked = greet(channel);
    return channel;
  }
  // The same of a replica that has had its whole dataset, and lost the link.
  PlayedChannel& follow_again() {
    PlayedChannel& first = follow();
    give(first, kMarked + dataset + kMark);
    REQUIRE(is_linked());
    first.hangs_up();
    settle();
    pass(1);
    return follow();
  }
  static std::string greet(PlayedChannel& channel) {
    channel.received();
    channel.says("+PONG\r\n");
    channel.says("+OK\r\n");
    channel.says("+OK\r\n");
    return channel.received();
  }
  void give(PlayedChannel& channel, std::string_view bytes) {
    channel.says(bytes);
    settle();
  }
  // What the log says, among much else.
  bool logged(std::string_view text) const {
    return directory.read("log").find(text) != std::string::npos;
  }

  net::Loop loop;
  TemporaryDirectory directory;
  base::VirtualClock clock;
  base::Logger log;
  PlayedNode master;
  std::unique_ptr<composition::WholeServer> whole;
  server::Server& server;
  TestClient user;
  std::string dataset;
  std::string asked;

 private:
  static constexpr int kMostTurns = 100'000;
  int waited_ = 0;

  base::Logger& quiet() {
    log.set_level(base::LogLevel::kNotice);
    log.set_file(directory.path() / "log");
    return log;
  }
};

std::string sized(const std::string& dataset) {
  return kFull + "$" + std::to_string(dataset.size()) + "\r\n" + dataset;
}

}  // namespace

TEST_CASE("A dataset is loaded as it comes, however its end is told", "[diskless]") {
  for (const char* how : {"swapdb", "flush-before-load", "on-empty-db"}) {
    for (const bool has_mark : {true, false}) {
      CAPTURE(how, has_mark);
      Scene scene(std::string("repl-diskless-load ") + how + "\n");
      PlayedChannel& channel = scene.follow();
      CHECK(scene.asked.find("PSYNC") != std::string::npos);
      scene.give(channel, has_mark ? kMarked + scene.dataset + kMark : sized(scene.dataset));
      REQUIRE(scene.is_linked());
      CHECK(scene.run("GET name") == bulk("theirs"));
      CHECK(scene.run("FCALL f 0") ==
            error("READONLY You can't write against a read only replica."));
      CHECK(scene.run("FUNCTION LIST").find("theirs") != std::string::npos);
      scene.run("SELECT 3");
      CHECK(scene.run("GET other") == bulk("theirs"));
      CHECK_FALSE(scene.directory.exists("dump.rdb"));
      // And the stream is applied behind it.
      channel.says(bulks({"SELECT", "0"}) + bulks({"SET", "later", "1"}));
      scene.run("SELECT 0");
      CHECK(scene.run("GET later") == bulk("1"));
    }
  }
}

TEST_CASE("A dataset comes in pieces of any size, with the stream behind it", "[diskless]") {
  const char* how = GENERATE("swapdb", "flush-before-load");
  Scene scene(std::string("repl-diskless-load ") + how + "\n");
  PlayedChannel& channel = scene.follow();
  // Behind a mark nothing comes before the replica has said that it has found it.
  const std::string all =
      sized(scene.dataset) + bulks({"SELECT", "0"}) + bulks({"SET", "later", "1"});
  for (size_t at = 0; at < all.size(); at += 7) channel.says(all.substr(at, 7));
  scene.settle();
  REQUIRE(scene.is_linked());
  CHECK(scene.run("MGET name later") == bulks({"theirs", "1"}));
}

TEST_CASE("A dataset with a mark comes in pieces of any size", "[diskless]") {
  Scene scene("repl-diskless-load swapdb\n");
  PlayedChannel& channel = scene.follow();
  const std::string all = kMarked + scene.dataset + kMark;
  for (size_t at = 0; at < all.size(); at += 7) channel.says(all.substr(at, 7));
  scene.settle();
  REQUIRE(scene.is_linked());
  CHECK(scene.run("GET name") == bulk("theirs"));
}

TEST_CASE("What a replica had is there until the whole dataset has come, or goes before it",
          "[diskless]") {
  const bool swaps = GENERATE(true, false);
  Scene scene(std::string("repl-diskless-load ") + (swaps ? "swapdb\n" : "flush-before-load\n"));
  scene.run("SET name ours");
  scene.run("SET mine ours");
  PlayedChannel& channel = scene.follow();
  const size_t half = scene.dataset.size() / 2;
  scene.give(channel, kMarked + scene.dataset.substr(0, half));
  CHECK(scene.run("GET name") == error("LOADING Redis is loading the dataset in memory"));
  CHECK((scene.server.database(0).size() == 2) == swaps);
  SECTION("it comes") {
    scene.give(channel, scene.dataset.substr(half) + kMark);
    REQUIRE(scene.is_linked());
    CHECK(scene.run("MGET name mine") == array({bulk("theirs"), std::string(kNull)}));
  }
  SECTION("it breaks off") {
    channel.hangs_up();
    scene.settle();
    CHECK_FALSE(scene.is_linked());
    CHECK(scene.run("DBSIZE") == integer(swaps ? 2 : 0));
    CHECK(scene.run("FUNCTION LIST") == array({}));
    CHECK(scene.logged("Failed trying to load the MASTER synchronization DB from socket"));
    // It is asked for again.
    scene.pass(1);
    PlayedChannel& again = scene.follow();
    scene.give(again, kMarked + scene.dataset + kMark);
    REQUIRE(scene.is_linked());
    CHECK(scene.run("GET name") == bulk("theirs"));
  }
  SECTION("it ends with another mark") {
    scene.give(channel, scene.dataset.substr(half) + std::string(40, 'x'));
    CHECK_FALSE(scene.is_linked());
    CHECK(scene.run("DBSIZE") == integer(swaps ? 2 : 0));
  }
  SECTION("it is damaged") {
    std::string damaged = scene.dataset;
    damaged.back() = static_cast<char>(damaged.back() ^ 1);
    scene.give(channel, damaged.substr(half) + kMark);
    CHECK_FALSE(scene.is_linked());
    CHECK(scene.run("DBSIZE") == integer(swaps ? 2 : 0));
  }
}

TEST_CASE("A master that is silent in the middle of its dataset is left after repl-timeout",
          "[diskless]") {
  Scene scene("repl-diskless-load swapdb\nrepl-timeout 10\n");
  PlayedChannel& channel = scene.follow();
  scene.give(channel, kMarked + scene.dataset.substr(0, 20));
  scene.pass(10);
  CHECK_FALSE(channel.is_over());
  scene.pass(2);
  CHECK(channel.is_over());
  CHECK_FALSE(scene.is_linked());
  // Meanwhile it gave signs of life.
  CHECK(channel.received().find('\n') != std::string::npos);
}

TEST_CASE("A replica whose clock is set back goes on to show its master that it loads",
          "[diskless]") {
  Scene scene("repl-diskless-load swapdb\n");
  PlayedChannel& channel = scene.follow();
  scene.give(channel, kMarked + scene.dataset.substr(0, 20));
  scene.pass(1);
  scene.clock.step_ms(-3'600'000);
  channel.received();
  scene.pass(1);
  CHECK(channel.received().find('\n') != std::string::npos);
}

TEST_CASE("The server is loading until the mark behind the dataset has come", "[diskless]") {
  const char* how = GENERATE("swapdb", "flush-before-load", "on-empty-db");
  CAPTURE(how);
  Scene scene(std::string("repl-diskless-load ") + how + "\n");
  PlayedChannel& channel = scene.follow();
  scene.give(channel, kMarked + scene.dataset + kMark.substr(1));
  const std::string loading = error("LOADING Redis is loading the dataset in memory");
  CHECK((scene.server.state() & server::kStateLoading) != 0);
  CHECK(scene.run("GET name") == loading);
  CHECK(scene.run("REPLICAOF NO ONE") == loading);
  CHECK(scene.run("REPLICAOF 127.0.0.1 1") == loading);
  scene.give(channel, kMark.substr(0, 1));
  CHECK((scene.server.state() & server::kStateLoading) == 0);
  REQUIRE(scene.is_linked());
  CHECK(scene.run("GET name") == bulk("theirs"));
}

TEST_CASE("A replica that leaves its master while it loads does not resume from where it was",
          "[diskless]") {
  Scene scene("repl-diskless-load flush-before-load\n");
  PlayedChannel& channel = scene.follow_again();
  REQUIRE(scene.asked.find(kId) != std::string::npos);
  scene.give(channel, "+FULLRESYNC " + kOtherId + " 500\r\n$EOF:" + kMark + "\r\n" +
                          scene.dataset.substr(0, 30));
  REQUIRE((scene.server.state() & server::kStateLoading) != 0);
  // A cluster may decide it; users are refused.
  scene.role().replicate_from("127.0.0.1", scene.master.port());
  scene.settle();
  CHECK(scene.run("DBSIZE") == integer(0));
  scene.pass(1);
  PlayedChannel& next = scene.follow();
  CHECK(scene.asked.find(kId) == std::string::npos);
  CHECK(scene.asked.find(bulks({"PSYNC", "?", "-1"})) != std::string::npos);
  scene.give(next, kMarked + scene.dataset + kMark);
  REQUIRE(scene.is_linked());
  CHECK(scene.run("GET name") == bulk("theirs"));
}

TEST_CASE("A dataset that is given up while it waits for other tasks is not swapped in",
          "[diskless]") {
  Scene scene("repl-diskless-load swapdb\n");
  PlayedChannel& channel = scene.follow_again();
  const std::string other = empty_dataset();
  scene.give(channel, kMarked + other.substr(0, 20));
  REQUIRE((scene.server.state() & server::kStateAsyncLoading) != 0);
  bool ends = false;
  scene.server.tasks().start([&] {
    while (!ends) scene.server.tasks().yield();
  });
  scene.give(channel, other.substr(20) + kMark);
  // Until the other task has ended.
  CHECK((scene.server.state() & server::kStateAsyncLoading) != 0);
  scene.role().give_up_dataset();
  ends = true;
  scene.settle();
  CHECK((scene.server.state() & server::kStateAsyncLoading) == 0);
  CHECK_FALSE(scene.is_linked());
  CHECK(scene.run("GET name") == bulk("theirs"));
}

TEST_CASE("A replica with keys loads from a file where only an empty one may load at once",
          "[diskless]") {
  for (const bool is_empty : {true, false}) {
    CAPTURE(is_empty);
    Scene scene("repl-diskless-load on-empty-db\nsave \"\"\n");
    if (!is_empty) {
      scene.run("SELECT 9");
      scene.run("SET mine ours");
    }
    PlayedChannel& channel = scene.follow();
    scene.give(channel, kMarked + scene.dataset.substr(0, 20));
    // From a file nothing is loaded before all is there.
    CHECK(((scene.server.state() & server::kStateLoading) != 0) == is_empty);
    scene.give(channel, scene.dataset.substr(20) + kMark);
    REQUIRE(scene.is_linked());
    scene.run("SELECT 0");
    CHECK(scene.run("GET name") == bulk("theirs"));
  }
}

TEST_CASE("The dataset of the same history is loaded beside what goes on to be served",
          "[diskless]") {
  Scene scene("repl-diskless-load swapdb\n");
  PlayedChannel& channel = scene.follow_again();
  CHECK(scene.asked.find(kId) != std::string::npos);
  scene.give(channel, kMarked + scene.dataset.substr(0, 30));
  CHECK((scene.server.state() & server::kStateAsyncLoading) != 0);
  CHECK(scene.run("GET name") == bulk("theirs"));
  scene.give(channel, scene.dataset.substr(30) + kMark);
  REQUIRE(scene.is_linked());
  CHECK((scene.server.state() & server::kStateAsyncLoading) == 0);
  CHECK(scene.run("GET name") == bulk("theirs"));
}

TEST_CASE("What came of the stream while the dataset came by a channel is replayed in pieces",
          "[diskless]") {
  Scene scene("repl-diskless-load swapdb\nrepl-rdb-channel yes\n");
  PlayedChannel& main = scene.follow();
  main.says("+RDBCHANNELSYNC 17\r\n");
  PlayedChannel& channel = scene.connection();
  CHECK(channel.received().find("main-ch-client-id") != std::string::npos);
  channel.says("+OK\r\n");
  scene.give(channel, kMarked + scene.dataset.substr(0, 30));
  std::string stream = bulks({"SELECT", "0"});
  for (int i = 0; i < 500; ++i) stream += bulks({"RPUSH", "list", std::to_string(i)});
  main.says(stream);
  scene.settle();
  CHECK_FALSE(scene.is_linked());
  SECTION("to its end, and then goes on") {
    scene.give(channel, scene.dataset.substr(30) + kMark);
    for (int i = 0; i < 20; ++i) scene.settle();
    REQUIRE(scene.is_linked());
    CHECK(scene.run("GET name") == bulk("theirs"));
    CHECK(scene.run("LLEN list") == integer(500));
    CHECK(scene.run("LINDEX list -1") == bulk("499"));
    CHECK(scene.server.replication_offset() == 100 + static_cast<int64_t>(stream.size()));
    main.says(bulks({"SET", "later", "1"}));
    scene.settle();
    CHECK(scene.run("GET later") == bulk("1"));
    CHECK(scene.logged("Starting to stream replication buffer into the db (" +
                       std::to_string(stream.size()) + " bytes)."));
  }
  SECTION("and the channel breaks off, so that both are begun anew") {
    channel.hangs_up();
    scene.settle();
    CHECK_FALSE(scene.is_linked());
    CHECK(main.is_over());
    CHECK(scene.run("EXISTS list") == integer(0));
  }
  SECTION("and the link breaks, so that both are begun anew") {
    main.hangs_up();
    scene.settle();
    CHECK_FALSE(scene.is_linked());
    CHECK(scene.run("EXISTS list") == integer(0));
  }
}

TEST_CASE("What a replica may keep of the stream is limited, and the rest waits with the master",
          "[diskless]") {
  Scene scene(
      "repl-diskless-load swapdb\nrepl-rdb-channel yes\nreplica-full-sync-buffer-limit 1000\n");
  PlayedChannel& main = scene.follow();
  main.says("+RDBCHANNELSYNC 17\r\n");
  PlayedChannel& channel = scene.connection();
  channel.says("+OK\r\n");
  scene.give(channel, kMarked + scene.dataset.substr(0, 30));
  std::string stream = bulks({"SELECT", "0"});
  for (int i = 0; i < 3000; ++i) stream += bulks({"RPUSH", "list", std::to_string(i)});
  main.says(stream);
  scene.settle();
  CHECK(scene.logged("Replication buffer limit has been reached (1000 bytes)"));
  scene.give(channel, scene.dataset.substr(30) + kMark);
  for (int i = 0; i < 40; ++i) scene.settle();
  REQUIRE(scene.is_linked());
  CHECK(scene.run("LLEN list") == integer(3000));
  CHECK(scene.server.replication_offset() == 100 + static_cast<int64_t>(stream.size()));
}

}  // namespace latchkey::tests
