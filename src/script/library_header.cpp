#include "script/library_header.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "server/command/command_context.h"
#include "server/config/config_parse.h"

namespace latchkey::script {

namespace {

constexpr std::string_view kMark = "#!";
constexpr std::string_view kNameOption = "NAME=";

bool refuse(std::string* error, std::string text) {
  *error = "ERR " + std::move(text);
  return false;
}

}  // namespace

bool is_function_name(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), fits);
}

bool parse_library_header(std::string_view text, LibraryHeader* header, std::string* error) {
  if (!text.starts_with(kMark)) return refuse(error, "Missing library metadata");
  const size_t line_end = text.find('\n');
  if (line_end == text.npos) return refuse(error, "Invalid library metadata");
  const std::optional<std::vector<std::string>> words =
      server::split_arguments(text.substr(0, line_end));
  if (!words.has_value() || words->empty()) return refuse(error, "Invalid library metadata");

  std::optional<std::string> name;
  for (auto word = std::next(words->begin()); word != words->end(); ++word) {
    if (!server::is_word(std::string_view(*word).substr(0, kNameOption.size()), kNameOption))
      return refuse(error, "Invalid metadata value given: " + *word);
    if (name.has_value()) {
      return refuse(error, "Invalid metadata value, name argument was given multiple times");
    }
    name = word->substr(kNameOption.size());
  }
  if (!name.has_value()) return refuse(error, "Library name was not given");
  if (!is_function_name(*name)) {
    *error = kBadFunctionName;
    return false;
  }
  const std::string_view engine = std::string_view(words->front()).substr(kMark.size());
  if (!server::is_word(engine, "LUA"))
    return refuse(error, "Engine '" + std::string(engine) + "' not found");
  header->name = std::move(*name);
  header->code = text.substr(line_end);
  return true;
}

}  // namespace latchkey::script
