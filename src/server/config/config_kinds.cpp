#include "server/config/config_kinds.h"

#include "base/text/number.h"
#include "base/text/text.h"
#include "server/config/config_parse.h"
#include "server/emulation/later_directives.h"

namespace latchkey::server {

using base::fail;
using base::Result;

std::string out_of_range(const std::string& least, const std::string& most) {
  return "argument must be between " + least + " and " + most + " inclusive";
}

std::string not_one_of(std::string_view words) {
  return "argument(s) must be one of the following: " + std::string(words);
}

Result<int64_t> parse_whole(const std::string& text, int64_t least, int64_t most) {
  int64_t value = 0;
  if (!base::parse_int64(text, &value)) return fail("argument couldn't be parsed into an integer");
  if (value < least || value > most)
    return fail(out_of_range(std::to_string(least), std::to_string(most)));
  return value;
}

Result<uint64_t> parse_memory_within(const std::string& text, uint64_t least, uint64_t most) {
  const auto bytes = parse_memory(text);
  if (!bytes) return fail("argument must be a memory value");
  if (*bytes < least || *bytes > most)
    return fail(out_of_range(std::to_string(least), std::to_string(most)));
  return *bytes;
}

std::vector<RewriteLine> memory_line(std::string_view name, uint64_t bytes,
                                     uint64_t default_bytes) {
  return {{std::string(name) + ' ' + format_memory(bytes), bytes != default_bytes}};
}

Directive special(Names names, unsigned flags, decltype(Directive::parse) parse,
                  decltype(Directive::format) format) {
  Directive row;
  row.name = names.name;
  row.alias = names.alias;
  row.flags = flags;
  row.parse = std::move(parse);
  row.format = std::move(format);
  row.rewrite = [name = names.name, show = row.format](const ConfigValues& values,
                                                       const ConfigValues& defaults) {
    const std::string value = show(values);
    return std::vector<RewriteLine>{{std::string(name) + ' ' + value, value != show(defaults)}};
  };
  return row;
}

Directive boolean(Names names, bool ConfigValues::*member, unsigned flags) {
  return special(
      names, flags,
      [=](DirectiveArguments arguments, DirectiveContext& context) -> Result<> {
        const bool yes = base::equal_ignoring_case(arguments[0], "yes");
        if (!yes && !base::equal_ignoring_case(arguments[0], "no"))
          return fail("argument must be 'yes' or 'no'");
        context.values.*member = yes;
        return {};
      },
      [=](const ConfigValues& values) { return values.*member ? "yes" : "no"; });
}

Directive text(Names names, std::string ConfigValues::*member, unsigned flags,
               TextOptions options) {
  Directive row = special(
      names, flags,
      [=, check = options.check](DirectiveArguments arguments,
                                 DirectiveContext& context) -> Result<> {
        if (check) {
          if (auto checked = check(arguments[0], context.values); !checked) return checked;
        }
        context.values.*member = arguments[0];
        return {};
      },
      [=](const ConfigValues& values) { return values.*member; });
  row.rewrite = [=, keep_empty = options.empty_is_a_value](const ConfigValues& values,
                                                           const ConfigValues& defaults) {
    const std::string& value = values.*member;
    std::vector<RewriteLine> lines;
    if (value.empty() && !keep_empty) return lines;
    lines.push_back(
        {std::string(names.name) + ' ' + quote_argument(value), value != defaults.*member});
    return lines;
  };
  return row;
}

Directive numbered_choice(Names names, unsigned flags, NumberedWords words,
                          std::function<void(ConfigValues&, int)> store,
                          std::function<int(const ConfigValues&)> read) {
  auto show = [words, read = std::move(read),
               name = names.name](const ConfigValues& values) -> std::string {
    for (const auto& [word, value] : words) {
      if (value == read(values) && has_directive_word(values.edition, name, word))
        return std::string(word);
    }
    return {};
  };
  auto parse = [words = std::move(words), store = std::move(store), name = names.name](
                   DirectiveArguments arguments, DirectiveContext& context) -> Result<> {
    std::string all;
    for (const auto& [word, value] : words) {
      if (!has_directive_word(context.values.edition, name, word)) continue;
      if (base::equal_ignoring_case(arguments[0], word)) {
        store(context.values, value);
        return {};
      }
      all.append(all.empty() ? "" : ", ").append(word);
    }
    return fail(not_one_of(all));
  };
  return special(names, flags, std::move(parse), std::move(show));
}

}  // namespace latchkey::server
