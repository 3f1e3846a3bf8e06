// Count-min sketches, top-k lists and t-digests in RDB, as the reference's module "bf" has them.
// The parts, in numbers without sign unless it is said, were found by looking at what its DUMP
// writes:
//
//     CMSk-TYPE   width, depth, total; a text of width * depth counters of 4 bytes
//
//     TopK-TYPE   k, width, depth, decay (double)
//                 a text of width * depth buckets: fingerprint and count, 4 bytes each
//                 a text of k slots of 24 bytes: fingerprint (4), size of the item's text (4), a
//                   pointer (8; not 0 where there is an item), count (4), 4 bytes of padding
//                 k texts: the slot's item and a byte 0; of a free slot that byte alone
//
//     TDIS-TYPE   compression, least and greatest observation (doubles), capacity, number of
//                 centroids, number of observations that are not merged, number of merges, weight
//                 of the centroids and of those observations (doubles) the centroids' means, then
//                 their weights (doubles)
//
// What is not merged is not among a t-digest's parts: it is merged before. The reference cannot
// merge a single observation, and saves none then; its least and greatest observation tell what it
// was. This server saves it as a centroid, which both read. An item with a byte 0 in it ends there
// in the reference's texts: then the slot's count is kept, without the item.
#pragma once

#include <cstdint>

#include "persist/rdb/rdb_values.h"

namespace latchkey::persist {

// Version 0 of each.
inline constexpr uint64_t kCountMinSketchModule = 0x08C4A4F9360F1000;
inline constexpr uint64_t kTopKModule = 0x4E8A4AF9360F1000;
inline constexpr uint64_t kTDigestModule = 0x4C3212F9360F1000;

// Functions of the table in rdb_modules.h. All sizes are checked against the bytes that are there
// before memory is asked for.
void write_count_min_sketch(RdbWriter& writer, const store::Value& value);
ReadResult read_count_min_sketch(RdbReader& reader, store::Environment& environment,
                                 unsigned version, LoadedValue* loaded);

void write_top_k(RdbWriter& writer, const store::Value& value);
ReadResult read_top_k(RdbReader& reader, store::Environment& environment, unsigned version,
                      LoadedValue* loaded);

// Merges what has not been merged, as the reference does.
void write_t_digest(RdbWriter& writer, const store::Value& value);
ReadResult read_t_digest(RdbReader& reader, store::Environment& environment, unsigned version,
                         LoadedValue* loaded);

}  // namespace latchkey::persist
