// The script engine: compiles the scripts of EVAL, caches them and runs them, and owns the other
// parts of scripts and functions. A layer of the server, which owns it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "script/debug_sessions.h"
#include "script/functions.h"
#include "script/lua/lua_random.h"
#include "script/script_cache.h"
#include "script/script_runner.h"
#include "server/command/command_context.h"
#include "server/observe/memory_report.h"

namespace latchkey::script {

class Interpreter;

class Engine {
 public:
  explicit Engine(server::Server& server);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // EVAL, EVALSHA and their read-only forms: args are name, script or digest, number of keys, keys,
  // arguments. Replies.
  void eval(server::CommandContext& ctx, bool read_only);
  void eval_sha(server::CommandContext& ctx, bool read_only);

  // The flags that a script declares (ScriptFlag bits). A script that is not cached is parsed; 0
  // for an unknown digest or a malformed first line.
  uint32_t declared_by(std::string_view body) const;
  uint32_t declared_by_sha(std::string_view sha) const;

  // SCRIPT LOAD. The digest, or the error, from "ERR " on.
  base::Result<std::string> load(std::string_view body);
  bool exists(std::string_view sha) const { return cache_.find_sha(sha) != nullptr; }
  // The script with this digest, in any case, or null. Good until the cache is changed.
  const Script* find(std::string_view sha) const { return cache_.find_sha(sha); }
  // Drops all scripts and their Lua VM. With `in_background` another thread frees them.
  void flush(bool in_background);

  using Scripts = std::vector<std::shared_ptr<Script>>;
  // The scripts of the cache, shared with it.
  Scripts scripts() const { return cache_.scripts(); }
  // Makes those that scripts() returned earlier the only ones again.
  void set_scripts(const Scripts& scripts);

  Functions& functions() { return functions_; }
  DebugSessions& debug_sessions() { return debug_sessions_; }
  ScriptRunner& runner() { return runner_; }
  // Null before the first script and after a flush.
  Interpreter* interpreter() { return interpreter_.get(); }

  // For INFO memory and INFO stats. The VM counts as 0 bytes before the first script and after a
  // flush.
  server::ScriptFigures figures() const;

 private:
  // The Lua VM, created for the first script: an idle server does without it.
  Interpreter& vm();
  // Drops a VM that is not sound. Scripts are compiled again when they are run.
  void renew();
  void drop_interpreter();
  // Compiles a script from its body. The error is a reply, from "ERR " on.
  base::Result<> compile(Script& script);
  // The script with this body, which is compiled and added if it is not cached. Its error is that
  // of compile().
  base::Result<Script*> find_or_add(std::string_view body, bool evictable);
  void eval_at_once(server::CommandContext& ctx, bool read_only);
  void evict();
  // Calls Interpreter::collect_garbage() for one of the two VMs; false when neither has garbage.
  bool free_garbage();
  void run(server::CommandContext& ctx, Script& script, bool read_only, size_t key_count);

  server::Server& server_;
  LuaRandom random_;
  ScriptCache cache_;
  ScriptRunner runner_;
  // Null until the first call of vm().
  std::unique_ptr<Interpreter> interpreter_;
  bool has_deprecated_api_ = false;  // of the interpreter
  Functions functions_;
  DebugSessions debug_sessions_;
};

}  // namespace latchkey::script
