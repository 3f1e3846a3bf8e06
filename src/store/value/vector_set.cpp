#include "store/value/vector_set.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "base/assert.h"

namespace latchkey::store {

namespace {

// Mixes a position into a number whose bits look random (the finalizer of SplitMix64, by S. Vigna).
uint64_t mixed(uint64_t value) {
  value += 0x9E3779B97F4A7C15;
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9;
  value = (value ^ value >> 27) * 0x94D049BB133111EB;
  return value ^ value >> 31;
}

std::vector<float> make_matrix(const VectorSet::Shape& shape) {
  std::vector<float> matrix(shape.dimensions * shape.input_dimensions);
  const float weight = 1 / std::sqrt(static_cast<float>(shape.input_dimensions));
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = (mixed(i) & 1) != 0 ? weight : -weight;
  return matrix;
}

char* make_attributes(std::string_view text) {
  const auto size = static_cast<uint32_t>(text.size());
  char* bytes = static_cast<char*>(::operator new(sizeof size + size));
  std::memcpy(bytes, &size, sizeof size);
  std::memcpy(bytes + sizeof size, text.data(), size);
  return bytes;
}

size_t element_size(const VectorElement& element) {
  const size_t attributes = element.attributes().size();
  return sizeof(VectorElement) + element.name_size +
         (element.has_attributes() ? sizeof(uint32_t) + attributes : 0);
}

// The first eight bytes as a number: a lower one never belongs to a later name.
uint64_t head_of(std::string_view text) {
  uint64_t head = 0;
  std::memcpy(&head, text.data(), std::min(text.size(), sizeof head));
  return std::endian::native == std::endian::little ? __builtin_bswap64(head) : head;
}

}  // namespace

std::string_view VectorElement::attributes() const {
  if (attributes_bytes == nullptr) return {};
  uint32_t size;
  std::memcpy(&size, attributes_bytes, sizeof size);
  return {attributes_bytes + sizeof size, size};
}

VectorSet::VectorSet(Environment& environment, const Shape& shape)
    : VectorSet(environment, shape, make_matrix(shape)) {}

VectorSet::VectorSet(Environment& environment, const Shape& shape, std::vector<float> matrix)
    : environment_(environment),
      graph_(shape.quantization, shape.dimensions, shape.links),
      table_(environment.secret),
      input_dimensions_(shape.input_dimensions),
      matrix_(std::move(matrix)),
      number_(environment.vector_sets_made++) {
  LK_ASSERT(matrix_.size() == shape.dimensions * shape.input_dimensions);
}

VectorSet::VectorSet(const VectorSet& other)
    : Value(),
      environment_(other.environment_),
      graph_(other.graph_),
      table_(other.environment_.secret),
      input_dimensions_(other.input_dimensions_),
      matrix_(other.matrix_),
      number_(other.environment_.vector_sets_made++),
      vectors_added_(other.vectors_added_) {
  other.for_each([&](const VectorElement& original) {
    VectorElement* element = make_element(original.name());
    element->slot = original.slot;
    graph_.set_element(element->slot, element);
    if (original.has_attributes()) set_attributes(element->name(), original.attributes());
  });
}

VectorSet::~VectorSet() {
  for (size_t slot = 0; slot < size(); ++slot)
    free_element(graph_.element(static_cast<VectorGraph::Slot>(slot)));
}

VectorElement* VectorSet::make_element(std::string_view name) {
  LK_ASSERT(name.size() <= kLongestText);
  void* memory = ::operator new(sizeof(VectorElement) + name.size());
  auto* element =
      new (memory) VectorElement{VectorGraph::kNone, static_cast<uint32_t>(name.size()), nullptr};
  if (!name.empty()) std::memcpy(static_cast<void*>(element + 1), name.data(), name.size());
  element_bytes_ += element_size(*element);
  table_.insert(element, table_.hash(name));
  if (order_ != nullptr) order_->insert(element);
  return element;
}

void VectorSet::free_element(VectorElement* element) {
  ::operator delete(element->attributes_bytes);
  ::operator delete(element);
}

// --- Reading -------------------------------------------------------------------------------------

const VectorElement& VectorSet::random(base::Random& random) const {
  return element(static_cast<VectorGraph::Slot>(random.below(size())));
}

std::vector<float> VectorSet::components(const VectorElement& element) const {
  return restored(quantization(), vector(element), dimensions());
}

std::vector<float> VectorSet::project(std::span<const float> components) const {
  LK_ASSERT(components.size() == input_dimensions_);
  std::vector<float> projected(dimensions());
  const VectorKernels kernels = fastest_kernels();
  for (size_t row = 0; row < projected.size(); ++row) {
    const float* const factors = matrix_.data() + row * input_dimensions_;
    projected[row] = kernels.dot_floats(factors, components.data(), components.size());
    if (std::isfinite(projected[row])) continue;
    // The sum, or one on the way to it, is beyond all floats.
    double sum = 0;
    for (size_t i = 0; i < components.size(); ++i) sum += double{factors[i]} * components[i];
    constexpr double kLargest = std::numeric_limits<float>::max();
    projected[row] = static_cast<float>(std::clamp(sum, -kLargest, kLargest));
  }
  return projected;
}

std::vector<VectorSet::Match> VectorSet::search(std::span<const float> components,
                                                const VectorGraph::Search& how) const {
  const VectorBuffer query(quantization(), components);
  std::vector<Match> matches;
  for (const VectorGraph::Found& found : graph_.search(query.view(), how))
    matches.push_back({found.distance, &element(found.slot)});
  return matches;
}

std::vector<VectorSet::Match> VectorSet::search_all(std::span<const float> components, size_t count,
                                                    const VectorGraph::Search& how) const {
  const VectorBuffer query(quantization(), components);
  std::vector<Match> matches;
  matches.reserve(size());
  for (size_t i = 0; i < size(); ++i) {
    const auto slot = static_cast<VectorGraph::Slot>(i);
    if (how.accepts != nullptr && !(*how.accepts)(slot)) continue;
    matches.push_back({graph_.distance()(query.view(), graph_.vector(slot)), &element(slot)});
  }
  const size_t wanted = std::min(count, matches.size());
  std::partial_sort(matches.begin(), matches.begin() + static_cast<ptrdiff_t>(wanted),
                    matches.end(),
                    [](const Match& a, const Match& b) { return a.distance < b.distance; });
  matches.resize(wanted);
  return matches;
}

// Names are apart in memory: the eight bytes behind their common beginning are compared beside the
// pointers, which saves most of the cache misses.
std::vector<const VectorElement*> VectorSet::sorted_by_name() const {
  struct Keyed {
    uint64_t head;
    const VectorElement* element;
  };
  const size_t common = common_beginning();
  std::vector<Keyed> keyed;
  keyed.reserve(size());
  for_each([&](const VectorElement& element) {
    keyed.push_back({head_of(element.name().substr(common)), &element});
  });
  std::sort(keyed.begin(), keyed.end(), [](const Keyed& a, const Keyed& b) {
    return a.head != b.head ? a.head < b.head : a.element->name() < b.element->name();
  });
  std::vector<const VectorElement*> sorted;
  sorted.reserve(keyed.size());
  for (const Keyed& each : keyed) sorted.push_back(each.element);
  return sorted;
}

size_t VectorSet::common_beginning() const {
  if (size() == 0) return 0;
  std::string_view common = element(0).name();
  for_each([&](const VectorElement& element) {
    const std::string_view name = element.name();
    const auto end = std::mismatch(common.begin(), common.end(), name.begin(), name.end()).first;
    common = common.substr(0, static_cast<size_t>(end - common.begin()));
  });
  return common.size();
}

const VectorSet::Order& VectorSet::in_order() const {
  if (order_ == nullptr) {
    order_ = std::make_unique<Order>();
    for (const VectorElement* element : sorted_by_name()) order_->insert(order_->end(), element);
  }
  return *order_;
}

// --- Changing ------------------------------------------------------------------------------------

bool VectorSet::add(std::string_view name, std::span<const float> components, size_t effort,
                    base::Random& random) {
  LK_ASSERT(components.size() == dimensions());
  const VectorBuffer vector(quantization(), components);
  VectorElement* element = table_.find_item(name);
  const bool is_new = element == nullptr;
  if (is_new) {
    element = make_element(name);
  } else {
    erase_slot(element->slot);
  }
  element->slot = graph_.insert(vector.view(), graph_.draw_level(random), effort);
  graph_.set_element(element->slot, element);
  ++vectors_added_;
  return is_new;
}

void VectorSet::erase_slot(VectorGraph::Slot slot) {
  graph_.erase(slot);
  if (slot < graph_.size()) graph_.element(slot)->slot = slot;
}

bool VectorSet::erase(std::string_view name) {
  const uint64_t hash = table_.hash(name);
  VectorElement** place = table_.find(name, hash);
  if (place == nullptr) return false;
  VectorElement* element = *place;
  if (order_ != nullptr) order_->erase(element);
  table_.erase(place, hash);
  element_bytes_ -= element_size(*element);
  if (element->has_attributes()) --attribute_count_;
  erase_slot(element->slot);
  free_element(element);
  return true;
}

void VectorSet::set_attributes(std::string_view name, std::optional<std::string_view> text) {
  VectorElement* element = table_.find_item(name);
  LK_ASSERT(element != nullptr && (!text || text->size() <= kLongestText));
  element_bytes_ -= element_size(*element);
  if (element->has_attributes()) --attribute_count_;
  ::operator delete(element->attributes_bytes);
  element->attributes_bytes = text ? make_attributes(*text) : nullptr;
  if (element->has_attributes()) ++attribute_count_;
  element_bytes_ += element_size(*element);
}

bool VectorSet::append(std::string_view name, const QuantizedVector& vector, unsigned level) {
  if (find(name) != nullptr) return false;
  VectorElement* element = make_element(name);
  element->slot = graph_.append(vector, level);
  graph_.set_element(element->slot, element);
  return true;
}

size_t VectorSet::memory_usage() const {
  // What the library takes for a node of a set.
  constexpr size_t kOrderNode = 40;
  return sizeof(*this) - sizeof(graph_) + graph_.memory_usage() + table_.memory_usage() +
         element_bytes_ + matrix_.capacity() * sizeof(float) +
         (order_ == nullptr ? 0 : order_->size() * kOrderNode);
}

}  // namespace latchkey::store
