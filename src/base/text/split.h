// Text split at a separator. What is returned are views of `text`. All costs linear in its size.
//
// Whether empty parts count depends on what the text is: "a  b " is two words, but as fields with
// the separator ' ' it is "a", "", "b" and "".
#pragma once

#include <string_view>
#include <vector>

namespace latchkey::base {

// The fields of `text`, empty ones included: always one more than there are separators, so that an
// empty text is one empty field.
std::vector<std::string_view> split_fields(std::string_view text, char separator);

// The words of `text`, which are its parts that are not empty: any number of separators may lie
// between two of them, before the first one and after the last one. An empty text has none.
std::vector<std::string_view> split_words(std::string_view text, char separator);

// Removes the first word from `text`, with the separators before it, but not the one after it.
// Returns the word; nothing is left where that is empty.
std::string_view take_word(std::string_view* text, char separator = ' ');

}  // namespace latchkey::base
