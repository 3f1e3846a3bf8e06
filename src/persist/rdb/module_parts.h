// The parts of a module's value in RDB: numbers and texts, each behind its ModuleOpcode.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "persist/rdb/rdb_primitives.h"

namespace latchkey::persist {

class ModuleWriter {
 public:
  explicit ModuleWriter(RdbWriter& writer) : writer_(writer) {}

  // False after an error of the sink, when nothing more needs to be written.
  bool ok() const { return writer_.ok(); }

  void unsigned_number(uint64_t number) {
    opcode(ModuleOpcode::kUnsigned);
    writer_.length(number);
  }
  void real(double number) {
    opcode(ModuleOpcode::kDouble);
    writer_.binary_double(number);
  }
  void text(std::string_view text) {
    opcode(ModuleOpcode::kString);
    writer_.string(text);
  }

 private:
  void opcode(ModuleOpcode opcode) { writer_.length(static_cast<uint64_t>(opcode)); }

  RdbWriter& writer_;
};

// All functions return false after an error, which is then the reader's error().
class ModuleReader {
 public:
  // `what`: the value in the words of an error, "A vector set".
  ModuleReader(RdbReader& reader, std::string_view what) : reader_(reader), what_(what) {}

  bool unsigned_number(uint64_t* number) {
    return opcode(ModuleOpcode::kUnsigned) && reader_.length(number);
  }
  bool real(double* number) {
    return opcode(ModuleOpcode::kDouble) && reader_.binary_double(number);
  }
  // The view is valid until the next call.
  bool text(std::string_view* text) {
    return opcode(ModuleOpcode::kString) && reader_.string(text);
  }
  // Fails with the words "<what> <problem>". Always false.
  bool fail(std::string_view problem) {
    return reader_.fail(std::string(what_) + ' ' + std::string(problem));
  }

 private:
  bool opcode(ModuleOpcode wanted) {
    uint64_t read;
    if (!reader_.length(&read)) return false;
    return read == static_cast<uint64_t>(wanted) || fail("has parts of the wrong kind");
  }

  RdbReader& reader_;
  std::string_view what_;
};

}  // namespace latchkey::persist
