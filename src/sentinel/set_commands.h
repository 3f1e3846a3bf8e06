// SENTINEL SET, CONFIG, DEBUG, MONITOR: what changes settings of a Sentinel.
#pragma once

#include "server/command/command_context.h"

namespace latchkey::sentinel {

struct Master;

void sentinel_config(server::CommandContext& ctx);
void sentinel_debug(server::CommandContext& ctx);
void sentinel_monitor(server::CommandContext& ctx);
void sentinel_set(server::CommandContext& ctx);

// The master that the request names, or null with an error sent.
Master* find_named_master(server::CommandContext& ctx);
// Writes the file, and replies OK or an error.
void reply_saved(server::CommandContext& ctx);

}  // namespace latchkey::sentinel
