// Config: the directives of one server, from the configuration file, the command line and CONFIG
// SET.
//
// All directives are in one table (config_table.cpp). It defines parsing, CONFIG GET, CONFIG SET
// and CONFIG REWRITE, so that they cannot disagree. The values themselves are a plain struct
// (config_values.h).
//
// Independent of clients and replies. A subsystem that keeps settings in a form of its own copies
// them again after each change (on_every_change()), one that must act on a change or may refuse it
// registers a hook with on_change(); a subsystem whose settings are stored elsewhere (the users of
// the ACL) gives the lines to rewrite with on_rewrite(). Not thread safe: one server, one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/file_system.h"
#include "base/result.h"
#include "server/config/config_values.h"

namespace latchkey::server {

struct Directive;

// Why a configuration could not be loaded.
struct ConfigError {
  enum class Kind {
    kLine,    // a line is wrong: see `line`, `line_text` and `message`
    kWhole,   // each line is valid, but not all together: `message`
    kFile,    // a file could not be read: `message` is for the log, which has `hint` already
    kLogged,  // the reason has been logged; `message` is empty
  };
  Kind kind = Kind::kLine;
  int line = 0;  // counts from 1 in `file`, or past its end for what follows it; 0: none
  std::string line_text;
  std::string message;
  std::string file = {};  // the file that the line stands in; empty: none was named
  std::string hint = {};  // how to correct it, a sentence; often empty

  // An error of no line.
  static ConfigError of(Kind kind, std::string message);
  // The error of a line that a subsystem refused after loading (rename-command, user).
  static ConfigError at(const DeferredDirective& place, std::string message);

  // The reference's text on standard error before it exits with status 1, and the hint below it. A
  // kFile error is logged at warning level instead, with `message` as its text.
  // `edition`: the server that is to be started.
  std::string report(const Edition& edition = Edition()) const;
};

// The directory that relative paths refer to; `dir` changes it.
class WorkingDirectory {
 public:
  virtual ~WorkingDirectory() = default;
  // Fails when there is no such directory. The error is strerror's text.
  virtual base::Result<> change(const std::string& path) = 0;
  // Absolute; empty when it has been removed.
  virtual std::string current() const = 0;
  // The path with which to open a file that is named relative to it.
  virtual std::string path_of(const std::string& name) const = 0;
};

// The working directory of the process.
class ProcessDirectory final : public WorkingDirectory {
 public:
  base::Result<> change(const std::string& path) override;
  std::string current() const override;
  // The name as it is, so that the file is found even after the directory was renamed.
  std::string path_of(const std::string& name) const override { return name; }
};

// The directory of one server among several in a process: checked and remembered, without changing
// the working directory of the process.
class PrivateDirectory final : public WorkingDirectory {
 public:
  PrivateDirectory();
  base::Result<> change(const std::string& path) override;
  std::string current() const override { return current_; }
  std::string path_of(const std::string& name) const override {
    return name.starts_with('/') ? name : current_ + "/" + name;
  }

 private:
  std::string current_;
};

class Config {
 public:
  using NameAndValue = std::pair<std::string, std::string>;
  // Acts on a change; values() are the new ones. Its failure undoes the whole CONFIG SET, whose
  // reply then is its error.
  using Hook = std::function<base::Result<>()>;
  // The complete lines of a directive in a rewritten file, in order.
  using LinesSource = std::function<std::vector<std::string>()>;

  // Without a directory the process's own is used. `files` must outlive it.
  explicit Config(std::unique_ptr<WorkingDirectory> directory = nullptr,
                  base::FileSystem& files = base::disk());
  ~Config();
  Config(const Config&) = delete;
  Config& operator=(const Config&) = delete;

  // Makes it the configuration of a Sentinel: `sentinel` lines are kept for it, and the defaults of
  // `port` and `protected-mode` are a Sentinel's. To be called before anything is loaded.
  void be_sentinel();

  // Begins with the values of another, but for those that concern sockets, files, other servers and
  // the users: these are as they are without a configuration.
  void inherit(const Config& other);

