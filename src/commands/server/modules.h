// The modules that MODULE LIST and HELLO list.
#pragma once

namespace latchkey::server {
struct CommandContext;
}

namespace latchkey::commands {

// Replies with the list of modules (server/command/built_in_modules.h), none of which can be
// unloaded. It is empty where a release is emulated that has none.
void reply_modules(server::CommandContext& ctx);

}  // namespace latchkey::commands
