// A reply in a few words, for CALLS LIST:
//
//     OK  (error) ERR text  (integer) 1  "text"  (nil)  (array) 2  (map) 1  (set) 3  (push) 3
//     (double) 1.5  (big number) 12  (true)  (false)  (none)
//
// Only bulk strings and verbatim text are quoted, so that they are told from statuses. Of text the
// first 64 bytes are shown; of what is longer the number of further bytes is told.
#pragma once

#include <string>
#include <string_view>

namespace latchkey::testing {

// `reply`: protocol text, at least its first CallListener::kReplyBytes; of several replies the
// first counts.
std::string short_reply(std::string_view reply);

}  // namespace latchkey::testing
