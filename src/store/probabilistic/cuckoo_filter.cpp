#include "store/probabilistic/cuckoo_filter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/digest/murmur.h"
#include "store/probabilistic/packed_fields.h"

namespace latchkey::store {

static_assert(std::endian::native == std::endian::little, "headers are little-endian");

namespace {

constexpr uint8_t kEmpty = 0;

uint64_t other_bucket(uint64_t bucket, uint8_t fingerprint) {
  constexpr uint64_t kFactor = 0x5bd1e995;
  return bucket ^ fingerprint * kFactor;
}

}  // namespace

CuckooFilter::Layer::Layer(uint64_t the_buckets, ZeroedArray<uint8_t> the_slots)
    : buckets(the_buckets),
      mask(std::has_single_bit(buckets) ? buckets - 1 : 0),
      slots(std::move(the_slots)) {}

// --- Making --------------------------------------------------------------------------------------

bool CuckooFilter::is_sound(const Shape& shape) {
  return std::has_single_bit(shape.buckets) && shape.bucket_size >= 1 &&
         shape.bucket_size <= kMaxBucketSize && shape.max_iterations >= 1 &&
         shape.expansion <= kMaxExpansion;
}

void CuckooFilter::push_layer(uint64_t buckets, ZeroedArray<uint8_t> slots) {
  bytes_ += slots.size();
  layers_.emplace_back(buckets, std::move(slots));
}

// The next layer has the first one's buckets times the expansion for each layer there is.
bool CuckooFilter::grow() {
  if (layers_.size() >= kMaxLayers) return false;
  uint64_t bytes = shape_.buckets;
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (__builtin_mul_overflow(bytes, uint64_t{shape_.expansion}, &bytes) || bytes > kMaxBytes)
      return false;
    if (shape_.expansion == 1) break;
  }
  const uint64_t buckets = bytes;
  if (__builtin_mul_overflow(bytes, uint64_t{shape_.bucket_size}, &bytes) ||
      bytes > kMaxBytes - bytes_)
    return false;
  ZeroedArray<uint8_t> slots(bytes, std::nothrow);
  if (!slots.is_made()) return false;
  push_layer(buckets, std::move(slots));
  return true;
}

std::unique_ptr<CuckooFilter> CuckooFilter::make(uint64_t capacity, uint16_t bucket_size,
                                                 uint16_t max_iterations, uint16_t expansion) {
  Shape shape;
  shape.buckets = std::bit_ceil(capacity / bucket_size);
  shape.bucket_size = bucket_size;
  shape.max_iterations = max_iterations;
  shape.expansion = expansion == 0 ? uint16_t{0} : std::bit_ceil(expansion);
  LK_ASSERT(is_sound(shape));
  auto filter = std::make_unique<CuckooFilter>(shape, 0, 0);
  return filter->grow() ? std::move(filter) : nullptr;
}

bool CuckooFilter::append_layer(uint64_t buckets, std::string_view slots) {
  LK_ASSERT(buckets > 0 && slots.size() / shape_.bucket_size == buckets &&
            slots.size() % shape_.bucket_size == 0);
  if (layers_.size() >= kMaxLayers) return false;
  ZeroedArray<uint8_t> copy(slots, std::nothrow);
  if (!copy.is_made()) return false;
  push_layer(buckets, std::move(copy));
  return true;
}

CuckooFilter::CuckooFilter(const CuckooFilter& other)
    : ModuleValue(), shape_(other.shape_), items_(other.items_), erased_(other.erased_) {
  layers_.reserve(other.layers_.size());
  for (const Layer& layer : other.layers_) {
    const bool is_made = append_layer(layer.buckets, layer.slots.bytes());
    LK_ASSERT(is_made);
  }
}

// --- Items ---------------------------------------------------------------------------------------

CuckooFilter::Key CuckooFilter::key_of(std::string_view item) {
  constexpr uint64_t kFingerprints = 255;
  const uint64_t hash = base::murmur_hash_64a(item, 0);
  const auto fingerprint = static_cast<uint8_t>(hash % kFingerprints + 1);
  return {fingerprint, hash, other_bucket(hash, fingerprint)};
}

uint64_t CuckooFilter::find(const Layer& layer, const Key& key, uint8_t fingerprint) const {
  for (const uint64_t hash : {key.first, key.second}) {
    const uint64_t begin = layer.bucket(hash) * shape_.bucket_size;
    for (uint64_t slot = begin; slot < begin + shape_.bucket_size; ++slot) {
      if (layer.slots.data()[slot] == fingerprint) return slot;
    }
  }
  return kNoSlot;
}

