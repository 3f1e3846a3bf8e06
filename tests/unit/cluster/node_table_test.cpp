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

TEST_CASE("a node that is renamed is found by its new id", "[cluster]") {
  Table table;
  const std::string id(40, 'd');
  table.nodes.rename(table.other, id);
  CHECK(table.nodes.find(id) == &table.other);
  CHECK(table.other.id == id);
  CHECK(table.nodes.find(std::string(40, 'b')) == nullptr);
}

}  // namespace latchkey::cluster
