#include "server/command/command_docs.h"

#include <string>

#include "base/text/split.h"
#include "server/command/command_syntax.h"
#include "server/emulation/arrivals.h"
#include "server/emulation/later_options.h"

namespace latchkey::server {

namespace {

void write_text_field(std::string_view name, std::string_view value, resp::ReplyBuilder& reply) {
  reply.bulk(name);
  reply.bulk(value);
}

void write_integer_field(std::string_view name, int64_t value, resp::ReplyBuilder& reply) {
  reply.bulk(name);
  reply.integer(value);
}

void write_typed_spec(std::string_view type, size_t fields, resp::ReplyBuilder& reply) {
  reply.map(2);
  write_text_field("type", type, reply);
  reply.bulk("spec");
  reply.map(fields);
}

void write_begin_search(const KeySpec& spec, resp::ReplyBuilder& reply) {
  switch (spec.begin) {
    case KeySpec::Begin::kIndex:
      write_typed_spec("index", 1, reply);
      write_integer_field("index", spec.position, reply);
      return;
    case KeySpec::Begin::kKeyword:
      write_typed_spec("keyword", 2, reply);
      write_text_field("keyword", spec.keyword, reply);
      write_integer_field("startfrom", spec.position, reply);
      return;
    case KeySpec::Begin::kUnknown:
      write_typed_spec("unknown", 0, reply);
  }
}

void write_find_keys(const KeySpec& spec, resp::ReplyBuilder& reply) {
  switch (spec.find) {
    case KeySpec::Find::kRange:
      write_typed_spec("range", 3, reply);
      write_integer_field("lastkey", spec.last, reply);
      write_integer_field("keystep", spec.step, reply);
      write_integer_field("limit", spec.range_limit, reply);
      return;
    case KeySpec::Find::kCounted:
      write_typed_spec("keynum", 3, reply);
      write_integer_field("keynumidx", spec.count_at, reply);
      write_integer_field("firstkey", spec.first_at, reply);
      write_integer_field("keystep", spec.step, reply);
      return;
    case KeySpec::Find::kUnknown:
      write_typed_spec("unknown", 0, reply);
  }
}

void write_key_spec(const KeySpec& spec, resp::ReplyBuilder& reply) {
  reply.map(spec.remark != nullptr ? 4 : 3);
  if (spec.remark != nullptr) write_text_field("notes", spec.remark, reply);
  reply.bulk("flags");
  write_bit_names(spec.flags, key_flag_names(), "", reply);
  reply.bulk("begin_search");
  write_begin_search(spec, reply);
  reply.bulk("find_keys");
  write_find_keys(spec, reply);
}

void write_arguments(const std::vector<Argument>& arguments, resp::ReplyBuilder& reply);

void write_argument(const Argument& argument, resp::ReplyBuilder& reply) {
  const size_t flags =
      size_t{argument.optional} + size_t{argument.multiple} + size_t{argument.multiple_token};
  reply.map(2 + size_t{!argument.display_text.empty()} + size_t{argument.key_spec_index >= 0} +
            size_t{argument.has_token} + size_t{!argument.since.empty()} +
            size_t{!argument.deprecated_since.empty()} + size_t{flags > 0} +
            size_t{!argument.arguments.empty()});
  write_text_field("name", argument.name, reply);
  write_text_field("type", argument_type_name(argument.type), reply);
  if (!argument.display_text.empty())
    write_text_field("display_text", argument.display_text, reply);
  if (argument.key_spec_index >= 0) {
    write_integer_field("key_spec_index", argument.key_spec_index, reply);
  }
  if (argument.has_token) write_text_field("token", argument.token, reply);
  if (!argument.since.empty()) write_text_field("since", argument.since, reply);
  if (!argument.deprecated_since.empty()) {
    write_text_field("deprecated_since", argument.deprecated_since, reply);
  }
  if (flags > 0) {
    reply.bulk("flags");
    reply.set(flags);
    if (argument.optional) reply.status("optional");
    if (argument.multiple) reply.status("multiple");
    if (argument.multiple_token) reply.status("multiple_token");
  }
  if (!argument.arguments.empty()) {
    reply.bulk("arguments");
    write_arguments(argument.arguments, reply);
  }
}

void write_arguments(const std::vector<Argument>& arguments, resp::ReplyBuilder& reply) {
  reply.array(arguments.size());
  for (const Argument& argument : arguments) write_argument(argument, reply);
}

// The changes that the edition has.
std::vector<std::string_view> changes_until(const Edition& edition, std::string_view history) {
  std::vector<std::string_view> changes = base::split_words(history, '\n');
  std::erase_if(changes, [&](std::string_view change) {
    const auto version = parse_version(change.substr(0, change.find(' ')));
    return version && !edition.has(*version);
  });
  return changes;
}

void write_history(const std::vector<std::string_view>& changes, resp::ReplyBuilder& reply) {
  reply.bulk("history");
  reply.set(changes.size());
  for (const std::string_view change : changes) {
    const size_t space = change.find(' ');
    reply.array(2);
    reply.bulk(change.substr(0, space));
    reply.bulk(change.substr(space + 1));
  }
}

}  // namespace

void write_bit_names(uint32_t bits, std::span<const BitName> names, std::string_view prefix,
                     resp::ReplyBuilder& reply) {
  const auto listed = [bits](const BitName& name) { return (bits & name.bit) != 0; };
  reply.set(static_cast<size_t>(std::count_if(names.begin(), names.end(), listed)));
  std::string text;
  for (const BitName& name : names) {
    if (!listed(name)) continue;
    text.assign(prefix).append(name.name);
    reply.status(text);
  }
}

void write_command_info(const Command& command, const Edition& edition, resp::ReplyBuilder& reply) {
  const CommandRow& row = *command.row;
  const std::vector<std::string_view> tips = base::split_words(row.extras.tips, ' ');
  const bool with_specifications = edition.has({7, 0});
  reply.array(with_specifications ? 10 : 7);
  reply.bulk(command.full_name);
  reply.integer(command.arity);
  std::vector<BitName> flag_names(command_flag_names().begin(), command_flag_names().end());
  if (edition.is_valkey_since({8, 1})) {
    for (BitName& name : flag_names) {
      if (name.bit == kSkipSlowlog) name.name = "skip_commandlog";
    }
  }
  write_bit_names(command.flags, flag_names, "", reply);
  reply.integer(command.first_key);
  reply.integer(command.last_key);
  reply.integer(command.key_step);
  write_bit_names(command.acl, acl_category_names(), "@", reply);
  if (!with_specifications) return;
  reply.set(tips.size());
  for (const std::string_view tip : tips) reply.bulk(tip);
  reply.set(row.keys.size());
  for (const KeySpec& spec : row.keys) write_key_spec(spec, reply);
  // The one list that is not a set, unless it is empty: so the reference has it. Valkey has an
  // array.
  const bool is_array = command.is_container() || edition.is_valkey_since({9, 1});
  is_array ? reply.array(command.subcommands.size()) : reply.set(0);
  for (const Command* subcommand : command.subcommands)
    write_command_info(*subcommand, edition, reply);
}

void write_command_docs(const Command& command, const Edition& edition, resp::ReplyBuilder& reply) {
  const CommandRow& row = *command.row;
  const CommandExtras& extras = row.extras;
  Syntax syntax = parse_syntax(row.syntax.text(), 1, row.keys.size());
  if (edition.emulates()) remove_later(&syntax.arguments, edition, command.full_name);
  std::erase_if(syntax.arguments, [](const Argument& argument) { return argument.hidden; });
  const std::vector<std::string_view> changes = changes_until(edition, extras.history);
  const bool deprecated = is_deprecated(edition, command.full_name, extras.deprecated_since);
  const bool replaced = deprecated && extras.replaced_by != nullptr;
  const bool has_doc_flags = deprecated || extras.system;

  const bool is_of_module = row.group == Group::kModule;
  reply.map(3 + size_t{is_of_module} + size_t{row.complexity != nullptr} + size_t{has_doc_flags} +
            (deprecated ? 1 : 0) + size_t{replaced} + size_t{!changes.empty()} +
            size_t{!syntax.arguments.empty()} + size_t{command.is_container()});
  write_text_field("summary", row.summary, reply);
  write_text_field("since", row.since, reply);
  write_text_field("group", group_name(row.group), reply);
  if (is_of_module) write_text_field("module", extras.module, reply);
  if (row.complexity != nullptr) write_text_field("complexity", row.complexity, reply);
  if (has_doc_flags) {
    reply.bulk("doc_flags");
    reply.set(size_t{deprecated} + size_t{extras.system});
    if (deprecated) reply.status("deprecated");
    if (extras.system) reply.status("syscmd");
  }
  if (deprecated) write_text_field("deprecated_since", extras.deprecated_since, reply);
  if (replaced) write_text_field("replaced_by", extras.replaced_by, reply);
  if (!changes.empty()) write_history(changes, reply);
  if (!syntax.arguments.empty()) {
    reply.bulk("arguments");
    write_arguments(syntax.arguments, reply);
  }
  if (command.is_container()) {
    reply.bulk("subcommands");
    reply.map(command.subcommands.size());
    for (const Command* subcommand : command.subcommands) {
      reply.bulk(subcommand->full_name);
      write_command_docs(*subcommand, edition, reply);
    }
  }
}

}  // namespace latchkey::server
