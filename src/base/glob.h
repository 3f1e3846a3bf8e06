// Glob patterns of KEYS, SCAN and CONFIG GET: `*`, `?`, `[abc]`, `[^a-c]`, `\x`.
#pragma once

#include <string_view>

namespace latchkey::base {

// True when the whole of `text` matches `pattern`. Both may contain any bytes. An empty text
// matches only the empty pattern, not even `*`: callers for which `*` means everything, such as
// KEYS and SCAN, check for it first. Several stars do not make the cost exponential: once a later
// star has failed to match to the end of the text, earlier stars are not tried again, so the cost
// is at most |pattern| * |text|. As in the reference, a pattern with more than 1000 stars that are
// followed by something (neighbours count once) matches nothing.
bool glob_match(std::string_view pattern, std::string_view text, bool ignore_case = false);

}  // namespace latchkey::base
