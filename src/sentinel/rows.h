// The commands of a Sentinel, beside those of every server that it has too.
#pragma once

#include <span>
#include <string_view>

#include "server/command/command.h"

namespace latchkey::sentinel {

std::span<const server::CommandRow> sentinel_rows();
// PUBLISH and ROLE, which a Sentinel understands in its own way.
std::span<const server::CommandRow> mode_rows();

// Whether a Sentinel has this command of other servers ("client|list", lower case). Not those of
// mode_rows().
bool is_shared_command(std::string_view full_name);

}  // namespace latchkey::sentinel
