// One Lua VM: LuaJIT in interpreter mode with the reference's sandbox. Its memory comes from the
// process's allocator, so that it is counted.
//
// Scripts share read-only globals: the tables of the sandbox are empty proxies whose metatables
// read from the real tables and refuse writes, and the functions that bypass metatables (rawset,
// next, ...) know the proxies. The sandbox offers what the reference's Lua 5.1 does, with its
// behaviour where LuaJIT differs.
//
// Not thread-safe, except for lua_sethook as the watchdog uses it.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "script/lua/lua_memory.h"
#include "script/lua/lua_random.h"

struct lua_State;

namespace latchkey::script {

// Fields of error tables.
inline constexpr char kErrorText[] = "err";
inline constexpr char kErrorCounted[] =
    "ignore_error_stats_update";  // it came from a command, which counted it
inline constexpr char kErrorSource[] = "source";
inline constexpr char kErrorLine[] = "line";

// The error of a failed run.
struct ScriptError {
  std::string text;
  std::string place;     // "@user_script:1", or empty when it is not known
  bool counted = false;  // it came from a command, which counted it
};

class Interpreter {
 public:
  // The registry reference that stands for no function.
  static constexpr int kNoFunction = 0;
  // The registry reference that stands for all globals of the VM.
  static constexpr int kAllGlobals = 0;

  // `random` outlives the VM: SCRIPT FLUSH does not reset math.random. `chunk_name` names the code
  // in errors, and must outlive the VM too.
  Interpreter(LuaRandom& random, const char* chunk_name);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  lua_State* lua() { return lua_; }
  // The interpreter that a state or one of its coroutines belongs to. O(1).
  static Interpreter& of(lua_State* lua);

  // Makes the table on top of the stack a read-only global, and pops it.
  void add_table(const char* name);

  // Compiles a script. Returns its reference; the error is the compiler's message.
  base::Result<int> compile(std::string_view code);
  void forget(int function);

  // Pops a value and makes it a global that scripts see.
  void set_global(const char* name);
  // The same for the globals of every script, without looking up the name: push_name(), then push
  // the value, then set_pushed_global().
  enum Global : size_t { kKeys, kArguments };
  void push_name(Global global);
  void set_pushed_global();
  // Replaces the table on top of the stack by a read-only proxy that raises an error for missing
  // fields.
  void seal();
  // Pops a table for use as globals. Returns its reference.
  int add_globals();
  // Sets the globals of all code that runs from here on: a table of add_globals(), or kAllGlobals.
  void show_globals(int table);

  // Runs a compiled function with the arguments on top of the stack. True with its first result on
  // the stack; false with the error there: a table of the fields above (`err` as the script gave
  // it, the place when it is known), or a string when memory did not suffice for a table.
  bool run(int function, int arguments = 0);
  // Pops the error that run() left.
  ScriptError take_error();
  // Does the garbage collector's work for about that much memory at once. On its own the collector
  // would wait until twice as much memory is used.
  void collect_some(int kilobytes);
  // Pops everything that a run left on the stack.
  void clear_stack();

  // --- C's stack -------------------------------------------------------------------------------

  // The end (lowest address) of the C stack that run() is called on. Null: unknown; then a run may
  // use half the limit of a process's first stack, below the frame that calls run().
  void set_stack_limit(const void* end) { stack_end_ = end; }
  // Whether the C stack has room beyond the reserve for code that does not recurse: a command, the
  // compiler, an error being raised. Every recursive function calls this first. Costs a comparison.
  bool has_stack() const {
    return static_cast<const char*>(__builtin_frame_address(0)) > stack_floor_;
  }

  // Counts calls back into Lua in each sandbox function that makes them, because LuaJIT does not:
  // they may be nested kMaxCalls deep, as in the reference, and need C stack. Beyond that the
  // constructor raises "C stack overflow". There is no destructor, because Lua's errors need not
  // run any: callers that catch errors call end() themselves.
  class CallBack {
   public:
    explicit CallBack(lua_State* lua) : self_(of(lua)), before_(self_.calls_) {
      if (!self_.may_call_back()) [[unlikely]]
        self_.raise_stack_overflow(lua);
      ++self_.calls_;
    }
    void end() const { self_.calls_ = before_; }

   private:
    Interpreter& self_;
    const int before_;
  };
  bool may_call_back() const { return calls_ < kMaxCalls && has_stack(); }

  // --- Stopping --------------------------------------------------------------------------------

