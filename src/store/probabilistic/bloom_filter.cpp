#include "store/probabilistic/bloom_filter.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/assert.h"
#include "base/digest/murmur.h"
#include "store/probabilistic/packed_fields.h"

namespace latchkey::store {

static_assert(std::endian::native == std::endian::little, "headers are little-endian");

namespace {

constexpr double kTightening = 0.5;
constexpr size_t kHeaderSize = 20;
constexpr size_t kLayerHeaderSize = 53;

// The natural logarithm of 2 and its square, to the digits that libbloom (J. Virkki) has and the
// reference after it. The last one counts: an error rate of 1/8 gives just above 3 hashes, which
// is 4.
constexpr double kLn2 = 0.693147180559945;
constexpr double kLn2Squared = 0.480453013918201;

double bits_per_item(double error_rate) {
  return -std::log(error_rate) / kLn2Squared;
}

double hashes_for(double bits_per_item) {
  return std::ceil(kLn2 * bits_per_item);
}

// The bits of a layer before its bytes are made whole words, and its capacity; false when there is
// no such layer. Comparisons are with doubles, because the product can be beyond integers.
bool choose_bits(uint32_t options, BloomFilter::LayerShape* shape) {
  constexpr unsigned kMaxPower = 63;
  constexpr double kMaxBits = 9.2e18;  // below 2^63
  if ((options & BloomFilter::kCapacityIsPower) != 0) {
    if (shape->capacity > kMaxPower) return false;
    shape->power = static_cast<uint8_t>(shape->capacity);
    shape->bits = uint64_t{1} << shape->power;
    shape->capacity =
        static_cast<uint64_t>(static_cast<double>(shape->bits) / shape->bits_per_item);
    return true;
  }
  const double wanted = static_cast<double>(shape->capacity) * shape->bits_per_item;
  if (!(wanted < kMaxBits)) return false;
  if ((options & BloomFilter::kUnrounded) != 0) {
    shape->bits = static_cast<uint64_t>(wanted);
    return shape->bits != 0;
  }
  const int power = std::ilogb(wanted) + 1;
  if (power < 1 || power > static_cast<int>(kMaxPower)) return false;
  shape->power = static_cast<uint8_t>(power);
  shape->bits = uint64_t{1} << power;
  shape->capacity += static_cast<uint64_t>((static_cast<double>(shape->bits) - std::ceil(wanted)) /
                                           shape->bits_per_item);
  return true;
}

}  // namespace

BloomFilter::Layer::Layer(const LayerShape& the_shape, ZeroedArray<uint8_t> the_bytes)
    : shape(the_shape),
      modulus(shape.power == 0 ? shape.bits : uint64_t{1} << shape.power),
      wrap((uint64_t{0} - modulus) % modulus),
      bytes(std::move(the_bytes)) {}

// --- Making --------------------------------------------------------------------------------------

BloomFilter::Failure BloomFilter::grow(uint64_t capacity, double error_rate) {
  constexpr uint64_t kWordBits = 64;
  if (capacity == 0 || !(error_rate > 0)) return Failure::kImpossible;
  LayerShape shape;
  shape.capacity = capacity;
  shape.error_rate = error_rate;
  shape.bits_per_item = bits_per_item(error_rate);
  if (!choose_bits(options_, &shape)) return Failure::kImpossible;
  shape.bits = (shape.bits + kWordBits - 1) / kWordBits * kWordBits;
  shape.bytes = shape.bits / 8;
  shape.hashes = static_cast<uint32_t>(hashes_for(shape.bits_per_item));
  if (!is_sound(shape)) return shape.bytes > kMaxBytes ? Failure::kNoMemory : Failure::kImpossible;
  if (shape.bytes > kMaxBytes - byte_count()) return Failure::kNoMemory;
  ZeroedArray<uint8_t> bytes(shape.bytes, std::nothrow);
  if (!bytes.is_made()) return Failure::kNoMemory;
  layers_.emplace_back(shape, std::move(bytes));
  return Failure::kNone;
}

std::unique_ptr<BloomFilter> BloomFilter::make(uint64_t capacity, double error_rate,
                                               uint32_t expansion, bool is_fixed,
                                               Failure* failure) {
  is_fixed = is_fixed || expansion == 0;
  auto filter = std::make_unique<BloomFilter>(
      0, kUnrounded | kHash64 | (is_fixed ? uint32_t{kFixed} : 0), expansion);
  error_rate = std::min(error_rate, kMaxErrorRate);
  *failure = filter->grow(capacity, is_fixed ? error_rate : error_rate * kTightening);
  return *failure == Failure::kNone ? std::move(filter) : nullptr;
}

bool BloomFilter::is_sound(const LayerShape& shape) {
  // Of the lowest error rate that a double can be.
  static const double kMostHashes =
      hashes_for(bits_per_item(std::numeric_limits<double>::denorm_min()));
  if (shape.bytes == 0 || shape.bytes > kMaxBytes || shape.bits != shape.bytes * 8) return false;
  if (shape.power >= 64 || uint64_t{1} << shape.power > shape.bits) return false;
  if (!(shape.error_rate > 0 && shape.error_rate < 1)) return false;
  if (!(shape.bits_per_item > 0)) return false;
  const double hashes = hashes_for(shape.bits_per_item);
  return hashes <= kMostHashes && static_cast<double>(shape.hashes) == hashes;
}

bool BloomFilter::append_layer(const LayerShape& shape, std::string_view bytes) {
  LK_ASSERT(is_sound(shape) && bytes.size() == shape.bytes);
  ZeroedArray<uint8_t> copy(bytes, std::nothrow);
  if (!copy.is_made()) return false;
  layers_.emplace_back(shape, std::move(copy));
  return true;
}

BloomFilter::BloomFilter(const BloomFilter& other)
    : ModuleValue(), items_(other.items_), options_(other.options_), expansion_(other.expansion_) {
  layers_.reserve(other.layers_.size());
  for (const Layer& layer : other.layers_) {
    const bool is_made = append_layer(layer.shape, layer.bytes.bytes());
    LK_ASSERT(is_made);
  }
}

// --- Items ---------------------------------------------------------------------------------------

BloomFilter::Hash BloomFilter::hash(std::string_view item) const {
  constexpr uint64_t kSeed64 = 0xc6a4a7935bd1e995;
  constexpr uint32_t kSeed32 = 0x9747b28c;
  if ((options_ & kHash64) != 0) {
    const uint64_t first = base::murmur_hash_64a(item, kSeed64);
    return {first, base::murmur_hash_64a(item, first)};
  }
  const uint32_t first = base::murmur_hash_2(item, kSeed32);
  return {first, base::murmur_hash_2(item, first)};
}

namespace {

// The positions of an item in a layer, one after another: (first + i * step) modulo 2^64, modulo
// the layer's size. There are two divisions for all of them; then each is the sum of the last one
// and of the step, with a correction where the sum of the full numbers passes 2^64.
class Positions {
 public:
  Positions(const BloomFilter::Layer& layer, uint64_t first, uint64_t step)
      : full_(first),
        step_(step),
        modulus_(layer.modulus),
        wrap_(layer.wrap),
        position_(first % modulus_),
        position_step_(step % modulus_) {}

