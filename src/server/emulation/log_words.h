// The words that Valkey's log has in place of Redis's, since 8.0: tests and operators look for
// them.
#pragma once

#include <span>
#include <string_view>

namespace latchkey::server {

// "master" becomes "primary", in whatever case, and "Redis" becomes "Valkey", as words of their own. A
// base::Logger::Rewording.
std::string_view in_words_of_valkey(std::string_view message, std::span<char> room);

}  // namespace latchkey::server