  // Raises the error that ends the run. Sandbox functions that catch errors raise it again
  // (pass_on_stop), and so does the hook at the next instruction: no script can catch it for good.
  [[noreturn]] void stop(lua_State* lua, const char* error);
  // The error that stops the current run, or stopped the last one; null when there is none.
  const char* stopped_with() const { return stopped_with_; }
  void pass_on_stop(lua_State* lua) {
    if (stopped_with_ != nullptr) [[unlikely]]
      stop(lua, stopped_with_);
  }
  // Every function that has caught a Lua error calls this.
  void error_caught(lua_State* lua) {
    forget_dead_frames();
    pass_on_stop(lua);
  }
  // Called by our long-running functions, in which Lua executes no instruction: calls the count
  // hook, if one is set, as the interpreter would.
  void poll(lua_State* lua);
  // The same for functions that no error may leave: false when the run is being stopped. The caller
  // must then return soon and call pass_on_stop().
  bool poll_quietly(lua_State* lua);
  // Called after an event that may have damaged LuaJIT's state: is_sound() then runs its test
  // program.
  void require_probe() { needs_probe_ = true; }
  // Whether programs still run correctly and can be interrupted. To be called before each use, with
  // nothing running and no hook set; an interpreter that is not sound must be replaced. Costs a
  // test of a flag; after require_probe() it runs a small program, which takes microseconds.
  bool is_sound() {
    if (needs_probe_) [[unlikely]]
      needs_probe_ = !passes_probe();
    return !needs_probe_;
  }

  // --- Memory ----------------------------------------------------------------------------------

  // Bytes that Lua holds.
  size_t memory_usage() const { return memory_.used(); }
  // The limit holds while code is compiled and run; set it with set_limit() before.
  LuaMemory& memory() { return memory_; }
  // Does a part of the collector's work if enough was allocated since the last collection. False
  // when there is nothing to do. Usually takes a few milliseconds, but does a whole collection
  // after memory was refused; with nothing to do it costs a test.
  bool collect_garbage() { return memory_.total_allocated() >= collect_from_ && collect_slice(); }
  // Settings made by a script with collectgarbage() last until the end of the script.
  void collector_was_tuned() { tuned_ = true; }

 private:
  friend struct Sandbox;
  static constexpr size_t kMaxProtected = 24;
  // C stack reserved for functions that do not check it, in bytes.
  static constexpr size_t kKeptStack = size_t{512} << 10;
  static constexpr int kMaxCalls = 200;
  struct Protected {
    const void* stand_in;
    int real;  // registry reference
  };

  // Makes reads of missing fields of the table on top of the stack raise an error.
  void refuse_missing();
  [[gnu::noinline]] void* grant(void* block, size_t old_size, size_t new_size);
  static void* allocate(void* self, void* block, size_t old_size, size_t new_size);
  bool collect_slice();
  void collected();
  // Schedules a whole collection, after memory was refused.
  void require_full_collection();
  void reset_collector();
  void collect_all();
  // Tunes the collector to keep up with a script that comes near its limit.
  void hurry_collector();
  [[noreturn]] static void raise_stack_overflow(lua_State* lua);
  bool passes_probe();
  // Lua's errors skip the ends of C frames, where AddressSanitizer learns that their part of the
  // stack is free again; this tells it.
  void forget_dead_frames() const;
  // Compiles a script and pushes the function, or an error message and false is returned.
  bool load(std::string_view code);
  // Replaces the table on top of the stack by a proxy.
  void protect();
  // The registry reference of the table behind a proxy, or 0.
  int real_of(const void* table) const;

  // Bytes that must be allocated before a collection starts, or the bytes in use if those are more.
  static constexpr size_t kWorthCollecting = size_t{1} << 20;
  // Work of one slice, in LuaJIT's measure: kilobytes, of which it looks at twice as many.
  static constexpr int kSliceKilobytes = 4096;

  LuaRandom& random_;
  const char* chunk_name_;
  LuaMemory memory_;
  lua_State* lua_ = nullptr;
  std::array<Protected, kMaxProtected> protected_{};
  size_t protected_count_ = 0;
  const void* stack_end_ = nullptr;
  // Bytes of C stack that a run may use when its end is unknown.
  const size_t own_stack_;
  // During a run: below this address no call back may begin.
  const char* stack_floor_ = nullptr;
  // Current depth of calls back into Lua.
  int calls_ = 0;
  const char* stopped_with_ = nullptr;
  bool needs_probe_ = false;
  bool running_ = false;
  bool tuned_ = false;
  bool full_collection_due_ = false;  // memory was refused: a whole collection is due
  // memory_.total_allocated() when the last collection began, and its value from which
  // collect_garbage() has something to do.
  size_t collected_at_ = 0;
  size_t collect_from_ = kWorthCollecting;
  // Collector cycles that the current collection must still finish: the cycle that may have been
  // under way before it, and a whole one.
  int cycles_left_ = 0;
  std::array<int, 2> names_{};  // registry references
  // The program that is_sound() runs.
  int probe_ = kNoFunction;
};

}  // namespace latchkey::script
