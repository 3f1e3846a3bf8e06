// For each slot a short text that is in it, so that {text} leads to the slot's node. It is the
// first in the order of length, then digits, small letters, capital letters: "06S" for slot 0, "Qi"
// for 1. This is the order of the tags that Valkey's cursors have.
#pragma once

#include <string_view>

namespace latchkey::cluster {

// At most 3 bytes. The first call costs some milliseconds, further ones nothing. REQUIRES: 0 <=
// slot < store::kKeySlots.
std::string_view slot_tag(int slot);

}  // namespace latchkey::cluster
