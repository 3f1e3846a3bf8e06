#include "cluster/node_table.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace latchkey::cluster {

namespace {

// All nodes list the replicas of a master in the same order, so that their replies are equal.
bool by_id(const Node* a, const Node* b) {
  return a->id < b->id;
}

}  // namespace

Node* NodeTable::find(std::string_view id) const {
  const auto found = nodes_.find(id);
  return found == nodes_.end() ? nullptr : found->second.get();
}

Node& NodeTable::add(std::string id, uint16_t flags, int64_t now_ms) {
  auto& place = nodes_[id];
  LK_ASSERT(place == nullptr);
  place = std::make_unique<Node>();
  Node& node = *place;
  node.id = std::move(id);
  node.flags = flags;
  node.created_ms = now_ms;
  list_.push_back(&node);
  if (node.is_myself()) myself_ = &node;
  return node;
}

void NodeTable::remove(Node& node) {
  LK_ASSERT(&node != myself_ && node.link == nullptr && node.incoming == nullptr);
  SlotSet(node.slots).for_each([&](int slot) { unassign(slot); });
  const auto is_it = [&](const auto& move) { return move.second == &node; };
  std::erase_if(migrating_, is_it);
  std::erase_if(importing_, is_it);
  leave_master(node);
  for (Node* replica : node.replicas) replica->master = nullptr;
  for (Node* other : list_) remove_report(*other, node);
  std::erase(list_, &node);
  nodes_.erase(nodes_.find(node.id));
}

void NodeTable::rename(Node& node, std::string id) {
  auto handle = nodes_.extract(nodes_.find(node.id));
  node.id = std::move(id);
  handle.key() = node.id;
  const bool inserted = nodes_.insert(std::move(handle)).inserted;
  LK_ASSERT(inserted);
  if (node.master != nullptr)
    std::sort(node.master->replicas.begin(), node.master->replicas.end(), by_id);
}

void NodeTable::clear() {
  owners_.fill(nullptr);
  end_moves();
  forgotten_.clear();
  list_.clear();
  nodes_.clear();
  myself_ = nullptr;
  current_epoch = 0;
  last_vote_epoch = 0;
}

// --- Roles --------------------------------------------------------------------------------------

void NodeTable::leave_master(Node& node) {
  if (node.master == nullptr) return;
  std::erase(node.master->replicas, &node);
  if (node.master->replicas.empty()) node.master->set(kMigrateTo, false);
  node.master = nullptr;
}

void NodeTable::make_replica(Node& node, Node* master) {
  if (node.is_master()) {
    SlotSet(node.slots).for_each([&](int slot) { unassign(slot); });
    node.set(kMaster | kMigrateTo, false);
    node.set(kReplica);
  }
  if (master == node.master) return;
  leave_master(node);
  node.master = master;
  if (master == nullptr) return;
  if (master->shard_id == node.shard_id) {
    // It was replaced: what is moved to it or from it is its successor's from now on.
    for (Moves* moves : {&migrating_, &importing_}) {
      for (auto& [slot, other] : *moves) {
        if (other == &node) other = master;
      }
    }
  }
  master->replicas.insert(
      std::upper_bound(master->replicas.begin(), master->replicas.end(), &node, by_id), &node);
  master->set(kMigrateTo);
  node.shard_id = master->shard_id;
}

void NodeTable::make_master(Node& node) {
  if (node.is_master()) return;
  if (node.master != nullptr && !node.is_myself()) node.set(kMigrateTo);
  leave_master(node);
  node.set(kReplica, false);
  node.set(kMaster);
}

size_t NodeTable::voters() const {
  return static_cast<size_t>(
      std::count_if(list_.begin(), list_.end(), [](const Node* node) { return node->votes(); }));
}

// --- Slots --------------------------------------------------------------------------------------

void NodeTable::assign(int slot, Node& owner) {
  LK_ASSERT(owner.is_master());
  unassign(slot);
  // When other masters have replicas, replicas may migrate to this one too.
  if (owner.slots.empty() && any_replicas()) owner.set(kMigrateTo);
  owner.slots.add(slot);
  owners_[static_cast<size_t>(slot)] = &owner;
}

bool NodeTable::any_replicas() const {
  return std::any_of(list_.begin(), list_.end(),
                     [](const Node* node) { return !node->replicas.empty(); });
}

void NodeTable::unassign(int slot) {
  Node*& owner = owners_[static_cast<size_t>(slot)];
  if (owner == nullptr) return;
  if (owner != myself_) note_elsewhere(slot);
  std::exchange(owner, nullptr)->slots.remove(slot);
}

bool NodeTable::has_gained_since(uint64_t moment) const {
  bool gained = false;
  myself_->slots.for_each(
      [&](int slot) { gained |= elsewhere_[static_cast<size_t>(slot)] > moment; });
  return gained;
}

size_t NodeTable::assigned() const {
  return static_cast<size_t>(store::kKeySlots -
                             std::count(owners_.begin(), owners_.end(), nullptr));
}

void NodeTable::set_move(Moves& moves, int slot, Node* node) {
  if (node != nullptr) {
    moves[slot] = node;
  } else {
    moves.erase(slot);
  }
}

void NodeTable::set_importing(int slot, Node* from) {
  if (from != nullptr || importing_from(slot) != nullptr) note_elsewhere(slot);
  set_move(importing_, slot, from);
}

void NodeTable::end_moves() {
  migrating_.clear();
  importing_.clear();
}

uint64_t NodeTable::highest_epoch() const {
  uint64_t highest = current_epoch;
  for (const Node* node : list_) highest = std::max(highest, node->config_epoch);
  return highest;
}

// --- Failures -----------------------------------------------------------------------------------

size_t NodeTable::count_reports(Node& node, int64_t now_ms, int64_t max_age_ms) {
  std::erase_if(node.reports,
                [&](const FailureReport& report) { return now_ms - report.time_ms > max_age_ms; });
  return node.reports.size();
}

bool NodeTable::add_report(Node& node, const Node& by, int64_t now_ms) {
  for (FailureReport& report : node.reports) {
    if (report.by != &by) continue;
    report.time_ms = now_ms;
    return false;
  }
  node.reports.push_back({&by, now_ms});
  return true;
}

bool NodeTable::remove_report(Node& node, const Node& by) {
  return std::erase_if(node.reports,
                       [&](const FailureReport& report) { return report.by == &by; }) > 0;
}

// --- Forgotten nodes ----------------------------------------------------------------------------

bool NodeTable::is_forgotten(const std::string& id, int64_t now_ms) {
  return forgotten(now_ms).contains(id);
}

const std::map<std::string, int64_t>& NodeTable::forgotten(int64_t now_ms) {
  std::erase_if(forgotten_, [&](const auto& each) { return each.second <= now_ms; });
  return forgotten_;
}

}  // namespace latchkey::cluster
