// The nodes that this one knows, which of them serves which slot, and the epochs by which they
// decide whose word is newer: all that a node remembers of its cluster, kept consistent.
//
// Every node is a master or a replica; a slot has at most one owner, which is a master. This node
// is always there. Looking a node up by its id is O(log nodes), a slot's owner O(1).
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
  // With all that points to it. REQUIRES: not myself, and it has no links.
  void remove(Node& node);
  // REQUIRES: there is no node of the new id.
  void rename(Node& node, std::string id);
  // In an order of their own; may be changed while it is gone through.
  std::vector<Node*> all() const { return list_; }
  // `index` < size().
  Node& at(size_t index) const { return *list_[index]; }
  size_t size() const { return list_.size(); }
  void clear();

  // --- Roles ------------------------------------------------------------------------------------
  // Makes it a replica, of that master if it is known, and so of its shard. What slots it had have
  // no owner.
  void make_replica(Node& node, Node* master);
  void make_master(Node& node);
  // Masters that serve slots.
  size_t voters() const;
  // Voters that must agree.
  size_t quorum() const { return voters() / 2 + 1; }

  // --- Slots ------------------------------------------------------------------------------------
  Node* owner(int slot) const { return owners_[static_cast<size_t>(slot)]; }
  // Takes it from whoever had it. REQUIRES: the owner is a master.
  void assign(int slot, Node& owner);
  void unassign(int slot);
  size_t assigned() const;
  // Where a slot of this node is being moved to, and where one comes from; null: it stays.
  Node* migrating_to(int slot) const { return find_move(migrating_, slot); }
  Node* importing_from(int slot) const { return find_move(importing_, slot); }
  void set_migrating(int slot, Node* to) { set_move(migrating_, slot, to); }
  void set_importing(int slot, Node* from) { set_move(importing_, slot, from); }
  bool any_moves() const { return !migrating_.empty() || !importing_.empty(); }
  using Moves = std::map<int, Node*>;
  const Moves& migrating() const { return migrating_; }
  const Moves& importing() const { return importing_; }
  void end_moves();

  // --- Epochs -----------------------------------------------------------------------------------
  uint64_t current_epoch = 0;
  uint64_t last_vote_epoch = 0;
  // The highest that any node has or knows of.
  uint64_t highest_epoch() const;

  // --- Failures ---------------------------------------------------------------------------------
  // Of reports that are not older than max_age_ms; the older go.
  static size_t count_reports(Node& node, int64_t now_ms, int64_t max_age_ms);
  // True when `by` had not reported it.
  static bool add_report(Node& node, const Node& by, int64_t now_ms);
  // True when `by` had.
  static bool remove_report(Node& node, const Node& by);

  // --- Forgotten nodes, which nobody shall bring back for a while
  // ---------------------------------
  void forget(const std::string& id, int64_t until_ms) { forgotten_[id] = until_ms; }
  bool is_forgotten(const std::string& id, int64_t now_ms);
  // By id, until when.
  const std::map<std::string, int64_t>& forgotten(int64_t now_ms);
  void remember(const std::string& id) { forgotten_.erase(id); }

 private:
  static Node* find_move(const Moves& moves, int slot) {
    const auto found = moves.find(slot);
    return found == moves.end() ? nullptr : found->second;
  }
  static void set_move(Moves& moves, int slot, Node* node);
  void leave_master(Node& node);
  bool any_replicas() const;

  std::map<std::string, std::unique_ptr<Node>, std::less<>> nodes_;
  std::vector<Node*> list_;
  Node* myself_ = nullptr;
  std::array<Node*, store::kKeySlots> owners_{};
  Moves migrating_;
  Moves importing_;
  std::map<std::string, int64_t> forgotten_;
};

}  // namespace latchkey::cluster
