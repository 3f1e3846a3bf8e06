// random-seed: what chance decides in one server is decided alike in another one of the same seed.
#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "composition/whole_server.h"
#include "unit/catch.h"
#include "unit/required.h"
#include "unit/server_fixture.h"
#include "unit/temporary_directory.h"

namespace latchkey::tests {

namespace {

using composition::WholeServer;

// The text between two others.
std::string between(const std::string& text, const std::string& before, const std::string& after) {
  const size_t start = text.find(before);
  REQUIRE(start != std::string::npos);
  return text.substr(start + before.size(),
                     text.find(after, start + before.size()) - start - before.size());
}

class Seeded {
 public:
  explicit Seeded(const std::string& seed, const std::string& more = {}) {
    log_.set_level(base::LogLevel::kNothing);
    whole_ = required(WholeServer::make_space("random-seed " + seed + "\n" + more,
                                              {.clock = clock_, .log = log_, .loop = &loop_}));
    client_ = std::make_unique<TestClient>(whole_->server());
  }

  std::string run(std::string_view line) { return client_->run(line); }
  std::string info(const std::string& section, const std::string& field) {
    return between(run("INFO " + section), field + ":", "\r\n");
  }

  void fill() {
    for (int i = 0; i < 1000; ++i) {
      const std::string n = std::to_string(i);
      run("SET key" + n + " v");
      run("SADD set m" + n);
      run("HSET hash f" + n + " v" + n);
      run("ZADD zset " + n + " z" + n);
    }
  }

  // What is drawn, by what it is drawn for.
  std::map<std::string, std::string> draw() {
    std::map<std::string, std::string> drawn;
    const auto ask = [&](const char* line) { drawn[line] = run(line); };
    ask("SRANDMEMBER set -20");
    ask("SRANDMEMBER set 20");
    ask("SPOP set");
    ask("SPOP set 20");
    ask("HRANDFIELD hash 20");
    ask("HRANDFIELD hash -20");
    ask("ZRANDMEMBER zset 20");
    ask("ZRANDMEMBER zset -20");
    ask("RANDOMKEY");
    drawn["math.random"] = client_->run_words({"EVAL", "return tostring(math.random())", "0"});
    // The counters grow by chance: that of one key may well be the same.
    run("CONFIG SET maxmemory-policy allkeys-lfu");
    for (const std::string key : {"key1", "key2", "key3", "key4", "key5", "key6"}) {
      for (int i = 0; i < 500; ++i) run("GET " + key);
      drawn["OBJECT FREQ"] += run("OBJECT FREQ " + key);
    }
    return drawn;
  }

  // What the key of the hash tables decides.
  std::map<std::string, std::string> orders() {
    std::map<std::string, std::string> seen;
    for (const char* line : {"SCAN 0 COUNT 50", "KEYS *", "SMEMBERS set", "SSCAN set 0 COUNT 50",
                             "HGETALL hash", "HKEYS hash", "HSCAN hash 0 COUNT 50"}) {
      seen[line] = run(line);
    }
    TestClient listener(whole_->server());
    for (const char* channel : {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"})
      listener.run("SUBSCRIBE " + std::string(channel));
    seen["PUBSUB CHANNELS"] = run("PUBSUB CHANNELS");
    seen["UNSUBSCRIBE"] = listener.run("UNSUBSCRIBE");
    return seen;
  }

  // The order in which keys are evicted, as a client is notified of it.
  std::string evicted() {
    run("CONFIG SET notify-keyspace-events Ee");
    TestClient listener(whole_->server());
    listener.run("SUBSCRIBE __keyevent@0__:evicted");
    run("CONFIG SET maxmemory-eviction-tenacity 100 maxmemory-policy allkeys-random maxmemory 1");
    run("SET another v");
    run("CONFIG SET maxmemory 0");
    return listener.take_output();
  }

  std::map<std::string, std::string> secrets() {
    return {{"ACL GENPASS", run("ACL GENPASS")},
            {"run id", info("server", "run_id")},
            {"replication id", info("replication", "master_replid")}};
  }

 private:
  base::VirtualClock clock_;
  base::Logger log_;
  net::Loop loop_;
  std::unique_ptr<WholeServer> whole_;
  std::unique_ptr<TestClient> client_;
};

using Replies = std::map<std::string, std::string>;

// Whether nothing is the same in both.
void check_all_different(const Replies& one, const Replies& other) {
  for (const auto& [name, reply] : one) {
    INFO(name);
    CHECK(reply != other.at(name));
  }
}

}  // namespace

TEST_CASE("Two servers of one seed draw the same, and those of another seed other things") {
  Seeded one("7");
  Seeded same("7");
  Seeded other("8");
  const Replies secrets = one.secrets();
  CHECK(secrets == same.secrets());
  check_all_different(secrets, other.secrets());

  for (Seeded* server : {&one, &same, &other}) server->fill();
  Replies orders = one.orders();
  CHECK(orders == same.orders());
  // In the order of the names, in every server.
  Replies other_orders = other.orders();
  CHECK(orders["UNSUBSCRIBE"] == other_orders["UNSUBSCRIBE"]);
  orders.erase("UNSUBSCRIBE");
  check_all_different(orders, other_orders);

  const Replies drawn = one.draw();
  CHECK(drawn == same.draw());
  check_all_different(drawn, other.draw());

  const std::string evicted = one.evicted();
  CHECK(std::count(evicted.begin(), evicted.end(), '*') > 500);
  CHECK(evicted == same.evicted());
  CHECK(evicted != other.evicted());
}

TEST_CASE(
    "INFO shows the seed of a server that was given none, with which all but secrets repeats") {
  Seeded chosen("0");
  const std::string seed = chosen.info("server", "random_seed");
  Seeded again(seed);
  CHECK(again.info("server", "random_seed") == seed);
  check_all_different(chosen.secrets(), again.secrets());
  chosen.fill();
  again.fill();
  CHECK(chosen.orders() == again.orders());
  CHECK(chosen.draw() == again.draw());
  CHECK(Seeded("0").info("server", "random_seed") != seed);
}

TEST_CASE("CONFIG SET random-seed begins again, and leaves what is stored as it is") {
  Seeded server("7");
  server.fill();
  const std::string order = server.run("SMEMBERS set");
  const auto draw = [&] {
    CHECK(server.run("CONFIG SET random-seed 9") == kOk);
    return server.run("SRANDMEMBER set 20") + server.run("RANDOMKEY") +
           server.run("EVAL return(math.random(1000000)) 0") + server.run("ACL GENPASS");
  };
  const std::string first = draw();
  CHECK(first == draw());
  CHECK(server.info("server", "random_seed") == "9");
  CHECK(server.run("SMEMBERS set") == order);
  CHECK(server.run("SISMEMBER set m1") == integer(1));
  CHECK(server.run("CONFIG SET random-seed 0") == kOk);
  CHECK(server.run("CONFIG GET random-seed") == bulks({"random-seed", "0"}));
  CHECK(server.info("server", "random_seed") != "9");
  CHECK(server.run("SRANDMEMBER set 20") != server.run("SRANDMEMBER set 20"));
}

TEST_CASE("The nodes of two servers of one seed have the same names") {
  const auto names = [](const char* seed) {
    const TemporaryDirectory directory;
    Seeded node(seed, directory.setting() + "cluster-enabled yes\n");
    return node.run("CLUSTER MYID") + node.run("CLUSTER MYSHARDID");
  };
  CHECK(names("7") == names("7"));
  CHECK(names("7") != names("8"));
}

}  // namespace latchkey::tests
