// Escapes in text within double quotes, in requests typed by hand and in configuration files: \n,
// \r, \t, \b and \a as in C, \xHH for a byte by its value; a backslash before any other character
// means that character.
#pragma once

#include <string>
#include <string_view>

namespace latchkey::base {

// Removes the escape at the front of `text`, and returns the byte it means.
// REQUIRES: a backslash and at least one character behind it.
char take_escape(std::string_view& text);

// Appends the text within double quotes, with an escape for each quote, backslash and byte that is
// not printable ASCII.
void append_quoted(std::string* out, std::string_view text);

}  // namespace latchkey::base
