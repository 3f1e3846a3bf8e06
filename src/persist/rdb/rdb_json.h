// JSON documents in RDB: the values of the reference's module "ReJSON-RL". Its DUMP shows one part:
// up to version 3 the document as text, from 8.8 on, in version 4, as CBOR
// (store/json/json_cbor.h). Both are read, and the text is written, which all servers read.
#pragma once

#include "persist/rdb/rdb_values.h"

namespace latchkey::persist {

// The module's id, with the version of its data that is written, 3.
inline constexpr uint64_t kJsonModule = 0x45E25238DF912C03;

void write_json(RdbWriter& writer, const store::Value& value);
ReadResult read_json(RdbReader& reader, store::Environment& environment, unsigned version,
                     LoadedValue* loaded);

}  // namespace latchkey::persist
