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
#include <iterator>
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

namespace latchkey::server {

namespace {

constexpr int kDeepestInclude = 32;
// Files that include others twice would be read for ever.
constexpr size_t kMaxIncludes = 10'000;
// A suggestion compares with all names.
constexpr size_t kMaxSuggestions = 100;
// A check that has found so many ends.
constexpr size_t kMaxProblems = 1000;

// Directives of old releases that a configuration may still hold; they set nothing.
constexpr std::array<std::string_view, 3> kIgnoredDirectives = {
    "list-max-ziplist-entries",
    "list-max-ziplist-value",
    "lua-replicate-commands",
};

constexpr std::string_view kEmulate = "emulate";

// Calls `visit` with each line that is neither empty nor a comment, and its number, until it says
// false; says the same.
template <typename Visit>
bool each_line(std::string_view text, Visit visit) {
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim_line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    if (!visit(line, number)) return false;
  }
  return true;
}

bool wrong_count(const Directive& directive, size_t count) {
  return !directive.has(kManyValues) && count != 1;
}

ConfigError cannot_open(const std::string& path) {
  return {ConfigError::Kind::kFile,
          0,
          {},
          "Fatal error, can't open config file '" + path + "': " + base::read_error_text(errno)};
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
  text.append(message).append("\n");
  if (!hint.empty()) text.append(hint).append("\n");
  return text;
}

bool ProcessDirectory::change(const std::string& path, std::string* error) {
  if (chdir(path.c_str()) == 0) return true;
  *error = strerror(errno);
  return false;
}

std::string ProcessDirectory::current() const {
  std::array<char, PATH_MAX> path{};
  return getcwd(path.data(), path.size()) != nullptr ? path.data() : "";
}

PrivateDirectory::PrivateDirectory() : current_(ProcessDirectory().current()) {}

bool PrivateDirectory::change(const std::string& path, std::string* error) {
  const auto wanted = path.starts_with('/') ? path : current_ + '/' + path;
  std::array<char, PATH_MAX> resolved{};
  struct stat status {};
  if (path.empty()) {
    errno = ENOENT;
  } else if (realpath(wanted.c_str(), resolved.data()) != nullptr &&
             stat(resolved.data(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) {
      current_ = resolved.data();
      return true;
    }
    errno = ENOTDIR;
  }
  *error = strerror(errno);
  return false;
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

bool Config::load(const std::string& path, std::string_view more, ConfigError* error) {
  std::string text;
  if (!path.empty()) {
    auto contents = base::read_within(path, {});
    if (!contents) {
      *error = cannot_open(path);
      return false;
    }
    text = std::move(*contents);
    file_ = path.starts_with('/') ? path : directory_->current() + "/" + path;
  }
  text.append(more);
  reading_ = path;
  if (!load_text(text, error)) return false;
  std::string message;
  if (check_logfile(/*create=*/true, &message)) {
    auto problems = contradictions();
    if (problems.empty()) return true;
    message = std::move(problems.front());
  }
  *error = {ConfigError::Kind::kWhole, 0, {}, std::move(message)};
  return false;
}

std::vector<ConfigError> Config::check(const std::string& path, std::string_view more) {
  std::vector<ConfigError> problems;
  std::string text;
  if (!path.empty()) {
    auto contents = base::read_within(path, {});
    if (!contents) return {cannot_open(path)};
    text = std::move(*contents);
    file_ = path.starts_with('/') ? path : directory_->current() + "/" + path;
  }
  text.append(more);
  reading_ = path;
  problems_ = &problems;
  ConfigError error;
  load_text(text, &error);
  problems_ = nullptr;
  std::vector<std::string> whole = contradictions();
  if (problems.size() == kMaxProblems)
    whole.insert(whole.begin(), "There are too many problems: the rest was not read");
  std::string message;
  if (!check_logfile(/*create=*/false, &message)) whole.push_back(std::move(message));
  for (auto& problem : whole)
    problems.push_back({ConfigError::Kind::kWhole, 0, {}, std::move(problem)});
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

bool Config::report_line(ConfigError error, ConfigError* reported) {
  if (error.file.empty()) error.file = reading_;
  if (problems_ != nullptr) {
    if (problems_->size() < kMaxProblems) problems_->push_back(std::move(error));
    return problems_->size() < kMaxProblems;
  }
  *reported = std::move(error);
  return false;
}

bool Config::load_text(std::string_view text, ConfigError* error) {
  loaded_directives_.clear();
  user_names_.clear();
  for (const DeferredDirective& user : values_.users) user_names_.insert(user.arguments[0]);
  included_ = 0;
  return choose_edition(text, error) && load_lines(text, 0, error);
}

bool Config::choose_edition(std::string_view text, ConfigError* error) {
  DeferredDirective place;
  each_line(text, [&](std::string_view line, int number) {
    const auto words = split_arguments(line);
    if (words && !words->empty() && base::equal_ignoring_case(words->front(), kEmulate))
      place = {{words->begin() + 1, words->end()}, number, std::string(line)};
    return true;
  });
  if (place.line == 0) return true;
  std::string message;
  if (load_directive(*find(kEmulate), place.arguments, &message)) return true;
  return report_line(ConfigError::at(place, std::move(message)), error);
}

bool Config::load_lines(std::string_view text, int depth, ConfigError* error) {
  return each_line(text, [&](std::string_view line, int number) {
    DeferredDirective place{{}, number, std::string(line)};
    auto words = split_arguments(line);
    if (!words)
      return report_line(ConfigError::at(place, "Unbalanced quotes in configuration line"), error);
    if (words->empty()) return true;
    const std::string name = base::lower_case(words->front());
    words->erase(words->begin());
    place.arguments = std::move(*words);
    ConfigError wrong;
    return load_line(name, place, depth, &wrong) || report_line(std::move(wrong), error);
  });
}

bool Config::load_line(const std::string& name, const DeferredDirective& place, int depth,
                       ConfigError* error) {
  const auto& arguments = place.arguments;
  const auto refuse = [&](std::string message) {
    *error = ConfigError::at(place, std::move(message));
    return false;
  };
  // Of the file itself: choose_edition() has read it.
  if (name == kEmulate) return depth == 0 || refuse("emulate cannot be in a file that is included");
  if (const Directive* directive = find_known(name)) {
    std::string message;
    if (load_directive(*directive, arguments, &message)) return true;
    refuse(std::move(message));
    error->hint = "What it takes: latchkey-server --explain " + std::string(directive->name);
    return false;
  }
  if (name == "sentinel" && arguments.empty()) return true;
  if (arguments.empty()) {
    refuse("Bad directive or wrong number of arguments");
    error->hint = suggest_directive(values_.edition, name);
    return false;
  }
  const bool one = arguments.size() == 1;
  if (name == "include" && one) return include(place, depth, error);
  if (name == "sentinel") {
    if (!values_.sentinel_mode) return refuse("sentinel directive while not in sentinel mode");
    values_.sentinel_directives.push_back(place);
    return true;
  }
  if (name == "loadmodule") {
    return refuse("Modules are not supported: nothing was loaded from " +
                  quote_argument(arguments[0]));
  }
  if (name == "rename-command" && arguments.size() == 2) {
    values_.rename_commands.push_back(place);
    return true;
  }
  if (name == "user") {
    if (!user_names_.insert(arguments[0]).second) {
      return refuse("Error in user declaration '" + arguments[0] +
                    "': Duplicate user found. A user can only be defined once in config files");
    }
    values_.users.push_back(place);
    return true;
  }
  const bool ignored = std::find(kIgnoredDirectives.begin(), kIgnoredDirectives.end(), name) !=
                       kIgnoredDirectives.end();
  if (ignored && one) return true;
  if (problems_ != nullptr) {
    refuse("There is no such directive");
    error->hint = suggest_directive(values_.edition, name);
    return false;
  }
  values_.unknown_directives.push_back(place);
  values_.unknown_directives.back().arguments.insert(
      values_.unknown_directives.back().arguments.begin(), name);
  return true;
}

bool Config::load_directive(const Directive& directive, const std::vector<std::string>& arguments,
                            std::string* error) {
  DirectiveContext context{values_, *directory_, true,
                           loaded_directives_.insert(&directive).second};
  if (wrong_count(directive, arguments.size())) {
    *error = "wrong number of arguments";
    return false;
  }
  if (directive.has(kManyValues) && arguments.size() == 1) {
    const auto words = split_arguments(arguments[0]);
    if (words) return directive.parse(*words, context, error);
  }
  return directive.parse(arguments, context, error);
}

bool Config::include(const DeferredDirective& place, int depth, ConfigError* error) {
  if (depth == kDeepestInclude) {
    *error = ConfigError::at(place, "include is nested too deeply");
    return false;
  }
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
      *error = ConfigError::at(place,
                               "more than " + std::to_string(kMaxIncludes) + " files are included");
      return false;
    }
    const auto text = base::read_within(absolute(path), {});
    if (!text) {
      *error = cannot_open(path);
      return false;
    }
    const std::string outer = std::exchange(reading_, path);
    if (!load_lines(*text, depth + 1, error)) return false;
    reading_ = outer;
  }
  return true;
}

bool Config::check_logfile(bool create, std::string* message) const {
  if (values_.logfile.empty()) return true;
  const auto path =
      values_.logfile.starts_with('/') ? values_.logfile : values_.dir + '/' + values_.logfile;
  const int flags = O_APPEND | O_WRONLY | O_CLOEXEC | (create ? O_CREAT : 0);
  const int descriptor = open(path.c_str(), flags, 0644);
  if (descriptor >= 0) {
    close(descriptor);
    return true;
  }
  const std::string parent = path.substr(0, path.rfind('/') + 1);
  if (!create && errno == ENOENT && access(parent.c_str(), W_OK) == 0) return true;
  *message = std::string("Can't open the log file: ") + strerror(errno);
  return false;
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
      if (directive.has(kHidden) || (directive.has(kOfValkey) && !values_.edition.is_valkey()))
        continue;
      for (const auto name : {directive.name, directive.alias}) {
        if (!name.empty() && has_directive(values_.edition, name) && glob.matches(name))
          show(name, directive);
      }
    }
  }
  if (values_.edition.is_valkey_since({9, 1})) std::sort(found.begin(), found.end());
  return found;
}

