// The commands of this folder.
#pragma once

#include <span>

#include "server/command/command.h"

namespace latchkey::locks {

std::span<const server::CommandRow> lock_rows();

}  // namespace latchkey::locks
