// Which keys go when memory is over its limit, and for how long that is gone on with.
#include "server/memory_limit.h"

#include <chrono>
#include <future>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "unit/catch.h"
#include "unit/server_fixture.h"
#include "unit/testing/tested_server.h"

namespace latchkey::tests {

namespace {

// A server whose memory is over the limit, whatever it holds, once the limit is a byte.
struct FullServer : TestedServer {
  explicit FullServer(std::string_view settings)
      : TestedServer(std::string(settings) + "maxmemory-samples 64\n") {}
  bool make_room() {
    server.config().mutable_values().maxmemory = 1;
    return server.memory_limit().make_room();
  }
};

// Has the background thread free many objects, until it is told to go on.
struct LongFreeing {
  explicit LongFreeing(FullServer& server) : reclaimer(server.server.environment().reclaimer) {
    std::future<void> opened = gate.get_future();
    reclaimer.free_later(100'000, [opened = opened.share()] { opened.wait(); });
  }
  store::Reclaimer& reclaimer;
  std::promise<void> gate;
};

}  // namespace

TEST_CASE("Policies for keys with a deadline evict these alone, in their order", "[memory limit]") {
  for (const std::string policy :
       {"volatile-lru", "volatile-lrm", "volatile-ttl", "volatile-lfu", "volatile-random"}) {
    INFO(policy);
    FullServer server("maxmemory-policy " + policy + "\n");
    TestClient client(server);
    TestClient reader(server, 3);
    client.run("SET stays 1");
    client.run("SET far 1 EX 1000");
    server.advance_ms(2000);
    client.run("SET near 1 EX 100");
    // Used last and most often.
    for (int i = 0; i < 200; ++i) client.run("GET far");
    reader.run("CLIENT TRACKING ON");
    reader.run("EXISTS near");
    server.advance_ms(2000);
    if (policy == "volatile-lru") client.run("GET far");
    if (policy == "volatile-lrm") client.run("SET far 1 EX 1000");
    server.events();
    CHECK_FALSE(server.make_room());
    const std::string events = server.events();
    if (policy == "volatile-random") {
      CHECK((events == "evicted near, evicted far" || events == "evicted far, evicted near"));
    } else {
      CHECK(events == "evicted near, evicted far");
    }
    CHECK(server.database().size() == 1);
    CHECK(reader.take_output() == ">2\r\n" + bulk("invalidate") + bulks({"near"}));
  }
}

TEST_CASE("Expired keys that were not removed yet are evicted as any other", "[memory limit]") {
  for (const std::string policy : {"volatile-lru", "volatile-ttl", "volatile-lfu",
                                   "volatile-random", "allkeys-lru", "allkeys-random"}) {
    // A replica leaves the removal of expired keys to its master.
    for (const bool is_replica : {false, true}) {
      INFO(policy << " " << is_replica);
      FullServer server("maxmemory-policy " + policy + "\n");
      TestClient client(server);
      for (int i = 0; i < 20; ++i) client.run("SET key" + std::to_string(i) + " 1 PX 1");
      server.advance_ms(10);
      if (is_replica) server.server.environment().expired = store::Environment::Expired::kHide;
      CHECK_FALSE(server.make_room());
      CHECK(server.database().size() == 0);
    }
  }
}

TEST_CASE("Evicting that may hold up nobody goes on later", "[memory limit]") {
  FullServer server("maxmemory-policy allkeys-random\nmaxmemory-eviction-tenacity 0\n");
  TestClient client(server);
  for (int i = 0; i < 40; ++i) client.run("SET key" + std::to_string(i) + " 1");
  // A glance at the clock comes behind every sixteenth key.
  CHECK(server.make_room());
  CHECK(server.database().size() == 24);
  CHECK(server.make_room());
  CHECK(server.database().size() == 8);
  CHECK_FALSE(server.make_room());
  CHECK(server.database().empty());
}

TEST_CASE("Evicting that may take long does not end before memory fits", "[memory limit]") {
  for (const char* const tenacity : {"1", "10", "11", "50", "100"}) {
    INFO(tenacity);
    FullServer server("maxmemory-policy allkeys-random\nmaxmemory-eviction-tenacity " +
                      std::string(tenacity) + "\n");
    TestClient client(server);
    for (int i = 0; i < 40; ++i) client.run("SET key" + std::to_string(i) + " 1");
    CHECK_FALSE(server.make_room());
    CHECK(server.database().empty());
  }
}

TEST_CASE("Nothing is evicted while much is being freed, and commands do not wait for it",
          "[memory limit]") {
  FullServer server("maxmemory-policy allkeys-random\n");
  TestClient client(server);
  client.run("MSET a 1 b 2 c 3");
  LongFreeing freeing(server);
  CHECK(server.make_room());
  CHECK(client.run("SET a 2") == kOk);
  CHECK(server.database().size() == 3);
  freeing.gate.set_value();
  freeing.reclaimer.drain();
  CHECK_FALSE(server.make_room());
  CHECK(server.database().empty());
}

TEST_CASE("Without eviction commands run while much is being freed, and are refused then",
          "[memory limit]") {
  FullServer server("maxmemory-policy noeviction\n");
  TestClient client(server);
  LongFreeing freeing(server);
  client.run("CONFIG SET maxmemory 1");
  CHECK(client.run("SET a 1") == kOk);
  freeing.gate.set_value();
  freeing.reclaimer.drain();
  CHECK(client.run("SET b 1") == error("OOM command not allowed when used memory > 'maxmemory'."));
  CHECK(server.database().size() == 1);
}

TEST_CASE("Memory that grows while much is being freed waits for that", "[memory limit]") {
  FullServer server("maxmemory-policy allkeys-random\n");
  TestClient client(server);
  LongFreeing freeing(server);
  CHECK(server.make_room());
  client.run_words({"SET", "large", std::string(4 << 20, 'x')});
  CHECK(freeing.reclaimer.pending_objects() > 0);
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    freeing.gate.set_value();
  });
  CHECK_FALSE(server.make_room());
  CHECK(freeing.reclaimer.pending_objects() == 0);
  CHECK(server.database().empty());
  opener.join();
}

TEST_CASE("Memory that has grown since it was below its limit is no reason to wait",
          "[memory limit]") {
  FullServer server("maxmemory-policy allkeys-random\n");
  TestClient client(server);
  {
    LongFreeing freeing(server);
    CHECK(server.make_room());
    client.run("CONFIG SET maxmemory 0");
    CHECK(server.server.memory_limit().make_room());
    freeing.gate.set_value();
    freeing.reclaimer.drain();
  }
  client.run_words({"SET", "large", std::string(4 << 20, 'x')});
  LongFreeing freeing(server);
  CHECK(server.make_room());
  CHECK(server.database().size() == 1);
  freeing.gate.set_value();
}

}  // namespace latchkey::tests
