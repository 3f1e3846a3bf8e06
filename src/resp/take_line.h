// Reads lines of the protocol that stand outside of requests, as the replies of a handshake do.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace latchkey::resp {

// Removes the first line from `bytes` and returns it without its end, which is "\r\n" or "\n".
// Nothing, and `bytes` as it was, when the end has not come yet. Costs a search of the line.
inline std::optional<std::string_view> take_line(std::string_view* bytes) {
  const size_t end = bytes->find('\n');
  if (end == std::string_view::npos) return {};
  std::string_view line = bytes->substr(0, end);
  bytes->remove_prefix(end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace latchkey::resp
