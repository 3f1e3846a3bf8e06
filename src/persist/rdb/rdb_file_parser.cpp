#include "persist/rdb/rdb_file_parser.h"

#include <string>
#include <utility>

#include "base/time_units.h"
#include "persist/rdb/rdb_header.h"
#include "persist/rdb_slot_import.h"

namespace latchkey::persist {

bool RdbFileParser::parse() {
  for (bool is_end = false; !is_end;) {
    step_ = "read-type";
    uint8_t opcode;
    if (!reader_.byte(&opcode)) return false;
    const bool is_parsed = opcode >= static_cast<uint8_t>(RdbOpcode::kSlotImport)
                               ? parse_opcode(static_cast<RdbOpcode>(opcode), &is_end)
                               : handler_.key_begins(opcode);
    if (!is_parsed) return false;
  }
  return reader_.version() < kFirstRdbVersionWithChecksum || parse_checksum();
}

bool RdbFileParser::parse_opcode(RdbOpcode opcode, bool* is_end) {
  uint64_t number;
  switch (opcode) {
    case RdbOpcode::kEnd:
      *is_end = true;
      return true;
    case RdbOpcode::kSelectDb:
      step_ = "read-len";
      return reader_.length(&number) && handler_.database_selected(number);
    case RdbOpcode::kResizeDb:
      return skip_lengths(2);
    case RdbOpcode::kSlotInfo:
      return skip_lengths(3);
    case RdbOpcode::kSlotImport: {
      step_ = "read-slot-import";
      server::SlotImport import;
      if (!read_slot_import(reader_, &import)) return false;
      handler_.slot_import_read(std::move(import));
      return true;
    }
    case RdbOpcode::kDeadlineMs:
    case RdbOpcode::kDeadline:
      return parse_deadline(opcode);
    case RdbOpcode::kIdle:
      if (!reader_.length(&number)) return false;
      handler_.idle_time_read(number);
      return true;
    case RdbOpcode::kFrequency: {
      uint8_t frequency;
      if (!reader_.byte(&frequency)) return false;
      handler_.frequency_read(frequency);
      return true;
    }
    case RdbOpcode::kAux:
      return parse_aux_field();
    case RdbOpcode::kModuleAux:
      step_ = "read-module-aux";
      return reader_.length(&number) && handler_.module_aux_begins(number);
    case RdbOpcode::kFunction: {
      step_ = "read-functions";
      std::string_view code;
      return reader_.string(&code) && handler_.function_library_read(code);
    }
    case RdbOpcode::kFunctionPreGa:
      return handler_.pre_release_functions_begin();
  }
  return handler_.unknown_opcode_read(static_cast<uint8_t>(opcode));
}

bool RdbFileParser::parse_deadline(RdbOpcode opcode) {
  step_ = "read-expire";
  int64_t deadline_ms;
  if (opcode == RdbOpcode::kDeadlineMs) {
    if (!reader_.milliseconds(&deadline_ms)) return false;
  } else {
    int32_t seconds;
    if (!reader_.raw(&seconds, sizeof seconds)) return false;
    deadline_ms = int64_t{seconds} * base::kMsPerSecond;
  }
  handler_.deadline_read(deadline_ms);
  return true;
}

bool RdbFileParser::parse_aux_field() {
  step_ = "read-aux";
  std::string_view text;
  if (!reader_.string(&text)) return false;
  const std::string name(text);
  if (!reader_.string(&text)) return false;
  handler_.aux_field_read(name, text);
  return true;
}

bool RdbFileParser::parse_checksum() {
  step_ = "check-sum";
  const uint64_t computed = reader_.source().checksum();
  uint64_t stored;
  return reader_.raw(&stored, sizeof stored) && handler_.checksum_read(stored, computed);
}

bool RdbFileParser::skip_lengths(int count) {
  step_ = "read-len";
  uint64_t ignored;
  for (int i = 0; i < count; ++i) {
    if (!reader_.length(&ignored)) return false;
  }
  return true;
}

}  // namespace latchkey::persist
