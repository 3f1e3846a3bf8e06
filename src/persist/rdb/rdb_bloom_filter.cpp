#include "persist/rdb/rdb_bloom_filter.h"

#include <limits>
#include <memory>
#include <string_view>

#include "persist/rdb/module_parts.h"
#include "store/probabilistic/bloom_filter.h"

namespace latchkey::persist {

using store::BloomFilter;

namespace {

constexpr unsigned kFirstVersion = 1;
constexpr unsigned kWithOptions = 2;
constexpr unsigned kWithExpansion = 4;
constexpr unsigned kLastBloomVersion = 4;
constexpr uint64_t kExpansionBefore = 2;

bool read_layer(ModuleReader& reader, BloomFilter& filter) {
  BloomFilter::LayerShape shape;
  uint64_t hashes;
  uint64_t power;
  std::string_view bytes;
  if (!reader.unsigned_number(&shape.capacity) || !reader.real(&shape.error_rate) ||
      !reader.unsigned_number(&hashes) || !reader.real(&shape.bits_per_item) ||
      !reader.unsigned_number(&shape.bits) || !reader.unsigned_number(&power) ||
      !reader.text(&bytes))
    return false;
  shape.bytes = bytes.size();
  shape.hashes = static_cast<uint32_t>(hashes);
  shape.power = static_cast<uint8_t>(power);
  if (shape.hashes != hashes || shape.power != power || !BloomFilter::is_sound(shape))
    return reader.fail("has a layer that cannot be");
  if (!filter.append_layer(shape, bytes)) return reader.fail("is too large");
  uint64_t items;
  if (!reader.unsigned_number(&items)) return false;
  filter.set_layer_items(items);
  return true;
}

bool read_parts(ModuleReader& reader, unsigned version, std::unique_ptr<BloomFilter>* filter) {
  uint64_t items;
  uint64_t layers;
  uint64_t options = 0;
  uint64_t expansion = kExpansionBefore;
  if (!reader.unsigned_number(&items) || !reader.unsigned_number(&layers)) return false;
  if (version >= kWithOptions && !reader.unsigned_number(&options)) return false;
  if (version >= kWithExpansion && !reader.unsigned_number(&expansion)) return false;
  if (layers == 0 || options > BloomFilter::kAllOptions ||
      expansion > std::numeric_limits<uint32_t>::max())
    return reader.fail("is of a kind that does not exist");
  *filter = std::make_unique<BloomFilter>(items, static_cast<uint32_t>(options),
                                          static_cast<uint32_t>(expansion));
  for (; layers > 0; --layers) {
    if (!read_layer(reader, **filter)) return false;
  }
  return true;
}

}  // namespace

void write_bloom_filter(RdbWriter& rdb, const store::Value& value) {
  const auto& filter = static_cast<const BloomFilter&>(value);
  ModuleWriter writer(rdb);
  writer.unsigned_number(filter.items());
  writer.unsigned_number(filter.layers().size());
  writer.unsigned_number(filter.options());
  writer.unsigned_number(filter.expansion());
  for (const BloomFilter::Layer& layer : filter.layers()) {
    writer.unsigned_number(layer.shape.capacity);
    writer.real(layer.shape.error_rate);
    writer.unsigned_number(layer.shape.hashes);
    writer.real(layer.shape.bits_per_item);
    writer.unsigned_number(layer.shape.bits);
    writer.unsigned_number(layer.shape.power);
    writer.text(layer.bytes.bytes());
    writer.unsigned_number(layer.shape.items);
  }
}

ReadResult read_bloom_filter(RdbReader& rdb, store::Environment&, unsigned version,
                             LoadedValue* loaded) {
  ModuleReader reader(rdb, "A Bloom filter");
  if (version < kFirstVersion || version > kLastBloomVersion) {
    reader.fail("is of a version that is not known");
    return ReadResult::kFailed;
  }
  std::unique_ptr<BloomFilter> filter;
  if (!read_parts(reader, version, &filter)) return ReadResult::kFailed;
  loaded->type = BloomFilter::kType;
  loaded->value = std::move(filter);
  return ReadResult::kDone;
}

}  // namespace latchkey::persist
