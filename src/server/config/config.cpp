#include "server/config/config.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/assert.h"
#include "base/file.h"
#include "base/text/glob.h"
#include "base/text/similar_word.h"
#include "base/text/text.h"
#include "server/config/config_directive.h"
#include "server/config/config_parse.h"
#include "server/config/config_rewrite.h"
#include "server/emulation/later_directives.h"
#include "server/emulation/valkey_words.h"

namespace latchkey::server {

using base::fail;
using base::fail_with;
using base::Result;

namespace {

constexpr int kDeepestInclude = 32;
// Files that include others twice would be read for ever.
constexpr size_t kMaxIncludes = 10'000;
// A suggestion compares with all names.
constexpr size_t kMaxSuggestions = 100;
// A check that has found so many ends.
constexpr size_t kMaxProblems = 1000;

constexpr std::string_view kEmulate = "emulate";

// Reads the lines of a text that are neither empty nor a comment.
class LineReader {
 public:
  explicit LineReader(std::string_view text) : rest_(text) {}

  // False at the end of the text.
  bool next() {
    while (!rest_.empty()) {
      ++number_;
      const size_t end = std::min(rest_.find('\n'), rest_.size());
      line_ = trim_line(rest_.substr(0, end));
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      if (!line_.empty() && line_.front() != '#') return true;
    }
    return false;
  }
  std::string_view line() const { return line_; }
  int number() const { return number_; }

