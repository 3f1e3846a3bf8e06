#include "server/config/command_line.h"

#include <utility>
#include <vector>

#include "base/text/text.h"
#include "base/version.h"
#include "server/config/config.h"
#include "server/config/config_parse.h"
#include "server/config/directive_help.h"

namespace latchkey::server {

namespace {

std::string_view last_part(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

CommandLine leave(int status, std::string output, std::string errors) {
  CommandLine line;
  line.action = CommandLine::Action::kExit;
  line.exit_status = status;
  line.output = std::move(output);
  line.errors = std::move(errors);
  return line;
}

CommandLine act(CommandLine::Action action) {
  CommandLine line;
  line.action = action;
  return line;
}

std::string usage(std::string_view program) {
  struct Example {
    std::string_view arguments;
    std::string_view meaning;
  };
  constexpr Example kForms[] = {
      {"[/path/to/latchkey.conf] [options] [-]", ""},
      {"-", "(the configuration comes from standard input)"},
      {"-v or --version", ""},
      {"-h or --help", ""},
      {"--check-system", "(which settings of the kernel cost speed or data)"},
      {"--check-config /path/to/latchkey.conf [options]",
       "(all that is wrong with it; starts nothing)"},
      {"--explain [directive]", "(what a directive is for; without a name, all of them)"},
      {"[/path/to/latchkey.conf] --ping [options]",
       "(whether the server there serves, by its exit status)"},
      {"/path/to/sentinel.conf --sentinel", "(as a Sentinel)"},
  };
  constexpr Example kExamples[] = {
      {"", "(every directive at its default)"},
      {"/etc/latchkey/6379.conf", ""},
      {"--port 7777", ""},
      {"--port 7777 --save ''", "(on port 7777, never saving by itself)"},
      {"--port auto --print-url", "(on a free port; its URL is the one line of standard output)"},
      {"/etc/latchkey.conf --loglevel verbose", "(options win over the file)"},
      {"/etc/latchkey.conf --loglevel verbose -", "(and standard input over the file)"},
  };
  std::string text;
  const auto add = [&](std::string_view indent, const Example& example) {
    text.append(indent).append(program);
    if (!example.arguments.empty()) text.append(" ").append(example.arguments);
    if (!example.meaning.empty()) text.append(" ").append(example.meaning);
    text.append("\n");
  };
  std::string_view indent = "Usage: ";
  for (const auto& form : kForms) {
    add(indent, form);
    indent = "       ";
  }
  text.append("\nExamples:\n");
  for (const auto& example : kExamples) add(indent, example);
  return text;
}

// The value that a directive has when none follows; empty: it needs one.
std::string_view value_if_alone(std::string_view directive) {
  constexpr std::pair<std::string_view, std::string_view> kValues[] = {
      {"save", "\"\""}, {"print-url", "yes"}, {"exit-with-parent", "yes"}};
  for (const auto& [name, value] : kValues) {
    if (base::equal_ignoring_case(directive, name)) return value;
  }
  return {};
}

// Takes out the word that asks for something else than serving: the first, the second or the last.
CommandLine::Action take_action(std::vector<std::string>& words) {
  for (const size_t at : {size_t{0}, size_t{1}, words.size() - 1}) {
    if (at >= words.size() || (words[at] != "--check-config" && words[at] != "--ping")) continue;
    const bool ping = words[at] == "--ping";
    words.erase(words.begin() + static_cast<ptrdiff_t>(at));
    return ping ? CommandLine::Action::kPing : CommandLine::Action::kCheckConfig;
  }
  return CommandLine::Action::kServe;
}

CommandLine explain(std::span<const std::string> arguments) {
  if (arguments.size() > 3) return leave(1, {}, "--explain takes one directive, or a pattern\n");
  if (arguments.size() == 2) return leave(0, std::string(default_configuration()), {});
  const std::string& name = arguments[2];
  if (auto text = explain_directives(name)) return leave(0, std::move(*text), {});
  const std::string meant = suggest_directive(Edition(), name);
  return leave(1, {},
               "There is no directive '" + name + "'." + (meant.empty() ? "" : " " + meant) + "\n");
}

// Writes arguments as directives, one a line.
class OptionWriter {
 public:
  void add(const std::string& argument, const std::string* next) {
    const bool option = argument.starts_with("--") && !value_expected_;
    if (!option) {
      text_.append(quote_argument(argument)).append(" ");
      value_expected_ = false;
      return;
    }
    const std::string_view directive = std::string_view(argument).substr(2);
    if (!text_.empty()) text_.push_back('\n');
    text_.append(directive).append(" ");
    const auto words = split_arguments(directive);
    value_expected_ = words && words->size() <= 1;
    const bool alone = next == nullptr || next->starts_with("--");
    if (const std::string_view value = value_if_alone(directive); alone && !value.empty()) {
      text_.append(value).append(" ");
      value_expected_ = false;
    }
  }

  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  bool value_expected_ = false;
};

}  // namespace

Program program_of(std::string_view path) {
  const auto name = last_part(path);
  const auto is = [&](std::string_view suffix) {
    return name.ends_with(suffix) && (name == std::string("redis-").append(suffix) ||
                                      name == std::string("latchkey-").append(suffix));
  };
  if (is("sentinel")) return Program::kSentinel;
  if (is("check-rdb")) return Program::kCheckRdb;
  if (is("check-aof")) return Program::kCheckAof;
  return Program::kServer;
}

std::string version_line(std::string_view program) {
  std::string line(program);
  line.append(" v=").append(base::kReferenceVersion).append(" sha=00000000:0 malloc=");
  line.append(base::allocator_name()).append(" bits=");
  line.append(std::to_string(sizeof(void*) * 8)).append(" build=").append(base::build_id());
  return line;
}

std::string CommandLine::configuration(std::string_view standard_input) const {
  std::string text(standard_input);
  if (!options.empty()) text.append("\n").append(options);
  return text;
}

CommandLine parse_command_line(std::span<const std::string> arguments) {
  const std::string program = arguments.empty() ? "latchkey-server" : arguments[0];
  switch (program_of(program)) {
    case Program::kCheckRdb:
      return act(CommandLine::Action::kCheckRdb);
    case Program::kCheckAof:
      return act(CommandLine::Action::kCheckAof);
    case Program::kSentinel:
    case Program::kServer:
      break;
  }
  CommandLine line;
  line.sentinel = program_of(program) == Program::kSentinel;
  if (arguments.size() < 2) return line;

  const std::string& first = arguments[1];
  if (first == "-v" || first == "--version") return leave(0, version_line() + "\n", {});
  if (first == "-h" || first == "--help") return leave(1, {}, usage(program));
  if (first == "--test-memory") {
    return leave(1, {}, "Testing memory is not supported: use memtester or memtest86+.\n");
  }
  if (first == "--check-system") {
    line.action = CommandLine::Action::kCheckSystem;
    return line;
  }
  if (first == "--explain") return explain(arguments);
  std::vector<std::string> words(arguments.begin() + 1, arguments.end());
  line.action = take_action(words);
  std::span<const std::string> rest = words;
  if (!rest.empty() && !rest[0].starts_with('-')) {
    line.config_path = rest[0];
    rest = rest.subspan(1);
  } else if (!rest.empty() && rest[0] == "-") {
    line.read_stdin = true;
    rest = rest.subspan(1);
  }
  if (!rest.empty() && rest.back() == "-") {
    line.read_stdin = true;
    rest = rest.first(rest.size() - 1);
  }
  std::vector<std::string> options(rest.begin(), rest.end());
  if (std::erase(options, "--sentinel") != 0) line.sentinel = true;
  OptionWriter writer;
  for (size_t i = 0; i < options.size(); ++i) {
    writer.add(options[i], i + 1 < options.size() ? &options[i + 1] : nullptr);
  }
  line.options = writer.take();
  return line;
}

}  // namespace latchkey::server
