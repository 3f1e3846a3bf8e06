#include "base/text/split.h"

#include <algorithm>

namespace latchkey::base {

std::vector<std::string_view> split_fields(std::string_view text, char separator) {
  std::vector<std::string_view> fields;
  for (;;) {
    const size_t end = text.find(separator);
    fields.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return fields;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> split_words(std::string_view text, char separator) {
  std::vector<std::string_view> words;
  for (;;) {
    const std::string_view word = take_word(&text, separator);
    if (word.empty()) return words;
    words.push_back(word);
  }
}

std::string_view take_word(std::string_view* text, char separator) {
  const size_t first = std::min(text->find_first_not_of(separator), text->size());
  const size_t end = std::min(text->find(separator, first), text->size());
  const std::string_view word = text->substr(first, end - first);
  text->remove_prefix(end);
  return word;
}

}  // namespace latchkey::base