 private:
  std::string_view rest_;
  std::string_view line_;
  int number_ = 0;
};

bool wrong_count(const Directive& directive, size_t count) {
  return !directive.has(kManyValues) && count != 1;
}

ConfigError cannot_open(const std::string& path) {
  return ConfigError::of(ConfigError::Kind::kFile, "Fatal error, can't open config file '" + path +
                                                       "': " + base::read_error_text(errno));
}

bool has_wildcard(std::string_view text) {
  return text.find_first_of("*?[") != std::string_view::npos;
}

std::string set_failure(std::string_view name, std::string_view reason) {
  std::string message = "CONFIG SET failed (possibly related to argument '";
  message.append(name).append("') - ").append(reason);
  return message;
}

}  // namespace

ConfigError ConfigError::of(Kind kind, std::string message) {
  return {kind, 0, {}, std::move(message)};
}

ConfigError ConfigError::at(const DeferredDirective& place, std::string message) {
  return {Kind::kLine, place.line, place.line_text, std::move(message)};
}

std::string ConfigError::report(const Edition& edition) const {
  std::string text = "\n*** FATAL CONFIG FILE ERROR (";
  text.append(edition.is_valkey() ? "Valkey " : "Redis ")
      .append(edition.version())
      .append(") ***\n");
  if (kind == Kind::kLine) {
    text.append("Reading the configuration file, at line ").append(std::to_string(line));
    text.append("\n>>> '").append(line_text).append("'\n");
  }
  std::array<char, 1024> room;
  text.append(edition.is_valkey_since({8, 0}) ? in_words_of_valkey(message, room)
                                              : std::string_view(message));
  text.append("\n");
  if (!hint.empty()) text.append(hint).append("\n");
  return text;
}

Result<> ProcessDirectory::change(const std::string& path) {
  if (chdir(path.c_str()) != 0) return fail(strerror(errno));
  return {};
}

std::string ProcessDirectory::current() const {
  std::array<char, PATH_MAX> path{};
  return getcwd(path.data(), path.size()) != nullptr ? path.data() : "";
}

PrivateDirectory::PrivateDirectory() : current_(ProcessDirectory().current()) {}

Result<> PrivateDirectory::change(const std::string& path) {
  const auto wanted = path.starts_with('/') ? path : current_ + '/' + path;
  std::array<char, PATH_MAX> resolved{};
  struct stat status {};
  if (path.empty()) {
    errno = ENOENT;
  } else if (realpath(wanted.c_str(), resolved.data()) != nullptr &&
             stat(resolved.data(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) {
      current_ = resolved.data();
      return {};
    }
    errno = ENOTDIR;
  }
  return fail(strerror(errno));
}

Config::Config(std::unique_ptr<WorkingDirectory> directory, base::FileSystem& files)
    : directory_(std::move(directory)), files_(files) {
  if (!directory_) directory_ = std::make_unique<ProcessDirectory>();
  values_.dir = directory_->current();
}

Config::~Config() = default;

const std::vector<Directive>& Config::directives() {
  static const std::vector<Directive> table = make_directive_table();
  return table;
}

const Directive* Config::find(std::string_view name) {
  // Lower case, names and aliases.
  static const std::unordered_map<std::string_view, const Directive*> by_name = [] {
    std::unordered_map<std::string_view, const Directive*> index;
    for (const Directive& directive : directives()) {
      index.emplace(directive.name, &directive);
      if (!directive.alias.empty()) index.emplace(directive.alias, &directive);
    }
    return index;
  }();
  const auto found = by_name.find(base::lower_case(name));
  return found == by_name.end() ? nullptr : found->second;
}

const Directive* Config::find_known(std::string_view name) const {
  return has_directive(values_.edition, base::lower_case(name)) ? find(name) : nullptr;
}

bool Config::is_sensitive(std::string_view name) const {
  const Directive* directive = find(name);
  return directive != nullptr && directive->has(kSensitive);
}

bool Config::waits_for_loading(std::string_view name) const {
  const Directive* directive = find(name);
  if (directive == nullptr) return false;
  return directive->has(kDenyLoading) ||
         (directive->has(kDenyLoadingInValkey) && values_.edition.is_valkey());
}

// ---- Loading

Result<std::string, ConfigError> Config::read(const std::string& path, std::string_view more) {
  std::string text;
  if (!path.empty()) {
    auto contents = base::read_within(path, {});
    if (!contents) return fail_with(cannot_open(path));
    text = std::move(*contents);
    file_ = path.starts_with('/') ? path : directory_->current() + "/" + path;
  }
  if (!text.empty() && !text.ends_with('\n')) text.push_back('\n');
  lines_of_file_ = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  text.append(more);
  reading_ = path;
  return text;
}

Result<void, ConfigError> Config::load(const std::string& path, std::string_view more) {
  const auto text = read(path, more);
  if (!text) return fail_with(text.error());
  if (auto loaded = load_text(*text); !loaded) return loaded;
  const auto refuse = [](std::string message) {
    return fail_with(ConfigError::of(ConfigError::Kind::kWhole, std::move(message)));
  };
  if (auto checked = check_logfile(/*create=*/true); !checked)
    return refuse(std::move(checked).error());
  if (auto problems = contradictions(); !problems.empty())
    return refuse(std::move(problems.front()));
  return {};
}

std::vector<ConfigError> Config::check(const std::string& path, std::string_view more) {
  std::vector<ConfigError> problems;
  const auto text = read(path, more);
  if (!text) return {text.error()};
  problems_ = &problems;
  // Its errors are in `problems`.
  static_cast<void>(load_text(*text));
  problems_ = nullptr;
  std::vector<std::string> whole = contradictions();
  if (problems.size() == kMaxProblems)
    whole.insert(whole.begin(), "There are too many problems: the rest was not read");
  if (auto checked = check_logfile(/*create=*/false); !checked)
    whole.push_back(std::move(checked).error());
  for (auto& problem : whole)
    problems.push_back(ConfigError::of(ConfigError::Kind::kWhole, std::move(problem)));
  return problems;
}

std::string suggest_directive(const Edition& edition, std::string_view name) {
  std::vector<std::string_view> names = {"include", "user", "rename-command", "sentinel"};
  for (const Directive& directive : Config::directives()) {
    if (!has_directive(edition, directive.name)) continue;
    names.push_back(directive.name);
    if (!directive.alias.empty()) names.push_back(directive.alias);
  }
  const std::string_view similar = base::most_similar(name, names);
  return similar.empty() ? "" : "Did you mean '" + std::string(similar) + "'?";
}

Result<void, ConfigError> Config::report_line(ConfigError error) {
  if (error.file.empty()) error.file = reading_;
  if (problems_ == nullptr) return fail_with(std::move(error));
  if (problems_->size() < kMaxProblems) problems_->push_back(error);
  if (problems_->size() == kMaxProblems) return fail_with(std::move(error));
  return {};
}

Result<void, ConfigError> Config::load_text(std::string_view text) {
  loaded_directives_.clear();
  ignored_directives_.clear();
  user_names_.clear();
  for (const DeferredDirective& user : values_.users) user_names_.insert(user.arguments[0]);
  included_ = 0;
  if (auto chosen = choose_edition(text); !chosen) return chosen;
  return load_lines(text, 0);
}

Result<void, ConfigError> Config::choose_edition(std::string_view text) {
  DeferredDirective place;
  for (LineReader lines(text); lines.next();) {
    const auto words = split_arguments(lines.line());
    if (words && !words->empty() && base::equal_ignoring_case(words->front(), kEmulate))
      place = {{words->begin() + 1, words->end()}, lines.number(), std::string(lines.line())};
  }
  if (place.line == 0) return {};
  if (auto loaded = load_directive(*find(kEmulate), place.arguments); !loaded)
    return report_line(ConfigError::at(place, std::move(loaded).error()));
  return {};
}

Result<void, ConfigError> Config::load_lines(std::string_view text, int depth) {
  for (LineReader lines(text); lines.next();) {
    auto loaded = load_line(lines.line(), lines.number(), depth);
    if (!loaded) loaded = report_line(std::move(loaded).error());
    if (!loaded) return loaded;
  }
  return {};
}

Result<void, ConfigError> Config::load_line(std::string_view line, int number, int depth) {
  DeferredDirective place{{}, number, std::string(line)};
  auto words = split_arguments(line);
  if (!words) return fail_with(ConfigError::at(place, "Unbalanced quotes in configuration line"));
  if (words->empty()) return {};
  const std::string name = base::lower_case(words->front());
  words->erase(words->begin());
  place.arguments = std::move(*words);
  return load_words(name, place, depth);
}

Result<void, ConfigError> Config::load_words(const std::string& name,
                                             const DeferredDirective& place, int depth) {
  const auto& arguments = place.arguments;
  const auto refuse = [&](std::string message, std::string hint = {}) {
    ConfigError error = ConfigError::at(place, std::move(message));
    error.hint = std::move(hint);
    return fail_with(std::move(error));
  };
  if (name == kEmulate) {
    if (depth > 0) return refuse("emulate cannot be in a file that is included");
    // choose_edition() has read it.
    return {};
  }
  if (const Directive* directive = find_known(name)) {
    auto loaded = load_directive(*directive, arguments);
    if (loaded) return {};
    return refuse(std::move(loaded).error(),
                  "What it takes: latchkey-server --explain " + std::string(directive->name));
  }
  if (name == "sentinel" && arguments.empty()) return {};
  if (arguments.empty()) {
    return refuse("Bad directive or wrong number of arguments",
                  suggest_directive(values_.edition, name));
  }
  const bool one = arguments.size() == 1;
  if (name == "include" && one) return include(place, depth);
  if (name == "sentinel") {
    if (!values_.sentinel_mode) return refuse("sentinel directive while not in sentinel mode");
    values_.sentinel_directives.push_back(place);
    return {};
  }
  if (name == "loadmodule") {
    return refuse("Modules are not supported: nothing was loaded from " +
                  quote_argument(arguments[0]));
  }
  if (name == "rename-command" && arguments.size() == 2) {
    values_.rename_commands.push_back(place);
    return {};
  }
  if (name == "user") {
    if (!user_names_.insert(arguments[0]).second) {
      return refuse("Error in user declaration '" + arguments[0] +
                    "': Duplicate user found. A user can only be defined once in config files");
    }
    values_.users.push_back(place);
    return {};
  }
  if (one && ignores_directive(values_.edition, name)) {
    ignored_directives_.insert(name);
    return {};
  }
  if (problems_ != nullptr)
    return refuse("There is no such directive", suggest_directive(values_.edition, name));
  values_.unknown_directives.push_back(place);
  values_.unknown_directives.back().arguments.insert(
      values_.unknown_directives.back().arguments.begin(), name);
  return {};
}

Result<> Config::load_directive(const Directive& directive,
                                const std::vector<std::string>& arguments) {
  DirectiveContext context{values_, *directory_, true,
                           loaded_directives_.insert(&directive).second};
  if (wrong_count(directive, arguments.size())) return fail("wrong number of arguments");
  if (directive.has(kManyValues) && arguments.size() == 1) {
    const auto words = split_arguments(arguments[0]);
    if (words) return directive.parse(*words, context);
  }
  return directive.parse(arguments, context);
}

Result<void, ConfigError> Config::include(const DeferredDirective& place, int depth) {
  if (depth == kDeepestInclude)
    return fail_with(ConfigError::at(place, "include is nested too deeply"));
  const auto absolute = [&](const std::string& path) {
    return path.starts_with('/') ? path : directory_->current() + '/' + path;
  };
  const std::string& pattern = place.arguments[0];
  std::vector<std::string> paths;
  if (has_wildcard(pattern)) {
    glob_t found{};
    if (::glob(absolute(pattern).c_str(), 0, nullptr, &found) == 0) {
      paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    }
    globfree(&found);
  } else {
    paths.push_back(pattern);
  }
  for (const auto& path : paths) {
    if (++included_ > kMaxIncludes) {
      return fail_with(ConfigError::at(
          place, "more than " + std::to_string(kMaxIncludes) + " files are included"));
    }
    const auto text = base::read_within(absolute(path), {});
    if (!text) return fail_with(cannot_open(path));
    const std::string outer = std::exchange(reading_, path);
    if (auto loaded = load_lines(*text, depth + 1); !loaded) return loaded;
    reading_ = outer;
  }
  return {};
}

Result<> Config::check_logfile(bool create) const {
  if (values_.logfile.empty()) return {};
  const auto path =
      values_.logfile.starts_with('/') ? values_.logfile : values_.dir + '/' + values_.logfile;
  const int flags = O_APPEND | O_WRONLY | O_CLOEXEC | (create ? O_CREAT : 0);
  const int descriptor = open(path.c_str(), flags, 0644);
  if (descriptor >= 0) {
    close(descriptor);
    return {};
  }
  const std::string parent = path.substr(0, path.rfind('/') + 1);
  if (!create && errno == ENOENT && access(parent.c_str(), W_OK) == 0) return {};
  return fail(std::string("Can't open the log file: ") + strerror(errno));
}

std::vector<std::string> Config::contradictions() const {
  std::vector<std::string> found;
  if (values_.cluster_enabled && !values_.replicaof_host.empty())
    found.emplace_back("replicaof directive not allowed in cluster mode");
  if (values_.cluster_enabled && values_.cluster_bus_port_protected_mode && !values_.tls_cluster) {
    found.emplace_back(
        "cluster-bus-port-protected-mode is enabled but tls-cluster is disabled: set tls-cluster, "
        "or 'cluster-bus-port-protected-mode no' where nobody else reaches the port");
  }
  if (values_.sentinel_mode && !values_.replicaof_host.empty())
    found.emplace_back("replicaof directive not allowed in sentinel mode");
  if (values_.sentinel_mode && (values_.cluster_enabled || values_.appendonly))
    found.emplace_back("cluster-enabled and appendonly cannot be yes in sentinel mode");
  if (values_.daemonize && values_.exit_with_parent) {
    found.emplace_back(
        "exit-with-parent cannot be yes with daemonize: who starts a daemon is not its parent");
  }
  if (values_.daemonize && values_.print_url)
    found.emplace_back("print-url cannot be yes with daemonize: a daemon has no standard output");
  return found;
}

std::vector<std::string> Config::startup_problems() const {
  std::vector<std::string> lines;
  if (values_.unknown_directives.empty()) return lines;
  lines.emplace_back("Unresolved Configuration(s) Detected:");
  for (const auto& unknown : values_.unknown_directives) {
    std::string line = ">>> '";
    for (size_t i = 0; i < unknown.arguments.size(); ++i) {
      line.append(i == 0 ? "" : " ").append(unknown.arguments[i]);
    }
    lines.push_back(line + "'");
  }
  lines.emplace_back(
      "Module Configuration detected without loadmodule directive or no ApplyConfig call: "
      "aborting");
  const size_t suggestions = std::min(values_.unknown_directives.size(), kMaxSuggestions);
  for (const auto& unknown : std::span(values_.unknown_directives).first(suggestions)) {
    const std::string meant = suggest_directive(values_.edition, unknown.arguments[0]);
    if (!meant.empty()) lines.push_back("'" + unknown.arguments[0] + "' is not known. " + meant);
  }
  return lines;
}

std::vector<std::string> Config::settings_without_effect() const {
  const ConfigValues defaults;
  std::vector<std::string> lines;
  for (const Directive& directive : directives()) {
    if (directive.no_effect_because.empty() || !loaded_directives_.contains(&directive)) continue;
    if (directive.format(values_) == directive.format(defaults)) continue;
    std::string line = "The directive '";
    line.append(directive.name).append("' has no effect: ").append(directive.no_effect_because);
    lines.push_back(line + ".");
  }
  for (const std::string& name : ignored_directives_)
    lines.push_back("The directive '" + name + "' has no effect: it is of older releases.");
  return lines;
}

// ---- CONFIG GET

std::vector<Config::NameAndValue> Config::get(std::span<const std::string_view> patterns) const {
  std::vector<NameAndValue> found;
  std::unordered_set<std::string> shown;
  const auto show = [&](std::string_view name, const Directive& directive) {
    if (shown.insert(base::lower_case(name)).second)
      found.emplace_back(name, directive.format(values_));
  };
  for (const auto pattern : patterns) {
    if (!has_wildcard(pattern)) {
      if (const Directive* directive = find_known(pattern)) show(pattern, *directive);
      continue;
    }
    const base::GlobPattern glob(pattern, /*ignore_case=*/true);
    for (const Directive& directive : directives()) {
      const bool is_valkey = values_.edition.is_valkey();
      if (directive.has(kOfValkey) && !is_valkey) continue;
      for (const auto name : {directive.name, directive.alias}) {
        // What Redis hides Valkey shows under its own name.
        if (directive.has(kHidden) && !(is_valkey && name == directive.alias)) continue;
        if (!name.empty() && has_directive(values_.edition, name) && glob.matches(name))
          show(name, directive);
      }
    }
  }
  if (values_.edition.is_valkey_since({9, 1})) std::sort(found.begin(), found.end());
  return found;
}

// ---- CONFIG SET

Result<const Directive*> Config::settable(const NameAndValue& pair,
                                          const SetRequest& request) const {
  const Directive* directive = find_known(pair.first);
  if (directive == nullptr)
    return fail("Unknown option or number of arguments for CONFIG SET - '" + pair.first + "'");
  const auto refuse = [&](std::string_view reason) {
    return fail(set_failure(pair.first, reason));
  };
  const bool is_live = directive->has(kLiveInValkey) && values_.edition.is_valkey_since({9, 1});
  if (directive->has(kImmutable) && !is_live) return refuse("can't set immutable config");
  if (directive->has(kProtectedDirective)) {
    const auto action = values_.enable_protected_configs;
    const bool allowed = action == ProtectedAction::kYes ||
                         (action == ProtectedAction::kLocal && request.from_local_client);
    if (!allowed) return refuse("can't set protected config");
  }
  if (directive->has(kDenyLoading) && request.loading) {
    return refuse("can't set this config while loading data");
  }
  return directive;
}

Result<> Config::set_value(const Directive& directive, const std::string& value) {
  DirectiveContext context{values_, *directory_, false, true};
  if (directive.has(kManyValues)) return directive.parse(split_at_spaces(value), context);
  return directive.parse(std::span(&value, 1), context);
}

Result<> Config::set(std::span<const NameAndValue> pairs, const SetRequest& request) {
  std::vector<const Directive*> directives;
  for (size_t i = 0; i < pairs.size(); ++i) {
    auto directive = settable(pairs[i], request);
    if (!directive) return directive.failure();
    for (size_t earlier = 0; earlier < i; ++earlier) {
      // Redis takes the two names of a directive for the same one since 8.10.
      if (!base::equal_ignoring_case(pairs[earlier].first, pairs[i].first) &&
          (directives[earlier] != *directive || !values_.edition.has({8, 10})))
        continue;
      return fail(set_failure(pairs[i].first, "duplicate parameter"));
    }
    directives.push_back(*directive);
  }

  // From here on errors show the directive's documented name, in lower case.
  const auto known_as = [&](size_t i) {
    const Directive& directive = *directives[i];
    return base::equal_ignoring_case(pairs[i].first, directive.name) ? directive.name
                                                                     : directive.alias;
  };
  ++revision_;
  const ConfigValues before = values_;
  std::vector<size_t> changed;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const std::string old_value = directives[i]->format(values_);
    if (auto stored = set_value(*directives[i], pairs[i].second); !stored) {
      restore(before);
      return fail(set_failure(known_as(i), stored.error()));
    }
    if (directives[i]->has(kActsAlways) || directives[i]->format(values_) != old_value)
      changed.push_back(i);
  }

  std::vector<const RegisteredHook*> checked;
  for (const size_t i : changed) {
    const auto accepted = run_hooks(checks_, *directives[i], &checked);
    if (accepted) continue;
    restore(before);
    return fail(set_failure(known_as(i), accepted.error()));
  }
  if (!changed.empty()) copy_values();
  std::vector<const RegisteredHook*> called;
  for (const size_t i : changed) {
    const auto accepted = run_hooks(hooks_, *directives[i], &called);
    if (accepted) continue;
    restore(before);
    copy_values();
    for (const RegisteredHook* hook : called) static_cast<void>(hook->act());
    return fail(set_failure(known_as(i), accepted.error()));
  }
  return {};
}

std::vector<Config::NameAndValue> Config::pairs_to_restore(const ConfigValues& before) const {
  std::vector<NameAndValue> pairs;
  for (const Directive& directive : directives()) {
    if (directive.has(kImmutable) && !directive.has(kLiveInValkey)) continue;
    std::string value = directive.format(before);
    if (value != directive.format(values_))
      pairs.emplace_back(std::string(directive.name), std::move(value));
  }
  return pairs;
}

Result<> Config::run_hooks(const std::vector<RegisteredHook>& hooks, const Directive& directive,
                           std::vector<const RegisteredHook*>* called) {
  for (const RegisteredHook& hook : hooks) {
    const bool concerned = std::find(hook.directives.begin(), hook.directives.end(), &directive) !=
                           hook.directives.end();
    if (!concerned || std::find(called->begin(), called->end(), &hook) != called->end()) continue;
    called->push_back(&hook);
    if (auto accepted = hook.act(); !accepted) return accepted;
  }
  return {};
}

void Config::copy_values() const {
  for (const auto& copy : copies_) copy();
}

void Config::restore(const ConfigValues& before) {
  if (values_.dir != before.dir) static_cast<void>(directory_->change(before.dir));
  values_ = before;
}

void Config::on_every_change(std::function<void()> copy) {
  copies_.push_back(std::move(copy));
}

Config::RegisteredHook Config::registered(std::initializer_list<std::string_view> names,
                                          Hook hook) {
  RegisteredHook registered;
  for (const auto name : names) {
    const Directive* directive = find(name);
    LK_ASSERT(directive != nullptr);
    registered.directives.push_back(directive);
  }
  registered.act = std::move(hook);
  return registered;
}

void Config::on_change(std::initializer_list<std::string_view> names, Hook hook) {
  hooks_.push_back(registered(names, std::move(hook)));
}

void Config::check_change(std::initializer_list<std::string_view> names, Hook check) {
  checks_.push_back(registered(names, std::move(check)));
}

// ---- CONFIG REWRITE

Result<> Config::rewrite(bool everything) const {
  if (file_.empty()) return fail("The server is running without a config file");
  const auto text = base::read_within(file_, {.pipe_patience_ms = 0}, files_);
  if (!text && errno != ENOENT)
    return fail("Rewriting config file: " + base::read_error_text(errno));
  if (!base::replace_file(file_, rewritten(text.value_or(""), everything), files_))
    return fail(std::string("Rewriting config file: ") + strerror(errno));
  return {};
}

std::string Config::rewritten(std::string_view text, bool everything) const {
  const ConfigValues defaults;
  std::vector<DirectiveLines> all;
  for (const Directive& directive : directives()) {
    if (!has_directive(values_.edition, directive.name)) continue;
    // A Sentinel has no dataset: its file is not to say that it would be saved.
    if (values_.sentinel_mode && directive.name == "save") continue;
    DirectiveLines lines{std::string(directive.name), directive.rewrite(values_, defaults)};
    for (RewriteLine& line : lines.lines) line.forced = line.forced || everything;
    all.push_back(std::move(lines));
  }
  for (const auto& [name, source] : rewrite_sources_) {
    DirectiveLines lines{name, {}};
    for (auto& line : source()) lines.lines.push_back({std::move(line), true});
    all.push_back(std::move(lines));
  }
  return rewrite_configuration(text, all, [](std::string_view name) -> std::string {
    if (const Directive* directive = find(name)) return std::string(directive->name);
    const bool kept = name == "include" || name == "rename-command" || name == "user" ||
                      name == kDirectiveOfOptions;
    return kept ? std::string(name) : std::string();
  });
}

void Config::on_rewrite(std::string name, LinesSource source) {
  rewrite_sources_.emplace_back(std::move(name), std::move(source));
}

void Config::be_sentinel() {
  constexpr int kSentinelPort = 26379;
  values_.sentinel_mode = true;
  values_.port = kSentinelPort;
  values_.protected_mode = false;
}

void Config::inherit(const Config& other) {
  const ConfigValues own = values_;
  values_ = other.values_;
  values_.port = 0;
  values_.tls_port = 0;
  values_.tls_replication = false;
  values_.tls_cluster = false;
  values_.unixsocket.clear();
  values_.dir = own.dir;
  values_.save.clear();
  values_.appendonly = false;
  values_.aclfile.clear();
  values_.users.clear();
  values_.unknown_directives.clear();
  values_.replicaof_host.clear();
  values_.replicaof_port = 0;
  values_.masterauth.clear();
  values_.masteruser.clear();
  values_.min_replicas_to_write = 0;
  values_.cluster_enabled = false;
  // The first server's limit is that of the process.
  values_.maxmemory = values_.space_maxmemory;
  values_.maxmemory_clients = 0;
  values_.clock = own.clock;
  values_.watchdog_period = 0;
  // These concern the process.
  values_.port_file.clear();
  values_.ready_fd = -1;
  values_.print_url = false;
  values_.exit_with_parent = false;
  values_.exit_when_idle = 0;
}

}  // namespace latchkey::server
