// Subcommands of DEBUG that are implemented in files of their own.
#pragma once

#include <string_view>

#include "server/command/command_context.h"

namespace latchkey::commands {

// Whether an argument is a number other than zero; false for anything that is not a number.
bool is_on(std::string_view argument);

// debug_dataset.cpp
void debug_change_replication_id(server::CommandContext& ctx);
void debug_digest(server::CommandContext& ctx);
void debug_digest_value(server::CommandContext& ctx);
void debug_htstats(server::CommandContext& ctx);
void debug_htstats_key(server::CommandContext& ctx);
void debug_listpack(server::CommandContext& ctx);
void debug_populate(server::CommandContext& ctx);
void debug_quicklist(server::CommandContext& ctx);
void debug_sdslen(server::CommandContext& ctx);

// debug_key_sizes.cpp
void debug_allocsize_slots_assert(server::CommandContext& ctx);
void debug_keysizes_hist_assert(server::CommandContext& ctx);

// debug_protocol.cpp
void debug_protocol(server::CommandContext& ctx);

}  // namespace latchkey::commands
