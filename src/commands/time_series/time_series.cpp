#include "commands/groups.h"

namespace latchkey::commands {

std::span<const server::CommandRow> time_series_rows() {
  return {};
}

}  // namespace latchkey::commands
