// What all commands of filters and sketches share.
#pragma once

#include "server/command/command_context.h"

namespace latchkey::commands {

// They are of one module.
inline constexpr server::CommandExtras kOfFilters = {.module = "bf"};

// Records a change of the value at the command's key. The reference's module causes no
// notifications by it.
inline void value_changed(server::CommandContext& ctx) {
  ctx.changed(ctx.args[1], server::EventClass::kModule, {});
}

}  // namespace latchkey::commands
