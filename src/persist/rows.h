// The commands of this folder.
#pragma once

#include <span>

#include "server/command.h"

namespace latchkey::persist {

std::span<const server::CommandRow> dump_rows();

}  // namespace latchkey::persist
