#include "persist/rdb/rdb_modules.h"

#include "base/assert.h"
#include "persist/rdb/rdb_array.h"
#include "persist/rdb/rdb_bloom_filter.h"
#include "persist/rdb/rdb_cuckoo_filter.h"
#include "persist/rdb/rdb_json.h"
#include "persist/rdb/rdb_sketches.h"
#include "persist/rdb/rdb_time_series.h"
#include "persist/rdb/rdb_vector_set.h"

namespace latchkey::persist {

namespace {

constexpr unsigned kVersionBits = 10;
constexpr unsigned kVersionMask = (1 << kVersionBits) - 1;

constexpr ModuleType kModuleTypes[] = {
    {kVectorSetModule, store::Type::kVectorSet, write_vector_set, read_vector_set},
    {kArrayModule, store::Type::kArray, write_array, read_array},
    {kTimeSeriesModule, store::Type::kTimeSeries, write_time_series, read_time_series},
    {kJsonModule, store::Type::kJson, write_json, read_json},
    {kBloomFilterModule, store::Type::kBloomFilter, write_bloom_filter, read_bloom_filter},
    {kCuckooFilterModule, store::Type::kCuckooFilter, write_cuckoo_filter, read_cuckoo_filter},
    {kCountMinSketchModule, store::Type::kCountMinSketch, write_count_min_sketch,
     read_count_min_sketch},
    {kTopKModule, store::Type::kTopK, write_top_k, read_top_k},
    {kTDigestModule, store::Type::kTDigest, write_t_digest, read_t_digest},
};

}  // namespace

std::span<const ModuleType> module_types() {
  return kModuleTypes;
}

const ModuleType* module_type(store::Type type) {
  for (const ModuleType& known : kModuleTypes) {
    if (known.type == type) return &known;
  }
  return nullptr;
}

const ModuleType* module_type_of_id(uint64_t id) {
  for (const ModuleType& known : kModuleTypes) {
    if (known.id >> kVersionBits == id >> kVersionBits) return &known;
  }
  return nullptr;
}

void write_module_value(RdbWriter& writer, const store::Entry& entry) {
  const ModuleType* const type = module_type(entry.type());
  LK_ASSERT(type != nullptr);
  writer.length(type->id);
  type->write(writer, *entry.value());
  writer.length(static_cast<uint64_t>(ModuleOpcode::kEnd));
}

ReadResult read_module_value(RdbReader& reader, store::Environment& environment, uint64_t id,
                             const ModuleType& type, LoadedValue* loaded) {
  const ReadResult result =
      type.read(reader, environment, static_cast<unsigned>(id & kVersionMask), loaded);
  if (result == ReadResult::kFailed) return result;
  uint64_t opcode;
  if (!reader.length(&opcode)) return ReadResult::kFailed;
  if (opcode == static_cast<uint64_t>(ModuleOpcode::kEnd)) return result;
  reader.fail("The value of a module, " + module_name(id) + ", has parts that are not known");
  return ReadResult::kFailed;
}

std::string module_name(uint64_t id) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  constexpr unsigned kLetterBits = 6;
  std::string name(9, '\0');
  id >>= kVersionBits;
  for (auto letter = name.rbegin(); letter != name.rend(); ++letter, id >>= kLetterBits)
    *letter = kLetters[id & 63];
  return name;
}

bool skip_module_data(RdbReader& reader) {
  for (;;) {
    uint64_t opcode;
    uint64_t number;
    char bytes[sizeof(double)];
    if (!reader.length(&opcode)) return false;
    if (opcode > static_cast<uint64_t>(ModuleOpcode::kString))
      return reader.fail("Unknown part of a module's data: " + std::to_string(opcode));
    switch (static_cast<ModuleOpcode>(opcode)) {
      case ModuleOpcode::kEnd:
        return true;
      case ModuleOpcode::kSigned:
      case ModuleOpcode::kUnsigned:
        if (!reader.length(&number)) return false;
        break;
      case ModuleOpcode::kFloat:
        if (!reader.raw(bytes, sizeof(float))) return false;
        break;
      case ModuleOpcode::kDouble:
        if (!reader.raw(bytes, sizeof(double))) return false;
        break;
      case ModuleOpcode::kString:
        if (!reader.skip_string()) return false;
        break;
    }
  }
}

}  // namespace latchkey::persist
