#include "commands/groups.h"

namespace latchkey::commands {

std::span<const server::CommandRow> t_digest_rows() {
  return {};
}

}  // namespace latchkey::commands
