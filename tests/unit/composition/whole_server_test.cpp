// Whole servers beside each other in one process, and their ends.
#include "composition/whole_server.h"

#include <memory>
#include <string>
#include <vector>

#include "persist/persistence.h"
#include "unit/catch.h"
#include "unit/required.h"
#include "unit/server_fixture.h"
#include "unit/temporary_directory.h"

namespace latchkey::tests {

namespace {

using composition::WholeServer;

// What servers of a process have in common.
struct Process {
  Process() { log.set_level(base::LogLevel::kNothing); }

  std::unique_ptr<WholeServer> make(const std::string& settings = {}) {
    return required(WholeServer::make_space(settings, {.clock = clock, .log = log, .loop = &loop}));
  }
  void turn(int times = 3) {
    for (int i = 0; i < times; ++i) loop.run_once();
  }

  base::VirtualClock clock;
  base::Logger log;
  net::Loop loop;
};

// One of many, with a client that works and one that listens. All names are the same everywhere;
// what they stand for is this one's.
class Space {
 public:
  Space(Process& process, int number)
      : own_(std::to_string(number)),
        whole_(process.make("databases 2\n")),
        client_(whole_->server()),
        listener_(whole_->server()) {}

  void fill() {
    CHECK(client_.run("SET key " + own_) == kOk);
    CHECK(client_.run("SET key" + own_ + " x") == kOk);
    CHECK(client_.run_words({"EVAL", "return redis.call('APPEND', 'key', ARGV[1])", "0", "!"}) ==
          integer(static_cast<int64_t>(own_.size() + 1)));
    const std::string code =
        "#!lua name=library\nredis.register_function('whose', function() return '" + own_ +
        "' end)";
    CHECK(client_.run_words({"FUNCTION", "LOAD", code}) == bulk("library"));
    CHECK(client_.run("ACL SETUSER user" + own_ + " on nopass +get") == kOk);
    CHECK(client_.run("CONFIG SET maxmemory-samples " + samples()) == kOk);
    CHECK_FALSE(listener_.run("SUBSCRIBE channel").empty());
    script_ = client_.run_words({"SCRIPT", "LOAD", "return '" + own_ + "'"});
  }

  void check() {
    CHECK(client_.run("GET key") == bulk(own_ + "!"));
    CHECK(client_.run("DBSIZE") == integer(2));
    CHECK(client_.run("FCALL whose 0") == bulk(own_));
    CHECK(client_.run("ACL USERS") == bulks({"default", "user" + own_}));
    CHECK(client_.run("CONFIG GET maxmemory-samples") == bulks({"maxmemory-samples", samples()}));
  }
  void publish() {
    CHECK(client_.run("PUBLISH channel " + own_) == integer(1));
    CHECK(listener_.take_output() == bulks({"message", "channel", own_}));
  }
  bool hears_nothing() { return listener_.take_output().empty(); }
  // "$40\r\n", the digest, "\r\n".
  std::string script() const { return script_.substr(5, 40); }
  bool knows(const std::string& script) {
    return client_.run("SCRIPT EXISTS " + script) == array({integer(1)});
  }
  // Calls of GET, as this server counts them.
  std::string info() {
    const std::string text = client_.run("INFO commandstats");
    const size_t at = text.find("cmdstat_get:");
    return at == std::string::npos ? "" : text.substr(at, text.find(',', at) - at);
  }

 private:
  std::string samples() const { return std::to_string(1 + std::stoi(own_) % 60); }

