#include "persist/rdb/rdb_vector_set.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "persist/rdb/module_parts.h"
#include "store/value/vector_set.h"

namespace latchkey::persist {

namespace {

using store::Quantization;
using store::QuantizedVector;
using store::VectorElement;
using store::VectorGraph;
using store::VectorSet;
using Slot = VectorGraph::Slot;

// Of a set.
constexpr uint64_t kHasProjection = 1;
constexpr uint64_t kHasAttributes = 2;

constexpr unsigned kLinksShift = 8;
constexpr uint64_t kQuantizationMask = 0xff;
constexpr unsigned kVersionShift = 24;
constexpr uint64_t kLevelMask = (uint64_t{1} << kVersionShift) - 1;
// Nodes have levels above 0 on average less often than this, plus a few; so payloads that are short
// cannot ask for much memory.
constexpr uint64_t kLevelsPerNode = 2;
constexpr uint64_t kLevelsToSpare = 64;

uint64_t packed(const QuantizedVector& vector) {
  return uint64_t{std::bit_cast<uint32_t>(vector.range)} << 32 |
         std::bit_cast<uint32_t>(vector.length);
}

// --- Writing -------------------------------------------------------------------------------------

void write_floats(ModuleWriter& writer, std::span<const float> floats) {
  writer.text({reinterpret_cast<const char*>(floats.data()), floats.size_bytes()});
}

// `first_id`: of slot 0. The loading server takes the highest id for the number of vectors that
// were ever added.
void write_node(ModuleWriter& writer, const VectorGraph& graph, Slot slot, uint64_t first_id) {
  const unsigned top = graph.level(slot);
  uint64_t numbers = 3;
  for (unsigned level = 0; level <= top; ++level) numbers += 2 + graph.links(slot, level).size();
  writer.unsigned_number(numbers);
  writer.unsigned_number(first_id + slot);
  writer.unsigned_number(top);
  for (unsigned level = 0; level <= top; ++level) {
    const std::span<const Slot> links = graph.links(slot, level);
    writer.unsigned_number(links.size());
    writer.unsigned_number(level == 0 ? 2 * graph.links_per_level() : graph.links_per_level());
    for (const Slot link : links) writer.unsigned_number(first_id + link);
  }
  writer.unsigned_number(packed(graph.vector(slot)));
}

}  // namespace

void write_vector_set(RdbWriter& rdb, const store::Value& value) {
  const auto& set = static_cast<const VectorSet&>(value);
  ModuleWriter writer(rdb);
  writer.unsigned_number(set.dimensions());
  writer.unsigned_number(set.size());
  writer.unsigned_number(static_cast<uint64_t>(set.quantization()) |
                         uint64_t{set.graph().links_per_level()} << kLinksShift);
  const bool has_attributes = set.attribute_count() != 0;
  writer.unsigned_number((set.has_projection() ? kHasProjection : 0) |
                         (has_attributes ? kHasAttributes : 0));
  if (set.has_projection()) {
    writer.unsigned_number(set.input_dimensions());
    write_floats(writer, set.matrix());
  }
  const size_t vector_size = set.graph().distance().vector_size();
  const uint64_t first_id = set.vectors_added() - set.size() + 1;
  set.for_each([&](const VectorElement& element) {
    writer.text(element.name());
    if (has_attributes) writer.text(element.attributes());
    writer.text({set.vector(element).bytes, vector_size});
    write_node(writer, set.graph(), element.slot, first_id);
  });
}

// --- Reading -------------------------------------------------------------------------------------

namespace {

class VectorSetReader {
 public:
  VectorSetReader(RdbReader& reader, store::Environment& environment)
      : parts_(reader, "A vector set"),
        environment_(environment),
        aliases_(0, KeyedHash{&environment.secret}) {}

  ReadResult read(LoadedValue* loaded);

 private:
  // Ids come from outside and must not collide on purpose.
  struct KeyedHash {
    const base::HashSecret* secret;
    size_t operator()(uint64_t id) const {
      return secret->hash({reinterpret_cast<const char*>(&id), sizeof id});
    }
  };

