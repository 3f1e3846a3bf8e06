// The nodes that this one knows, the owner of each slot, and the epochs that decide which
// information is newer: everything a node remembers of its cluster, kept consistent.
//
// Every node is a master or a replica; a slot has at most one owner, which is a master. This node
// is always in the table. Finding a node by id is O(log nodes), a slot's owner O(1).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/node.h"

namespace latchkey::cluster {

class NodeTable {
 public:
  NodeTable() = default;
  NodeTable(const NodeTable&) = delete;
  NodeTable& operator=(const NodeTable&) = delete;

  // --- Nodes ------------------------------------------------------------------------------------
  // REQUIRES: the node was added with kMyself.
  Node& myself() const { return *myself_; }
  bool has_myself() const { return myself_ != nullptr; }
  // Null when there is none.
  Node* find(std::string_view id) const;
  // REQUIRES: there is none of this id.
  Node& add(std::string id, uint16_t flags, int64_t now_ms);
  // Removes the node and all references to it. REQUIRES: not myself, and it has no links.
  void remove(Node& node);
  // REQUIRES: there is no node of the new id.
  void rename(Node& node, std::string id);
  // In arbitrary order; a copy, so the table may change during a loop over it.
  std::vector<Node*> all() const { return list_; }
  // `index` < size().
  Node& at(size_t index) const { return *list_[index]; }
  size_t size() const { return list_.size(); }
  void clear();

  // --- Roles ------------------------------------------------------------------------------------
  // Makes it a replica: of that master and its shard, if the master is known. The slots that it had
  // lose their owner.
  void make_replica(Node& node, Node* master);
  void make_master(Node& node);
  // Masters that serve slots.
  size_t voters() const;
  // Number of voters that make a majority.
  size_t quorum() const { return voters() / 2 + 1; }

  // --- Slots ------------------------------------------------------------------------------------
  Node* owner(int slot) const { return owners_[static_cast<size_t>(slot)]; }
  // Takes the slot from its owner, if any. REQUIRES: the new owner is a master.
  void assign(int slot, Node& owner);
  void unassign(int slot);
  size_t assigned() const;
  // A point in the history of the owners; later ones are greater.
  uint64_t slots_moment() const { return slots_moment_; }
  // Whether this node has a slot now that another one has had since that moment, or of which it has
  // imported keys since: what the slot holds may have changed elsewhere. It does not matter whether
  // the slot was this node's at that moment. O(slots of this node).
  bool has_gained_since(uint64_t moment) const;
  // The node to which a slot of this node is migrating, and the one from which a slot is imported;
  // null: neither.
  Node* migrating_to(int slot) const { return find_move(migrating_, slot); }
  Node* importing_from(int slot) const { return find_move(importing_, slot); }
  void set_migrating(int slot, Node* to) { set_move(migrating_, slot, to); }
  void set_importing(int slot, Node* from);
  bool any_moves() const { return !migrating_.empty() || !importing_.empty(); }
  bool any_imports() const { return !importing_.empty(); }
  using Moves = std::map<int, Node*>;
  const Moves& migrating() const { return migrating_; }
  const Moves& importing() const { return importing_; }
  void end_moves();

  // --- Epochs -----------------------------------------------------------------------------------
  uint64_t current_epoch = 0;
  uint64_t last_vote_epoch = 0;
  // The highest epoch of any node, including current_epoch.
  uint64_t highest_epoch() const;

  // --- Failures ---------------------------------------------------------------------------------
  // Number of reports not older than max_age_ms; removes older ones.
  static size_t count_reports(Node& node, int64_t now_ms, int64_t max_age_ms);
  // True when `by` had not reported the node before.
  static bool add_report(Node& node, const Node& by, int64_t now_ms);
  // True when `by` had reported it.
  static bool remove_report(Node& node, const Node& by);

  // --- Forgotten nodes, which gossip must not bring back for a while ----------------------------
  void forget(const std::string& id, int64_t until_ms) { forgotten_[id] = until_ms; }
  bool is_forgotten(const std::string& id, int64_t now_ms);
  // By id, with the Unix time in milliseconds until which they stay forgotten.
  const std::map<std::string, int64_t>& forgotten(int64_t now_ms);

 private:
  static Node* find_move(const Moves& moves, int slot) {
    const auto found = moves.find(slot);
    return found == moves.end() ? nullptr : found->second;
  }
  static void set_move(Moves& moves, int slot, Node* node);
  void note_elsewhere(int slot) { elsewhere_[static_cast<size_t>(slot)] = ++slots_moment_; }
  void leave_master(Node& node);
  bool any_replicas() const;

  std::map<std::string, std::unique_ptr<Node>, std::less<>> nodes_;
  std::vector<Node*> list_;
  Node* myself_ = nullptr;
  std::array<Node*, store::kKeySlots> owners_{};
  // When another node has last lost each slot, or has begun or ended to give keys of it. 0: never.
  std::array<uint64_t, store::kKeySlots> elsewhere_{};
  uint64_t slots_moment_ = 0;
  Moves migrating_;
  Moves importing_;
  std::map<std::string, int64_t> forgotten_;
};

}  // namespace latchkey::cluster
