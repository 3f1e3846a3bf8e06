// Whom a master gives its vote.
#include "cluster/election.h"

#include "replication/master_session.h"
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
    nodes[0].cluster->election().vote_requested(*voter().find(nodes[3].id()), request);
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

TEST_CASE("A replica that is refused for an old claim is told of the newer owner", "[cluster]") {
  Asking asking;
  cluster::Node& owner = *asking.voter().find(asking.nodes[2].id());
  owner.config_epoch += 7;
  CHECK_FALSE(asking.ask());
  asking.nodes.carry();
  CHECK(asking.nodes[3].cluster->nodes().find(asking.nodes[2].id())->config_epoch ==
        owner.config_epoch);
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
  asking.nodes[0].cluster->election().vote_requested(asking.master(), asking.request);
  CHECK(asking.voter().last_vote_epoch == before);
}

namespace {

// Three masters, and two replicas of the third, of which the first to stand is to be seen.
struct Standing {
  explicit Standing(std::string_view settings = {}) : nodes(5, settings) {
    nodes.make_cluster(3);
    for (const size_t replica : {3, 4}) {
      nodes[replica].run("CLUSTER REPLICATE " + nodes[2].id());
      nodes.synchronize(replica);
    }
    constexpr int64_t kLongEnoughMs = 3000;
    nodes.pass(kLongEnoughMs);
  }
  cluster::Election& election() { return nodes[3].cluster->election(); }
  cluster::Node& node(size_t index) { return *nodes[3].cluster->nodes().find(nodes[index].id()); }
  void tick_after(int64_t ms) {
    nodes[3].server.advance_ms(ms);
    election().tick();
  }
  // Ticks until votes are asked for, or that long; how long it took.
  int64_t ask_within(int64_t most_ms) {
    int64_t passed_ms = 0;
    for (; passed_ms <= most_ms && !election().in_progress(); ++passed_ms) tick_after(1);
    return passed_ms;
  }

  Nodes nodes;
};

constexpr std::string_view kAnyData = "cluster-replica-validity-factor 0\n";
constexpr int64_t kLongMs = 20000;

}  // namespace

TEST_CASE(
    "A replica stands half a second to a second after its master failed, and later behind others",
    "[cluster]") {
  Standing standing(kAnyData);
  standing.node(2).set(cluster::kFailing);
  const bool first = standing.nodes[3].id() < standing.nodes[4].id();
  SECTION("by rank") {
    const int64_t begins_ms = standing.ask_within(kLongMs);
    const int64_t behind_ms = first ? 0 : 1000;
    CHECK(begins_ms > 500 + behind_ms);
    CHECK(begins_ms <= 1001 + behind_ms);
  }
  SECTION("a replica that is further comes first") {
    standing.node(4).offset = standing.nodes[3].cluster->offset() + 1;
    const int64_t begins_ms = standing.ask_within(kLongMs);
    CHECK(begins_ms > 1500);
    CHECK(begins_ms <= 2001);
  }
  SECTION("but not one that does not stand") {
    standing.node(4).offset = standing.nodes[3].cluster->offset() + 1;
    standing.node(4).set(cluster::kNoFailover);
    CHECK(standing.ask_within(kLongMs) <= 1001);
  }
  SECTION("and one that comes to be further meanwhile has it wait again") {
    standing.node(4).offset = 0;
    standing.node(4).set(cluster::kNoFailover);
    standing.tick_after(1);
    standing.node(4).set(cluster::kNoFailover, false);
    standing.node(4).offset = standing.nodes[3].cluster->offset() + 1;
    const int64_t begins_ms = standing.ask_within(kLongMs);
    CHECK(begins_ms >= 1500);
    CHECK(begins_ms <= 2001);
  }
}

TEST_CASE("Replicas of masters that failed together stand one after the other", "[cluster]") {
  Standing standing(kAnyData);
  standing.node(4).set(cluster::kNoFailover);
  standing.node(2).set(cluster::kFailing);
  standing.node(1).set(cluster::kFailing);
  const bool behind = standing.node(1).shard_id < standing.node(2).shard_id;
  const int64_t begins_ms = standing.ask_within(kLongMs);
  CHECK(begins_ms > (behind ? 1000 : 500));
  CHECK(begins_ms <= (behind ? 1501 : 1001));
}

TEST_CASE("Only a replica of a failing master with slots stands", "[cluster]") {
  Standing standing(kAnyData);
  SECTION("its master is up") {
    CHECK(standing.ask_within(kLongMs) > kLongMs);
  }
  SECTION("its master has no slots") {
    standing.node(2).set(cluster::kFailing);
    for (int slot = 10922; slot <= 16383; ++slot) standing.nodes[3].cluster->nodes().unassign(slot);
    CHECK(standing.ask_within(kLongMs) > kLongMs);
  }
  SECTION("it shall not") {
    standing.node(2).set(cluster::kFailing);
    standing.node(3).set(cluster::kNoFailover);
    CHECK(standing.ask_within(kLongMs) > kLongMs);
  }
}

