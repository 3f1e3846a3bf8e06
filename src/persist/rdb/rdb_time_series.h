// Time series in RDB: values of the reference's module "TSDB-TYPE", whose parts are
//
//     the key's name; retention; chunk size; encoding; newest timestamp and value; number of
//     samples; duplicate policy; 1 and the source's name, or 0; the two limits of IGNORE;
//     number of labels, and each one's name and value;
//     number of rules, and of each: the destination's name, bucket duration, alignment,
//         aggregation, start of the open bucket (all ones: none), whether it has a value (from
//         version 9 on), and the aggregator's state;
//     number of chunks, and of each: the samples' first time, number, size and data; or, if it is
//         compressed: size, number, number of bits, first value and time, newest time, delta and
//         value, leading and trailing zeros, data.
//
// Version 9 is that of Redis 8.6, and is written; version 8, of Redis 8.0, is read as well. Links
// between series are names here. A payload of DUMP has none of them.
#pragma once

#include "persist/rdb/rdb_values.h"

namespace latchkey::persist {

inline constexpr uint64_t kTimeSeriesModule = 0x4D20C1F9360F1009;

// As ModuleType::write and ModuleType::read.
void write_time_series(RdbWriter& writer, const store::Value& value);
ReadResult read_time_series(RdbReader& reader, store::Environment& environment, unsigned version,
                            LoadedValue* loaded);

}  // namespace latchkey::persist
