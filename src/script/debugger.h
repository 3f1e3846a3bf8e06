// The Lua debugger: stops before a line, shows variables, runs code and commands, and continues, by
// commands of its user. The commands and their output are the reference's (redis.io, "Debugging Lua
// scripts in Redis").
//
// Everything happens inside the hook that Lua calls before each line of the script.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "script/debug_console.h"

struct lua_State;
struct lua_Debug;

namespace latchkey::script {

class ScriptRunner;

class Debugger {
 public:
  // All must outlive it. The runner's debugger as long as it exists; stops before the first line.
  Debugger(ScriptRunner& runner, DebugConsole& console, std::string_view source);
  ~Debugger();
  Debugger(const Debugger&) = delete;
  Debugger& operator=(const Debugger&) = delete;

  // The events for lua_sethook (LUA_MASK*), and its instruction count.
  static int hook_mask();
  static int hook_interval();

  // Called by ScriptRunner. reached(): the hook was called for a line or a number of instructions;
  // returns the error to raise then, or null.
  [[nodiscard]] const char* reached(lua_State* lua, lua_Debug* where);
  void command_called(std::span<const std::string_view> words);
  // `refused`: the command was not run.
  void command_replied(std::string_view reply, bool refused);

  // redis.breakpoint(): stops before the next line.
  void stop_at_next_line() { stop_asked_ = true; }
  // redis.debug(): shows all values on the stack.
  void show_values(lua_State* lua);

 private:
  using Words = std::span<const std::string_view>;
  enum class Next : uint8_t { kAsk, kGoOn, kAbort };
  struct Command {
    std::string_view name;
    std::string_view letter;
    size_t fewest_words;
    Next (Debugger::*run)(lua_State* lua, Words words);
  };
  static const Command kCommands[];

  // Why the script stops here; empty when it does not.
  std::string_view reason_to_stop(bool at_line);
  // Whether the script has run for busy-reply-threshold since its user continued it.
  bool overruns() const;
  // Executes the user's commands until the script continues. Returns the error to raise, or null.
  const char* read_commands(lua_State* lua);
  Next execute(lua_State* lua, Words words);

  Next help(lua_State* lua, Words words);
  Next step(lua_State* lua, Words words);
  Next go_on(lua_State* lua, Words words);
  Next list(lua_State* lua, Words words);
  Next whole(lua_State* lua, Words words);
  Next print(lua_State* lua, Words words);
  Next breakpoints(lua_State* lua, Words words);
  Next trace(lua_State* lua, Words words);
  Next evaluate(lua_State* lua, Words words);
  Next command(lua_State* lua, Words words);
  Next limit_lines(lua_State* lua, Words words);
  Next abort(lua_State* lua, Words words);

  bool has_breakpoint(int line) const;
  void change_breakpoint(std::string_view word);
  void show_source(int line);
  void show_source_around(int64_t line, int64_t context);
  void show_locals(lua_State* lua);
  bool show_variable(lua_State* lua, const std::string& name);
  void show_value(lua_State* lua, std::string_view what, int index);

  ScriptRunner& runner_;
  DebugConsole& console_;
  std::vector<std::string_view> lines_;
  std::vector<int> breakpoints_;
  int line_ = 0;             // the line that is run next
  bool stepping_ = true;     // stops before each line
  bool stop_asked_ = false;  // redis.breakpoint() was called
  bool user_gone_ = false;
  int64_t running_since_us_;
};

}  // namespace latchkey::script
