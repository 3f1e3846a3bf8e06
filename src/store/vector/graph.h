// A navigable graph of vectors, by which those nearest to a query are found without looking at all:
// HNSW, after Y. Malkov and D. Yashunin, "Efficient and robust approximate nearest neighbor search
// using Hierarchical Navigable Small World graphs" (2016, arXiv:1603.09320). Its algorithms 1, 2, 4
// and 5 are insert(), search_level(), choose_links() and search().
//
// What differs from the paper:
//   * Links always go both ways. When a node has no room for a further one, the farthest that
//     another link makes superfluous is given up, at both ends.
//   * Nodes can be erased. Those that were linked to one are linked to each other in its place, the
//     nearest first, so that searches still find their way.
//
// Nodes are numbered without gaps, from 0 to size() - 1: their slots. The last node moves to the
// slot of one that is erased, so memory shrinks with the graph, and a random slot is a random node.
// A slot's record holds all that a search reads, in one place:
//
//     +---------+--------------+--------+-------+-------+-------+-----------+------------+
//     | element | upper levels | length | range | level | links | slots ... | the vector |
//     +---------+--------------+--------+-------+-------+-------+-----------+------------+
//       8         8              4        4       2       2       4 each
//
// `slots` is the list of links of level 0, with room for 2 * M. The few nodes that are on higher
// levels have their lists there, of M each, in an allocation of their own. Records are in chunks
// that never move, but for the first one, which grows with a small graph.
//
// Costs, for n nodes: search and insert O(log n) distances times the effort; erase O(M^2)
// distances; memory about 4 * 2M + 32 bytes beside each vector. Not thread-safe: searches use marks
// that the graph keeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/digest/hash.h"
#include "base/random.h"
#include "store/vector/quantization.h"

namespace latchkey::store {

struct VectorElement;

class VectorGraph {
 public:
  using Slot = uint32_t;
  static constexpr Slot kNone = UINT32_MAX;
  static constexpr unsigned kMaxLevel = 16;
  // Bounds of M.
  static constexpr size_t kMinLinks = 4;
  static constexpr size_t kMaxLinks = 4096;

  // `links`: the paper's M.
  VectorGraph(Quantization quantization, size_t dimensions, size_t links);
  VectorGraph(const VectorGraph& other);
  VectorGraph& operator=(const VectorGraph&) = delete;
  ~VectorGraph();

  size_t size() const { return size_; }
  size_t links_per_level() const { return links_; }
  const VectorDistance& distance() const { return distance_; }
  // The highest level of any node.
  unsigned top_level() const { return entry_ == kNone ? 0 : level(entry_); }
  size_t memory_usage() const;

  // --- Nodes ------------------------------------------------------------------------------------

  // Whom the slot belongs to; the graph only keeps it.
  VectorElement* element(Slot slot) const;
  void set_element(Slot slot, VectorElement* element);
  QuantizedVector vector(Slot slot) const;
  unsigned level(Slot slot) const;
  // REQUIRES: level <= level(slot).
  std::span<const Slot> links(Slot slot, unsigned level) const;
  float distance_between(Slot a, Slot b) const { return distance_(vector(a), vector(b)); }

  // --- Searching --------------------------------------------------------------------------------

  struct Found {
    float distance;
    Slot slot;
  };
  struct Search {
    // The number of nodes that are kept in view: more find more, and cost more.
    size_t effort = 0;
    // Null: all nodes count. Otherwise only those for which it returns true are found; the others
    // are passed through.
    const std::function<bool(Slot)>* accepts = nullptr;
    // With `accepts`: after so many nodes the search ends.
    size_t most_visited = SIZE_MAX;
  };
  // The nodes nearest to the query, at most `effort`, the nearest first.
  std::vector<Found> search(const QuantizedVector& query, const Search& how) const;

  // --- Changing ---------------------------------------------------------------------------------

  // Level 0 with a probability of 1 - 1 / M, and so on.
  unsigned draw_level(base::Random& random) const;
  // Adds a node and links it. Returns its slot, which is the last one.
  Slot insert(const QuantizedVector& vector, unsigned level, size_t effort);
  // The last node, unless it is the one that goes, moves to its slot.
  void erase(Slot slot);

  // --- Loading ----------------------------------------------------------------------------------

  // Adds a node without links; until finish_loading() nothing else may be called but these.
  Slot append(const QuantizedVector& vector, unsigned level);
  // Sets the links of a node at one level. False when they are more than there is room for.
  bool set_links(Slot slot, unsigned level, std::span<const Slot> links);
  void set_scale(Slot slot, float length, float range);
  // Checks that links lead to other nodes of that level, once each and both ways. False when they
  // do not. O(links): whether all go both ways is told by sums of hashes that nobody can foresee.
  bool finish_loading(const base::HashSecret& secret);
  // What finish_loading() checks, in O(size * M^2), for tests.
  bool is_consistent() const;

