// The commands of this folder.
#pragma once

#include <span>

#include "server/command/command.h"

namespace latchkey::testing {

std::span<const server::CommandRow> checkpoint_rows();

}  // namespace latchkey::testing
