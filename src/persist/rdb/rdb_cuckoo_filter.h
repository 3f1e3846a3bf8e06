// Cuckoo filters in RDB: a value of the reference's module type "MBbloomCF". The parts were found
// by looking at what the reference's DUMP writes, and at which payloads its RESTORE reads:
//
//     layers, buckets of the first layer, items
//     from version 4 on: erased items, slots of a bucket, iterations, expansion
//     for each layer: buckets (from version 4 on), slots
#pragma once

#include "persist/rdb/rdb_values.h"

namespace latchkey::persist {

inline constexpr uint64_t kCuckooFilterModule = 0x3016E5A289821404;

void write_cuckoo_filter(RdbWriter& writer, const store::Value& value);

ReadResult read_cuckoo_filter(RdbReader& reader, store::Environment& environment, unsigned version,
                              LoadedValue* loaded);

}  // namespace latchkey::persist
