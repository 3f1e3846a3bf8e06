// Text as C reads it: it ends at the first NUL. The reference reads and shows many words in this
// way.
#pragma once

#include <string_view>

namespace latchkey::base {

constexpr std::string_view up_to_nul(std::string_view text) {
  return text.substr(0, text.find('\0'));
}

}  // namespace latchkey::base
