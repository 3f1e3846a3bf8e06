#include "commands/groups.h"

namespace latchkey::commands {

std::span<const server::CommandRow> bloom_filter_rows() {
  return {};
}

}  // namespace latchkey::commands
