// A Bloom filter that grows: a chain of plain filters (layers), of which each new one is larger by
// the expansion factor and has half the error rate, so that the error rate of all together stays
// below the one that was asked for (B. Bloom, "Space/time trade-offs in hash coding with allowable
// errors", CACM 7/1970; P. Almeida et al., "Scalable Bloom Filters", 2007).
//
// An item's bits in a layer of n bits are (a + i * b) mod n for i = 0, 1, ... (A. Kirsch and M.
// Mitzenmacher, "Less hashing, same performance", 2006), where a is the item's MurmurHash64A with
// the seed 0xc6a4a7935bd1e995, and b its MurmurHash64A with the seed a. Bit n of a layer is bit
// n % 8 of byte n / 8. All bits, sizes and roundings are those of the reference's module "bf",
// found by looking at its DUMP and BF.SCANDUMP, so that filters go from one to the other and back.
//
// The dump of a filter is a header and the layers' bytes. The header, little-endian without gaps:
//
//     of the filter: items (8 bytes), layers (4), options (4), expansion (4)
//     of each layer: bytes (8), bits (8), items (8), error rate (double), bits per item (double),
//                    hashes (4), capacity (8), the power of two its bits are rounded to or 0 (1)
//
// The position of a part of the dump is one more than the number of bytes of all layers before it.
//
// Costs: an item takes one hash of its bytes, and in each layer, the newest first, up to as many
// reads as the layer has hashes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/probabilistic/zeroed_array.h"
#include "store/value/module_value.h"

namespace latchkey::store {

class BloomFilter final : public ModuleValue {
 public:
  static constexpr Type kType = Type::kBloomFilter;
  static constexpr uint64_t kMaxCapacity = uint64_t{1} << 30;
  static constexpr uint32_t kMaxExpansion = 32768;
  // Higher ones are taken for this.
  static constexpr double kMaxErrorRate = 0.25;
  // Of all layers together. The reference has no such limit, and takes 180 GB of addresses for a
  // request of some dozen bytes.
  static constexpr uint64_t kMaxBytes = uint64_t{1} << 33;
  // The longest part of a dump, in bytes.
  static constexpr uint64_t kMaxChunk = uint64_t{16} << 20;

  enum Option : uint32_t {
    kUnrounded = 1,        // layers have as many bits as they need, not a power of two
    kCapacityIsPower = 2,  // a new layer's capacity is the power of two of its bits
    kHash64 = 4,           // not the 32-bit hash of old files
    kFixed = 8,            // does not grow
    kAllOptions = 15,
  };

  // What a layer is like, without its bytes.
  struct LayerShape {
    uint64_t bytes = 0;
    uint64_t bits = 0;
    uint64_t items = 0;
    uint64_t capacity = 0;
    double error_rate = 0;
    double bits_per_item = 0;
    uint32_t hashes = 0;
    // Not 0: only the first 2^power bits are used.
    uint8_t power = 0;
  };
  struct Layer {
    LayerShape shape;
    // How many positions there are, and 2^64 modulo that number.
    uint64_t modulus;
    uint64_t wrap;
    ZeroedArray<uint8_t> bytes;

    Layer(const LayerShape& the_shape, ZeroedArray<uint8_t> the_bytes);
  };

  // Of all items that were added. Why a filter was not made, or an item not added.
  enum class Outcome : uint8_t {
    kAdded,
    kPresent,  // all of the item's bits were set before
    kFull,     // and the filter is kFixed
    kNoLayer,  // the filter is full, and there can be no further layer
  };
  enum class Failure : uint8_t {
    kNone,
    kImpossible,  // there is no layer of that capacity and error rate
    kNoMemory,
  };

  // A filter with one layer; null with the reason in *failure. `error_rate`: above 0 and below 1,
  // of all layers that may come. A filter that is fixed, or has an expansion of 0, keeps one.
  static std::unique_ptr<BloomFilter> make(uint64_t capacity, double error_rate, uint32_t expansion,
                                           bool is_fixed, Failure* failure);
  // From a dump's header, with layers that are all zero; null when it is no header.
  static std::unique_ptr<BloomFilter> from_header(std::string_view header);
  // For a file: without layers, which are added by append_layer(). REQUIRES: only known options.
  BloomFilter(uint64_t items, uint32_t options, uint32_t expansion)
      : items_(items), options_(options), expansion_(expansion) {}
  // Whether a layer may have this shape: all that others do with it relies on that.
  static bool is_sound(const LayerShape& shape);
  // False when there is not enough memory. REQUIRES: is_sound(shape).
  bool append_layer(const LayerShape& shape, std::string_view bytes);
  // Of the newest layer. REQUIRES: there is one.
  void set_layer_items(uint64_t items) { layers_.back().shape.items = items; }

  BloomFilter(const BloomFilter& other);
  BloomFilter& operator=(const BloomFilter&) = delete;

  // Number of items for which add() said kAdded.
  uint64_t items() const { return items_; }
  uint64_t capacity() const;
  uint32_t options() const { return options_; }
  uint32_t expansion() const { return expansion_; }
  bool is_fixed() const { return (options_ & kFixed) != 0; }
  const std::vector<Layer>& layers() const { return layers_; }
  // What BF.INFO calls the size, in bytes.
  size_t reported_size() const;

  bool contains(std::string_view item) const;
  Outcome add(std::string_view item);

  std::string header() const;
  struct Chunk {
    int64_t next;  // the position behind it; 0 at the end
    std::string_view bytes;
  };
  // The part of the dump at a position, which is at least 1.
  Chunk chunk(uint64_t position) const;
  enum class Load : uint8_t { kDone, kBadData, kNoLayer, kTooLarge };
  // Takes the part of a dump that ends before `position`.
  Load load_chunk(int64_t position, std::string_view bytes);

  // ModuleValue
  void for_each_digest_part(const DigestPart& part) const override;
  size_t free_effort() const override;
  size_t memory_usage() const override;
  Value* clone() const override { return new BloomFilter(*this); }
  size_t element_count() const override { return 1; }

 private:
  struct Hash {
    uint64_t first;
    uint64_t step;
  };

  Hash hash(std::string_view item) const;
  static bool layer_contains(const Layer& layer, Hash hash);
  static void set(Layer& layer, Hash hash);
  Failure grow(uint64_t capacity, double error_rate);
  uint64_t byte_count() const;

  uint64_t items_;
  uint32_t options_;
  uint32_t expansion_;
  std::vector<Layer> layers_;
};

}  // namespace latchkey::store
