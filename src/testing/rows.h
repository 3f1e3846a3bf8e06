// The commands of this folder.
#pragma once

#include <span>

#include "server/command/command.h"

namespace latchkey::testing {

std::span<const server::CommandRow> checkpoint_rows();
std::span<const server::CommandRow> clock_rows();
std::span<const server::CommandRow> space_rows();
std::span<const server::CommandRow> calls_rows();
std::span<const server::CommandRow> fault_rows();

}  // namespace latchkey::testing
