// The releases in which commands and their options were added, where the command's row does not
// name them all: what Valkey added on its own, or in another version than Redis.
#pragma once

#include <cstdint>
#include <string_view>

#include "server/emulation/edition.h"

namespace latchkey::server {

// `full_name`: "get" or "client|list", in any case. `since`: what the row says, a release of Redis.
bool has_command(const Edition& edition, std::string_view full_name, std::string_view since);

// Whether it has an argument of a command: `token` as the row's syntax has it, empty for one
// without; `since` empty for one that was there from the beginning.
bool has_argument(const Edition& edition, std::string_view full_name, std::string_view token,
                  std::string_view since);

// The CommandFlag bits of a command in that edition; `flags`: those of its row.
uint32_t flags_in(const Edition& edition, std::string_view full_name, uint32_t flags);

// The arity of a command in that edition; `arity`: what follows from its syntax. Some leave more to
// their handlers.
int arity_in(const Edition& edition, std::string_view full_name, int arity);

// Whether a command is documented as deprecated. `since`: what the row says, null if it never was.
bool is_deprecated(const Edition& edition, std::string_view full_name, const char* since);

// Whether a command, by its own or its container's name, is one that no other server has. Such
// commands work whatever is emulated, but are not listed then.
bool is_own_command(std::string_view full_name);

}  // namespace latchkey::server
