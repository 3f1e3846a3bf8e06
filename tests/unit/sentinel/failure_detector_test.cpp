#include "sentinel/failure_detector.h"

#include <string>

#include "unit/catch.h"
#include "unit/sentinel/world.h"

namespace latchkey::sentinel {
namespace {

using testing::FakeServer;
using testing::Node;
using testing::World;

constexpr int64_t kSecond = 1000;

TEST_CASE("A master that does not answer is down after its time, and up at its first answer",
          "[sentinel]") {
  World world(1);
  world.build(0, 1, 2);
  Node& node = *world.nodes()[0];
  world.run_for(3 * kSecond);
  CHECK_FALSE(node.master().has(kSdown));
  world.servers()[0]->frozen = true;
  world.run_for(4 * kSecond);
  CHECK_FALSE(node.master().has(kSdown));
  world.run_for(3 * kSecond);
  CHECK(node.master().has(kSdown));
  CHECK_FALSE(node.master().has(kOdown));
  world.servers()[0]->frozen = false;
  CHECK(world.run_until([&] { return !node.master().has(kSdown); }, 60 * kSecond));
}

TEST_CASE("A replica is asked for INFO each second while its link to the master is down",
          "[sentinel]") {
  World world(7);
  world.build(1, 1, 2);
  world.run_for(25 * kSecond);
  FakeServer& replica = *world.servers()[1];
  const auto asked_in = [&](int64_t ms) {
    const uint64_t before = replica.infos;
    world.run_for(ms);
    return replica.infos - before;
  };
  CHECK(asked_in(30 * kSecond) <= 4);
  world.servers()[0]->frozen = true;
  world.run_for(15 * kSecond);
  CHECK(asked_in(30 * kSecond) >= 20);
}

TEST_CASE("A replica that says it is a master is told to follow, while its master is in order",
          "[sentinel]") {
  World world(3);
  world.build(1, 1, 2);
  Node& node = *world.nodes()[0];
  world.run_for(25 * kSecond);
  FakeServer& replica = *world.servers()[1];
  const bool is_in_order = GENERATE(true, false);
  // Alone it cannot fail the master over.
  world.servers()[0]->frozen = !is_in_order;
  if (!is_in_order)
    REQUIRE(world.run_until([&] { return node.master().has(kSdown); }, 20 * kSecond));
  replica.master_ip.clear();
  // Newer news would have come within four hello messages.
  world.run_for(8 * kSecond);
  CHECK_FALSE(node.has_event("+convert-to-slave"));
  world.run_for(30 * kSecond);
  CHECK(node.has_event("+convert-to-slave") == is_in_order);
  CHECK(replica.is_master() == !is_in_order);
}

TEST_CASE("A replica of another server is told to follow its master after the failover-timeout",
          "[sentinel]") {
  World world(4);
  world.build(2, 1, 2);
  Node& node = *world.nodes()[0];
  world.run_for(25 * kSecond);
  node.master().failover_timeout_ms = 60 * kSecond;
  FakeServer& replica = *world.servers()[1];
  const std::string own_master = replica.master_ip;
  const std::string other = world.servers()[2]->ip;
  replica.master_ip = other;
  world.run_for(60 * kSecond);
  CHECK_FALSE(node.has_event("+fix-slave-config"));
  CHECK(replica.master_ip == other);
  world.run_for(30 * kSecond);
  CHECK(node.has_event("+fix-slave-config"));
  CHECK(replica.master_ip == own_master);
}

TEST_CASE("Errors in place of PONG count as silence, but for those of a server that is loading",
          "[sentinel]") {
  World world(2);
  world.build(0, 1, 2);
  Node& node = *world.nodes()[0];
  const bool is_fine = GENERATE(true, false);
  world.servers()[0]->ping_reply = is_fine ? "-LOADING Redis is loading" : "-MISCONF disk error";
  world.run_for(20 * kSecond);
  CHECK(node.master().has(kSdown) != is_fine);
}

TEST_CASE("A master that says it is a replica is down after a while", "[sentinel]") {
  World world(3);
  world.build(1, 1, 2);
  Node& node = *world.nodes()[0];
  world.run_for(3 * kSecond);
  world.servers()[0]->master_ip = "10.0.0.2";
  world.servers()[0]->master_port = 6379;
  world.run_for(20 * kSecond);
  CHECK_FALSE(node.master().has(kSdown));
  world.run_for(20 * kSecond);
  CHECK(node.master().has(kSdown));
}

TEST_CASE("A master that restarts may load for as long as it is given", "[sentinel]") {
  World world(4);
  world.build(0, 1, 2);
  Node& node = *world.nodes()[0];
  node.master().reboot_down_after_ms = 30 * kSecond;
  world.run_for(3 * kSecond);
  world.servers()[0]->run_id = std::string(40, 'e');
  world.servers()[0]->ping_reply = "-LOADING Redis is loading";
  REQUIRE(world.run_until([&] { return node.has_event("+reboot"); }, 20 * kSecond));
  world.run_for(25 * kSecond);
  CHECK_FALSE(node.master().has(kSdown));

  SECTION("and is down behind that") {
    world.run_for(10 * kSecond);
    CHECK(node.master().has(kSdown));
  }
  SECTION("and is fine when it has loaded before") {
    world.servers()[0]->ping_reply = "+PONG";
    world.run_for(30 * kSecond);
    CHECK_FALSE(node.master().has(kSdown));
  }
}

TEST_CASE("Garbage in place of INFO changes nothing that is known", "[sentinel]") {
  World world(5);
  world.build(2, 3, 2);
  world.run_for(15 * kSecond);
  const std::string garbage = GENERATE(
      std::string("role:slave"), std::string("role:slave\r\nmaster_port:99999999999999999999"),
      std::string("run_id:x\r\nrole:king\r\nslave0:ip=,port=-1"),
      std::string("slave0:ip=1.2.3.4,port=70000\r\nslave1:port=1"), std::string(5000, ':'));
  for (const auto& server : world.servers()) server->garbage = garbage;
  world.run_for(15 * kSecond);
  CHECK(world.servers()[0]->is_master());
  for (const auto& node : world.nodes()) {
    CHECK(node->master().replicas.size() == 2);
    CHECK_FALSE(node->has_event("+odown"));
    CHECK_FALSE(node->has_event("+try-failover"));
  }
}

TEST_CASE("Who wakes up late judges nobody for a while", "[sentinel]") {
  World world(6);
  world.build(0, 1, 1);
  Node& node = *world.nodes()[0];
  world.run_for(2 * kSecond);
  node.stop();
  world.run_for(10 * kSecond);
  // The process stood still, and goes on as if nothing had happened.
  node.up = true;
  world.servers()[0]->up = false;
  node.sentinel().tick();
  CHECK(node.sentinel().in_tilt());
  CHECK(node.has_event("+tilt"));
  CHECK_FALSE(node.master().has(kSdown));
  CHECK(node.sentinel().tilts() == 1);
  const auto pass = [&](int64_t ms) {
    for (; ms > 0; ms -= 100) {
      world.run_for(100);
      node.sentinel().tick();
    }
  };
  pass(29'900);
  CHECK(node.sentinel().in_tilt());
  CHECK_FALSE(node.has_event("-tilt"));
  CHECK_FALSE(node.master().has(kSdown));
  pass(100);
  CHECK_FALSE(node.sentinel().in_tilt());
  CHECK(node.has_event("-tilt"));
  pass(10 * kSecond);
  CHECK(node.master().has(kSdown));
  CHECK(node.sentinel().tilts() == 1);
}

TEST_CASE("A server that a script keeps busy is told once to end it", "[sentinel]") {
  World world(8);
  world.build(0, 1, 1);
  Node& node = *world.nodes()[0];
  world.run_for(2 * kSecond);
  const std::string busy = "-BUSY Redis is busy running a script.";
  world.servers()[0]->ping_reply = busy;
  world.run_for(3 * kSecond);
  CHECK_FALSE(node.master().has(kScriptKillSent));
  REQUIRE(world.run_until([&] { return node.master().has(kSdown); }, 20 * kSecond));
  world.run_for(2 * kSecond);
  CHECK(node.master().has(kScriptKillSent));
  world.servers()[0]->ping_reply = "+PONG";
  CHECK(world.run_until([&] { return !node.master().has(kSdown); }, 20 * kSecond));
  CHECK_FALSE(node.master().has(kScriptKillSent));
}

}  // namespace
}  // namespace latchkey::sentinel