  const ConfigValues& values() const { return values_; }
  // The directory of files without a path.
  const WorkingDirectory& directory() const { return *directory_; }
  // The file system of the server's durable files.
  base::FileSystem& files() const { return files_; }
  // For subsystems that own a setting (REPLICAOF, a port chosen by the system). No hook is called.
  ConfigValues& mutable_values() {
    ++revision_;
    return values_;
  }
  // Grows whenever a value may have changed.
  uint64_t revision() const { return revision_; }
  // The pairs with which set() brings back the values of `before`, of those directives that may be
  // set and differ.
  std::vector<NameAndValue> pairs_to_restore(const ConfigValues& before) const;

  // Reads directives from text, one a line. Called while composing a server; no hook is called.
  // Line numbers count from 1 within `text`, and within the file for the files it includes. On
  // error the lines before the wrong one stay applied.
  base::Result<void, ConfigError> load_text(std::string_view text);

  // Reads the file, if `path` is not empty, followed by `more` (standard input, command line
  // options), as one text. Remembers the file for CONFIG REWRITE. Also checks rules that concern
  // several directives at once.
  base::Result<void, ConfigError> load(const std::string& path, std::string_view more);

  // Reads as load() does, but goes on after an error, and creates no file: all that is wrong with
  // the configuration by itself, in the order of its lines, what concerns several of them last.
  // What a subsystem refuses later (a user's rules) is not among it.
  std::vector<ConfigError> check(const std::string& path, std::string_view more);

  // Absolute path of the configuration file; empty when there is none.
  const std::string& file() const { return file_; }
  // How many lines it had when load() or check() read it; those of `more` count on from them.
  int lines_of_file() const { return lines_of_file_; }

  // Why a server with this configuration cannot start: unknown directives, with the names that were
  // probably meant. Lines for the log at warning level; empty when there is no problem.
  std::vector<std::string> startup_problems() const;

  // The settings of the loaded configuration that have no effect here, with the reasons
  // (Directive::no_effect_because): lines for the log.
  std::vector<std::string> settings_without_effect() const;

  // CONFIG GET: names and values, in the order of the table for each pattern, each name once. A
  // name without `*`, `?` or `[` is looked up as it is, which also finds hidden directives, and is
  // returned as it was spelt.
  std::vector<NameAndValue> get(std::span<const std::string_view> patterns) const;

  struct SetRequest {
    bool from_local_client = true;  // loopback or unix socket; protected directives may ask for it
    bool loading = false;           // a dataset is being loaded; refuses what waits_for_loading()
  };
  // CONFIG SET: all or nothing. Every value is checked, then all are stored and copied to where
  // they are also kept, then the hooks of changed directives are called, each once; a hook that
  // refuses brings every value back, copies them again and calls those hooks again. The error is
  // the reply's text after "ERR ".
  base::Result<> set(std::span<const NameAndValue> pairs, const SetRequest& request);

  // True for a directive that cannot be set while a dataset is being loaded: CONFIG SET then
  // answers the LOADING error. Any spelling.
  bool waits_for_loading(std::string_view name) const;

  // `copy` is called after each CONFIG SET that changed a value, before the hooks, and when the
  // values were brought back. It takes the values that its owner keeps in a form of its own,
  // without being told which have changed; a setting that it takes cannot be forgotten in a list of
  // names. It must be cheap, and change nothing when it is called again.
  void on_every_change(std::function<void()> copy);

  // `hook` is called once after a CONFIG SET that changed at least one of `names`. Hooks run in the
  // order of their directives in the command, then of registration. REQUIRES: the names are in the
  // table, and all hooks are registered before the first CONFIG SET.
  void on_change(std::initializer_list<std::string_view> names, Hook hook);
  // The same of a function that returns nothing: it refuses no change.
  template <typename Act>
  requires std::is_void_v<std::invoke_result_t<Act&>>
  void on_change(std::initializer_list<std::string_view> names, Act act) {
    on_change(names, Hook([act = std::move(act)]() mutable -> base::Result<> {
                act();
                return {};
              }));
  }

