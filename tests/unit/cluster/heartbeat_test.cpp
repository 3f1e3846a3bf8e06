// When links are opened, dropped and given up, and when a node is suspected.
#include "cluster/heartbeat.h"

#include "unit/catch.h"
#include "unit/cluster/several_nodes.h"

namespace latchkey::tests {

namespace {

constexpr int64_t kTimeoutMs = 2000;

// Three masters, as the first sees the second.
struct Beating {
  Beating() : nodes(3) {
    nodes.make_cluster(3);
    seen().link->take_output();
  }
  cluster::Node& seen() { return *nodes[0].cluster->nodes().find(nodes[1].id()); }
  int64_t now_ms() { return nodes[0].server.server.machine_ms(); }
  void tick() { nodes[0].cluster->heartbeat().tick(); }
  // What was sent to the second since.
  bool has_sent() { return !seen().link->take_output().empty(); }

  Nodes nodes;
};

}  // namespace

TEST_CASE("A node is suspected when it is silent for longer than the timeout", "[cluster]") {
  Beating beating;
  beating.seen().ping_sent_ms = beating.now_ms() - kTimeoutMs;
  beating.seen().data_received_ms = 0;
  beating.tick();
  CHECK_FALSE(beating.seen().has(cluster::kSuspect));
  --beating.seen().ping_sent_ms;
  SECTION("whose ping had no answer") {
    beating.tick();
    CHECK(beating.seen().has(cluster::kSuspect));
  }
  SECTION("but not when other data came from it") {
    beating.seen().data_received_ms = beating.now_ms() - kTimeoutMs;
    beating.tick();
    CHECK_FALSE(beating.seen().has(cluster::kSuspect));
  }
  SECTION("but not when nothing was asked") {
    beating.seen().ping_sent_ms = 0;
    beating.tick();
    CHECK_FALSE(beating.seen().has(cluster::kSuspect));
  }
}

TEST_CASE("A node that has not been heard for half of the timeout is asked", "[cluster]") {
  Beating beating;
  beating.nodes[0].cluster->heartbeat().ping_at_random(false);
  beating.seen().ping_sent_ms = 0;
  beating.seen().pong_received_ms = beating.now_ms() - kTimeoutMs / 2;
  beating.tick();
  CHECK_FALSE(beating.has_sent());
  --beating.seen().pong_received_ms;
  beating.tick();
  CHECK(beating.has_sent());
  CHECK(beating.seen().ping_sent_ms == beating.now_ms());
  // Once, until it answers.
  beating.tick();
  CHECK_FALSE(beating.has_sent());
}

TEST_CASE("A node whose clock is set forward suspects nobody", "[cluster]") {
  Beating beating;
  beating.seen().ping_sent_ms = beating.now_ms();
  beating.nodes[0].server.step_ms(3'600'000);
  beating.tick();
  CHECK_FALSE(beating.seen().has(cluster::kSuspect));
}

TEST_CASE("A node whose clock is set back goes on pinging", "[cluster]") {
  Beating beating;
  beating.tick();
  beating.seen().link->take_output();
  beating.seen().ping_sent_ms = 0;
  beating.nodes[0].server.step_ms(-3'600'000);
  bool has_sent = false;
  for (int second = 0; second < 20 && !has_sent; ++second) {
    beating.nodes[0].server.advance_ms(1000);
    beating.tick();
    has_sent = beating.has_sent();
  }
  CHECK(has_sent);
}

TEST_CASE("A link that may be stuck is opened again", "[cluster]") {
  Beating beating;
  beating.nodes[0].cluster->heartbeat().ping_at_random(false);
  cluster::Node& node = beating.seen();
  // A link of that age, over which that long ago a ping went and something came.
  const auto stick = [&](int64_t age_ms, int64_t pinged_ms, int64_t received_ms) {
    if (node.link != nullptr) beating.nodes[0].cluster->bus().drop(*node.link);
    node.ping_sent_ms = 0;
    beating.tick();
    beating.nodes[0].server.advance_ms(age_ms);
    node.ping_sent_ms = pinged_ms == 0 ? 0 : beating.now_ms() - pinged_ms;
    node.data_received_ms = beating.now_ms() - received_ms;
    beating.tick();
    return node.link == nullptr;
  };
  constexpr int64_t kHalfMs = kTimeoutMs / 2;
  CHECK_FALSE(stick(kTimeoutMs, kHalfMs + 1, kHalfMs + 1));
  CHECK_FALSE(stick(kTimeoutMs + 1, kHalfMs, kHalfMs + 1));
  CHECK_FALSE(stick(kTimeoutMs + 1, kHalfMs + 1, kHalfMs));
  CHECK_FALSE(stick(kTimeoutMs + 1, 0, kHalfMs + 1));
  CHECK(stick(kTimeoutMs + 1, kHalfMs + 1, kHalfMs + 1));
}

TEST_CASE("A node that does not shake hands is given up after the timeout, or a second",
          "[cluster]") {
  for (const bool short_timeout : {false, true}) {
    INFO(short_timeout);
    Nodes nodes(1, short_timeout ? "cluster-node-timeout 500\n" : "");
    cluster::Cluster& cluster = *nodes[0].cluster;
    const int64_t limit_ms = short_timeout ? 1000 : kTimeoutMs;
    nodes[0].run("CLUSTER MEET 127.0.0.1 7999");
    REQUIRE(cluster.nodes().size() == 2);
    nodes[0].server.advance_ms(limit_ms);
    cluster.heartbeat().tick();
    CHECK(cluster.nodes().size() == 2);
    nodes[0].server.advance_ms(1);
    cluster.heartbeat().tick();
    CHECK(cluster.nodes().size() == 1);
  }
}

}  // namespace latchkey::tests
