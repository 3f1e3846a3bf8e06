// Whom a master gives its vote.
#include "cluster/election.h"

#include "unit/catch.h"
#include "unit/cluster/several_nodes.h"

namespace latchkey::tests {

namespace {

// Three masters, and a replica of the third that asks the first for its vote.
struct Asking {
  Asking() : nodes(4) {
    nodes.make_cluster(3);
    nodes[3].run("CLUSTER REPLICATE " + nodes[2].id());
    constexpr int64_t kLongEnoughMs = 6000;
    nodes.pass(kLongEnoughMs);
    request = nodes[3].cluster->message(cluster::MessageType::kAskForVote);
    request.message_flags |= cluster::kVoteThoughUp;
    request.slots = nodes[2].cluster->message(cluster::MessageType::kPing).slots;
    request.config_epoch = master().config_epoch;
    request.current_epoch = ++voter().current_epoch;
  }

  cluster::NodeTable& voter() { return nodes[0].cluster->nodes(); }
  cluster::Node& master() { return *voter().find(nodes[2].id()); }
  // Whether the vote is given.
  bool ask() {
    const uint64_t before = voter().last_vote_epoch;
    nodes[0].cluster->election().asked(*voter().find(nodes[3].id()), request);
    CHECK((voter().last_vote_epoch == before || voter().last_vote_epoch == request.current_epoch));
    return voter().last_vote_epoch != before;
  }

  Nodes nodes;
  cluster::Message request;
};

}  // namespace

TEST_CASE("A replica of a master gets a vote, and one only in an epoch", "[cluster]") {
  Asking asking;
  CHECK(asking.ask());
  CHECK_FALSE(asking.ask());
}

TEST_CASE("A replica whose epoch is old gets no vote", "[cluster]") {
  Asking asking;
  --asking.request.current_epoch;
  CHECK_FALSE(asking.ask());
}

TEST_CASE("A replica that claims a slot of a newer owner gets no vote", "[cluster]") {
  Asking asking;
  SECTION("whose epoch is newer than its master's") {
    --asking.request.config_epoch;
    CHECK_FALSE(asking.ask());
  }
  SECTION("unless its own is newer") {
    ++asking.request.config_epoch;
    CHECK(asking.ask());
  }
  SECTION("if only one slot is") {
    asking.voter().assign(16383, *asking.voter().find(asking.nodes[1].id()));
    asking.voter().find(asking.nodes[1].id())->config_epoch = asking.request.config_epoch + 1;
    CHECK_FALSE(asking.ask());
  }
  SECTION("but one of nobody's") {
    asking.voter().unassign(16383);
    CHECK(asking.ask());
  }
}

TEST_CASE("A replica of a master that is up gets a vote only if the master helps", "[cluster]") {
  Asking asking;
  asking.request.message_flags = 0;
  CHECK_FALSE(asking.ask());
  asking.master().flags |= cluster::kFailing;
  CHECK(asking.ask());
}

TEST_CASE("For replicas of one master votes are given with time between them", "[cluster]") {
  Asking asking;
  asking.request.message_flags = 0;
  asking.master().flags |= cluster::kFailing;
  CHECK(asking.ask());
  asking.request.current_epoch = ++asking.voter().current_epoch;
  SECTION("two timeouts of the nodes, of 2000 ms") {
    asking.nodes[0].server.advance_ms(3999);
    CHECK_FALSE(asking.ask());
    asking.nodes[0].server.advance_ms(1);
    CHECK(asking.ask());
  }
  SECTION("but not to one that was asked to replace its master") {
    asking.request.message_flags = cluster::kVoteThoughUp;
    CHECK(asking.ask());
  }
}

TEST_CASE("A vote in a manual failover does not delay an automatic one", "[cluster]") {
  Asking asking;
  CHECK(asking.ask());
  asking.request.current_epoch = ++asking.voter().current_epoch;
  asking.request.message_flags = 0;
  asking.master().flags |= cluster::kFailing;
  CHECK(asking.ask());
}

TEST_CASE("A master gets no vote", "[cluster]") {
  Asking asking;
  const uint64_t before = asking.voter().last_vote_epoch;
  asking.nodes[0].cluster->election().asked(asking.master(), asking.request);
  CHECK(asking.voter().last_vote_epoch == before);
}

TEST_CASE("The best replica of Valkey 9.1 begins at once, and others wait", "[cluster]") {
  for (const bool valkey : {true, false}) {
    INFO(valkey);
    Nodes nodes(5, "cluster-replica-validity-factor 0\n" +
                       std::string(valkey ? "emulate \"valkey 9.1\"\n" : ""));
    nodes.make_cluster(3);
    nodes[3].run("CLUSTER REPLICATE " + nodes[2].id());
    nodes[4].run("CLUSTER REPLICATE " + nodes[2].id());
    constexpr int64_t kLongEnoughMs = 6000;
    nodes.pass(kLongEnoughMs);
    nodes.cut_off(2);
    const auto fails = [&](size_t index) {
      const cluster::Node* master = nodes[index].cluster->nodes().find(nodes[2].id());
      return master->has(cluster::kFailing);
    };
    constexpr int64_t kStepMs = 100;
    while (!fails(3) || !fails(4)) nodes.pass(kStepMs);
    constexpr int64_t kShortMs = 400;
    nodes.pass(kShortMs);
    const size_t best = nodes[3].id() < nodes[4].id() ? 3 : 4;
    const size_t other = best == 3 ? 4 : 3;
    CHECK(nodes[best].cluster->myself().is_master() == valkey);
    CHECK(nodes[other].cluster->myself().is_replica());
  }
}

}  // namespace latchkey::tests
