// Glob patterns as KEYS, SCAN and CONFIG GET use them: `*`, `?`, `[abc]`, `[^a-c]`, `\x`.
#pragma once

#include <string_view>

namespace latchkey::base {

// True when the whole of `text` matches `pattern`. Both may hold any bytes. An empty text matches
// the empty pattern alone, not even `*`: callers for whom `*` means everything, as it does to KEYS
// and SCAN, ask for it before. Nested stars do not make the cost explode: once a later star has
// failed to match to the end of the text, earlier stars are not tried again, so the cost is at most
// |pattern| * |text|. As in the reference, a pattern with more than 1000 stars that are followed by
// something (neighbours count once) matches nothing.
bool glob_match(std::string_view pattern, std::string_view text, bool ignore_case = false);

}  // namespace latchkey::base