// ---- CONFIG SET

const Directive* Config::settable(const NameAndValue& pair, const SetRequest& request,
                                  std::string* error) const {
  const Directive* directive = find_known(pair.first);
  const auto refuse = [&](std::string_view reason) {
    *error = set_failure(pair.first, reason);
    return nullptr;
  };
  if (directive == nullptr) {
    *error = "Unknown option or number of arguments for CONFIG SET - '" + pair.first + "'";
    return nullptr;
  }
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

bool Config::set_value(const Directive& directive, const std::string& value, std::string* error) {
  DirectiveContext context{values_, *directory_, false, true};
  if (directive.has(kManyValues)) return directive.parse(split_at_spaces(value), context, error);
  return directive.parse(std::span(&value, 1), context, error);
}

bool Config::set(std::span<const NameAndValue> pairs, const SetRequest& request,
                 std::string* error) {
  std::vector<const Directive*> directives;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const Directive* directive = settable(pairs[i], request, error);
    if (directive == nullptr) return false;
    for (size_t earlier = 0; earlier < i; ++earlier) {
      // Redis takes the two names of a directive for the same one since 8.10.
      if (!base::equal_ignoring_case(pairs[earlier].first, pairs[i].first) &&
          (directives[earlier] != directive || !values_.edition.has({8, 10})))
        continue;
      *error = set_failure(pairs[i].first, "duplicate parameter");
      return false;
    }
    directives.push_back(directive);
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
  std::string reason;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const std::string old_value = directives[i]->format(values_);
    if (!set_value(*directives[i], pairs[i].second, &reason)) {
      *error = set_failure(known_as(i), reason);
      restore(before);
      return false;
    }
    if (directives[i]->has(kActsAlways) || directives[i]->format(values_) != old_value)
      changed.push_back(i);
  }

  if (!changed.empty()) copy_values();
  std::vector<const RegisteredHook*> called;
  for (const size_t i : changed) {
    if (run_hooks(*directives[i], &called, &reason)) continue;
    *error = set_failure(known_as(i), reason);
    restore(before);
    copy_values();
    for (const RegisteredHook* hook : called) hook->act(&reason);
    return false;
  }
  return true;
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

bool Config::run_hooks(const Directive& directive, std::vector<const RegisteredHook*>* called,
                       std::string* error) {
  for (const RegisteredHook& hook : hooks_) {
    const bool concerned = std::find(hook.directives.begin(), hook.directives.end(), &directive) !=
                           hook.directives.end();
    if (!concerned || std::find(called->begin(), called->end(), &hook) != called->end()) continue;
    called->push_back(&hook);
    if (!hook.act(error)) return false;
  }
  return true;
}

void Config::copy_values() const {
  for (const auto& copy : copies_) copy();
}

void Config::restore(const ConfigValues& before) {
  std::string ignored;
  if (values_.dir != before.dir) directory_->change(before.dir, &ignored);
  values_ = before;
}

void Config::on_every_change(std::function<void()> copy) {
  copies_.push_back(std::move(copy));
}

void Config::on_change(std::initializer_list<std::string_view> names, Hook hook) {
  RegisteredHook registered;
  for (const auto name : names) {
    const Directive* directive = find(name);
    LK_ASSERT(directive != nullptr);
    registered.directives.push_back(directive);
  }
  registered.act = std::move(hook);
  hooks_.push_back(std::move(registered));
}

// ---- CONFIG REWRITE

bool Config::rewrite(std::string* error, bool everything) const {
  if (file_.empty()) {
    *error = "The server is running without a config file";
    return false;
  }
  const auto text = base::read_within(file_, {.pipe_patience_ms = 0}, files_);
  if (!text && errno != ENOENT) {
    *error = "Rewriting config file: " + base::read_error_text(errno);
    return false;
  }
  if (base::replace_file(file_, rewritten(text.value_or(""), everything), files_)) return true;
  *error = std::string("Rewriting config file: ") + strerror(errno);
  return false;
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
