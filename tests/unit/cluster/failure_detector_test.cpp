// When a node is held to be failing, and when it is forgiven.
#include "cluster/failure_detector.h"

#include "unit/catch.h"
#include "unit/cluster/several_nodes.h"

namespace latchkey::tests {

namespace {

constexpr int64_t kTimeoutMs = 2000;

// Five masters and a replica of the fourth, as the first sees them.
struct Watching {
  Watching() : nodes(6) {
    nodes.make_cluster(5);
    nodes[5].run("CLUSTER REPLICATE " + nodes[3].id());
    constexpr int64_t kLongEnoughMs = 3000;
    nodes.pass(kLongEnoughMs);
  }
  cluster::FailureDetector& detector() { return nodes[0].cluster->detector(); }
  cluster::Node& node(size_t index) { return *nodes[0].cluster->nodes().find(nodes[index].id()); }
  int64_t now_ms() { return nodes[0].server.server.machine_ms(); }
  void report(size_t of, size_t by, int64_t at_ms) {
    cluster::NodeTable::add_report(node(of), node(by), at_ms);
  }

  Nodes nodes;
};

}  // namespace

TEST_CASE("A suspect fails when most masters say so, this one among them", "[cluster]") {
  Watching watching;
  cluster::Node& suspect = watching.node(1);
  suspect.set(cluster::kSuspect);
  watching.report(1, 2, watching.now_ms());
  watching.detector().mark_failing_at_quorum(suspect);
  CHECK_FALSE(suspect.has(cluster::kFailing));
  watching.report(1, 3, watching.now_ms());
  SECTION("three of five are enough") {
    watching.detector().mark_failing_at_quorum(suspect);
    CHECK(suspect.has(cluster::kFailing));
    CHECK_FALSE(suspect.has(cluster::kSuspect));
    CHECK(suspect.failing_since_ms == watching.now_ms());
  }
  SECTION("only of a node that is suspected") {
    suspect.set(cluster::kSuspect, false);
    watching.detector().mark_failing_at_quorum(suspect);
    CHECK_FALSE(suspect.has(cluster::kFailing));
  }
  SECTION("and only once") {
    watching.detector().mark_failing_at_quorum(suspect);
    suspect.set(cluster::kSuspect);
    suspect.failing_since_ms = 1;
    watching.detector().mark_failing_at_quorum(suspect);
    CHECK(suspect.failing_since_ms == 1);
  }
}

TEST_CASE("A node without a vote needs the reports of most masters", "[cluster]") {
  Watching watching;
  cluster::NodeTable& seen = watching.nodes[5].cluster->nodes();
  cluster::Node& suspect = *seen.find(watching.nodes[1].id());
  suspect.set(cluster::kSuspect);
  for (const size_t by : {0, 2}) {
    cluster::NodeTable::add_report(suspect, *seen.find(watching.nodes[by].id()), watching.now_ms());
  }
  watching.nodes[5].cluster->detector().mark_failing_at_quorum(suspect);
  CHECK_FALSE(suspect.has(cluster::kFailing));
  cluster::NodeTable::add_report(suspect, *seen.find(watching.nodes[4].id()), watching.now_ms());
  watching.nodes[5].cluster->detector().mark_failing_at_quorum(suspect);
  CHECK(suspect.has(cluster::kFailing));
}

TEST_CASE("Masters tell the others that a node fails, in Valkey 9.1 its replicas as well",
          "[cluster]") {
  const bool valkey = GENERATE(false, true);
  // Five masters, and replicas of the fourth and the fifth.
  Nodes nodes(7, valkey ? "emulate \"valkey 9.1\"\n" : "");
  nodes.make_cluster(5);
  nodes[5].run("CLUSTER REPLICATE " + nodes[3].id());
  nodes[6].run("CLUSTER REPLICATE " + nodes[4].id());
  constexpr int64_t kLongEnoughMs = 3000;
  nodes.pass(kLongEnoughMs);
  const auto is_told_by = [&](size_t index) {
    ClusterNode& teller = nodes[index];
    cluster::NodeTable& seen = teller.cluster->nodes();
    cluster::Node& suspect = *seen.find(nodes[3].id());
    suspect.set(cluster::kSuspect);
    for (const size_t by : {0, 1, 2, 4}) {
      if (by != index)
        cluster::NodeTable::add_report(suspect, *seen.find(nodes[by].id()),
                                       teller.server.server.machine_ms());
    }
    teller.cluster->detector().mark_failing_at_quorum(suspect);
    REQUIRE(suspect.has(cluster::kFailing));
    nodes.carry();
    const size_t listener = index == 2 ? 1 : 2;
    return nodes[listener].cluster->nodes().find(nodes[3].id())->has(cluster::kFailing);
  };
  SECTION("a master") {
    CHECK(is_told_by(2));
  }
  SECTION("a replica of it") {
    CHECK(is_told_by(5) == valkey);
  }
  SECTION("another replica") {
    CHECK_FALSE(is_told_by(6));
  }
}

TEST_CASE("A report counts for two timeouts", "[cluster]") {
  Watching watching;
  cluster::Node& suspect = watching.node(1);
  suspect.set(cluster::kSuspect);
  watching.report(1, 2, watching.now_ms() - 2 * kTimeoutMs);
  CHECK(watching.detector().count_reports(suspect) == 1);
  watching.report(1, 3, watching.now_ms() - 2 * kTimeoutMs - 1);
  CHECK(watching.detector().count_reports(suspect) == 1);
}

TEST_CASE("A node that others say has failed has failed, unless it is this one", "[cluster]") {
  Watching watching;
  cluster::Message message = watching.nodes[2].cluster->message(cluster::MessageType::kFail);
  message.subject = watching.nodes[1].id();
  watching.detector().receive_fail(watching.node(2), message);
  CHECK(watching.node(1).has(cluster::kFailing));
  // It has been failing since it was told first.
  watching.node(1).failing_since_ms = 1;
  watching.detector().receive_fail(watching.node(3), message);
  CHECK(watching.node(1).failing_since_ms == 1);

  message.subject = watching.nodes[0].id();
  watching.detector().receive_fail(watching.node(2), message);
  CHECK_FALSE(watching.node(0).has(cluster::kFailing));
  message.subject = std::string(40, '0');
  watching.detector().receive_fail(watching.node(2), message);
}

TEST_CASE("A replica that is back is forgiven at once, a master after two timeouts", "[cluster]") {
  Watching watching;
  cluster::Node& master = watching.node(1);
  cluster::Node& replica = watching.node(5);
  for (cluster::Node* node : {&master, &replica}) {
    node->set(cluster::kFailing);
    node->failing_since_ms = watching.now_ms() - 2 * kTimeoutMs;
    watching.detector().clear_failing(*node);
  }
  CHECK(master.has(cluster::kFailing));
  CHECK_FALSE(replica.has(cluster::kFailing));
  --master.failing_since_ms;
  watching.detector().clear_failing(master);
  CHECK_FALSE(master.has(cluster::kFailing));
}

}  // namespace latchkey::tests
