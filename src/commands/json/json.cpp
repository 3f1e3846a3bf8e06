#include "commands/groups.h"

namespace latchkey::commands {

std::span<const server::CommandRow> json_rows() {
  return {};
}

}  // namespace latchkey::commands
