// The section of an RDB file about a slot migration of Valkey's that imports slots to the node
// which has written the file (server::SlotImport): the name of the job, the number of ranges, and
// the first and the last slot of each. Its opcode stands before it.
#pragma once

#include "persist/rdb/rdb_primitives.h"
#include "server/command/slot_gate.h"

namespace latchkey::persist {

void write_slot_import(RdbWriter& writer, const server::SlotImport& import);

// False, with the reason in reader.error(), when it is malformed.
bool read_slot_import(RdbReader& reader, server::SlotImport* import);

}  // namespace latchkey::persist
