// The kinds of directives: each function makes the row of one directive. The messages are the
// reference's.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "server/config/config_directive.h"

namespace latchkey::server {

using DirectiveArguments = std::span<const std::string>;

inline constexpr int64_t kMaxInt = std::numeric_limits<int>::max();
inline constexpr int64_t kMinInt = std::numeric_limits<int>::min();
inline constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();

struct Names {
  Names(const char* the_name) : name(the_name) {}  // NOLINT(google-explicit-constructor)
  Names(std::string_view the_name, std::string_view the_alias) : name(the_name), alias(the_alias) {}
  std::string_view name;
  std::string_view alias;
};

// yes or no.
Directive boolean(Names names, bool ConfigValues::*member, unsigned flags = 0);

// A whole number within [least, most].
template <typename Number>
Directive number(Names names, Number ConfigValues::*member, int64_t least, int64_t most,
                 unsigned flags = 0);

// A number of bytes with an optional unit, within [least, most].
template <typename Number>
Directive memory(Names names, Number ConfigValues::*member, uint64_t least, uint64_t most,
                 unsigned flags = 0);

// Refuses a text with a message, or accepts it.
using TextCheck =
    std::function<base::Result<>(const std::string& text, const ConfigValues& values)>;

struct TextOptions {
  bool empty_is_a_value = false;  // otherwise an empty text means "not set", and is not written
  TextCheck check = nullptr;
};

Directive text(Names names, std::string ConfigValues::*member, unsigned flags = 0,
               TextOptions options = {});

// One of several words. Where two words mean the same value, the first is shown.
template <typename Choice>
struct Word {
  const char* word;
  Choice value;
};
template <typename Choice>
Directive choice(Names names, Choice ConfigValues::*member,
                 std::initializer_list<Word<Choice>> words, unsigned flags = 0);

// The message for a word that is none of `words`, which are separated by ", ".
std::string not_one_of(std::string_view words);

// For directives with a syntax of their own: CONFIG REWRITE also writes the text of `format`, and
// compares the texts to find whether the value is the default.
Directive special(Names names, unsigned flags, decltype(Directive::parse) parse,
                  decltype(Directive::format) format);

// Reads a whole number within [least, most]; the messages are those of every numeric directive.
base::Result<int64_t> parse_whole(const std::string& text, int64_t least, int64_t most);
std::string out_of_range(const std::string& least, const std::string& most);

// Directives that need code of their own, in config_special.cpp.
Directive bind_directive();
Directive client_output_buffer_limit_directive();
Directive cluster_slot_stats_directive();
Directive dir_directive();
Directive emulate_directive();
Directive hz_directive();
Directive latency_percentiles_directive();
// Bytes, or percent of something, which are stored as negative numbers.
Directive bytes_or_percent_directive(const char* name, int64_t ConfigValues::*member);
Directive notify_keyspace_events_directive();
Directive oom_score_adj_values_directive();
Directive port_directive();
Directive repl_backlog_size_directive();
Directive rdma_bind_directive();
Directive rdma_port_directive();
Directive replicaof_directive();
Directive save_directive();
Directive shutdown_directive(Names names, unsigned ConfigValues::*member);
Directive unixsocketperm_directive();

// ---- templates

template <typename Number>
Directive number(Names names, Number ConfigValues::*member, int64_t least, int64_t most,
                 unsigned flags) {
  return special(
      names, flags,
      [=](DirectiveArguments arguments, DirectiveContext& context) -> base::Result<> {
        auto value = parse_whole(arguments[0], least, most);
        if (!value) return value.failure();
        context.values.*member = static_cast<Number>(*value);
        return {};
      },
      [=](const ConfigValues& values) { return std::to_string(values.*member); });
}

base::Result<uint64_t> parse_memory_within(const std::string& text, uint64_t least, uint64_t most);
std::vector<RewriteLine> memory_line(std::string_view name, uint64_t bytes, uint64_t default_bytes);

template <typename Number>
Directive memory(Names names, Number ConfigValues::*member, uint64_t least, uint64_t most,
                 unsigned flags) {
  Directive row = special(
      names, flags,
      [=](DirectiveArguments arguments, DirectiveContext& context) -> base::Result<> {
        auto bytes = parse_memory_within(arguments[0], least, most);
        if (!bytes) return bytes.failure();
        context.values.*member = static_cast<Number>(*bytes);
        return {};
      },
      [=](const ConfigValues& values) { return std::to_string(values.*member); });
  row.rewrite = [=](const ConfigValues& values, const ConfigValues& defaults) {
    return memory_line(names.name, static_cast<uint64_t>(values.*member),
                       static_cast<uint64_t>(defaults.*member));
  };
  return row;
}

using NumberedWords = std::vector<std::pair<std::string_view, int>>;
Directive numbered_choice(Names names, unsigned flags, NumberedWords words,
                          std::function<void(ConfigValues&, int)> store,
                          std::function<int(const ConfigValues&)> read);

template <typename Choice>
Directive choice(Names names, Choice ConfigValues::*member,
                 std::initializer_list<Word<Choice>> words, unsigned flags) {
  NumberedWords numbered;
  for (const auto& word : words) numbered.emplace_back(word.word, static_cast<int>(word.value));
  return numbered_choice(
      names, flags, std::move(numbered),
      [=](ConfigValues& values, int value) { values.*member = static_cast<Choice>(value); },
      [=](const ConfigValues& values) { return static_cast<int>(values.*member); });
}

}  // namespace latchkey::server