  bool number(uint64_t* value) { return parts_.unsigned_number(value); }
  bool text(std::string_view* value) { return parts_.text(value); }
  bool fail(std::string_view problem) { return parts_.fail(problem); }

  bool read_head(uint64_t* elements);
  bool read_matrix(const VectorSet::Shape& shape, std::vector<float>* matrix);
  bool read_element();
  bool read_node(std::string_view name, std::string_view bytes);
  bool read_links(unsigned level, bool has_farthest, uint64_t* numbers);
  // Replaces what links lead to, which are aliases, by slots.
  bool resolve_links();
  // A short number for an id, the next one for an id that was not heard of before.
  Slot alias_of(uint64_t id) {
    return aliases_.try_emplace(id, static_cast<Slot>(aliases_.size())).first->second;
  }

  ModuleReader parts_;
  store::Environment& environment_;
  std::unique_ptr<VectorSet> set_;
  bool has_attributes_ = false;
  uint64_t levels_ = 0;  // of all nodes
  uint64_t highest_id_ = 0;
  std::unordered_map<uint64_t, Slot, KeyedHash> aliases_;
  std::vector<Slot> alias_of_slot_;
};

bool VectorSetReader::read_matrix(const VectorSet::Shape& shape, std::vector<float>* matrix) {
  std::string_view bytes;
  if (!text(&bytes)) return false;
  const size_t components = shape.dimensions * shape.input_dimensions;
  if (components > VectorSet::kMaxMatrixComponents || bytes.size() != components * sizeof(float))
    return fail("has a projection of the wrong size");
  matrix->resize(components);
  std::memcpy(matrix->data(), bytes.data(), bytes.size());
  const bool is_finite = std::all_of(matrix->begin(), matrix->end(),
                                     [](float component) { return std::isfinite(component); });
  return is_finite || fail("has a projection that is not of numbers");
}

bool VectorSetReader::read_head(uint64_t* elements) {
  uint64_t dimensions;
  uint64_t configuration;
  uint64_t flags;
  if (!number(&dimensions) || !number(elements) || !number(&configuration) || !number(&flags))
    return false;
  const uint64_t quantization = configuration & kQuantizationMask;
  const uint64_t links = configuration >> kLinksShift;
  if (dimensions == 0 || dimensions > VectorSet::kMaxDimensions ||
      quantization > static_cast<uint64_t>(Quantization::kBit) || links < VectorGraph::kMinLinks ||
      links > VectorGraph::kMaxLinks || (flags & ~(kHasProjection | kHasAttributes)) != 0)
    return fail("is of a kind that does not exist");
  has_attributes_ = (flags & kHasAttributes) != 0;
  VectorSet::Shape shape{static_cast<Quantization>(quantization), dimensions, links, 0};
  std::vector<float> matrix;
  if ((flags & kHasProjection) != 0) {
    if (!number(&shape.input_dimensions)) return false;
    if (shape.input_dimensions == 0 || shape.input_dimensions > VectorSet::kMaxDimensions)
      return fail("has a projection of the wrong size");
    if (!read_matrix(shape, &matrix)) return false;
  }
  set_ = std::make_unique<VectorSet>(environment_, shape, std::move(matrix));
  return true;
}

bool VectorSetReader::read_element() {
  std::string_view view;
  if (!text(&view)) return false;
  const std::string name(view);
  std::string attributes;
  if (has_attributes_) {
    if (!text(&view)) return false;
    attributes = view;
  }
  if (name.size() > VectorSet::kLongestText || attributes.size() > VectorSet::kLongestText)
    return fail("has a text that is too long");
  if (!text(&view)) return false;
  if (view.size() != set_->graph().distance().vector_size())
    return fail("has a vector of the wrong size");
  if (!read_node(name, std::string(view))) return false;
  if (!attributes.empty()) set_->set_attributes(name, attributes);
  return true;
}

bool VectorSetReader::read_node(std::string_view name, std::string_view bytes) {
  uint64_t numbers;
  uint64_t id;
  uint64_t level;
  if (!number(&numbers) || !number(&id) || !number(&level)) return false;
  const uint64_t version = level >> kVersionShift;
  level &= kLevelMask;
  levels_ += level;
  if (version > 1 || level > VectorGraph::kMaxLevel || numbers < 3 ||
      levels_ > kLevelsPerNode * set_->size() + kLevelsToSpare)
    return fail("has a node that cannot be");
  numbers -= 3;
  const Slot slot = static_cast<Slot>(set_->size());
  if (!set_->append(name, {bytes.data(), 0, 0}, static_cast<unsigned>(level)))
    return fail("has an element twice");
  for (unsigned at = 0; at <= level; ++at) {
    if (!read_links(at, version == 1, &numbers)) return false;
  }
  uint64_t last;
  if (!number(&last)) return false;
  if (numbers != 0) return fail("has a node that cannot be");
  // Any, for the reference writes an infinite length of a vector that is longer than any float.
  set_->loading_graph().set_scale(slot, std::bit_cast<float>(static_cast<uint32_t>(last)),
                                  std::bit_cast<float>(static_cast<uint32_t>(last >> 32)));
  alias_of_slot_.push_back(alias_of(id));
  highest_id_ = std::max(highest_id_, id);
  return true;
}

bool VectorSetReader::read_links(unsigned level, bool has_farthest, uint64_t* numbers) {
  const auto slot = static_cast<Slot>(set_->size() - 1);
  uint64_t count;
  uint64_t room;
  if (!number(&count) || !number(&room)) return false;
  const uint64_t used = 2 + count + (has_farthest ? 1 : 0);
  if (count > 2 * VectorGraph::kMaxLinks || *numbers < used)
    return fail("has a node that cannot be");
  *numbers -= used;
  std::vector<Slot> links;
  for (; count > 0; --count) {
    uint64_t id;
    if (!number(&id)) return false;
    links.push_back(alias_of(id));
  }
  uint64_t farthest;
  if (has_farthest && !number(&farthest)) return false;
  return set_->loading_graph().set_links(slot, level, links) ||
         fail("has a node with more links than fit");
}

bool VectorSetReader::resolve_links() {
  std::vector<Slot> slot_of(aliases_.size(), VectorGraph::kNone);
  for (size_t slot = 0; slot < alias_of_slot_.size(); ++slot) {
    Slot& place = slot_of[alias_of_slot_[slot]];
    if (place != VectorGraph::kNone) return fail("has two nodes of one id");
    place = static_cast<Slot>(slot);
  }
  VectorGraph& graph = set_->loading_graph();
  std::vector<Slot> links;
  for (size_t i = 0; i < set_->size(); ++i) {
    const auto slot = static_cast<Slot>(i);
    for (unsigned level = 0; level <= graph.level(slot); ++level) {
      links.clear();
      for (const Slot alias : graph.links(slot, level)) links.push_back(slot_of[alias]);
      graph.set_links(slot, level, links);
    }
  }
  return graph.finish_loading(environment_.secret) || fail("has links that lead astray");
}

ReadResult VectorSetReader::read(LoadedValue* loaded) {
  uint64_t elements;
  if (!read_head(&elements)) return ReadResult::kFailed;
  for (uint64_t i = 0; i < elements; ++i) {
    if (!read_element()) return ReadResult::kFailed;
  }
  if (!resolve_links()) return ReadResult::kFailed;
  if (elements == 0) return ReadResult::kEmpty;
  set_->set_vectors_added(std::max<uint64_t>(highest_id_, set_->size()));
  loaded->type = VectorSet::kType;
  loaded->value = std::move(set_);
  return ReadResult::kDone;
}

}  // namespace

ReadResult read_vector_set(RdbReader& reader, store::Environment& environment, unsigned version,
                           LoadedValue* loaded) {
  if (version != 0) {
    reader.fail("A vector set is of a later version");
    return ReadResult::kFailed;
  }
  return VectorSetReader(reader, environment).read(loaded);
}

}  // namespace latchkey::persist
