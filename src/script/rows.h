// The commands of this folder.
#pragma once

#include <span>

#include "server/command/command.h"

namespace latchkey::script {

std::span<const server::CommandRow> script_rows();
std::span<const server::CommandRow> function_rows();

}  // namespace latchkey::script
