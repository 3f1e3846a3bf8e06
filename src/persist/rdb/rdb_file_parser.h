// Parses the opcodes of an RDB file, between its header and its end. The loader and redis-check-rdb
// share it.
#pragma once

#include <cstdint>
#include <string_view>

#include "persist/rdb/rdb_format.h"
#include "persist/rdb/rdb_primitives.h"
#include "server/command/slot_gate.h"

namespace latchkey::persist {

// Receives the contents of a file in their order. A function that returns false ends the parsing;
// the handler keeps the reason. Views are valid during the call.
class RdbFileHandler {
 public:
  virtual ~RdbFileHandler() = default;

  virtual bool database_selected(uint64_t index) = 0;
  // What applies to the next key alone. `deadline_ms`: Unix time, as it stands in the file.
  virtual void deadline_read(int64_t deadline_ms) = 0;
  virtual void idle_time_read(uint64_t /*seconds*/) {}
  virtual void frequency_read(uint8_t /*frequency*/) {}
  // A key of that type begins; the type may be unknown. Reads the key and its value.
  virtual bool key_begins(uint8_t type) = 0;

  virtual void aux_field_read(std::string_view name, std::string_view value) = 0;
  virtual void slot_import_read(server::SlotImport import) = 0;
  virtual bool function_library_read(std::string_view code) = 0;
  virtual bool pre_release_functions_begin() = 0;
  // Data of a module, which is not a key's. Reads what follows the module's number.
  virtual bool module_aux_begins(uint64_t module) = 0;
  // The byte is the number of a type in no version either.
  virtual bool unknown_opcode_read(uint8_t opcode) = 0;
  // At the end of files of versions that have a checksum. `computed` is zero unless the source
  // computes it; `stored` is zero in files without.
  virtual bool checksum_read(uint64_t stored, uint64_t computed) = 0;
};

class RdbFileParser {
 public:
  // Both outlive it.
  RdbFileParser(RdbReader& reader, RdbFileHandler& handler) : reader_(reader), handler_(handler) {}

  // Reads up to the end of the file. False when the handler has ended it, or with the reason in
  // reader.error(). REQUIRES: the header has been read (rdb_header.h).
  bool parse();
  // What is being read, for error reports, in the words of the reference's check tool.
  std::string_view step() const { return step_; }

 private:
  bool parse_opcode(RdbOpcode opcode, bool* is_end);
  bool parse_deadline(RdbOpcode opcode);
  bool parse_aux_field();
  bool parse_checksum();
  bool skip_lengths(int count);

  RdbReader& reader_;
  RdbFileHandler& handler_;
  std::string_view step_ = "read-type";
};

}  // namespace latchkey::persist
