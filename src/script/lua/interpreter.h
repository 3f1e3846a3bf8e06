// One Lua VM: LuaJIT in interpreter mode with the reference's sandbox around it. Its memory
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
  // No table, as those go: the whole VM.
  static constexpr int kAllGlobals = 0;

  // `random` outlives the VM: math.random goes on where it was after SCRIPT FLUSH. Errors call
  // code by `chunk_name`, which must outlive it as well.
  Interpreter(LuaRandom& random, const char* chunk_name);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  lua_State* lua() { return lua_; }
  // The interpreter that a state or one of its coroutines belongs to. O(1).
  static Interpreter& of(lua_State* lua);

  // Makes the table on top of the stack a read-only global, and takes it off.
  void add_table(const char* name);

  // Compiles a script. Returns its reference, or kNoFunction with the compiler's message in *error.
  int compile(std::string_view code, std::string* error);
  void forget(int function);

  // Sets a global that scripts see, from the value on top of the stack, which it takes off.
  void set_global(const char* name);
  // The same for those that every script has, without looking for the name: push_name(), then the
  // value, then set_pushed_global().
  enum Global : size_t { kKeys, kArguments };
  void push_name(Global global);
  void set_pushed_global();
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

  // --- C's stack -------------------------------------------------------------------------------

  // Where the stack that run() is called on ends (its lowest address), or null when nobody knows:
  // then what runs may take half of what a process's first stack may have, below the frame that
  // calls run().
  void set_stack_limit(const void* end) { stack_end_ = end; }
  // Whether C's stack has room left for more than what does not recurse: a command, the compiler,
  // an error on its way. To be asked by whatever recurses. Costs a comparison.
  bool has_stack() const {
    return static_cast<const char*>(__builtin_frame_address(0)) > stack_floor_;
  }

  // Counts, in each function of the sandbox that calls back into Lua, for LuaJIT itself does not:
  // such calls may be nested kMaxCalls deep, as in the reference, and only while there is stack.
  // Beyond that the constructor raises "C stack overflow". An error passes by end(), so whoever
  // catches errors calls it afterwards; there is no destructor, for Lua's errors need not run any.
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

  // Raises the error that ends what runs. Whoever catches errors in the sandbox raises it again
  // (pass_on_stop), and so does the hook at the next instruction: no script outlives it.
  [[noreturn]] void stop(lua_State* lua, const char* error);
  // The error that what runs is being stopped with, or ran into last; null when it is not.
  const char* stopped_with() const { return stopped_with_; }
  void pass_on_stop(lua_State* lua) {
    if (stopped_with_ != nullptr) [[unlikely]]
      stop(lua, stopped_with_);
  }
  // To be called by whoever has caught an error of Lua's.
  void error_caught(lua_State* lua) {
    forget_dead_frames();
    pass_on_stop(lua);
  }
  // Hears interruptions in functions of ours that work long without an instruction of Lua's: calls
  // the count hook, if one is set, as the interpreter would.
  void poll(lua_State* lua);
  // The same where no error may pass: false when what runs is being stopped. The caller is to come
  // to an end and to call pass_on_stop().
  bool poll_quietly(lua_State* lua);
  // Something went on here that LuaJIT may not have borne: is_sound() is to look.
  void doubt() { doubted_ = true; }
  // Whether programs run as they should and can be interrupted. To be asked before each use, with
  // nothing running and no hook set: an interpreter that is not sound is to be thrown away. A test
  // unless there is a doubt; then a small program is run, which takes microseconds.
  bool is_sound() {
    if (doubted_) [[unlikely]]
      doubted_ = !passes_probe();
    return !doubted_;
  }

  // --- Memory ----------------------------------------------------------------------------------

  // Bytes that Lua holds.
  size_t memory_usage() const { return memory_.used(); }
  // Limited while code is compiled and run, for which set_limit() is to be asked before.
  LuaMemory& memory() { return memory_; }
  // Does some of the collector's work, if what has run since the last time has allocated so much
  // that it is worth it. False when there is nothing to do. A few milliseconds mostly, but all of
  // it once when memory was refused; else a test.
  bool collect_garbage() { return memory_.handed_out() >= collect_from_ && collect_slice(); }
  // What a script says to the collector with collectgarbage() holds until its end.
  void collector_was_tuned() { tuned_ = true; }

 private:
  friend struct Sandbox;
  static constexpr size_t kMaxProtected = 24;
  // Of C's stack: what is kept free for what is called without a look at it.
  static constexpr size_t kKeptStack = size_t{512} << 10;
  static constexpr int kMaxCalls = 200;
  struct Protected {
    const void* stand_in;
    int real;  // registry reference
  };

  // Has what is asked for in the table on top of the stack, and is not there, raise an error.
  void refuse_missing();
  [[gnu::noinline]] void* grant(void* block, size_t old_size, size_t new_size);
  static void* allocate(void* self, void* block, size_t old_size, size_t new_size);
  bool collect_slice();
  void collected();
  // All that can be freed is to be, for memory was refused.
  void starve();
  void reset_collector();
  void collect_all();
  // Has the collector keep up with a script that comes near its limit.
  void hurry_collector();
  [[noreturn]] static void raise_stack_overflow(lua_State* lua);
  bool passes_probe();
  // Lua's errors leave frames without their ends, which is where AddressSanitizer learns that the
  // stack they took may be used again.
  void forget_dead_frames() const;
  // Compiles a script and leaves the function, or false and the message, on the stack.
  bool load(std::string_view code);
  // Puts a stand-in on the stack for the table on top of it, in its place.
  void protect();
  // The registry reference of the table behind a stand-in, or 0.
  int real_of(const void* table) const;

  // Bytes allocated that are worth a collection, if not more are in use.
  static constexpr size_t kWorthCollecting = size_t{1} << 20;
  // What is collected at once, in LuaJIT's measure: kilobytes of which twice as many are looked at.
  static constexpr int kSliceKilobytes = 4096;

  LuaRandom& random_;
  const char* chunk_name_;
  LuaMemory memory_;
  lua_State* lua_ = nullptr;
  std::array<Protected, kMaxProtected> protected_{};
  size_t protected_count_ = 0;
  const void* stack_end_ = nullptr;
  // Bytes that a run may take when nobody has said where the stack ends.
  const size_t own_stack_;
  // While something runs: no call back may begin below.
  const char* stack_floor_ = nullptr;
  // Calls back into Lua that are under way.
  int calls_ = 0;
  const char* stopped_with_ = nullptr;
  bool doubted_ = false;
  bool running_ = false;
  bool tuned_ = false;
  bool starved_ = false;  // was refused memory: all that can be freed is to be
  // What memory_ had handed out when the last collection began, and what it must have handed out
  // for collect_garbage() to have something to do.
  size_t collected_at_ = 0;
  size_t collect_from_ = kWorthCollecting;
  // Cycles of the collector that the collection going on has yet to finish: the one that may have
  // been under way already, and a whole one.
  int cycles_left_ = 0;
  std::array<int, 2> names_{};  // registry references
  // The program of is_sound().
  int probe_ = kNoFunction;
};

}  // namespace latchkey::script
