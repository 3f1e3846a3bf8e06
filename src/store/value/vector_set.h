// A vector set: elements with a vector each, and attributes (a text, JSON if it is to be filtered
// by), that are found by what their vectors are near to (store/vector/graph.h).
//
// The first element decides how vectors are kept and how many components they have. A set with a
// projection takes vectors of input_dimensions() components and keeps them with fewer: each kept
// component is a sum of all components with random signs (D. Achlioptas, "Database-friendly random
// projections", 2003). The signs follow from the position in the matrix alone, so that servers that
// are told the same have the same matrix.
//
// Elements are in a table by name, which knows each one's slot in the graph. An order by name for
// range() is made when it is first asked for, in O(n log n), which is much less than it takes to
// add the elements, and kept from then on, at 40 bytes an element.
//
// Costs, with n elements: add, erase and search as in the graph; find O(1); range O(log n +
// result). Pointers to elements are valid until the element is erased.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "store/hash_table.h"
#include "store/keyspace.h"
#include "store/vector/graph.h"

namespace latchkey::store {

// One allocation: this, then the name. Attributes are another one: their size in 4 bytes, the text.
struct VectorElement {
  VectorGraph::Slot slot;
  uint32_t name_size;
  char* attributes_bytes;  // null: none

  std::string_view name() const { return {reinterpret_cast<const char*>(this + 1), name_size}; }
  bool has_attributes() const { return attributes_bytes != nullptr; }
  // Empty when there are none.
  std::string_view attributes() const;
};

class VectorSet final : public Value {
 public:
  static constexpr Type kType = Type::kVectorSet;
  // The longest vectors in files, kept or given to a projection; requests have a limit of their
  // own.
  static constexpr size_t kMaxDimensions = size_t{1} << 20;
  // The most components of a projection's matrix: of one in a file (a gigabyte), and of one that a
  // request of some kilobytes asks for (64 MiB).
  static constexpr size_t kMaxMatrixComponents = size_t{1} << 28;
  static constexpr size_t kMaxNewMatrixComponents = size_t{1} << 24;
  static constexpr size_t kLongestText = UINT32_MAX;

  struct Shape {
    Quantization quantization = Quantization::kByte;
    size_t dimensions = 0;
    size_t links = 16;
    // 0: without a projection.
    size_t input_dimensions = 0;
  };

  VectorSet(Environment& environment, const Shape& shape);
  // With a projection's matrix from a file, `dimensions` rows of `input_dimensions`, all finite.
  VectorSet(Environment& environment, const Shape& shape, std::vector<float> matrix);
  VectorSet(const VectorSet& other);
  VectorSet& operator=(const VectorSet&) = delete;
  ~VectorSet() override;

  size_t size() const { return graph_.size(); }
  Quantization quantization() const { return graph_.distance().quantization(); }
  size_t dimensions() const { return graph_.distance().dimensions(); }
  size_t input_dimensions() const { return input_dimensions_; }
  bool has_projection() const { return input_dimensions_ != 0; }
  std::span<const float> matrix() const { return matrix_; }
  const VectorGraph& graph() const { return graph_; }
  // Tells the sets of a server apart.
  uint64_t number() const { return number_; }
  // How many vectors were ever added.
  uint64_t vectors_added() const { return vectors_added_; }
  size_t attribute_count() const { return attribute_count_; }

  // --- Reading ----------------------------------------------------------------------------------

  // Null when there is no such element.
  const VectorElement* find(std::string_view name) const { return table_.find_item(name); }
  // O(1), each equally likely. REQUIRES: not empty.
  const VectorElement& random(base::Random& random) const;
  const VectorElement& element(VectorGraph::Slot slot) const { return *graph_.element(slot); }
  QuantizedVector vector(const VectorElement& element) const { return graph_.vector(element.slot); }
  // The components of an element, with their original length as far as the quantization keeps them.
  std::vector<float> components(const VectorElement& element) const;

  // Applies the projection, to finite components: a sum that is too large becomes the largest
  // float. O(dimensions * input_dimensions).
  std::vector<float> project(std::span<const float> components) const;

  struct Match {
    float distance;
    const VectorElement* element;
  };
  // The nearest elements, the nearest first.
  std::vector<Match> search(std::span<const float> components,
                            const VectorGraph::Search& how) const;
  // The same by looking at all of them. O(n).
  std::vector<Match> search_all(std::span<const float> components, size_t count,
                                const VectorGraph::Search& how) const;

  // Calls fn(const VectorElement&) in the order of names, from `from` on (or behind it, if not
  // `inclusive`), until it returns false.
  template <typename Fn>
  void range(std::string_view from, bool inclusive, Fn&& fn) const {
    const auto& order = in_order();
    for (auto at = inclusive ? order.lower_bound(from) : order.upper_bound(from); at != order.end();
         ++at) {
      if (!fn(**at)) return;
    }
  }
  // Calls fn(const VectorElement&) for all, in the order of slots.
  template <typename Fn>
  void for_each(Fn&& fn) const {
    for (size_t slot = 0; slot < size(); ++slot)
      fn(static_cast<const VectorElement&>(element(static_cast<VectorGraph::Slot>(slot))));
  }

  // --- Changing ---------------------------------------------------------------------------------

  // Adds an element, or gives one another vector; true when it is new. `components` have
  // dimensions() components.
  bool add(std::string_view name, std::span<const float> components, size_t effort,
           base::Random& random);
  // False when there is no such element.
  bool erase(std::string_view name);
  // Without a text they are removed. REQUIRES: there is such an element.
  void set_attributes(std::string_view name, std::optional<std::string_view> text);

  // --- Loading ----------------------------------------------------------------------------------

  // Elements come first, then their links through loading_graph(), then its finish_loading().

  // False when there is an element of that name.
  bool append(std::string_view name, const QuantizedVector& vector, unsigned level);
  VectorGraph& loading_graph() { return graph_; }
  void set_vectors_added(uint64_t count) { vectors_added_ = count; }

  // Value
  std::string_view encoding_name() const override { return "raw"; }
  size_t free_effort() const override { return size(); }
  size_t element_count() const override { return size(); }
  size_t memory_usage() const override;
  Value* clone() const override { return new VectorSet(*this); }
  void prefetch(uint64_t hash, LookupStep step) const override { table_.prefetch(hash, step); }

 private:
  struct TableTraits {
    using Item = VectorElement;
    static std::string_view key(const VectorElement* element) { return element->name(); }
  };
  struct ByName {
    using is_transparent = void;
    static std::string_view name(const VectorElement* element) { return element->name(); }
    static std::string_view name(std::string_view text) { return text; }
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return name(a) < name(b);
    }
  };
  using Order = std::set<const VectorElement*, ByName>;

  VectorElement* make_element(std::string_view name);
  void free_element(VectorElement* element);
  const Order& in_order() const;
  std::vector<const VectorElement*> sorted_by_name() const;
  // How many bytes all names begin with.
  size_t common_beginning() const;
  // Takes the slot out of the graph, and tells the element that moves there.
  void erase_slot(VectorGraph::Slot slot);

  Environment& environment_;
  VectorGraph graph_;
  HashTable<TableTraits> table_;
  mutable std::unique_ptr<Order> order_;
  size_t input_dimensions_;
  std::vector<float> matrix_;
  uint64_t number_;
  uint64_t vectors_added_ = 0;
  size_t attribute_count_ = 0;
  size_t element_bytes_ = 0;
};

}  // namespace latchkey::store
