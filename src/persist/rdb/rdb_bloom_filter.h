// Bloom filters in RDB: a value of the reference's module type "MBbloom--". The parts were found by
// looking at what the reference's DUMP writes, and at which payloads its RESTORE reads:
//
//     items, layers, options (from version 2 on), expansion (from version 4 on)
//     for each layer: capacity, error rate, hashes, bits per item, bits, power of two or 0 (see
//     store/probabilistic/bloom_filter.h), bytes, items
#pragma once

#include "persist/rdb/rdb_values.h"

namespace latchkey::persist {

inline constexpr uint64_t kBloomFilterModule = 0x3016E5A289BEF804;

void write_bloom_filter(RdbWriter& writer, const store::Value& value);

ReadResult read_bloom_filter(RdbReader& reader, store::Environment& environment, unsigned version,
                             LoadedValue* loaded);

}  // namespace latchkey::persist