  std::string own_;
  std::unique_ptr<WholeServer> whole_;
  TestClient client_;
  TestClient listener_;
  std::string script_;
};

}  // namespace

TEST_CASE("A hundred servers on one loop do not see each other", "[composition]") {
  constexpr int kServers = 100;
  Process process;
  std::vector<std::unique_ptr<Space>> spaces;
  for (int i = 0; i < kServers; ++i) spaces.push_back(std::make_unique<Space>(process, i));
  for (const auto& space : spaces) space->fill();
  process.turn();
  for (const auto& space : spaces) {
    space->check();
    space->publish();
  }
  for (const auto& space : spaces) CHECK(space->hears_nothing());
  CHECK(spaces[0]->knows(spaces[0]->script()));
  CHECK_FALSE(spaces[0]->knows(spaces[1]->script()));
  spaces[0]->check();
  CHECK(spaces[0]->info() == "cmdstat_get:calls=2");
  CHECK(spaces[1]->info() == "cmdstat_get:calls=1");

  // From both ends and the middle, while the others go on.
  while (!spaces.empty()) {
    const size_t choice = spaces.size() % 3;
    const size_t at = choice == 0 ? 0 : choice == 1 ? spaces.size() - 1 : spaces.size() / 2;
    spaces.erase(spaces.begin() + static_cast<ptrdiff_t>(at));
    process.turn(1);
    if (spaces.size() % 10 == 1) spaces.back()->check();
  }
}

TEST_CASE("A server may go in a turn of the loop that it shares", "[composition]") {
  Process process;
  auto first = process.make();
  auto second = process.make();
  net::Timer timer(process.loop, [&] { first.reset(); });
  timer.start(0);
  const net::BeforeWait before_wait(process.loop, [&] { second.reset(); });
  auto third = process.make();
  process.turn();
  CHECK(first == nullptr);
  CHECK(second == nullptr);
  TestClient client(third->server());
  CHECK(client.run("SET name value") == kOk);
}

TEST_CASE("Replies of one server wait for its own file, whatever others do", "[composition]") {
  TemporaryDirectory directory;
  Process process;
  auto keeps = process.make(directory.setting() + "appendonly yes\nappendfsync always\n");
  REQUIRE(keeps->load_dataset() == persist::Loading::Result::kNoFile);
  REQUIRE(keeps->open_append_only_file());
  auto other = process.make();
  TestClient client(keeps->server());
  CHECK(client.run("SET name value") == kOk);
  CHECK(process.loop.holds_output());
  other->server().tick();
  CHECK(process.loop.holds_output());
  process.turn();
  CHECK_FALSE(process.loop.holds_output());
  // Nobody would end the holding of one that goes.
  CHECK(client.run("SET name value") == kOk);
  keeps.reset();
  CHECK_FALSE(process.loop.holds_output());
}

TEST_CASE("Nothing is written where nobody asks for it", "[composition]") {
  TemporaryDirectory directory;
  Process process;
  const auto whole = process.make(directory.setting());
  TestClient client(whole->server());
  for (int i = 0; i < 20; ++i) client.run("SET key" + std::to_string(i) + " value");
  constexpr int64_t kDayMs = 86'400'000;
  process.clock.advance_ms(kDayMs);
  whole->server().tick();
  process.turn();
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("A dataset is there in the next life of a server", "[composition]") {
  TemporaryDirectory directory;
  Process process;
  const std::string settings = directory.setting() + "appendonly yes\n";
  for (const auto expected : {persist::Loading::Result::kNoFile, persist::Loading::Result::kDone}) {
    const auto whole = process.make(settings);
    CHECK(whole->load_dataset() == expected);
    CHECK(whole->adopt_dataset());
    CHECK(whole->open_append_only_file());
    TestClient client(whole->server());
    CHECK(client.run("INCR lives") == integer(expected == persist::Loading::Result::kDone ? 2 : 1));
    process.turn();
  }
  // In a callback the loop cannot be turned.
  net::Timer timer(process.loop, [&] {
    const auto whole = process.make(settings);
    CHECK(whole->load_dataset() == persist::Loading::Result::kDone);
    TestClient client(whole->server());
    CHECK(client.run("GET lives") == bulk("2"));
  });
  timer.start(0);
  process.turn();
}

TEST_CASE("A server goes in the middle of whatever it does", "[composition]") {
  TemporaryDirectory directory;
  Process process;
  SECTION("listening") {
    const auto whole = process.make("unixsocket " + (directory.path() / "socket").string() + "\n");
    CHECK(whole->listen());
    process.turn();
    CHECK(directory.exists("socket"));
  }
  SECTION("a node of a cluster") {
    const auto whole = process.make(directory.setting() + "cluster-enabled yes\n");
    CHECK(whole->adopt_dataset());
    CHECK(directory.exists("nodes.conf"));
    TestClient client(whole->server());
    CHECK(client.run("CLUSTER ADDSLOTSRANGE 0 16383") == kOk);
    process.turn();
  }
  SECTION("connecting to its master") {
    const auto whole = process.make("replicaof 127.0.0.1 1\n");
    whole->server().tick();
    process.turn();
  }
  SECTION("a script that does not end by itself") {
    const auto whole = process.make("busy-reply-threshold 1\n");
    server::Client& client = whole->server().clients().add(nullptr);
    server::assume_default_user(client);
    std::string request = bulks({"EVAL", "while true do end", "0"});
    client.on_input(request);
    CHECK(client.has(server::kClientSuspended));
    process.turn();
  }
  SECTION("clients that wait") {
    const auto whole = process.make();
    TestClient client(whole->server());
    CHECK(client.run("BLPOP list 0").empty());
    TestClient flushing(whole->server());
    flushing.run("FLUSHALL ASYNC");
    flushing.run("CLIENT PAUSE 10000");
    CHECK(client.take_output().empty());
  }
  process.turn();
}

TEST_CASE("A configuration that cannot be followed makes no server", "[composition]") {
  Process process;
  const auto refusal = [&](std::string_view settings) {
    const auto whole = WholeServer::make_space(
        settings, {.clock = process.clock, .log = process.log, .loop = &process.loop});
    REQUIRE_FALSE(whole);
    return whole.error().kind;
  };
  using Kind = server::ConfigError::Kind;
  CHECK(refusal("nonsense 1\n") == Kind::kLogged);
  CHECK(refusal("maxmemory much\n") == Kind::kLine);
  CHECK(refusal("rename-command nosuch other\n") == Kind::kLine);
  CHECK(refusal("user alice +nosuch\n") == Kind::kFile);
  CHECK(refusal("locale-collate nosuch\n") == Kind::kLogged);
  process.turn();
}

TEST_CASE("A command that one server has renamed keeps its name in others", "[composition]") {
  Process process;
  const auto renames = process.make("rename-command GET fetch\nrename-command SET \"\"\n");
  const auto other = process.make();
  TestClient renamed(renames->server());
  TestClient usual(other->server());
  CHECK(renamed.run("FETCH name") == kNull);
  CHECK(renamed.run("GET name").starts_with("-ERR unknown command"));
  CHECK(renamed.run("SET name value").starts_with("-ERR unknown command"));
  CHECK(usual.run("SET name value") == kOk);
  CHECK(usual.run("GET name") == bulk("value"));
  CHECK(usual.run("FETCH name").starts_with("-ERR unknown command"));
}

TEST_CASE("Types of modules are read and written by whom the rules of keys let", "[acl]") {
  Process process;
  const auto whole = process.make();
  TestClient client(whole->server());
  client.run("ACL SETUSER reader on nopass +@all %R~*");
  client.run("ACL SETUSER writer on nopass +@all %W~*");
  client.run("ACL SETUSER both on nopass +@all ~*");
  const auto may = [&](const std::string& user, const char* words) {
    return client.run("ACL DRYRUN " + user + " " + words) == kOk;
  };
  for (const char* words :
       {"JSON.SET k $ 1", "JSON.DEL k", "JSON.NUMINCRBY k $ 1", "JSON.MSET k $ 1", "TS.ADD k 1 1",
        "TS.DEL k 0 9", "TS.INCRBY k 1", "TS.MADD k 1 1", "BF.ADD k a", "CF.ADD k a",
        "CMS.INCRBY k a 1", "TDIGEST.ADD k 1", "TDIGEST.RESET k", "TOPK.ADD k a",
        "VADD k VALUES 1 1 a", "VREM k a"}) {
    INFO(words);
    CHECK_FALSE(may("reader", words));
    CHECK(may("both", words));
  }
  for (const char* words :
       {"JSON.GET k", "JSON.MGET k $", "JSON.TYPE k", "TS.GET k", "TS.RANGE k - +", "TS.INFO k",
        "BF.EXISTS k a", "CF.COUNT k a", "CMS.QUERY k a", "TDIGEST.MIN k", "TOPK.LIST k",
        "VGETATTR k a", "VSIM k ELE a"}) {
    INFO(words);
    CHECK_FALSE(may("writer", words));
    CHECK(may("both", words));
    // Vector sets say of each command that it reads and writes, as in the reference.
    CHECK(may("reader", words) == (words[0] != 'V'));
  }
}

}  // namespace latchkey::tests
