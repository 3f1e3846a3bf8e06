#include "commands/groups.h"

namespace latchkey::commands {

std::span<const server::CommandRow> count_min_sketch_rows() {
  return {};
}

}  // namespace latchkey::commands
