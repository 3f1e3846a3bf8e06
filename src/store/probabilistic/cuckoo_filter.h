// A cuckoo filter that grows: a chain of plain filters (layers), each larger than the one before by
// the expansion factor (B. Fan et al., "Cuckoo Filter: Practically Better Than Bloom", 2014).
//
// A layer is an array of buckets, each of some slots of one byte, a fingerprint or 0. With h the
// MurmurHash64A of an item with the seed 0, its fingerprint f is h % 255 + 1, and its two buckets
// are h and h ^ (f * 0x5bd1e995), modulo the number of buckets. An item is put into the first empty
// slot of its buckets, the newest layer first. If there is none, it takes a slot of its first
// bucket in the newest layer, whose fingerprint moves to its other bucket, where it may take
// another's slot, and so on for max_iterations(); the slots taken go around. If no empty slot is
// found, all is put back, and there is a new layer. All this is as in the reference's module "bf",
// found by looking at its DUMP and CF.SCANDUMP, so that filters go from one to the other and back.
//
// An item that was added several times is there as often. Erasing an item that was never added may
// erase another one with the same fingerprint.
//
// The dump of a filter is a header and the layers' bytes. The header, little-endian without gaps:
//
//     items (8 bytes), buckets of the first layer (8), erased items (8), layers (8), slots of a
//     bucket (2), iterations (2), expansion (2)
//
// Costs, with n layers: contains, count and erase read 2 * n buckets; add as well, and it may move
// max_iterations() fingerprints, but no more than its caller allows; compact() looks at each slot
// of each layer.
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

class CuckooFilter final : public ModuleValue {
 public:
  static constexpr Type kType = Type::kCuckooFilter;
  static constexpr uint64_t kMaxCapacity = uint64_t{1} << 30;
  static constexpr uint64_t kMaxBucketSize = 255;
  static constexpr uint64_t kMaxIterations = 65535;
  static constexpr uint64_t kMaxExpansion = 32768;
  static constexpr uint64_t kMaxLayers = 65535;
  // Of all layers together. The reference has no such limit.
  static constexpr uint64_t kMaxBytes = uint64_t{1} << 33;
  // The longest part of a dump, in bytes.
  static constexpr uint64_t kMaxChunk = uint64_t{16} << 20;

  struct Shape {
    // Of the first layer; at least 1.
    uint64_t buckets = 0;
    // Slots of a bucket, 1 to kMaxBucketSize.
    uint16_t bucket_size = 0;
    // 1 to kMaxIterations.
    uint16_t max_iterations = 0;
    // 0: the filter does not grow. At most kMaxExpansion.
    uint16_t expansion = 0;
  };
  struct Layer {
    uint64_t buckets;
    // buckets - 1 if that is a power of two, else 0.
    uint64_t mask;
    ZeroedArray<uint8_t> slots;

    Layer(uint64_t the_buckets, ZeroedArray<uint8_t> the_slots);
    uint64_t bucket(uint64_t hash) const { return mask != 0 ? hash & mask : hash % buckets; }
  };
  enum class Outcome : uint8_t {
    kAdded,
    kPresent,   // of add_new() only
    kFull,      // and the filter does not grow
    kNoMemory,  // for another layer
  };

  // With one empty layer; null when there is not enough memory. `capacity`: items of that layer,
  // at least 2 * bucket_size; the buckets become a power of two, and so does the expansion.
  static std::unique_ptr<CuckooFilter> make(uint64_t capacity, uint16_t bucket_size,
                                            uint16_t max_iterations, uint16_t expansion);
  // From a dump's header, with layers that are all empty; null when it is no header, or when there
  // is not enough memory.
  static std::unique_ptr<CuckooFilter> from_header(std::string_view header);
  static constexpr size_t kHeaderSize = 38;

  // For a file: without layers, which are added by append_layer(). REQUIRES: is_sound(shape).
  CuckooFilter(const Shape& shape, uint64_t items, uint64_t erased)
      : shape_(shape), items_(items), erased_(erased) {}
  static bool is_sound(const Shape& shape);
  // False when there is not enough memory, or there are kMaxLayers. REQUIRES: slots are buckets
  // times the size of a bucket, and more than none.
  bool append_layer(uint64_t buckets, std::string_view slots);

  CuckooFilter(const CuckooFilter& other);
  CuckooFilter& operator=(const CuckooFilter&) = delete;

  const Shape& shape() const { return shape_; }
  uint64_t items() const { return items_; }
  // Since the last compact().
  uint64_t erased() const { return erased_; }
  const std::vector<Layer>& layers() const { return layers_; }
  // What CF.INFO calls the size, in bytes.
  size_t reported_size() const;

  bool contains(std::string_view item) const;
  // How often it was added; more, if others have the same fingerprint and buckets.
  uint64_t count(std::string_view item) const;
  // How many fingerprints a request with so many items may move: three times what it may at most
  // with the reference's default of 20 iterations, and a million. Only requests that add many items
  // to a full filter with thousands of iterations have none left.
  static constexpr uint64_t moves_for(size_t items) {
    constexpr uint64_t kPerItem = 64;
    return (uint64_t{1} << 20) + kPerItem * items;
  }
  // `moves`: how many fingerprints may be moved, reduced by those that were, also in vain. Without
  // any left an item that needs moves is as one for which no empty slot is found by them.
  Outcome add(std::string_view item, uint64_t* moves);
  Outcome add(std::string_view item) {
    uint64_t moves = shape_.max_iterations;
    return add(item, &moves);
  }
  // Only if contains() is false.
  Outcome add_new(std::string_view item, uint64_t* moves);
  // False when there is none. Compacts the filter when more than a tenth of it has been erased.
  bool erase(std::string_view item);
  // Moves what is in newer layers to empty slots of older ones, and removes the newest layers that
  // have become empty.
  void compact() { compact_layers(true); }

  std::string header() const;
  struct Chunk {
    int64_t next;  // the position behind it; 0 at the end
    std::string_view bytes;
  };
  // The part of the dump at a position, which is at least 1.
  Chunk chunk(uint64_t position) const;
  // Takes the part of a dump that ends before `position`; false when there is no such part.
  bool load_chunk(int64_t position, std::string_view bytes);

  // ModuleValue
  void for_each_digest_part(const DigestPart& part) const override;
  size_t free_effort() const override;
  size_t memory_usage() const override;
  Value* clone() const override { return new CuckooFilter(*this); }
  size_t element_count() const override { return 1; }

 private:
  struct Key {
    uint8_t fingerprint;
    uint64_t first;  // the two buckets, not yet reduced to the number there are
    uint64_t second;
  };

  static Key key_of(std::string_view item);
  Outcome add(const Key& key, uint64_t* moves);
  bool contains(const Key& key) const;
  // The number of the first slot of the two buckets with that fingerprint, or kNoSlot.
  static constexpr uint64_t kNoSlot = UINT64_MAX;
  uint64_t find(const Layer& layer, const Key& key, uint8_t fingerprint) const;
  // Whether moves would only exchange the fingerprint for itself: all slots of its buckets have it.
  bool moves_in_vain(const Layer& layer, const Key& key) const;
  // False, with nothing changed, when no empty slot is found.
  bool add_by_moving(Layer& layer, const Key& key, uint64_t* moves);
  bool grow();
  void compact_layers(bool all);
  bool empty_layer(size_t index);
  void push_layer(uint64_t buckets, ZeroedArray<uint8_t> slots);

  Shape shape_;
  uint64_t items_;
  uint64_t erased_;
  uint64_t bytes_ = 0;  // of all layers
  std::vector<Layer> layers_;
};

}  // namespace latchkey::store
