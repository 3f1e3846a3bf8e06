// Runs compiled scripts and functions: gives them their keys and arguments, lets them call
// commands, turns what they return into replies, and keeps the server answering while one takes too
// long.
//
// One runs at a time, on the server's thread, whatever Lua VM it belongs to. Its commands pass
// through the server's dispatcher as a client of the runner's own, after the checks that are
// particular to scripts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "script/watchdog.h"
#include "server/client/client.h"
#include "server/command/admission.h"
#include "server/command/command_context.h"

struct lua_State;
struct lua_Debug;

namespace latchkey::server {
struct Command;
}

namespace latchkey::script {

class Debugger;
class Interpreter;

// What can be run.
struct Program {
  enum class Kind : uint8_t {
    kScript,    // finds its keys and arguments in the globals KEYS and ARGV
    kFunction,  // gets them as two parameters
  };
  Kind kind;
  // For clients and the log; must live as long as it runs.
  std::string_view name;
  // ScriptFlag bits.
  uint32_t flags;
  // The compiled function, in the registry of its VM.
  int function;
};

class ScriptRunner {
 public:
  explicit ScriptRunner(server::Server& server);
  ScriptRunner(const ScriptRunner&) = delete;
  ScriptRunner& operator=(const ScriptRunner&) = delete;

  // To be called for a new VM before anything in it is run, and before it is destroyed.
  void adopt(Interpreter& vm);
  void abandon(Interpreter& vm);

  // The request's number of keys, which stands third in it, its keys and its arguments. False with
  // an error sent; `not_a_number` when it is no integer.
  static bool read_key_count(server::CommandContext& ctx, size_t* count,
                             std::string_view not_a_number = {});
  // Runs a program for the request that names it, and replies.
  void run(server::CommandContext& ctx, Interpreter& vm, const Program& program, bool read_only,
           size_t key_count);
  // Runs the code of a library, which calls no commands, as Interpreter::run(). Stops it after
  // `limit_ms`; 0: never.
  bool run_library(Interpreter& vm, int function, int64_t limit_ms);

  // SCRIPT KILL and FUNCTION KILL, which come while what runs lets other clients be served: it
  // stops at its next instruction, if it is of that kind and has not written. Replies.
  void kill(server::CommandContext& ctx, Program::Kind kind);

  // --- For the debugger -------------------------------------------------------------------------

  server::Server& server() { return server_; }
  // While there is a debugger it sees each command and may stop the program; other clients wait
  // however long that takes.
  void set_debugger(Debugger* debugger) { debugger_ = debugger; }
  Debugger* debugger() const { return debugger_; }
  // Runs a command as one of the script. REQUIRES: a debugger, running().
  void run_debugger_command(server::Arguments words);

  // What runs: null when nothing does.
  const Program* running() const { return run_.program; }
  // REQUIRES: running().
  server::Arguments running_request() const { return run_.request; }
  int64_t running_ms() const;

  // For tests on virtual time: from now on what runs has taken too long after so many instructions
  // and is interrupted every so many, whatever the time; 0: not so.
  void interrupt_after(int instructions) { interrupt_after_ = instructions; }

 private:
  friend struct RedisApi;

  struct Run {
    const Program* program = nullptr;
    server::ScriptCall call;
    server::Arguments request;
    bool is_library = false;
    bool killed = false;
    bool busy = false;           // has been running for too long; other clients are served
    uint64_t started_ticks = 0;  // of base::CycleClock
  };

  class RunScope;

  // The last checks before a program runs; false with an error sent.
  bool may_run(server::CommandContext& ctx, const Program& program, bool read_only);
  void begin(server::CommandContext& ctx, const Program& program, bool read_only);
  void push_table(server::Arguments values);
  // Bytes, from `lua-memory-limit`; 0: any number.
  size_t lua_memory_limit() const;
  bool run_watched(int function, int arguments, int64_t limit_ms);
  bool run_debugged(int function, int arguments);
  void reply_error(server::CommandContext& ctx, const Program& program);

  // redis.call and redis.pcall: runs a command of the script, leaves its reply in the script
  // client's output.
  void run_command(server::Arguments words);
  void reject(server::Command* command, std::string_view error);
  // As run_command(), and shows the command and its reply to the debugger if there is one.
  void run_debugged_command(server::Arguments words);
  // The reply in the script client's output, as one piece. Valid until the output is cleared.
  std::string_view reply_bytes();

  // Called by the watchdog on its thread: sets the hook that interrupts the script.
  void interrupt();
  static void on_interrupt(lua_State* lua, lua_Debug*);
  static void on_debugger_hook(lua_State* lua, lua_Debug* where);
  static ScriptRunner& runner_of(lua_State* lua);
  // Raises the error that ends what runs, again at its next instruction when it is caught.
  [[noreturn]] static void stop(lua_State* lua, const char* error);
  // Lets other clients be served, if it is time.
  void serve_others();
  void become_busy();
  void stop_interrupting();

  server::Server& server_;
  server::Client& client_;
  const size_t system_memory_;  // bytes
  // The VM of what runs, or ran last.
  Interpreter* vm_ = nullptr;
  Run run_;
  Debugger* debugger_ = nullptr;
  // Space for the words of a command, kept from one to the next.
  std::vector<std::string_view> words_;
  std::vector<char> number_texts_;
  std::string joined_reply_;
  int interrupt_after_ = 0;
  Watchdog watchdog_;
};

// The BUSY error while a program of that kind runs.
std::string_view busy_error(Program::Kind kind);

}  // namespace latchkey::script