bool CuckooFilter::contains(const Key& key) const {
  return std::any_of(layers_.rbegin(), layers_.rend(), [&](const Layer& layer) {
    return find(layer, key, key.fingerprint) != kNoSlot;
  });
}

bool CuckooFilter::contains(std::string_view item) const {
  return contains(key_of(item));
}

uint64_t CuckooFilter::count(std::string_view item) const {
  const Key key = key_of(item);
  uint64_t count = 0;
  for (const Layer& layer : layers_) {
    // Twice for an item whose buckets are one, as in the reference.
    for (const uint64_t hash : {key.first, key.second}) {
      const uint8_t* slots = layer.slots.data() + layer.bucket(hash) * shape_.bucket_size;
      count +=
          static_cast<uint64_t>(std::count(slots, slots + shape_.bucket_size, key.fingerprint));
    }
  }
  return count;
}

bool CuckooFilter::moves_in_vain(const Layer& layer, const Key& key) const {
  // Otherwise the other bucket of the other bucket need not be the first.
  if (!std::has_single_bit(layer.buckets)) return false;
  return std::ranges::all_of(std::array{key.first, key.second}, [&](uint64_t hash) {
    const uint8_t* slots = layer.slots.data() + layer.bucket(hash) * shape_.bucket_size;
    return std::count(slots, slots + shape_.bucket_size, key.fingerprint) == shape_.bucket_size;
  });
}

bool CuckooFilter::add_by_moving(Layer& layer, const Key& key, uint64_t* moves) {
  if (moves_in_vain(layer, key)) return false;
  const uint64_t most = std::min<uint64_t>(shape_.max_iterations, *moves);
  std::vector<uint64_t> moved;
  uint8_t* slots = layer.slots.data();
  uint8_t fingerprint = key.fingerprint;
  uint64_t bucket = layer.bucket(key.first);
  for (uint64_t i = 0; i < most; ++i) {
    const uint64_t taken = bucket * shape_.bucket_size + i % shape_.bucket_size;
    std::swap(slots[taken], fingerprint);
    moved.push_back(taken);
    --*moves;
    bucket = layer.bucket(other_bucket(bucket, fingerprint));
    uint8_t* begin = slots + bucket * shape_.bucket_size;
    uint8_t* end = begin + shape_.bucket_size;
    uint8_t* empty = std::find(begin, end, kEmpty);
    if (empty != end) {
      *empty = fingerprint;
      return true;
    }
  }
  for (auto slot = moved.rbegin(); slot != moved.rend(); ++slot)
    std::swap(slots[*slot], fingerprint);
  return false;
}

CuckooFilter::Outcome CuckooFilter::add(const Key& key, uint64_t* moves) {
  for (;;) {
    for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
      const uint64_t slot = find(*layer, key, kEmpty);
      if (slot == kNoSlot) continue;
      layer->slots.data()[slot] = key.fingerprint;
      ++items_;
      return Outcome::kAdded;
    }
    if (add_by_moving(layers_.back(), key, moves)) {
      ++items_;
      return Outcome::kAdded;
    }
    if (shape_.expansion == 0) return Outcome::kFull;
    if (!grow()) return Outcome::kNoMemory;
  }
}

CuckooFilter::Outcome CuckooFilter::add(std::string_view item, uint64_t* moves) {
  return add(key_of(item), moves);
}

CuckooFilter::Outcome CuckooFilter::add_new(std::string_view item, uint64_t* moves) {
  const Key key = key_of(item);
  return contains(key) ? Outcome::kPresent : add(key, moves);
}

bool CuckooFilter::erase(std::string_view item) {
  constexpr uint64_t kItemsPerErased = 10;
  const Key key = key_of(item);
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    const uint64_t slot = find(*layer, key, key.fingerprint);
    if (slot == kNoSlot) continue;
    layer->slots.data()[slot] = kEmpty;
    // A header from outside may say that there are fewer than there are.
    if (items_ > 0) --items_;
    ++erased_;
    if (layers_.size() > 1 && erased_ > items_ / kItemsPerErased) compact_layers(false);
    return true;
  }
  return false;
}

