// Vector sets in RDB. The reference has them as a module, so they are a module's value
// (persist/rdb/rdb_modules.h). The parts were found by looking at what the reference's DUMP writes:
//
//     dimensions, elements, quantization | M << 8, flags
//     with kHasProjection: input dimensions, the matrix as floats
//     for each element:
//       name; with kHasAttributes: attributes, which may be empty
//       the vector's bytes (store/vector/quantization.h)
//       the number of the numbers that follow: id, level, for each level from 0 on the number of
//         links, the room for them, and the ids they lead to; at last length and range, as two
//         floats in one number
//
// From 8.6 on the highest byte of the four of `level` is 1, and the links of each level are
// followed by one number, the farthest link and its distance. Both forms are read, and the older
// one is written, which all servers read.
#pragma once

#include "persist/rdb/rdb_values.h"

namespace latchkey::persist {

// The id of the reference's module "vectorset", with the version of its data, 0.
inline constexpr uint64_t kVectorSetModule = 0xBDE72DA2BB1EB400;

// As ModuleType::write and ModuleType::read.
void write_vector_set(RdbWriter& writer, const store::Value& value);
ReadResult read_vector_set(RdbReader& reader, store::Environment& environment, unsigned version,
                           LoadedValue* loaded);

}  // namespace latchkey::persist
