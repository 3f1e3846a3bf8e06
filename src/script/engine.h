// Scripts: finds or compiles those of EVAL, keeps them, and has them run. Composes what scripts and
// functions are made of; belongs to its server (Server::set_scripts).
#pragma once

#include <memory>
#include <string>
#include <string_view>

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

  // What the script of a request declares (ScriptFlag bits), whether it is known or not; 0 when
  // that cannot be told.
  uint32_t declared_by(std::string_view body) const;
  uint32_t declared_by_sha(std::string_view sha) const;

  // SCRIPT LOAD. The digest, or null with an error in *error.
  const std::string* load(std::string_view body, std::string* error);
  bool exists(std::string_view sha) const { return cache_.find_sha(sha) != nullptr; }
  // Forgets all scripts and their Lua VM. With `in_background` it is freed on another thread.
  void flush(bool in_background);

  Functions& functions() { return functions_; }
  DebugSessions& debug_sessions() { return debug_sessions_; }
  ScriptRunner& runner() { return runner_; }
  // Null before the first script and after a flush.
  Interpreter* interpreter() { return interpreter_.get(); }

  // For INFO memory and INFO stats. There is no interpreter to count before the first script and
  // after a flush.
  server::ScriptFigures figures() const;

 private:
  // The Lua VM, made when the first script comes: an idle server does without it.
  Interpreter& vm();
  // Throws away a world that is not sound. Scripts are compiled again when they are run.
  void renew();
  // Compiles a script from its body. False with an error in *error.
  bool compile(Script& script, std::string* error);
  // Null with an error in *error.
  Script* find_or_add(std::string_view body, bool evictable, std::string* error);
  void eval_at_once(server::CommandContext& ctx, bool read_only);
  void evict();
  // Interpreter::collect_garbage() of one of the worlds.
  bool free_garbage();
  void run(server::CommandContext& ctx, Script& script, bool read_only, size_t key_count);

  server::Server& server_;
  LuaRandom random_;
  ScriptCache cache_;
  ScriptRunner runner_;
  // Null until vm() is asked for.
  std::unique_ptr<Interpreter> interpreter_;
  Functions functions_;
  DebugSessions debug_sessions_;
};

}  // namespace latchkey::script
