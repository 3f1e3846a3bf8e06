// Who owns a slot when several nodes claim it.
#include "cluster/slot_claims.h"

#include "unit/catch.h"
#include "unit/cluster/several_nodes.h"

namespace latchkey::tests {

namespace {

using cluster::SlotSet;

// Three masters and a replica of the third, as the first sees them. Its slots are 0 to 5460, those
// of the second 5461 to 10921.
struct Claims {
  explicit Claims(std::string_view settings = {}) : nodes(4, settings) {
    nodes.make_cluster(3);
    nodes[3].run("CLUSTER REPLICATE " + nodes[2].id());
    constexpr int64_t kLongEnoughMs = 3000;
    nodes.pass(kLongEnoughMs);
  }
  cluster::NodeTable& table(size_t at = 0) { return nodes[at].cluster->nodes(); }
  cluster::Node& node(size_t index, size_t at = 0) { return *table(at).find(nodes[index].id()); }
  cluster::SlotClaims& claims(size_t at = 0) { return nodes[at].cluster->claims(); }
  // The first hears a node claim slots.
  void claim(size_t claimant, uint64_t epoch, const SlotSet& claimed) {
    cluster::Message message = nodes[claimant].cluster->message(cluster::MessageType::kPing);
    message.config_epoch = epoch;
    message.slots = claimed;
    claims().process_heartbeat(node(claimant), message);
  }
  static SlotSet slots(int first, int last) {
    SlotSet set;
    for (int slot = first; slot <= last; ++slot) set.add(slot);
    return set;
  }

  Nodes nodes;
};

}  // namespace

TEST_CASE("A slot goes to a claimant whose epoch is newer", "[cluster]") {
  Claims scene;
  constexpr int kSlot = 6000;
  const uint64_t epoch = scene.node(1).config_epoch;
  scene.claim(2, epoch, Claims::slots(kSlot, kSlot));
  CHECK(scene.table().owner(kSlot) == &scene.node(1));
  scene.claim(2, epoch + 1, Claims::slots(kSlot, kSlot));
  CHECK(scene.table().owner(kSlot) == &scene.node(2));
  CHECK(scene.table().owner(kSlot + 1) == &scene.node(1));
}

TEST_CASE("A slot of nobody goes to whoever claims it", "[cluster]") {
  Claims scene;
  scene.table().unassign(6000);
  scene.claim(2, 0, Claims::slots(6000, 6000));
  CHECK(scene.table().owner(6000) == &scene.node(2));
}

TEST_CASE("Nobody is believed what he says of this node itself", "[cluster]") {
  Claims scene;
  scene.claim(0, 100, Claims::slots(6000, 6000));
  CHECK(scene.table().owner(6000) == &scene.node(1));
}

TEST_CASE("A slot that is imported stays, whoever claims it", "[cluster]") {
  Claims scene;
  scene.table().set_importing(6000, &scene.node(1));
  scene.claim(2, 100, Claims::slots(6000, 6000));
  CHECK(scene.table().owner(6000) == &scene.node(1));
  CHECK(scene.table().importing_from(6000) == &scene.node(1));
}

TEST_CASE("A master that has lost its last slot becomes a replica of the one that has it",
          "[cluster]") {
  Claims scene;
  SECTION("not while one is left") {
    scene.claim(1, 100, Claims::slots(0, 5459));
    CHECK(scene.node(0).is_master());
    CHECK(scene.node(0).slots.size() == 1);
  }
  SECTION("all") {
    scene.claim(1, 100, Claims::slots(0, 5460));
    CHECK(scene.node(0).is_replica());
    CHECK(scene.node(0).master == &scene.node(1));
  }
}

TEST_CASE("Where replicas may not move, a master without slots stays one, unless it was replaced",
          "[cluster]") {
  Claims scene("cluster-allow-replica-migration no\n");
  SECTION("the claimant has more") {
    scene.claim(1, 100, Claims::slots(0, 5460));
    CHECK(scene.node(0).is_master());
    CHECK(scene.node(0).slots.empty());
  }
  SECTION("the claimant has only those") {
    scene.table().make_master(scene.node(3));
    scene.claim(3, 100, Claims::slots(0, 5460));
    CHECK(scene.node(0).is_replica());
  }
}

TEST_CASE("A node with an old view of a slot is told of its owner", "[cluster]") {
  Claims scene;
  constexpr int kSlot = 6000;
  cluster::Message message = scene.nodes[2].cluster->message(cluster::MessageType::kPing);
  message.slots.add(kSlot);
  const uint64_t epoch = scene.node(1).config_epoch;
  scene.node(2).link->take_output();
  SECTION("whose epoch is newer than what it tells") {
    message.config_epoch = epoch - 1;
    scene.claims().process_heartbeat(scene.node(2), message);
    CHECK_FALSE(scene.node(2).link->take_output().empty());
  }
  SECTION("but not when both are the same") {
    message.config_epoch = epoch;
    scene.claims().process_heartbeat(scene.node(2), message);
    CHECK(scene.node(2).link->take_output().empty());
  }
}

TEST_CASE("What is told of a node counts if it is newer", "[cluster]") {
  Claims scene;
  cluster::Message message = scene.nodes[2].cluster->message(cluster::MessageType::kUpdate);
  message.subject = scene.nodes[1].id();
  message.subject_slots = Claims::slots(12000, 12000);
  const uint64_t epoch = scene.node(2).config_epoch;
  message.subject_epoch = scene.node(1).config_epoch;
  scene.claims().process_update(message);
  CHECK(scene.table().owner(12000) == &scene.node(2));
  message.subject_epoch = epoch + 1;
  scene.claims().process_update(message);
  CHECK(scene.table().owner(12000) == &scene.node(1));
  CHECK(scene.node(1).config_epoch == epoch + 1);

  SECTION("a replica is a master then") {
    message.subject = scene.nodes[3].id();
    message.subject_epoch = epoch + 2;
    scene.claims().process_update(message);
    CHECK(scene.node(3).is_master());
    CHECK(scene.table().owner(12000) == &scene.node(3));
  }
  SECTION("this node knows better") {
    message.subject = scene.nodes[0].id();
    message.subject_epoch = epoch + 2;
    scene.claims().process_update(message);
    CHECK(scene.table().owner(12000) == &scene.node(1));
    CHECK(scene.node(0).config_epoch != epoch + 2);
  }
}

TEST_CASE("Of two masters of the same epoch the one with the smaller id takes another",
          "[cluster]") {
  Claims scene;
  const bool first_is_smaller = scene.nodes[0].id() < scene.nodes[1].id();
  const size_t smaller = first_is_smaller ? 0 : 1;
  const size_t larger = first_is_smaller ? 1 : 0;
  for (const size_t at : {smaller, larger}) {
    const size_t other = at == smaller ? larger : smaller;
    cluster::Node& myself = scene.node(at, at);
    const uint64_t epoch = myself.config_epoch;
    cluster::Message message = scene.nodes[other].cluster->message(cluster::MessageType::kPing);
    message.config_epoch = epoch;
    const uint64_t current = scene.table(at).current_epoch;
    scene.claims(at).process_heartbeat(scene.node(other, at), message);
    CHECK(myself.config_epoch == (at == smaller ? current + 1 : epoch));
  }
}

}  // namespace latchkey::tests
