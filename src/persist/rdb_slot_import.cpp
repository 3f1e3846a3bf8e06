#include "persist/rdb_slot_import.h"

#include "store/key_slot.h"

namespace latchkey::persist {

namespace {

constexpr size_t kNameBytes = 40;

}  // namespace

void write_slot_import(RdbWriter& writer, const server::SlotImport& import) {
  writer.opcode(RdbOpcode::kSlotImport);
  writer.string(import.name);
  writer.length(import.ranges.size());
  for (const auto& [first, last] : import.ranges) {
    writer.length(static_cast<uint64_t>(first));
    writer.length(static_cast<uint64_t>(last));
  }
}

bool read_slot_import(RdbReader& reader, server::SlotImport* import) {
  std::string_view name;
  if (!reader.string(&name)) return false;
  if (name.size() != kNameBytes)
    return reader.fail("Invalid slot import job name length " + std::to_string(name.size()));
  import->name = name;
  uint64_t ranges;
  if (!reader.length(&ranges)) return false;
  for (uint64_t i = 0; i < ranges; ++i) {
    uint64_t first;
    uint64_t last;
    if (!reader.length(&first) || !reader.length(&last)) return false;
    if (first > last || last >= store::kKeySlots)
      return reader.fail("Invalid slot range in a slot import");
    import->ranges.emplace_back(static_cast<int>(first), static_cast<int>(last));
  }
  return true;
}

}  // namespace latchkey::persist
