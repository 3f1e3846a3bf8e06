#include "persist/rdb/rdb_sketches.h"

#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "persist/rdb/module_parts.h"
#include "store/probabilistic/count_min_sketch.h"
#include "store/probabilistic/t_digest.h"
#include "store/probabilistic/top_k.h"

namespace latchkey::persist {

namespace {

using store::CountMinSketch;
using store::TDigest;
using store::TopK;

template <typename T>
std::string_view bytes_of(std::span<T> items) {
  return {reinterpret_cast<const char*>(items.data()), items.size_bytes()};
}

// Always kFailed.
ReadResult failed(ModuleReader& parts, std::string_view problem) {
  parts.fail(problem);
  return ReadResult::kFailed;
}

template <typename V>
ReadResult done(std::unique_ptr<V> value, LoadedValue* loaded) {
  loaded->type = V::kType;
  loaded->value = std::move(value);
  return ReadResult::kDone;
}

}  // namespace

// --- Count-min sketches --------------------------------------------------------------------------

void write_count_min_sketch(RdbWriter& writer, const store::Value& value) {
  const auto& sketch = static_cast<const CountMinSketch&>(value);
  ModuleWriter parts(writer);
  parts.unsigned_number(sketch.width());
  parts.unsigned_number(sketch.depth());
  parts.unsigned_number(sketch.total());
  parts.text(bytes_of(sketch.counters()));
}

ReadResult read_count_min_sketch(RdbReader& reader, store::Environment&, unsigned,
                                 LoadedValue* loaded) {
  ModuleReader parts(reader, "A count-min sketch");
  uint64_t width;
  uint64_t depth;
  uint64_t total;
  std::string_view counters;
  if (!parts.unsigned_number(&width) || !parts.unsigned_number(&depth) ||
      !parts.unsigned_number(&total) || !parts.text(&counters))
    return ReadResult::kFailed;
  if (!CountMinSketch::are_dimensions(width, depth) ||
      counters.size() != width * depth * sizeof(CountMinSketch::Counter))
    return failed(parts, "has the wrong dimensions");
  std::unique_ptr<CountMinSketch> sketch = CountMinSketch::make(width, depth);
  if (sketch == nullptr) return failed(parts, "does not fit in memory");
  std::memcpy(sketch->loading_counters().data(), counters.data(), counters.size());
  sketch->set_total(total);
  return done(std::move(sketch), loaded);
}

// --- Top-k lists ---------------------------------------------------------------------------------

namespace {

struct SavedSlot {
  uint32_t fingerprint;
  uint32_t text_size;
  uint64_t pointer;
  uint32_t count;
  uint32_t padding;
};
static_assert(sizeof(SavedSlot) == 24);

bool read_shape(ModuleReader& parts, TopK::Shape* shape) {
  if (!parts.unsigned_number(&shape->k) || !parts.unsigned_number(&shape->width) ||
      !parts.unsigned_number(&shape->depth) || !parts.real(&shape->decay))
    return false;
  return TopK::is_sound(*shape) || parts.fail("has the wrong dimensions");
}

// Reads the text of a slot's item, which the slot gets if there is one.
bool read_item(ModuleReader& parts, TopK& list, size_t slot, const SavedSlot& saved) {
  std::string_view text;
  if (!parts.text(&text)) return false;
  if (!text.empty() && text.back() == '\0') text.remove_suffix(1);
  if (text.size() > std::numeric_limits<uint32_t>::max()) return parts.fail("has a long item");
  const bool is_empty_item = saved.pointer != 0 && saved.text_size == 0;
  if (text.empty() && !is_empty_item) return true;
  const bool is_cut = text.size() < saved.text_size;
  return list.set_item(slot, text) || is_cut || parts.fail("has an item twice");
}

}  // namespace

void write_top_k(RdbWriter& writer, const store::Value& value) {
  const auto& list = static_cast<const TopK&>(value);
  ModuleWriter parts(writer);
  parts.unsigned_number(list.shape().k);
  parts.unsigned_number(list.shape().width);
  parts.unsigned_number(list.shape().depth);
  parts.real(list.shape().decay);
  parts.text(bytes_of(list.buckets()));
  std::vector<SavedSlot> saved;
  saved.reserve(list.slots().size());
  for (const TopK::Slot& slot : list.slots()) {
    const bool has_item = slot.item != nullptr;
    saved.push_back(
        {slot.fingerprint, has_item ? slot.item->text_size : 0, has_item ? 1U : 0U, slot.count, 0});
  }
  parts.text(bytes_of(std::span(saved)));
  std::string text;
  for (const TopK::Slot& slot : list.slots()) {
    text = slot.item == nullptr ? std::string_view() : slot.item->text();
    text.push_back('\0');
    parts.text(text);
    if (!parts.ok()) return;
  }
}

ReadResult read_top_k(RdbReader& reader, store::Environment& environment, unsigned,
                      LoadedValue* loaded) {
  ModuleReader parts(reader, "A top-k list");
  TopK::Shape shape;
  std::string_view view;
  if (!read_shape(parts, &shape) || !parts.text(&view)) return ReadResult::kFailed;
  if (view.size() != shape.width * shape.depth * sizeof(TopK::Bucket))
    return failed(parts, "has buckets of the wrong size");
  const std::string buckets(view);
  if (!parts.text(&view)) return ReadResult::kFailed;
  if (view.size() != shape.k * sizeof(SavedSlot))
    return failed(parts, "has slots of the wrong size");
  std::vector<SavedSlot> saved(shape.k);
  std::memcpy(saved.data(), view.data(), view.size());
  std::unique_ptr<TopK> list = TopK::make(environment, shape);
  if (list == nullptr) return failed(parts, "does not fit in memory");
  std::memcpy(list->loading_buckets().data(), buckets.data(), buckets.size());
  for (size_t slot = 0; slot < saved.size(); ++slot) {
    list->set_slot(slot, saved[slot].fingerprint, saved[slot].count);
    if (!read_item(parts, *list, slot, saved[slot])) return ReadResult::kFailed;
  }
  return done(std::move(list), loaded);
}

// --- t-digests -----------------------------------------------------------------------------------

void write_t_digest(RdbWriter& writer, const store::Value& value) {
  const auto& digest = static_cast<const TDigest&>(value);
  digest.merge();
  ModuleWriter parts(writer);
  parts.real(static_cast<double>(digest.compression()));
  parts.real(digest.stored_min());
  parts.real(digest.stored_max());
  parts.unsigned_number(digest.capacity());
  parts.unsigned_number(digest.centroids().size());
  parts.unsigned_number(0);
  parts.unsigned_number(static_cast<uint64_t>(digest.merges()));
  parts.real(static_cast<double>(digest.weight()));
  parts.real(0);
  for (const TDigest::Centroid& centroid : digest.centroids()) parts.real(centroid.mean);
  for (const TDigest::Centroid& centroid : digest.centroids())
    parts.real(static_cast<double>(centroid.weight));
}

namespace {

struct SavedDigest {
  double compression;
  TDigest::Loaded state;
  uint64_t merged;
  uint64_t unmerged;
};

bool read_digest_head(ModuleReader& parts, SavedDigest* saved) {
  uint64_t capacity;
  uint64_t merges;
  double weight;
  if (!parts.real(&saved->compression) || !parts.real(&saved->state.min) ||
      !parts.real(&saved->state.max) || !parts.unsigned_number(&capacity) ||
      !parts.unsigned_number(&saved->merged) || !parts.unsigned_number(&saved->unmerged) ||
      !parts.unsigned_number(&merges) || !parts.real(&weight) || !parts.real(&weight))
    return false;
  saved->state.capacity = capacity;
  saved->state.merges = static_cast<int64_t>(merges);
  if (!(saved->compression >= 1 &&
        saved->compression <= static_cast<double>(TDigest::kMaxCompression)) ||
      capacity < TDigest::capacity_of(static_cast<int64_t>(saved->compression)) ||
      capacity > TDigest::kMaxCapacity || saved->merged > capacity)
    return parts.fail("has the wrong dimensions");
  // Only a single observation can be told from what else is saved.
  const bool is_whole = saved->unmerged == 0 || (saved->unmerged == 1 && saved->merged == 0);
  return is_whole || parts.fail("has observations that were not saved");
}

// Reads the weights of centroids, of which the means are there.
bool read_weights(ModuleReader& parts, std::vector<TDigest::Centroid>& centroids) {
  constexpr double kEnd = 0x1p63;
  int64_t sum = 0;
  for (TDigest::Centroid& centroid : centroids) {
    double weight;
    if (!parts.real(&weight)) return false;
    if (!(weight >= 1 && weight < kEnd)) return parts.fail("has a centroid of a wrong weight");
    centroid.weight = static_cast<int64_t>(weight);
    if (__builtin_add_overflow(sum, centroid.weight, &sum))
      return parts.fail("has too many observations");
  }
  return true;
}

}  // namespace

ReadResult read_t_digest(RdbReader& reader, store::Environment&, unsigned, LoadedValue* loaded) {
  ModuleReader parts(reader, "A t-digest");
  SavedDigest saved;
  if (!read_digest_head(parts, &saved)) return ReadResult::kFailed;
  std::vector<TDigest::Centroid> centroids;
  for (uint64_t i = 0; i < saved.merged; ++i) {
    double mean;
    if (!parts.real(&mean)) return ReadResult::kFailed;
    centroids.push_back({mean, 0});
  }
  if (!read_weights(parts, centroids)) return ReadResult::kFailed;
  if (saved.unmerged == 1) centroids.push_back({saved.state.min, 1});
  auto digest = std::make_unique<TDigest>(static_cast<int64_t>(saved.compression));
  digest->load(saved.state, std::move(centroids));
  return done(std::move(digest), loaded);
}

}  // namespace latchkey::persist
