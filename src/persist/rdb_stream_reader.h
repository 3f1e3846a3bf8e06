// Streams of RDB files, in their three layouts.
#pragma once

#include "persist/rdb_values.h"

namespace latchkey::persist {

// One of the kStream... types, as read_value().
ReadResult read_stream(RdbReader& reader, RdbType type, store::Environment& environment,
                       LoadedValue* loaded);

}  // namespace latchkey::persist
