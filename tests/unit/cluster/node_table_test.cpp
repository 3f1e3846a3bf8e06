#include "cluster/node_table.h"

#include <string>

#include "unit/catch.h"

namespace latchkey::cluster {

namespace {

struct Table {
  NodeTable nodes;
  Node& me = nodes.add(std::string(40, 'a'), kMyself | kMaster, 0);
  Node& other = nodes.add(std::string(40, 'b'), kMaster, 0);
  Node& third = nodes.add(std::string(40, 'c'), kMaster, 0);
};

}  // namespace

TEST_CASE("a slot has one owner", "[cluster]") {
  Table table;
  table.nodes.assign(1, table.me);
  table.nodes.assign(1, table.other);
  CHECK(table.nodes.owner(1) == &table.other);
  CHECK(table.me.slots.empty());
  CHECK(table.nodes.assigned() == 1);
  CHECK(table.nodes.voters() == 1);
  table.nodes.unassign(1);
  CHECK(table.nodes.owner(1) == nullptr);
  CHECK(table.other.slots.empty());
}

TEST_CASE("a master that becomes a replica has no slots, and is of its master's shard",
          "[cluster]") {
  Table table;
  table.me.shard_id = "one";
  table.nodes.assign(1, table.other);
  table.nodes.make_replica(table.other, &table.me);
  CHECK(table.nodes.owner(1) == nullptr);
  CHECK(table.other.shard_id == "one");
  CHECK(table.me.replicas == std::vector<Node*>{&table.other});
  table.nodes.make_replica(table.other, &table.third);
  CHECK(table.me.replicas.empty());
  CHECK(table.third.replicas.size() == 1);
  table.nodes.make_master(table.other);
  CHECK(table.third.replicas.empty());
  CHECK(table.other.master == nullptr);
}

TEST_CASE("nothing points to a node that was removed", "[cluster]") {
  Table table;
  table.nodes.assign(1, table.other);
  table.nodes.set_migrating(2, &table.other);
  table.nodes.set_importing(3, &table.other);
  table.nodes.make_replica(table.third, &table.other);
  NodeTable::add_report(table.me, table.other, 0);
  table.nodes.remove(table.other);
  CHECK(table.nodes.owner(1) == nullptr);
  CHECK_FALSE(table.nodes.any_moves());
  CHECK(table.third.master == nullptr);
  CHECK(table.me.reports.empty());
  CHECK(table.nodes.find(std::string(40, 'b')) == nullptr);
  CHECK(table.nodes.size() == 2);
}

TEST_CASE("reports of failures grow old, and one node has one", "[cluster]") {
  Table table;
  CHECK(NodeTable::add_report(table.me, table.other, 0));
  CHECK_FALSE(NodeTable::add_report(table.me, table.other, 50));
  CHECK(NodeTable::add_report(table.me, table.third, 10));
  CHECK(NodeTable::count_reports(table.me, 100, 90) == 2);
  CHECK(NodeTable::count_reports(table.me, 120, 90) == 1);
  CHECK(NodeTable::remove_report(table.me, table.other));
  CHECK_FALSE(NodeTable::remove_report(table.me, table.other));
}

TEST_CASE("a node is forgotten for a while", "[cluster]") {
  Table table;
  table.nodes.forget("x", 100);
  CHECK(table.nodes.is_forgotten("x", 99));
  CHECK_FALSE(table.nodes.is_forgotten("x", 100));
}

TEST_CASE("replicas stand in the order of their ids, also when one is renamed", "[cluster]") {
  Table table;
  Node& fourth = table.nodes.add(std::string(40, 'd'), kReplica, 0);
  table.nodes.make_replica(fourth, &table.me);
  table.nodes.make_replica(table.other, &table.me);
  table.nodes.make_replica(table.third, &table.me);
  CHECK(table.me.replicas == std::vector<Node*>{&table.other, &table.third, &fourth});
  table.nodes.rename(table.other, std::string(40, 'e'));
  CHECK(table.me.replicas == std::vector<Node*>{&table.third, &fourth, &table.other});
}

TEST_CASE("replicas may migrate to a master that has had one", "[cluster]") {
  Table table;
  CHECK_FALSE(table.me.has(kMigrateTo));
  table.nodes.make_replica(table.other, &table.me);
  CHECK(table.me.has(kMigrateTo));
  // To one that gets its first slot where others have replicas, too.
  table.nodes.assign(1, table.third);
  CHECK(table.third.has(kMigrateTo));
  table.nodes.make_master(table.other);
  CHECK_FALSE(table.me.has(kMigrateTo));
  CHECK(table.me.replicas.empty());
  table.nodes.assign(2, table.me);
  CHECK_FALSE(table.me.has(kMigrateTo));
}

TEST_CASE("a replica that becomes a master may have replicas migrate to it, but not to this node",
          "[cluster]") {
  Table table;
  table.nodes.make_replica(table.other, &table.third);
  table.nodes.make_master(table.other);
  CHECK(table.other.has(kMigrateTo));
  CHECK(table.other.is_master());
  CHECK_FALSE(table.other.is_replica());
  table.nodes.make_replica(table.me, &table.third);
  table.nodes.make_master(table.me);
  CHECK_FALSE(table.me.has(kMigrateTo));
}

TEST_CASE("what is moved to a master that was replaced is moved to its successor", "[cluster]") {
  Table table;
  table.third.shard_id = table.other.shard_id = "one";
  table.me.shard_id = "two";
  table.nodes.set_importing(1, &table.other);
  table.nodes.set_migrating(2, &table.other);
  table.nodes.set_migrating(3, &table.third);
  table.nodes.make_replica(table.other, &table.third);
  CHECK(table.nodes.importing_from(1) == &table.third);
  CHECK(table.nodes.migrating_to(2) == &table.third);
  // Not when it becomes a replica of another shard.
  table.nodes.make_replica(table.third, &table.me);
  CHECK(table.nodes.migrating_to(3) == &table.third);
  table.nodes.set_migrating(3, nullptr);
  CHECK(table.nodes.migrating_to(3) == nullptr);
  CHECK(table.nodes.any_moves());
  table.nodes.end_moves();
  CHECK_FALSE(table.nodes.any_moves());
}

TEST_CASE("the table knows whether slots have come from other nodes since a moment", "[cluster]") {
  Table table;
  table.nodes.assign(1, table.me);
  table.nodes.assign(2, table.other);
  const uint64_t start = table.nodes.slots_moment();
  SECTION("one that was theirs") {
    table.nodes.assign(2, table.me);
  }
  SECTION("one that has gone and come back") {
    table.nodes.assign(1, table.other);
    CHECK_FALSE(table.nodes.has_gained_since(start));
    table.nodes.assign(1, table.me);
  }
  SECTION("one that nobody had in between") {
    table.nodes.unassign(2);
    table.nodes.assign(2, table.me);
  }
  SECTION("one of a node that was removed") {
    table.nodes.remove(table.other);
    table.nodes.assign(2, table.me);
  }
  SECTION("one whose owner has become a replica") {
    table.nodes.make_replica(table.other, &table.me);
    table.nodes.assign(2, table.me);
  }
  SECTION("one that nobody had, with keys") {
    table.nodes.set_importing(3, &table.other);
    table.nodes.assign(3, table.me);
    const uint64_t between = table.nodes.slots_moment();
    table.nodes.set_importing(3, nullptr);
    CHECK(table.nodes.has_gained_since(between));
  }
  CHECK(table.nodes.has_gained_since(start));
  CHECK_FALSE(table.nodes.has_gained_since(table.nodes.slots_moment()));
}

TEST_CASE("slots that were no other node's have not come from one", "[cluster]") {
  Table table;
  table.nodes.assign(1, table.me);
  table.nodes.assign(2, table.other);
  const uint64_t start = table.nodes.slots_moment();
  table.nodes.unassign(1);
  table.nodes.set_importing(1, nullptr);
  table.nodes.assign(1, table.me);
  table.nodes.assign(3, table.me);
  table.nodes.assign(2, table.third);
  CHECK_FALSE(table.nodes.has_gained_since(start));
}

TEST_CASE("the highest epoch is that of the cluster or of a node", "[cluster]") {
  Table table;
  table.nodes.current_epoch = 5;
  CHECK(table.nodes.highest_epoch() == 5);
  table.other.config_epoch = 7;
  CHECK(table.nodes.highest_epoch() == 7);
}

TEST_CASE("most of the masters with slots are a quorum", "[cluster]") {
  Table table;
  const auto quorum_of = [&](int masters) {
    Node* const nodes[] = {&table.me, &table.other, &table.third};
    for (int i = 0; i < masters; ++i) table.nodes.assign(i, *nodes[i]);
    return table.nodes.quorum();
  };
  CHECK(quorum_of(1) == 1);
  CHECK(quorum_of(2) == 2);
  CHECK(quorum_of(3) == 2);
}

TEST_CASE("a table that is cleared has nothing", "[cluster]") {
  Table table;
  table.nodes.assign(1, table.me);
  table.nodes.current_epoch = 3;
  table.nodes.last_vote_epoch = 2;
  table.nodes.forget("x", 100);
  table.nodes.set_importing(2, &table.other);
  table.nodes.clear();
  CHECK(table.nodes.size() == 0);
  CHECK(table.nodes.assigned() == 0);
  CHECK(table.nodes.current_epoch == 0);
  CHECK(table.nodes.last_vote_epoch == 0);
  CHECK_FALSE(table.nodes.is_forgotten("x", 0));
  CHECK_FALSE(table.nodes.any_moves());
}

TEST_CASE("a node that is renamed is found by its new id", "[cluster]") {
  Table table;
  const std::string id(40, 'd');
  table.nodes.rename(table.other, id);
  CHECK(table.nodes.find(id) == &table.other);
  CHECK(table.other.id == id);
  CHECK(table.nodes.find(std::string(40, 'b')) == nullptr);
}

}  // namespace latchkey::cluster