  // `check` is called after a CONFIG SET that changed at least one of `names`, before any hook, and
  // may refuse the change. It acts on nothing. REQUIRES: as on_change().
  void check_change(std::initializer_list<std::string_view> names, Hook check);

  // `source` gives the lines of directive `name`, which is not in the table ("user"), when the file
  // is rewritten. A line of `sentinel` takes the place of one with the same second word.
  void on_rewrite(std::string name, LinesSource source);

  // CONFIG REWRITE: writes the settings back into file(), keeping comments and order.
  // The file is replaced in one step. The error is the reply's text after "ERR ".
  // `everything`: also the settings that are as they would be without the file.
  base::Result<> rewrite(bool everything = false) const;

  // The text that rewrite() makes of a file that holds `text`.
  std::string rewritten(std::string_view text, bool everything = false) const;

  // True when the directive's value must not be logged. Any spelling.
  bool is_sensitive(std::string_view name) const;

  // The table, which all configurations share.
  static const std::vector<Directive>& directives();
  // By name or alias, any case; null when unknown.
  static const Directive* find(std::string_view name);

 private:
  // As find(), among the directives of the release that is emulated.
  const Directive* find_known(std::string_view name) const;
  // Applies the last `emulate` line of `text` before all others, which depend on it.
  base::Result<void, ConfigError> choose_edition(std::string_view text);
  struct RegisteredHook {
    std::vector<const Directive*> directives;
    Hook act;
  };

  // The file followed by `more`.
  base::Result<std::string, ConfigError> read(const std::string& path, std::string_view more);
  base::Result<void, ConfigError> load_lines(std::string_view text, int depth);
  base::Result<void, ConfigError> load_line(std::string_view line, int number, int depth);
  // Of a line that was split into the directive's name, in lower case, and `place.arguments`.
  base::Result<void, ConfigError> load_words(const std::string& name,
                                             const DeferredDirective& place, int depth);
  base::Result<> load_directive(const Directive& directive,
                                const std::vector<std::string>& arguments);
  base::Result<void, ConfigError> include(const DeferredDirective& place, int depth);
  // Passes the error on, or keeps it and succeeds while check() wants all of them.
  base::Result<void, ConfigError> report_line(ConfigError error);
  // Whether the log can be written to.
  base::Result<> check_logfile(bool create) const;
  // What is wrong with directives that do not go together.
  std::vector<std::string> contradictions() const;

  // The directive that the pair names, if it may be set.
  base::Result<const Directive*> settable(const NameAndValue& pair,
                                          const SetRequest& request) const;
  base::Result<> set_value(const Directive& directive, const std::string& value);
  static RegisteredHook registered(std::initializer_list<std::string_view> names, Hook hook);
  static base::Result<> run_hooks(const std::vector<RegisteredHook>& hooks,
                                  const Directive& directive,
                                  std::vector<const RegisteredHook*>* called);
  void copy_values() const;
  void restore(const ConfigValues& before);

  std::unique_ptr<WorkingDirectory> directory_;
  base::FileSystem& files_;
  ConfigValues values_;
  uint64_t revision_ = 0;
  std::unordered_set<const Directive*> loaded_directives_;  // set by the configuration being loaded
  std::set<std::string> ignored_directives_;                // by it, of older releases
  std::unordered_set<std::string> user_names_;              // of values_.users
  size_t included_ = 0;                                     // files, by the one being loaded
  std::string reading_;                                     // the file whose lines are being loaded
  std::vector<ConfigError>* problems_ = nullptr;            // where errors go while all are wanted
  std::vector<std::function<void()>> copies_;               // of on_every_change()
  std::vector<RegisteredHook> checks_;
  std::vector<RegisteredHook> hooks_;
  std::vector<std::pair<std::string, LinesSource>> rewrite_sources_;
  std::string file_;
  int lines_of_file_ = 0;
};

// "Did you mean 'port'?", for a directive that a server of that release does not know; empty when
// no name resembles it.
std::string suggest_directive(const Edition& edition, std::string_view name);

}  // namespace latchkey::server
