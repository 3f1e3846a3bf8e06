// The words of a request: the command's name first, and the subcommand's second.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace latchkey::server {

// Views, which last as long as the request is being run.
using Arguments = std::span<const std::string_view>;

// Where the arguments of a subcommand begin.
inline constexpr size_t kFirstArgument = 2;

}  // namespace latchkey::server
