// Fields of a JSON object (RFC 8259), found in its text without building anything: what filters of
// vector sets look at. Only as much of the text is read as is needed, and what is read must be well
// formed; whatever is behind it is not looked at. Costs: linear in the text before the end of the
// last field that is found, however many there are.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace latchkey::store {

struct JsonValue {
  enum class Kind : uint8_t { kNull, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  double number = 0;         // of numbers; of true and false 1 and 0
  std::string_view text;     // of strings and arrays: what is between the quotes or brackets
  bool has_escapes = false;  // of strings: `text` must be unescaped
};

// The fields of those names at the top level of the object. False when one is missing, or the text
// is not an object up to there. Of two fields of one name it is the first. REQUIRES: `names` are
// sorted and differ, and there are as many `values`.
bool find_json_fields(std::string_view object, std::span<const std::string_view> names,
                      std::span<JsonValue> values);

// Whether what is between an array's brackets is well formed and has no object in it, at any depth.
bool is_plain_json_array(std::string_view elements);

// Steps through the elements of an array: reads the first of `rest` and takes it off. Nothing at
// the end, or where the text is not well formed.
std::optional<JsonValue> next_json_element(std::string_view* rest);

// The text of a string with its escapes replaced; those that are invalid stand for themselves.
std::string unescaped_json(std::string_view text);

}  // namespace latchkey::store