TEST_CASE("Only a replica that has a dataset stands", "[cluster]") {
  Standing standing(kAnyData);
  ClusterNode& replica = standing.nodes[3];
  server::Client& master = replica.replica_role().session()->client();
  bool stands = true;
  SECTION("its link may be lost") {
    master.close();
  }
  SECTION("and its place in the stream, too") {
    leave(replica.server.server, "a");
    std::string nonsense = "*x\r\n";
    master.on_input(nonsense);
    REQUIRE_FALSE(replica.replica_role().knows_place());
  }
  SECTION("but nothing is left of a dataset that could not be loaded") {
    std::string nonsense = "*x\r\n";
    master.on_input(nonsense);
    REQUIRE_FALSE(replica.replica_role().knows_place());
    stands = false;
  }
  SECTION("one that has come from another shard has that one's, until it is synchronised") {
    replica.run("CLUSTER REPLICATE " + standing.nodes[1].id());
    replica.run("CLUSTER REPLICATE " + standing.nodes[2].id());
    standing.nodes.pass(1000);
    stands = false;
  }
  SECTION("and one that was started with nothing has nothing") {
    REQUIRE(replica.cluster->claim_loaded_slots());
    stands = false;
  }
  standing.node(2).set(cluster::kFailing);
  CHECK((standing.ask_within(kLongMs) <= kLongMs) == stands);
  // Who is asked to take over does so in any case.
  if (stands) return;
  CHECK(replica.run("CLUSTER FAILOVER FORCE") == kOk);
  standing.tick_after(1);
  CHECK(standing.election().in_progress());
}

TEST_CASE("An election that is not won expires, and is begun again", "[cluster]") {
  Standing standing(kAnyData);
  standing.node(4).set(cluster::kNoFailover);
  standing.node(2).set(cluster::kFailing);
  standing.ask_within(kLongMs);
  REQUIRE(standing.election().in_progress());
  const uint64_t epoch = standing.election().epoch();
  // Twice the timeout of the nodes, of 2000 ms, from when it began.
  standing.tick_after(3990);
  CHECK(standing.election().in_progress());
  standing.tick_after(20);
  CHECK_FALSE(standing.election().in_progress());
  // Not before as much time has passed again.
  standing.tick_after(3900);
  CHECK(standing.ask_within(50) > 50);
  CHECK(standing.ask_within(kLongMs) <= 1200);
  CHECK(standing.election().epoch() == epoch + 1);
}

TEST_CASE("An election lasts two seconds at least", "[cluster]") {
  Standing standing(kAnyData);
  standing.node(4).set(cluster::kNoFailover);
  standing.node(2).set(cluster::kFailing);
  REQUIRE(standing.nodes[3].run("CONFIG SET cluster-node-timeout 100") == kOk);
  standing.ask_within(kLongMs);
  REQUIRE(standing.election().in_progress());
  standing.tick_after(2000);
  CHECK(standing.election().in_progress());
  standing.tick_after(1);
  CHECK_FALSE(standing.election().in_progress());
}

TEST_CASE("A replica wins with the votes of most masters", "[cluster]") {
  Standing standing(kAnyData);
  standing.node(4).set(cluster::kNoFailover);
  standing.node(2).set(cluster::kFailing);
  cluster::Message vote = standing.nodes[0].cluster->message(cluster::MessageType::kVote);
  vote.current_epoch = 100;
  // Before it asked nobody can have voted.
  standing.election().vote_received(standing.node(0), vote);
  standing.ask_within(kLongMs);
  standing.election().vote_received(standing.node(0), vote);
  standing.tick_after(1);
  CHECK(standing.node(3).is_replica());
  SECTION("a vote of an older epoch is none") {
    vote.current_epoch = standing.election().epoch() - 1;
    standing.election().vote_received(standing.node(1), vote);
    standing.tick_after(1);
    CHECK(standing.node(3).is_replica());
  }
  SECTION("nor is that of a replica") {
    standing.election().vote_received(standing.node(4), vote);
    standing.tick_after(1);
    CHECK(standing.node(3).is_replica());
  }
  SECTION("two of three") {
    const uint64_t epoch = standing.election().epoch();
    vote.current_epoch = epoch;
    standing.election().vote_received(standing.node(1), vote);
    standing.tick_after(1);
    CHECK(standing.node(3).is_master());
    CHECK(standing.node(3).config_epoch == epoch);
    CHECK(standing.node(3).slots.size() == 5462);
    CHECK(standing.node(2).slots.empty());
  }
}

TEST_CASE("The best replica of Valkey 9.1 begins at once, and others wait", "[cluster]") {
  for (const bool valkey : {true, false}) {
    INFO(valkey);
    Nodes nodes(5, "cluster-replica-validity-factor 0\n" +
                       std::string(valkey ? "emulate \"valkey 9.1\"\n" : ""));
    nodes.make_cluster(3);
    for (const size_t replica : {3, 4}) {
      nodes[replica].run("CLUSTER REPLICATE " + nodes[2].id());
      nodes.synchronize(replica);
    }
    constexpr int64_t kLongEnoughMs = 6000;
    nodes.pass(kLongEnoughMs);
    nodes.cut_off(2);
    const auto fails = [&](size_t index) {
      const cluster::Node* master = nodes[index].cluster->nodes().find(nodes[2].id());
      return master->has(cluster::kFailing);
    };
    const size_t best = nodes[3].id() < nodes[4].id() ? 3 : 4;
    const size_t other = best == 3 ? 4 : 3;
    constexpr int64_t kStepMs = 100;
    while (!fails(best)) nodes.pass(kStepMs);
    // With the step, less than the half second that others wait at least.
    constexpr int64_t kShortMs = 300;
    nodes.pass(kShortMs);
    CHECK(nodes[best].cluster->myself().is_master() == valkey);
    CHECK(nodes[other].cluster->myself().is_replica());
  }
}

}  // namespace latchkey::tests