  uint64_t position() const { return position_; }
  void next() {
    // All are below the modulus, which is at most 2^36, so that sums do not overflow.
    position_ += position_step_;
    const uint64_t last = full_;
    full_ += step_;
    if (full_ < last) position_ += modulus_ - wrap_;
    position_ -= position_ >= modulus_ ? modulus_ : 0;
    position_ -= position_ >= modulus_ ? modulus_ : 0;
  }

 private:
  uint64_t full_;
  uint64_t step_;
  uint64_t modulus_;
  uint64_t wrap_;
  uint64_t position_;
  uint64_t position_step_;
};

}  // namespace

bool BloomFilter::layer_contains(const Layer& layer, Hash hash) {
  const uint8_t* bytes = layer.bytes.data();
  Positions at(layer, hash.first, hash.step);
  for (uint32_t left = layer.shape.hashes; left > 0; --left, at.next()) {
    if ((bytes[at.position() / 8] >> at.position() % 8 & 1) == 0) return false;
  }
  return true;
}

void BloomFilter::set(Layer& layer, Hash hash) {
  uint8_t* bytes = layer.bytes.data();
  Positions at(layer, hash.first, hash.step);
  for (uint32_t left = layer.shape.hashes; left > 0; --left, at.next())
    bytes[at.position() / 8] |= static_cast<uint8_t>(1 << at.position() % 8);
}

bool BloomFilter::contains(std::string_view item) const {
  const Hash hashed = hash(item);
  return std::any_of(layers_.rbegin(), layers_.rend(),
                     [hashed](const Layer& layer) { return layer_contains(layer, hashed); });
}

BloomFilter::Outcome BloomFilter::add(std::string_view item) {
  const Hash hashed = hash(item);
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    if (layer_contains(*layer, hashed)) return Outcome::kPresent;
  }
  const LayerShape& newest = layers_.back().shape;
  if (newest.items >= newest.capacity) {
    if (is_fixed()) return Outcome::kFull;
    uint64_t capacity;
    if (__builtin_mul_overflow(newest.capacity, uint64_t{expansion_}, &capacity) ||
        grow(capacity, newest.error_rate * kTightening) != Failure::kNone)
      return Outcome::kNoLayer;
  }
  set(layers_.back(), hashed);
  ++layers_.back().shape.items;
  ++items_;
  return Outcome::kAdded;
}

