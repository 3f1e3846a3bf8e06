// The modules that clients are told of, by MODULE LIST and HELLO.
#pragma once

namespace latchkey::resp {
class ReplyBuilder;
}

namespace latchkey::commands {

// Replies with the list of modules: vector sets, which are a module in the reference, by which
// clients know that there are any. They are built in here and there, and cannot be unloaded.
void reply_modules(resp::ReplyBuilder& reply);

}  // namespace latchkey::commands
