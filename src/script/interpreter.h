// One Lua world: LuaJIT in interpreter mode with the reference's sandbox around it. Its memory
// comes from the process's allocator, so that it is counted.
//
// Scripts share globals that they can read and not change: the tables of the sandbox are empty
// stand-ins whose metatables read from the real ones and refuse writes, and the functions that look
// past metatables (rawset, next, ...) know them. What scripts may use is what the reference's
// Lua 5.1 offers, as that behaves where LuaJIT differs.
//
// Not thread-safe, but for lua_sethook as the watchdog uses it.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "script/lua_random.h"

struct lua_State;

namespace latchkey::script {

// Fields of error tables.
inline constexpr char kErrorText[] = "err";
inline constexpr char kErrorCounted[] =
    "ignore_error_stats_update";  // it came from a command, which counted it
inline constexpr char kErrorSource[] = "source";
inline constexpr char kErrorLine[] = "line";

// What a run ended with.
struct ScriptError {
  std::string text;
  std::string place;     // "@user_script:1", or empty when it is not known
  bool counted = false;  // it came from a command, which counted it
};

class Interpreter {
 public:
  // No function, as registry references go.
  static constexpr int kNoFunction = 0;
  // No table, as those go: the whole world.
  static constexpr int kAllGlobals = 0;

  // `random` outlives the world: math.random goes on where it was after SCRIPT FLUSH. Errors call
  // code by `chunk_name`, which must outlive it as well.
  Interpreter(LuaRandom& random, const char* chunk_name);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  lua_State* lua() { return lua_; }

  // Makes the table on top of the stack a read-only global, and takes it off.
  void add_table(const char* name);

  // Compiles a script. Returns its reference, or kNoFunction with the compiler's message in *error.
  int compile(std::string_view code, std::string* error);
  void forget(int function);

  // Sets a global that scripts see, from the value on top of the stack, which it takes off.
  void set_global(const char* name);
  // Makes a read-only table out of the one on top of the stack, in which what is missing cannot be
  // asked for, in its place.
  void seal();
  // Takes the table on top of the stack off for use as globals. Returns its reference.
  int add_globals();
  // What all code sees as globals from now on: a table of add_globals(), or kAllGlobals.
  void show_globals(int table);

  // Runs a compiled function with the arguments on top of the stack. True with its first result on
  // the stack; false with the error there: a table of the fields above (`err` as the script gave
  // it, the place when it is known), or a string when there was no memory for it.
  bool run(int function, int arguments = 0);
  // Reads the error that run() left.
  ScriptError take_error();
  // Does the collector's work on about so much memory now, which else waits for twice as much to be
  // in use.
  void collect_some(int kilobytes);
  // Drops what a run left on the stack.
  void clear_stack();

  // Bytes that Lua holds.
  size_t memory_usage() const;

 private:
  friend struct Sandbox;
  static constexpr size_t kMostProtected = 24;
  struct Protected {
    const void* stand_in;
    int real;  // registry reference
  };

  // Has what is asked for in the table on top of the stack, and is not there, raise an error.
  void refuse_missing();
  // Compiles a script and leaves the function, or false and the message, on the stack.
  bool load(std::string_view code);
  // Puts a stand-in on the stack for the table on top of it, in its place.
  void protect();
  // The registry reference of the table behind a stand-in, or 0.
  int real_of(const void* table) const;

  LuaRandom& random_;
  const char* chunk_name_;
  lua_State* lua_;
  std::array<Protected, kMostProtected> protected_{};
  size_t protected_count_ = 0;
};

}  // namespace latchkey::script
