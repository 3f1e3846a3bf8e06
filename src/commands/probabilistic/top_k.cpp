#include "commands/groups.h"

namespace latchkey::commands {

std::span<const server::CommandRow> top_k_rows() {
  return {};
}

}  // namespace latchkey::commands
