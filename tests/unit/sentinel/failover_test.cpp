#include "sentinel/failover.h"

#include <set>
#include <string>

#include "sentinel/hello.h"
#include "unit/catch.h"
#include "unit/sentinel/world.h"

namespace latchkey::sentinel {
namespace {

using testing::FakeServer;
using testing::Node;
using testing::World;

constexpr int64_t kSecond = 1000;

// Waits until all know all.
void discover(World& world) {
  const size_t replicas = world.servers().size() - 1;
  const size_t others = world.nodes().size() - 1;
  REQUIRE(world.run_until(
      [&] {
        for (const auto& node : world.nodes()) {
          if (node->master().replicas.size() != replicas) return false;
          if (node->master().sentinels.size() != others) return false;
          for (const auto& [name, replica] : node->master().replicas) {
            if (replica->info_received_ms == 0) return false;
          }
        }
        return true;
      },
      60 * kSecond));
}

TEST_CASE("Sentinels find replicas and each other by INFO and hello messages", "[sentinel]") {
  World world(1);
  world.build(2, 3, 2);
  discover(world);
  CHECK(world.nodes()[0]->has_event("+slave"));
  CHECK(world.nodes()[0]->has_event("+sentinel"));
  CHECK(world.is_stable());
}

TEST_CASE("A master that dies is replaced by its replica with the most data", "[sentinel]") {
  World world(2);
  world.build(2, 3, 2);
  discover(world);
  world.cut({"10.0.0.2"});
  world.run_for(3 * kSecond);
  world.heal();
  world.servers()[0]->up = false;
  REQUIRE(world.server_at("10.0.0.2")->offset < world.server_at("10.0.0.3")->offset);
  REQUIRE(world.run_until([&] { return world.is_stable(); }, 60 * kSecond));
  CHECK(world.agreed_master()->ip == "10.0.0.3");
  for (const auto& node : world.nodes()) {
    CHECK(node->has_event("+sdown"));
    CHECK(node->has_event("+switch-master"));
  }

  SECTION("the old master becomes a replica when it comes back") {
    world.servers()[0]->up = true;
    REQUIRE(
        world.run_until([&] { return world.servers()[0]->master_ip == "10.0.0.3"; }, 60 * kSecond));
    CHECK(world.run_until([&] { return world.is_stable(); }, 60 * kSecond));
  }
}

TEST_CASE("Instances whose names are gone keep their addresses, and are replicas when they return",
          "[sentinel]") {
  World world(24);
  world.build(2, 1, 1);
  for (const auto& server : world.servers()) {
    server->name = "host-" + server->ip;
    world.names[server->name] = server->ip;
  }
  Node& node = *world.nodes()[0];
  node.sentinel().settings().resolve_hostnames = true;
  node.master().address = node.sentinel().make_address("host-10.0.0.1", 6379);
  discover(world);
  FakeServer& old = *world.server_at("10.0.0.1");
  FakeServer& other = *world.server_at("10.0.0.3");
  for (FakeServer* const server : {&old, &other}) {
    server->up = false;
    world.names.erase(server->name);
  }
  bool forgotten = false;
  REQUIRE(world.run_until(
      [&] {
        forgotten = forgotten || node.master().address.ip.empty();
        return world.is_stable();
      },
      120 * kSecond));
  CHECK_FALSE(forgotten);
  CHECK(world.agreed_master()->ip == "10.0.0.2");
  CHECK(node.master().replicas.size() == 2);

  old.up = other.up = true;
  CHECK(world.run_until(
      [&] { return old.master_ip == "10.0.0.2" && other.master_ip == "10.0.0.2"; }, 120 * kSecond));
}

TEST_CASE("A Sentinel whose name is gone is heard all the same", "[sentinel]") {
  World world(25);
  world.build(0, 1, 1);
  Node& node = *world.nodes()[0];
  node.sentinel().settings().resolve_hostnames = true;
  world.names["peer.test"] = "10.0.1.9";
  Hello hello{.ip = "peer.test",
              .port = 26379,
              .id = std::string(40, 'c'),
              .current_epoch = 1,
              .master_name = "mymaster",
              .master_host = "10.0.0.1",
              .master_port = 6379,
              .master_config_epoch = 0};
  node.sentinel().discovery().process_hello(format_hello(hello));
  REQUIRE(node.master().sentinels.size() == 1);
  world.names.clear();
  hello.current_epoch = 7;
  node.sentinel().discovery().process_hello(format_hello(hello));
  CHECK(node.sentinel().current_epoch() == 7);
  CHECK(node.master().sentinels.at(hello.id)->address.ip == "10.0.1.9");
}

TEST_CASE("Priority 0 is never promoted, and a lesser priority is preferred", "[sentinel]") {
  World world(3);
  world.build(3, 3, 2);
  world.server_at("10.0.0.2")->priority = 0;
  world.server_at("10.0.0.4")->priority = 10;
  discover(world);
  world.servers()[0]->up = false;
  REQUIRE(world.run_until([&] { return world.is_stable(); }, 60 * kSecond));
  CHECK(world.agreed_master()->ip == "10.0.0.4");
}

TEST_CASE("Without a replica that is fit the failover is given up", "[sentinel]") {
  World world(4);
  world.build(1, 3, 2);
  world.server_at("10.0.0.2")->priority = 0;
  discover(world);
  world.servers()[0]->up = false;
  REQUIRE(world.run_until(
      [&] {
        return std::any_of(world.nodes().begin(), world.nodes().end(), [](const auto& node) {
          return node->has_event("-failover-abort-no-good-slave");
        });
      },
      60 * kSecond));
  CHECK_FALSE(world.server_at("10.0.0.2")->is_master());
}

TEST_CASE("A minority finds the master down, and does not fail it over", "[sentinel]") {
  World world(5);
  world.build(2, 5, 2);
  discover(world);
  // Two Sentinels and a replica are on one side: enough for the quorum, not for the majority.
  world.cut({"10.0.1.1", "10.0.1.2", "10.0.0.2"});
  world.run_for(120 * kSecond);
  CHECK(world.nodes()[0]->has_event("+odown"));
  // One of the two has the other's vote, and no more.
  CHECK((world.nodes()[0]->has_event("-failover-abort-not-elected") ||
         world.nodes()[1]->has_event("-failover-abort-not-elected")));
  CHECK_FALSE(world.server_at("10.0.0.2")->is_master());
  CHECK(world.servers()[0]->is_master());
  world.heal();
  REQUIRE(world.run_until([&] { return world.is_stable(); }, 120 * kSecond));
  CHECK(world.agreed_master()->ip == "10.0.0.1");
}

TEST_CASE("Fewer than the quorum do not find the master down together", "[sentinel]") {
  World world(6);
  world.build(1, 3, 3);
  discover(world);
  world.nodes()[2]->stop();
  world.servers()[0]->up = false;
  world.run_for(120 * kSecond);
  CHECK(world.nodes()[0]->master().has(kSdown));
  CHECK_FALSE(world.nodes()[0]->has_event("+odown"));
  CHECK_FALSE(world.server_at("10.0.0.2")->is_master());
}

TEST_CASE("A master that was cut off is told to follow the one the majority has made",
          "[sentinel]") {
  World world(7);
  world.build(2, 3, 2);
  discover(world);
  world.cut({"10.0.0.1"});
  REQUIRE(world.run_until([&] { return world.agreed_master() != world.servers()[0].get(); },
                          60 * kSecond));
  CHECK(world.servers()[0]->is_master());
  world.heal();
  REQUIRE(world.run_until([&] { return world.is_stable(); }, 60 * kSecond));
  CHECK_FALSE(world.servers()[0]->is_master());
}

TEST_CASE("A Sentinel that was down takes over the newer configuration", "[sentinel]") {
  World world(8);
  world.build(2, 3, 2);
  discover(world);
  world.nodes()[1]->stop();
  world.servers()[0]->up = false;
  REQUIRE(world.run_until([&] { return world.is_stable(); }, 60 * kSecond));
  world.nodes()[1]->restart();
  CHECK(world.nodes()[1]->master().address.ip == "10.0.0.1");
  REQUIRE(world.run_until([&] { return world.is_stable(); }, 60 * kSecond));
  CHECK(world.nodes()[1]->has_event("+config-update-from"));
}

TEST_CASE("A failover on request needs no agreement", "[sentinel]") {
  World world(9);
  world.build(2, 3, 2);
  discover(world);
  Node& node = *world.nodes()[0];
  REQUIRE(node.sentinel().failover().choose_replica(node.master()) != nullptr);
  node.sentinel().failover().force(node.master());
  REQUIRE(world.run_until(
      [&] { return world.is_stable() && world.agreed_master() != world.servers()[0].get(); },
      60 * kSecond));
  CHECK(node.has_event("+failover-end"));
  CHECK_FALSE(node.has_event("+odown"));
}

TEST_CASE("A coordinated failover has the master hand over once a majority agrees", "[sentinel]") {
  World world(20);
  world.build(2, 3, 2);
  discover(world);
  Node& node = *world.nodes()[0];
  FakeServer& old = *world.servers()[0];
  REQUIRE(node.master().knows_failover);
  node.sentinel().failover().coordinate(node.master());
  CHECK(node.master().has(kCoordinated));
  REQUIRE(world.run_until([&] { return old.pauses_writes; }, 60 * kSecond));
  REQUIRE(world.run_until([&] { return world.is_stable() && world.agreed_master() != &old; },
                          60 * kSecond));
  CHECK(node.has_event("+elected-leader"));
  CHECK(node.has_event("+failover-end"));
  CHECK_FALSE(node.has_event("+sdown"));
  CHECK_FALSE(node.master().has(kCoordinated));
  for (const auto& server : world.servers()) CHECK_FALSE(server->pauses_writes);
}

TEST_CASE("A coordinated failover needs votes of others", "[sentinel]") {
  World world(21);
  world.build(2, 3, 2);
  discover(world);
  Node& node = *world.nodes()[0];
  world.nodes()[1]->stop();
  world.nodes()[2]->stop();
  node.sentinel().failover().coordinate(node.master());
  REQUIRE(
      world.run_until([&] { return node.has_event("-failover-abort-not-elected"); }, 60 * kSecond));
  CHECK_FALSE(node.master().has(kFailover | kCoordinated));
  CHECK(world.servers()[0]->is_master());
  CHECK_FALSE(world.servers()[0]->pauses_writes);
}

TEST_CASE("Writes go on when a master does not hand over", "[sentinel]") {
  const bool refuses = GENERATE(true, false);
  const std::string event =
      refuses ? "-failover-abort-master-refused" : "-failover-abort-slave-timeout";
  World world(22);
  // Others would find it down, for their hello messages wait.
  world.build(2, 1, 1);
  discover(world);
  Node& node = *world.nodes()[0];
  FakeServer& old = *world.servers()[0];
  old.hands_over = refuses ? FakeServer::HandsOver::kRefuses : FakeServer::HandsOver::kWaits;
  node.sentinel().failover().coordinate(node.master());
  REQUIRE(world.run_until([&] { return old.pauses_writes; }, 60 * kSecond));
  REQUIRE(world.run_until([&] { return node.has_event(event); }, 60 * kSecond));
  REQUIRE(world.run_until([&] { return !old.pauses_writes && world.is_stable(); }, 60 * kSecond));
  CHECK(world.agreed_master() == &old);
}

TEST_CASE("A master that dies instead of handing over is replaced", "[sentinel]") {
  World world(23);
  world.build(2, 3, 2);
  discover(world);
  Node& node = *world.nodes()[0];
  FakeServer& old = *world.servers()[0];
  old.hands_over = FakeServer::HandsOver::kWaits;
  node.master().failover_timeout_ms = 60 * kSecond;
  node.sentinel().failover().coordinate(node.master());
  REQUIRE(world.run_until([&] { return old.pauses_writes; }, 60 * kSecond));
  old.up = false;
  REQUIRE(world.run_until([&] { return world.is_stable(); }, 60 * kSecond));
  CHECK(world.agreed_master() != &old);
  CHECK(node.has_event("+odown"));
}

TEST_CASE("A failover that a later one has overtaken is not finished", "[sentinel]") {
  World world(15);
  world.build(2, 3, 2);
  discover(world);
  Node& node = *world.nodes()[0];
  Master& master = node.master();
  node.sentinel().failover().force(master);
  REQUIRE(world.run_until([&] { return master.failover_state == FailoverState::kReconfReplicas; },
                          60 * kSecond));
  REQUIRE(Sentinel::current_address(master).ip != "10.0.0.1");
  // Meanwhile others have given the old address back to the master, in a later epoch.
  const uint64_t epoch = master.failover_epoch + 1;
  const PeerSentinel& other = *master.sentinels.begin()->second;
  node.sentinel().discovery().process_hello(format_hello({.ip = other.address.ip,
                                                          .port = other.address.port,
                                                          .id = other.name,
                                                          .current_epoch = epoch,
                                                          .master_name = "mymaster",
                                                          .master_host = "10.0.0.1",
                                                          .master_port = 6379,
                                                          .master_config_epoch = epoch}));
  CHECK_FALSE(master.has(kFailover));
  CHECK(master.config_epoch == epoch);
  CHECK(Sentinel::current_address(master).ip == "10.0.0.1");
  CHECK(node.events().back().first == "+slave");
  CHECK(node.has_event("+config-update-from"));
}

TEST_CASE("Replicas are reconfigured as many at a time as parallel-syncs says", "[sentinel]") {
  World world(10);
  world.build(4, 1, 1);
  discover(world);
  Node& node = *world.nodes()[0];
  node.master().parallel_syncs = 1;
  node.sentinel().failover().force(node.master());
  bool too_many = false;
  REQUIRE(world.run_until(
      [&] {
        int busy = 0;
        for (const auto& [name, replica] : node.master().replicas)
          busy += replica->has(kReconfSent | kReconfInProgress) ? 1 : 0;
        too_many = too_many || busy > 1;
        return node.has_event("+failover-end");
      },
      120 * kSecond));
  CHECK_FALSE(too_many);
}

TEST_CASE("The next failover waits for twice the failover-timeout", "[sentinel]") {
  World world(11);
  world.build(1, 3, 2);
  world.server_at("10.0.0.2")->priority = 0;
  discover(world);
  world.servers()[0]->up = false;
  const auto attempts = [&] {
    size_t count = 0;
    for (const auto& node : world.nodes()) {
      for (const auto& [type, message] : node->events()) count += type == "+try-failover" ? 1 : 0;
    }
    return count;
  };
  REQUIRE(world.run_until([&] { return attempts() > 0; }, 60 * kSecond));
  world.run_for(30 * kSecond);
  const size_t before = attempts();
  CHECK(before <= 3);
  CHECK(world.run_until([&] { return attempts() > before; }, 60 * kSecond));
}

TEST_CASE("A vote that cannot be written is not given", "[sentinel]") {
  World world(12);
  world.build(1, 1, 1);
  Node& node = *world.nodes()[0];
  Master& master = node.master();
  const std::string other(40, 'c');
  node.file_is_writable = false;
  node.sentinel().election().vote(master, 5, other);
  CHECK(master.leader.empty());
  CHECK(master.leader_epoch == 0);
  node.file_is_writable = true;
  node.sentinel().election().vote(master, 5, other);
  CHECK(master.leader == other);

  SECTION("and a vote is given once in an epoch, also after a restart") {
    node.restart();
    const std::string third(40, 'd');
    node.sentinel().election().vote(node.master(), 5, third);
    CHECK(node.master().leader != third);
    CHECK(node.master().leader_epoch == 5);
    node.sentinel().election().vote(node.master(), 6, third);
    CHECK(node.master().leader == third);
  }
}

TEST_CASE("Sentinels whose files cannot be written promote nobody", "[sentinel]") {
  World world(13);
  world.build(2, 3, 2);
  discover(world);
  for (const auto& node : world.nodes()) node->file_is_writable = false;
  world.servers()[0]->up = false;
  world.run_for(60 * kSecond);
  CHECK(world.elected.empty());
  CHECK_FALSE(world.server_at("10.0.0.2")->is_master());
  CHECK_FALSE(world.server_at("10.0.0.3")->is_master());
}

TEST_CASE("A script is told of the switch, by the leader and by the observers", "[sentinel]") {
  World world(14);
  world.build(1, 3, 2);
  for (const auto& node : world.nodes()) node->master().reconfig_script = "/bin/reconfigure";
  discover(world);
  world.servers()[0]->up = false;
  REQUIRE(world.run_until([&] { return world.is_stable(); }, 60 * kSecond));
  int leaders = 0;
  for (const auto& node : world.nodes()) {
    REQUIRE(node->scripts.size() == 1);
    const auto& words = node->scripts[0];
    leaders += words[2] == "leader" ? 1 : 0;
    CHECK(words == std::vector<std::string>{"/bin/reconfigure", "mymaster", words[2], "start",
                                            "10.0.0.1", "6379", "10.0.0.2", "6379"});
  }
  CHECK(leaders == 1);
}

// What a seed chooses happens to the servers, the Sentinels and the network. Nobody must be elected
// beside another in one epoch; when all is well again, all must agree.
TEST_CASE("In one epoch one Sentinel is elected at most, whatever breaks", "[sentinel]") {
  const uint64_t seed = GENERATE(range(uint64_t{100}, uint64_t{160}), value(uint64_t{1803}));
  CAPTURE(seed);
  World world(seed);
  world.build(2, 5, 3, /*down_after_ms=*/2000);
  for (const auto& node : world.nodes()) node->master().failover_timeout_ms = 5000;
  // Who is never heard of by a master that is watched stays unknown.
  discover(world);
  world.longest_delay_ms = 200;
  base::Random dice(seed);
  for (int round = 0; round < 12; ++round) {
    world.breaks = 0.02 * dice.unit();
    std::set<std::string> group;
    for (const auto& node : world.nodes()) {
      if (dice.below(3) == 0) group.insert(node->ip);
      if (node->up && dice.below(8) == 0) {
        node->stop();
      } else if (!node->up && dice.below(2) == 0) {
        node->restart();
      }
      node->file_is_writable = dice.below(10) != 0;
    }
    for (const auto& server : world.servers()) {
      if (dice.below(4) == 0) group.insert(server->ip);
      server->up = dice.below(4) != 0;
      server->frozen = dice.below(8) == 0;
    }
    if (dice.below(3) != 0) world.cut(group);
    world.run_for(static_cast<int64_t>(1000 + dice.below(15'000)));
    if (dice.below(2) == 0) world.heal();
  }
  for (const auto& [epoch, who] : world.elected) CHECK(who.size() == 1);

  world.heal();
  world.breaks = 0;
  for (const auto& server : world.servers()) {
    server->up = true;
    server->frozen = false;
  }
  for (const auto& node : world.nodes()) {
    node->file_is_writable = true;
    if (!node->up) node->restart();
  }
  const bool settled = world.run_until([&] { return world.is_stable(); }, 300 * kSecond);
  INFO(world.description());
  CHECK(settled);
  for (const auto& [epoch, who] : world.elected) CHECK(who.size() == 1);
}

TEST_CASE("A replica that does not follow the new master in ten seconds is taken for done",
          "[sentinel]") {
  World world(21);
  world.build(2, 1, 1, 60 * kSecond);
  world.server_at("10.0.0.2")->priority = 10;
  discover(world);
  Node& node = *world.nodes()[0];
  // While as many are busy as parallel-syncs says, nobody is looked at.
  node.master().parallel_syncs = 2;
  node.sentinel().failover().force(node.master());
  REQUIRE(world.run_until([&] { return node.has_event("+selected-slave"); }, 60 * kSecond));
  world.server_at("10.0.0.3")->frozen = true;
  REQUIRE(world.run_until([&] { return node.has_event("+slave-reconf-sent"); }, 60 * kSecond));
  world.run_for(9 * kSecond);
  CHECK_FALSE(node.has_event("-slave-reconf-sent-timeout"));
  CHECK_FALSE(node.has_event("+failover-end"));
  world.run_for(2 * kSecond);
  CHECK(node.has_event("-slave-reconf-sent-timeout"));
  CHECK(node.has_event("+failover-end"));
  CHECK_FALSE(node.has_event("+failover-end-for-timeout"));
  CHECK(node.has_event("+switch-master"));
}

TEST_CASE("A failover ends when its time is over, and tells all replicas that are left",
          "[sentinel]") {
  World world(22);
  world.build(3, 1, 1, 600 * kSecond);
  world.server_at("10.0.0.2")->priority = 10;
  discover(world);
  Node& node = *world.nodes()[0];
  node.master().parallel_syncs = 1;
  node.master().failover_timeout_ms = 60 * kSecond;
  node.sentinel().failover().force(node.master());
  // The first replica that is told follows the new master, and does not reach it.
  REQUIRE(world.run_until([&] { return node.has_event("+promoted-slave"); }, 60 * kSecond));
  world.cut({"10.0.0.2"});
  world.run_for(50 * kSecond);
  CHECK(node.has_event("+slave-reconf-sent"));
  CHECK_FALSE(node.has_event("+failover-end"));
  REQUIRE(
      world.run_until([&] { return node.has_event("+failover-end-for-timeout"); }, 90 * kSecond));
  CHECK(node.has_event("+slave-reconf-sent-be"));
  CHECK(node.has_event("+failover-end"));
  CHECK(node.has_event("+switch-master"));
}

}  // namespace
}  // namespace latchkey::sentinel
