// Which directives of the configuration a release knows, and which of their words. Latchkey's own
// are known whatever is emulated.
#pragma once

#include <string_view>

#include "server/emulation/edition.h"

namespace latchkey::server {

// `name`: a name or an alias, in lower case.
bool has_directive(const Edition& edition, std::string_view name);
// Whether it is one that older releases had, and that a configuration may still hold: this release
// reads and forgets it.
bool ignores_directive(const Edition& edition, std::string_view name);
// Whether a directive of that name takes a word.
bool has_directive_word(const Edition& edition, std::string_view name, std::string_view word);
// Whether notify-keyspace-events takes a letter of those that Latchkey knows.
bool has_event_class(const Edition& edition, char letter);

}  // namespace latchkey::server