// Moves the fingerprints of a layer to older ones as far as they have empty slots for them. Whether
// none is left.
bool CuckooFilter::empty_layer(size_t index) {
  Layer& layer = layers_[index];
  bool is_empty = true;
  for (uint64_t slot = 0; slot < layer.slots.size(); ++slot) {
    uint8_t& fingerprint = layer.slots.data()[slot];
    if (fingerprint == kEmpty) continue;
    const uint64_t bucket = slot / shape_.bucket_size;
    const Key key{fingerprint, bucket, other_bucket(bucket, fingerprint)};
    for (size_t older = 0; fingerprint != kEmpty && older < index; ++older) {
      const uint64_t place = find(layers_[older], key, kEmpty);
      if (place != kNoSlot) layers_[older].slots.data()[place] = std::exchange(fingerprint, kEmpty);
    }
    is_empty = is_empty && fingerprint == kEmpty;
  }
  return is_empty;
}

// `all`: also the layers older than one that keeps something.
void CuckooFilter::compact_layers(bool all) {
  for (size_t index = layers_.size() - 1; index > 0; --index) {
    const bool is_empty = empty_layer(index);
    if (is_empty && index + 1 == layers_.size()) {
      bytes_ -= layers_.back().slots.size();
      layers_.pop_back();
    }
    if (!is_empty && !all) break;
  }
  erased_ = 0;
}

// --- Dumps ---------------------------------------------------------------------------------------

std::string CuckooFilter::header() const {
  std::string header;
  PackedWriter out(header);
  out.put(items_).put(shape_.buckets).put(erased_).put(uint64_t{layers_.size()});
  out.put(shape_.bucket_size).put(shape_.max_iterations).put(shape_.expansion);
  return header;
}

std::unique_ptr<CuckooFilter> CuckooFilter::from_header(std::string_view header) {
  if (header.size() != kHeaderSize) return nullptr;
  PackedReader in(header);
  Shape shape;
  const auto items = in.get<uint64_t>();
  shape.buckets = in.get<uint64_t>();
  const auto erased = in.get<uint64_t>();
  const auto layers = in.get<uint64_t>();
  shape.bucket_size = in.get<uint16_t>();
  shape.max_iterations = in.get<uint16_t>();
  shape.expansion = in.get<uint16_t>();
  if (!is_sound(shape) || layers == 0 || layers > kMaxLayers ||
      (shape.expansion == 0 && layers > 1))
    return nullptr;
  auto filter = std::make_unique<CuckooFilter>(shape, items, erased);
  for (uint64_t i = 0; i < layers; ++i) {
    if (!filter->grow()) return nullptr;
  }
  return filter;
}

CuckooFilter::Chunk CuckooFilter::chunk(uint64_t position) const {
  uint64_t offset = position - 1;
  for (const Layer& layer : layers_) {
    const uint64_t layer_size = layer.slots.size();
    if (offset >= layer_size) {
      offset -= layer_size;
      continue;
    }
    // A layer that fits into one part is given whole wherever the position is in it.
    if (layer_size <= kMaxChunk) offset = 0;
    const uint64_t size = std::min(layer_size - offset, kMaxChunk);
    return {static_cast<int64_t>(position + size), layer.slots.bytes().substr(offset, size)};
  }
  return {0, {}};
}

bool CuckooFilter::load_chunk(int64_t position, std::string_view bytes) {
  if (bytes.empty() || position <= 0 || static_cast<uint64_t>(position) <= bytes.size())
    return false;
  uint64_t offset = static_cast<uint64_t>(position) - bytes.size() - 1;
  for (Layer& layer : layers_) {
    const uint64_t layer_size = layer.slots.size();
    if (offset >= layer_size) {
      offset -= layer_size;
      continue;
    }
    if (bytes.size() > layer_size - offset) return false;
    std::memcpy(layer.slots.data() + offset, bytes.data(), bytes.size());
    return true;
  }
  return false;
}

// --- Figures -------------------------------------------------------------------------------------

size_t CuckooFilter::reported_size() const {
  constexpr size_t kOfFilter = 40;
  constexpr size_t kOfLayer = 16;
  return kOfFilter + layers_.size() * kOfLayer + bytes_;
}

size_t CuckooFilter::free_effort() const {
  constexpr uint64_t kPage = 4096;
  return layers_.size() + bytes_ / kPage;
}

size_t CuckooFilter::memory_usage() const {
  return sizeof(*this) + layers_.capacity() * sizeof(Layer) + bytes_;
}

void CuckooFilter::for_each_digest_part(const DigestPart& part) const {
  part(header());
  for (const Layer& layer : layers_) part(layer.slots.bytes());
}

}  // namespace latchkey::store
