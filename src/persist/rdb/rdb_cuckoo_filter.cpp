#include "persist/rdb/rdb_cuckoo_filter.h"

#include <limits>
#include <memory>
#include <string_view>

#include "persist/rdb/module_parts.h"
#include "store/probabilistic/cuckoo_filter.h"

namespace latchkey::persist {

using store::CuckooFilter;

namespace {

constexpr unsigned kWithShape = 4;
constexpr unsigned kLastCuckooVersion = 4;

// What filters were like before version 4.
constexpr uint64_t kOldBucketSize = 2;
constexpr uint64_t kOldIterations = 20;
constexpr uint64_t kOldExpansion = 1;

bool read_layer(ModuleReader& reader, unsigned version, CuckooFilter& filter) {
  const CuckooFilter::Shape& shape = filter.shape();
  uint64_t buckets = shape.buckets;
  std::string_view slots;
  if (version >= kWithShape && !reader.unsigned_number(&buckets)) return false;
  if (!reader.text(&slots)) return false;
  if (buckets == 0 || slots.size() % shape.bucket_size != 0 ||
      slots.size() / shape.bucket_size != buckets)
    return reader.fail("has a layer of the wrong size");
  return filter.append_layer(buckets, slots) || reader.fail("is too large");
}

bool read_parts(ModuleReader& reader, unsigned version, std::unique_ptr<CuckooFilter>* filter) {
  constexpr uint64_t kMax16 = std::numeric_limits<uint16_t>::max();
  uint64_t layers;
  uint64_t items;
  uint64_t erased = 0;
  uint64_t bucket_size = kOldBucketSize;
  uint64_t iterations = kOldIterations;
  uint64_t expansion = kOldExpansion;
  CuckooFilter::Shape shape;
  if (!reader.unsigned_number(&layers) || !reader.unsigned_number(&shape.buckets) ||
      !reader.unsigned_number(&items))
    return false;
  if (version >= kWithShape &&
      (!reader.unsigned_number(&erased) || !reader.unsigned_number(&bucket_size) ||
       !reader.unsigned_number(&iterations) || !reader.unsigned_number(&expansion)))
    return false;
  shape.bucket_size = static_cast<uint16_t>(bucket_size);
  shape.max_iterations = static_cast<uint16_t>(iterations);
  shape.expansion = static_cast<uint16_t>(expansion);
  if (bucket_size > kMax16 || iterations > kMax16 || expansion > kMax16 || layers == 0 ||
      layers > CuckooFilter::kMaxLayers || !CuckooFilter::is_sound(shape))
    return reader.fail("is of a kind that does not exist");
  *filter = std::make_unique<CuckooFilter>(shape, items, erased);
  for (; layers > 0; --layers) {
    if (!read_layer(reader, version, **filter)) return false;
  }
  return true;
}

}  // namespace

void write_cuckoo_filter(RdbWriter& rdb, const store::Value& value) {
  const auto& filter = static_cast<const CuckooFilter&>(value);
  ModuleWriter writer(rdb);
  writer.unsigned_number(filter.layers().size());
  writer.unsigned_number(filter.shape().buckets);
  writer.unsigned_number(filter.items());
  writer.unsigned_number(filter.erased());
  writer.unsigned_number(filter.shape().bucket_size);
  writer.unsigned_number(filter.shape().max_iterations);
  writer.unsigned_number(filter.shape().expansion);
  for (const CuckooFilter::Layer& layer : filter.layers()) {
    writer.unsigned_number(layer.buckets);
    writer.text(layer.slots.bytes());
  }
}

ReadResult read_cuckoo_filter(RdbReader& rdb, store::Environment&, unsigned version,
                              LoadedValue* loaded) {
  ModuleReader reader(rdb, "A cuckoo filter");
  if (version > kLastCuckooVersion) {
    reader.fail("is of a version that is not known");
    return ReadResult::kFailed;
  }
  std::unique_ptr<CuckooFilter> filter;
  if (!read_parts(reader, version, &filter)) return ReadResult::kFailed;
  loaded->type = CuckooFilter::kType;
  loaded->value = std::move(filter);
  return ReadResult::kDone;
}

}  // namespace latchkey::persist
