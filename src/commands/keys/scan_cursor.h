// The cursor of SCAN, HSCAN, SSCAN and ZSCAN.
#pragma once

#include <cstdint>
#include <string_view>

#include "server/command/command_context.h"
#include "server/emulation/edition.h"

namespace latchkey::commands {

// False when the text is not a cursor ("ERR invalid cursor"). `edition`: the release that reads it.
bool parse_cursor(std::string_view text, uint64_t* cursor, const server::Edition& edition = {});

// The cursor of a request. False, with the error sent, when the text is none.
bool read_cursor(server::CommandContext& ctx, std::string_view text, uint64_t* cursor);

}  // namespace latchkey::commands