 private:
  struct Record {
    VectorElement* element;
    Slot* upper;  // for each level above 0: a count and M slots; null: there is none
    float length;
    float range;
    uint16_t level;
    uint16_t link_count;  // of level 0
  };
  static constexpr size_t kLinksAt = 28;  // right behind link_count
  // A list of links for changing: its count is 2 bytes at level 0 and 4 above.
  class LinkList;

  size_t room(unsigned level) const { return level == 0 ? 2 * links_ : links_; }
  char* bytes_of(Slot slot) const {
    return chunks_[slot >> chunk_bits_] + (slot & ((size_t{1} << chunk_bits_) - 1)) * stride_;
  }
  Record& record(Slot slot) const { return *reinterpret_cast<Record*>(bytes_of(slot)); }
  Slot* level_links(Slot slot) const { return reinterpret_cast<Slot*>(bytes_of(slot) + kLinksAt); }
  Slot* upper_list(Slot slot, unsigned level) const {
    return record(slot).upper + (level - 1) * (links_ + 1);
  }
  char* vector_bytes(Slot slot) const { return bytes_of(slot) + vector_at_; }
  LinkList list(Slot slot, unsigned level) const;
  static Slot* copy_upper(const Record& record, size_t links);

  // Graph storage: room for one more record, and giving it back.
  void grow();
  void shrink();
  void move_last_to(Slot slot);

  // The nearest node that a walk finds from `from`, at the levels from `top` down to `bottom`.
  Found descend(const QuantizedVector& query, Found from, unsigned top, unsigned bottom) const;
  std::vector<Found> search_level(const QuantizedVector& query, Found from, unsigned level,
                                  const Search& how) const;
  // Marks the slot as seen by the search under way; false when it was.
  bool mark(Slot slot) const {
    if (marks_[slot] == mark_) return false;
    marks_[slot] = mark_;
    return true;
  }
  void new_marks() const;

  // Links a new node to some of those near it, which are given the nearest first.
  void link_new(Slot slot, unsigned level, const std::vector<Found>& near);
  std::vector<Found> choose_links(const std::vector<Found>& near, size_t most,
                                  std::vector<Found>* passed_over) const;
  bool link(Slot a, Slot b, unsigned level, float distance);
  // Makes room for a link of that length at `slot`. False when all its links are better.
  bool make_room(Slot slot, unsigned level, const QuantizedVector& newcomer, float distance);
  void add_link(Slot slot, unsigned level, Slot to);
  void remove_link(Slot slot, unsigned level, Slot to);
  void unlink(Slot a, Slot b, unsigned level);
  // Links the former neighbours of an erased node to each other.
  void mend(const std::vector<Slot>& former, unsigned level, Slot erased);
  // Finds new neighbours for a node that has lost its last one.
  void relink(Slot slot, unsigned level, Slot erased);
  void choose_entry(const std::vector<Slot>& near);

  VectorDistance distance_;
  size_t links_;
  size_t vector_at_;
  size_t stride_;
  unsigned chunk_bits_;
  std::vector<char*> chunks_;
  size_t capacity_ = 0;  // slots for which there is memory
  size_t size_ = 0;
  Slot entry_ = kNone;
  size_t upper_bytes_ = 0;
  std::vector<uint32_t> nodes_on_level_;  // by level: the nodes whose highest level it is
  // For searches: a slot is marked when its number is mark_.
  mutable std::vector<uint16_t> marks_;
  mutable uint16_t mark_ = 0;
};

// A view of one list of links that can be changed.
class VectorGraph::LinkList {
 public:
  LinkList(Slot* slots, uint16_t* short_count, Slot* count)
      : slots_(slots), short_count_(short_count), count_(count) {}

  size_t size() const { return short_count_ != nullptr ? *short_count_ : *count_; }
  Slot* begin() const { return slots_; }
  Slot* end() const { return slots_ + size(); }
  void set_size(size_t size) {
    if (short_count_ != nullptr) {
      *short_count_ = static_cast<uint16_t>(size);
    } else {
      *count_ = static_cast<Slot>(size);
    }
  }

 private:
  Slot* slots_;
  uint16_t* short_count_;
  Slot* count_;
};

inline VectorGraph::LinkList VectorGraph::list(Slot slot, unsigned level) const {
  if (level == 0) return {level_links(slot), &record(slot).link_count, nullptr};
  Slot* const upper = upper_list(slot, level);
  return {upper + 1, nullptr, upper};
}

inline std::span<const VectorGraph::Slot> VectorGraph::links(Slot slot, unsigned level) const {
  const LinkList links = list(slot, level);
  return {links.begin(), links.size()};
}

}  // namespace latchkey::store
