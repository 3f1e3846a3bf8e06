// The directives `sentinel ...` of the configuration file. A Sentinel keeps its state there too:
// the instances that it knows, its epochs, its votes.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "server/config/config.h"

namespace latchkey::sentinel {

class Sentinel;
struct Master;

// Applies the directives, in any order, up to the first one that is wrong.
base::Result<void, server::ConfigError> apply_directives(
    const std::vector<server::DeferredDirective>& directives, Sentinel* sentinel);

// The lines of the settings and the state, without defaults. `edition`: whose names of directives
// they use.
std::vector<std::string> directive_lines(Sentinel& sentinel, const server::Edition& edition = {});

// Whether a file can be run as a script.
bool is_executable(const std::string& path);

}  // namespace latchkey::sentinel
