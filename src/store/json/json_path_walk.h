// Finds what a path leads to in a document.
//
// A place is named by its trail: the positions, from the root down, of members and elements. A
// trail stays valid while the document above the place is not changed, unlike a pointer.
//
// What is walked is counted against a budget, so that no request takes unbounded time: a path such
// as $..*..*..* leads to the same places again and again. Cost: the nodes visited, and the size of
// the values that conditions compare.
//
// A walk calls itself once a level, and conditions walk from where they are: the levels of all
// walks that are within one another are limited.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "store/json/json_node.h"
#include "store/json/json_path.h"

namespace latchkey::store::json {

// What one request may visit, compare, and write of what it has found: kMostVisits values, and some
// more for each value of its documents, so that none is too large to be walked once. Of long texts
// the size counts (cost_of_bytes()).
//
// What is counted must be the same on a replica: no capacities of allocations.
class WalkBudget {
 public:
  static constexpr size_t kMostVisits = size_t{1} << 24;
  // Of a walk through a document of any depth, and of another for a condition at its end.
  static constexpr size_t kMostLevels = 2 * Node::kMaxDepth;

  explicit WalkBudget(const Node& root, size_t most = kMostVisits) : root_(&root), left_(most) {}
  // Another document of the request.
  void add_document(const Node& root) {
    root_ = &root;
    is_extended_ = false;
  }

  // False when it is spent.
  bool take(size_t visits = 1) {
    if (left_ > visits) [[likely]] {
      left_ -= visits;
      return true;
    }
    return extend() && take(visits);
  }
  // The same for regular expressions that are compiled on the way, of which a document's size
  // allows no more.
  bool take_for_regex(size_t visits) {
    if (left_ <= visits) {
      spend();
      return false;
    }
    left_ -= visits;
    return true;
  }
  // One level further down, and back. Spent when that is too deep.
  void enter() {
    if (++levels_ > kMostLevels) spend();
  }
  void leave() { --levels_; }
  bool is_spent() const { return left_ == 0; }
  void spend() {
    left_ = 0;
    is_extended_ = true;
  }
  base::RegexBudget& regex() { return regex_; }

 private:
  // Adds what the document's size allows, once.
  bool extend();

  const Node* root_;
  size_t left_;
  size_t levels_ = 0;
  bool is_extended_ = false;
  base::RegexBudget regex_;
};

using Trail = std::span<const uint32_t>;

// Trails one behind the other.
class Trails {
 public:
  size_t size() const { return ends_.size(); }
  bool empty() const { return ends_.empty(); }
  // Of all trails together.
  size_t position_count() const { return positions_.size(); }
  Trail operator[](size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::span(positions_).subspan(begin, ends_[i] - begin);
  }
  void add(Trail trail) {
    positions_.insert(positions_.end(), trail.begin(), trail.end());
    ends_.push_back(positions_.size());
  }

 private:
  std::vector<uint32_t> positions_;
  std::vector<size_t> ends_;
};

// Calls `found` for each place in the path's order, until it returns false. False when the budget
// is spent.
using Found = std::function<bool(const Node& node, Trail trail)>;
bool walk(const Path& path, const Node& root, WalkBudget& budget, const Found& found);

// Null when there is no such place.
Node* node_at(Node& root, Trail trail);

}  // namespace latchkey::store::json
