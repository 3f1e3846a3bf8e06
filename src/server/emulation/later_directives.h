// Which directives of the configuration a release knows. Latchkey's own are known whatever is
// emulated.
#pragma once

#include <string_view>

#include "server/emulation/edition.h"

namespace latchkey::server {

// `name`: a name or an alias, in lower case.
bool has_directive(const Edition& edition, std::string_view name);
// Whether it is one that older releases had, and that a configuration may still hold: this release
// reads and forgets it.
bool ignores_directive(const Edition& edition, std::string_view name);

}  // namespace latchkey::server
