// The commands and DEBUG subcommands of this folder.
#pragma once

#include <span>

#include "server/command/command.h"
#include "server/command/debug_subcommand.h"

namespace latchkey::persist {

std::span<const server::CommandRow> aof_rows();
std::span<const server::DebugSubcommand> aof_debug_subcommands();
std::span<const server::CommandRow> backup_rows();
std::span<const server::CommandRow> dump_rows();
// DEBUG SET-SKIP-CHECKSUM-VALIDATION.
std::span<const server::DebugSubcommand> dump_debug_subcommands();
// DEBUG OBJECT.
std::span<const server::DebugSubcommand> object_debug_subcommands();
std::span<const server::CommandRow> snapshot_rows();
std::span<const server::DebugSubcommand> snapshot_debug_subcommands();

}  // namespace latchkey::persist
