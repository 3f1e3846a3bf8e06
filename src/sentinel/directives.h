// The directives `sentinel ...` of the configuration file, which is also where a Sentinel keeps its
// state: whom it knows, its epochs, its votes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/config/config.h"

namespace latchkey::sentinel {

class Sentinel;
struct Master;

// Takes over what the directives say, in whatever order they stand, up to one that is wrong.
base::Result<void, server::ConfigError> apply_directives(
    const std::vector<server::DeferredDirective>& directives, Sentinel* sentinel);

// The lines that say the settings and the state; those that are as they would be without are left
// out. `edition`: in whose words.
std::vector<std::string> directive_lines(Sentinel& sentinel, const server::Edition& edition = {});

// Whether a file can be run as a script.
bool is_executable(const std::string& path);

}  // namespace latchkey::sentinel