// --- Dumps ---------------------------------------------------------------------------------------

std::string BloomFilter::header() const {
  std::string header;
  header.reserve(kHeaderSize + layers_.size() * kLayerHeaderSize);
  PackedWriter out(header);
  out.put(items_).put(static_cast<uint32_t>(layers_.size())).put(options_).put(expansion_);
  for (const Layer& layer : layers_) {
    const LayerShape& shape = layer.shape;
    out.put(shape.bytes).put(shape.bits).put(shape.items).put(shape.error_rate);
    out.put(shape.bits_per_item).put(shape.hashes).put(shape.capacity).put(shape.power);
  }
  return header;
}

std::unique_ptr<BloomFilter> BloomFilter::from_header(std::string_view header) {
  if (header.size() < kHeaderSize) return nullptr;
  PackedReader in(header);
  const auto items = in.get<uint64_t>();
  const auto count = in.get<uint32_t>();
  const auto options = in.get<uint32_t>();
  const auto expansion = in.get<uint32_t>();
  if (count == 0 || options > kAllOptions ||
      header.size() != kHeaderSize + uint64_t{count} * kLayerHeaderSize)
    return nullptr;
  std::vector<LayerShape> shapes(count);
  uint64_t bytes = 0;
  uint64_t layer_items = 0;
  for (LayerShape& shape : shapes) {
    shape.bytes = in.get<uint64_t>();
    shape.bits = in.get<uint64_t>();
    shape.items = in.get<uint64_t>();
    shape.error_rate = in.get<double>();
    shape.bits_per_item = in.get<double>();
    shape.hashes = in.get<uint32_t>();
    shape.capacity = in.get<uint64_t>();
    shape.power = in.get<uint8_t>();
    if (!is_sound(shape) || (bytes += shape.bytes) > kMaxBytes ||
        __builtin_add_overflow(layer_items, shape.items, &layer_items))
      return nullptr;
  }
  if (layer_items != items) return nullptr;
  auto filter = std::make_unique<BloomFilter>(items, options, expansion);
  for (const LayerShape& shape : shapes) {
    ZeroedArray<uint8_t> zeros(shape.bytes, std::nothrow);
    if (!zeros.is_made()) return nullptr;
    filter->layers_.emplace_back(shape, std::move(zeros));
  }
  return filter;
}

BloomFilter::Chunk BloomFilter::chunk(uint64_t position) const {
  uint64_t offset = position - 1;
  for (const Layer& layer : layers_) {
    if (offset < layer.shape.bytes) {
      const uint64_t size = std::min(layer.shape.bytes - offset, kMaxChunk);
      return {static_cast<int64_t>(position + size), layer.bytes.bytes().substr(offset, size)};
    }
    offset -= layer.shape.bytes;
  }
  return {0, {}};
}

BloomFilter::Load BloomFilter::load_chunk(int64_t position, std::string_view bytes) {
  if (position <= 0 || static_cast<uint64_t>(position) < bytes.size()) return Load::kBadData;
  if (static_cast<uint64_t>(position) == bytes.size()) return Load::kNoLayer;
  uint64_t offset = static_cast<uint64_t>(position) - bytes.size() - 1;
  for (Layer& layer : layers_) {
    if (offset < layer.shape.bytes) {
      if (bytes.size() > layer.shape.bytes - offset) return Load::kTooLarge;
      if (!bytes.empty()) std::memcpy(layer.bytes.data() + offset, bytes.data(), bytes.size());
      return Load::kDone;
    }
    offset -= layer.shape.bytes;
  }
  return Load::kNoLayer;
}

// --- Figures -------------------------------------------------------------------------------------

uint64_t BloomFilter::byte_count() const {
  uint64_t bytes = 0;
  for (const Layer& layer : layers_) bytes += layer.shape.bytes;
  return bytes;
}

uint64_t BloomFilter::capacity() const {
  uint64_t capacity = 0;
  for (const Layer& layer : layers_) capacity += layer.shape.capacity;
  return capacity;
}

size_t BloomFilter::reported_size() const {
  constexpr size_t kOfFilter = 32;
  constexpr size_t kOfLayer = 64;
  return kOfFilter + layers_.size() * kOfLayer + byte_count();
}

size_t BloomFilter::free_effort() const {
  constexpr uint64_t kPage = 4096;
  return layers_.size() + byte_count() / kPage;
}

size_t BloomFilter::memory_usage() const {
  return sizeof(*this) + layers_.capacity() * sizeof(Layer) + byte_count();
}

void BloomFilter::for_each_digest_part(const DigestPart& part) const {
  part(header());
  for (const Layer& layer : layers_) part(layer.bytes.bytes());
}

}  // namespace latchkey::store
