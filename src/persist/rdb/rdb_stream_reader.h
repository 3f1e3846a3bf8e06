// Reads streams of RDB files, in their three layouts.
#pragma once

#include "persist/rdb/rdb_values.h"

namespace latchkey::persist {

// As read_value(), for one of the kStream... types.
ReadResult read_stream(RdbReader& reader, RdbType type, store::Environment& environment,
                       LoadedValue* loaded);

}  // namespace latchkey::persist
