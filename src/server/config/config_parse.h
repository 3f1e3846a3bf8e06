// Parsing of configuration text: words, quotes, escapes, units.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/text.h"

namespace latchkey::server {

// The words of a line. "double quotes" know \n \r \t \a \b \xHH and take any other escaped
// character as it is; 'single quotes' know only \'. A closing quote must end the word. Nothing when
// quotes do not balance. Linear.
std::optional<std::vector<std::string>> split_arguments(std::string_view line);

// `text` in double quotes such that split_arguments reads it back. Bytes that do not print become
// \xHH.
std::string quote_argument(std::string_view text);

// As quote_argument, but a plain word stays as it is.
std::string quote_if_needed(std::string_view text);

// The pieces between single spaces, empty ones included; no pieces for an empty text.
std::vector<std::string> split_at_spaces(std::string_view text);

// "100", "10k" (1000), "10kb" (1024), "1mb", "2g", ... with units in any case; a missing number is
// 0, as in the reference. Numbers past 64 bits saturate. Nothing for anything else.
std::optional<uint64_t> parse_memory(std::string_view text);

// The shortest of "3gb", "5mb", "7kb" and "1001" that parse_memory reads back as `bytes`.
std::string format_memory(uint64_t bytes);

// Removes spaces, tabs and line ends on either side.
std::string_view trim_line(std::string_view text);

// Words of a configuration are ASCII.
using base::equal_ignoring_case;
using base::lower_case;

}  // namespace latchkey::server
