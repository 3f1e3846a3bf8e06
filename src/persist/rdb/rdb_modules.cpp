#include "persist/rdb/rdb_modules.h"

namespace latchkey::persist {

std::string module_name(uint64_t id) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  constexpr unsigned kVersionBits = 10;
  constexpr unsigned kLetterBits = 6;
  std::string name(9, '\0');
  id >>= kVersionBits;
  for (auto letter = name.rbegin(); letter != name.rend(); ++letter, id >>= kLetterBits)
    *letter = kLetters[id & 63];
  return name;
}

bool skip_module_data(RdbReader& reader) {
  for (;;) {
    uint64_t opcode;
    uint64_t number;
    char bytes[sizeof(double)];
    if (!reader.length(&opcode)) return false;
    if (opcode > static_cast<uint64_t>(ModuleOpcode::kString))
      return reader.fail("Unknown part of a module's data: " + std::to_string(opcode));
    switch (static_cast<ModuleOpcode>(opcode)) {
      case ModuleOpcode::kEnd:
        return true;
      case ModuleOpcode::kSigned:
      case ModuleOpcode::kUnsigned:
        if (!reader.length(&number)) return false;
        break;
      case ModuleOpcode::kFloat:
        if (!reader.raw(bytes, sizeof(float))) return false;
        break;
      case ModuleOpcode::kDouble:
        if (!reader.raw(bytes, sizeof(double))) return false;
        break;
      case ModuleOpcode::kString:
        if (!reader.skip_string()) return false;
        break;
    }
  }
}

}  // namespace latchkey::persist
