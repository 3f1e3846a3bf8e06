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

base::Failure<> refuse(const std::string& text) {
  return base::fail("ERR " + text);
}

}  // namespace

bool is_function_name(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), fits);
}

base::Result<LibraryHeader> parse_library_header(std::string_view text) {
  if (!text.starts_with(kMark)) return refuse("Missing library metadata");
  const size_t line_end = text.find('\n');
  if (line_end == text.npos) return refuse("Invalid library metadata");
  const std::optional<std::vector<std::string>> words =
      server::split_arguments(text.substr(0, line_end));
  if (!words.has_value() || words->empty()) return refuse("Invalid library metadata");

  std::optional<std::string> name;
  for (auto word = std::next(words->begin()); word != words->end(); ++word) {
    if (!server::is_word(std::string_view(*word).substr(0, kNameOption.size()), kNameOption))
      return refuse("Invalid metadata value given: " + *word);
    if (name.has_value())
      return refuse("Invalid metadata value, name argument was given multiple times");
    name = word->substr(kNameOption.size());
  }
  if (!name.has_value()) return refuse("Library name was not given");
  if (!is_function_name(*name)) return base::fail(kBadFunctionName);
  const std::string_view engine = std::string_view(words->front()).substr(kMark.size());
  if (!server::is_word(engine, "LUA"))
    return refuse("Engine '" + std::string(engine) + "' not found");
  return LibraryHeader{*std::move(name), text.substr(line_end)};
}

}  // namespace latchkey::script
