// Runs scripts: finds or compiles them, gives them their keys and arguments, lets them call
// commands, turns what they return into replies, and keeps the server answering while one takes too
// long.
//
// One script runs at a time, on the server's thread. Its commands pass through the server's
// dispatcher as a client of the engine's own, after the checks that are particular to scripts. The
// engine belongs to its server (Server::set_scripts).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "script/lua_random.h"
#include "script/script_cache.h"
#include "script/watchdog.h"
#include "server/client.h"
#include "server/command_context.h"
#include "server/memory_report.h"

struct lua_State;
struct lua_Debug;

namespace latchkey::server {
struct Command;
}

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

  // SCRIPT LOAD. The digest, or null with an error in *error.
  const std::string* load(std::string_view body, std::string* error);
  bool exists(std::string_view sha) const { return cache_.find_sha(sha) != nullptr; }
  // Forgets all scripts and their Lua world. With `in_background` it is freed on another thread.
  void flush(bool in_background);

  enum class KillResult : uint8_t { kKilled, kNotBusy, kHasWritten };
  // SCRIPT KILL, which comes while the script lets other clients be served: the script stops at its
  // next instruction.
  KillResult kill();

  // For INFO memory and INFO stats. There is no interpreter to count before the first script and
  // after a flush.
  server::ScriptFigures figures() const;

 private:
  friend struct RedisApi;

  // The script that runs.
  struct Run {
    const Script* script = nullptr;
    server::Client* caller = nullptr;
    bool read_only = false;
    bool allow_oom = false;
    bool out_of_memory = false;  // when it began
    bool has_written = false;
    bool killed = false;
    bool busy = false;           // has been running for too long; other clients are served
    uint64_t started_ticks = 0;  // of base::CycleClock
    int64_t last_served_us = 0;
  };

  // The Lua world, made when the first script comes: an idle server does without it.
  Interpreter& world();

  // Reads the number of keys; false with an error sent.
  static bool read_key_count(server::CommandContext& ctx, size_t* count);
  // Null with an error in *error.
  Script* find_or_add(std::string_view body, bool evictable, std::string* error);
  void evict();
  // The last checks before a script runs; false with an error sent.
  bool may_run(server::CommandContext& ctx, const Script& script, bool read_only) const;
  void run(server::CommandContext& ctx, Script& script, bool read_only, size_t key_count);
  void push_table(const char* name, server::Arguments values);
  void reply_error(server::CommandContext& ctx, const Script& script);

  // redis.call and redis.pcall: runs a command of the script, leaves its reply in the script
  // client's output.
  void run_command(server::Arguments words);
  // The text of the error that keeps a script from running the command, or empty.
  std::string_view refusal(const server::Command& command) const;
  // The reply in the script client's output, as one piece. Valid until the output is cleared.
  std::string_view reply_bytes();

  // The watchdog's word, on its thread: interrupt the script.
  void interrupt();
  static void on_interrupt(lua_State* lua, lua_Debug*);
  // Lets on_interrupt find the engine.
  void remember_in(lua_State* lua);
  // Serves other clients for a moment.
  void serve_others();
  void stop_interrupting();

  server::Server& server_;
  server::Client& client_;
  LuaRandom random_;
  ScriptCache cache_;
  // Null until world() is asked for.
  std::unique_ptr<Interpreter> interpreter_;
  Run run_;
  // Space for the words of a command, kept from one to the next.
  std::vector<std::string_view> words_;
  std::vector<char> number_texts_;
  std::string joined_reply_;
  Watchdog watchdog_;
};

}  // namespace latchkey::script
