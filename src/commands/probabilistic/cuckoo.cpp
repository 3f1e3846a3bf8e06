#include "commands/groups.h"

namespace latchkey::commands {

std::span<const server::CommandRow> cuckoo_filter_rows() {
  return {};
}

}  // namespace latchkey::commands
