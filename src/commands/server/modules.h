// The modules that clients are told of, by MODULE LIST and HELLO.
#pragma once

namespace latchkey::server {
struct CommandContext;
}

namespace latchkey::commands {

// Replies with the list of modules: vector sets, which are a module in the reference, by which
// clients know that there are any. They are built in here and there, and cannot be unloaded. The
// list is empty where a release is emulated that has none.
void reply_modules(server::CommandContext& ctx);

}  // namespace latchkey::commands
