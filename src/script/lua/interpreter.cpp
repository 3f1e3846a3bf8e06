#include "script/lua/interpreter.h"

#if defined(__SANITIZE_ADDRESS__)
#define LATCHKEY_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LATCHKEY_ADDRESS_SANITIZER
#endif
#endif
#ifdef LATCHKEY_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

#include <sys/resource.h>
#include <algorithm>
#include <lua.hpp>

#include "base/assert.h"
#include "script/lua/dialect.h"
#include "script/lua/lua_json.h"
#include "script/lua/lua_msgpack.h"
#include "script/lua/lua_struct.h"
#include "script/lua/lua_text.h"
#include "script/lua/sandbox.h"

namespace latchkey::script {

namespace {

// Slots at the bottom of the main stack, in use for the lifetime of the VM.
constexpr int kGlobals = 1;
constexpr int kErrorHandler = 2;
constexpr int kBottom = 2;

// LuaJIT raises this error without a place.
constexpr char kStackOverflow[] = "stack overflow";

// Half of the stack limit of a process's first thread, in bytes.
size_t half_of_first_stack() {
  constexpr size_t kMax = size_t{64} << 20;
  constexpr size_t kMin = size_t{2} << 20;
  rlimit limit{};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0) return kMin / 2;
  return std::clamp(static_cast<size_t>(limit.rlim_cur), kMin, kMax) / 2;
}

// A program of some thousand instructions.
constexpr std::string_view kProbe = "local n = 0 for i = 1, 1000 do n = n + i end return n";
constexpr int kProbeResult = 500'500;

// Raises an error that takes no memory.
void interrupt_probe(lua_State* lua, lua_Debug*) {
  lua_pushlightuserdata(lua, lua);
  lua_error(lua);
}

void push_error_table(lua_State* lua, const char* text) {
  lua_createtable(lua, 0, 1);
  lua_pushstring(lua, text);
  lua_setfield(lua, -2, kErrorText);
}

// Pushes the text for an error value that is not a table.
void push_error_text(lua_State* lua, int index) {
  switch (lua_type(lua, index)) {
    case LUA_TSTRING:
    case LUA_TNUMBER:
      lua_pushfstring(lua, "ERR %s", lua_tostring(lua, index));
      break;
    case LUA_TNIL:
      lua_pushliteral(lua, "ERR nil");
      break;
    case LUA_TBOOLEAN:
      lua_pushfstring(lua, "ERR %s", lua_toboolean(lua, index) != 0 ? "true" : "false");
      break;
    default:
      lua_pushfstring(lua, "ERR %s: %p", luaL_typename(lua, index), lua_topointer(lua, index));
  }
}

// The error handler of run(): makes the table that run() leaves.
int describe_error(lua_State* lua) {
  lua_Debug place;
  bool known = lua_getstack(lua, 1, &place) != 0 && lua_getinfo(lua, "nSl", &place) != 0;
  // Some of LuaJIT's own functions are in Lua, with code that has no lines.
  if (known && (*place.what == 'C' || place.currentline == 0)) {
    known = lua_getstack(lua, 2, &place) != 0 && lua_getinfo(lua, "nSl", &place) != 0;
  }
  lua_createtable(lua, 0, 4);
  if (lua_istable(lua, 1)) {
    // A new table, because the script's own may be read-only.
    for (const char* field : {kErrorText, kErrorCounted}) {
      push_raw_field(lua, 1, field);
      lua_setfield(lua, -2, field);
    }
  } else {
    push_error_text(lua, 1);
    if (known && lua_isstring(lua, 1) != 0 && text_at(lua, 1) == kStackOverflow) {
      lua_pop(lua, 1);
      lua_pushfstring(lua, "ERR %s:%d: %s", place.short_src, place.currentline, kStackOverflow);
    }
    lua_setfield(lua, -2, kErrorText);
  }
  if (known) {
    lua_pushstring(lua, place.source);
    lua_setfield(lua, -2, kErrorSource);
    lua_pushinteger(lua, place.currentline);
    lua_setfield(lua, -2, kErrorLine);
  }
  return 1;
}

}  // namespace

Interpreter::Interpreter(LuaRandom& random, const char* chunk_name)
    : random_(random), chunk_name_(chunk_name), own_stack_(half_of_first_stack()) {
  lua_ = lua_newstate(allocate, this);
  // LuaJIT with 32-bit addresses accepts only its own allocator, and cannot be used.
  LK_ASSERT(lua_ != nullptr);
  lua_atpanic(lua_, [](lua_State*) -> int {
    LK_ASSERT(false && "an error of Lua's outside of a protected call");
    return 0;
  });
  luaJIT_setmode(lua_, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
  build_sandbox(*this);
  LK_ASSERT(lua_gettop(lua_) == kGlobals);
  lua_pushcfunction(lua_, describe_error);
  for (const Global global : {kKeys, kArguments}) {
    lua_pushstring(lua_, global == kKeys ? "KEYS" : "ARGV");
    names_[global] = luaL_ref(lua_, LUA_REGISTRYINDEX);
  }
  push_json_array_mark(lua_);
  protect();
  lua_setfield(lua_, LUA_REGISTRYINDEX, kArrayMetatable);
  push_json_library(lua_);
  add_table("cjson");
  push_msgpack_library(lua_);
  add_table("cmsgpack");
  push_struct_library(lua_);
  add_table("struct");
  LK_ASSERT(load(kProbe));
  probe_ = luaL_ref(lua_, LUA_REGISTRYINDEX);
}

Interpreter::~Interpreter() {
  lua_close(lua_);
}

Interpreter& Interpreter::of(lua_State* lua) {
  void* self = nullptr;
  lua_getallocf(lua, &self);
  return *static_cast<Interpreter*>(self);
}

void* Interpreter::allocate(void* self, void* block, size_t old_size, size_t new_size) {
  auto& interpreter = *static_cast<Interpreter*>(self);
  if (new_size == 0) return interpreter.memory_.release(block, old_size);
  return interpreter.grant(block, old_size, new_size);
}

void* Interpreter::grant(void* block, size_t old_size, size_t new_size) {
  if (memory_.is_short()) [[unlikely]]
    hurry_collector();
  return memory_.allocate(block, old_size, new_size);
}

void Interpreter::add_table(const char* name) {
  protect();
  set_global(name);
}

bool Interpreter::load(std::string_view code) {
  const LuaMemory::Enforcement limit(memory_);
  const std::string source = std::string("@") + chunk_name_;
  return luaL_loadbufferx(lua_, code.data(), code.size(), source.c_str(), "t") == 0;
}

base::Result<int> Interpreter::compile(std::string_view code) {
  const base::Result<std::string> translated = translate_dialect(code);
  if (!translated) return base::fail(std::string(chunk_name_) + ":" + translated.error());
  if (load(*translated)) return luaL_ref(lua_, LUA_REGISTRYINDEX);
  // Compiles the original text for the error message.
  if (*translated != code) lua_pop(lua_, 1);
  if (*translated != code && load(code)) return luaL_ref(lua_, LUA_REGISTRYINDEX);
  std::string error = plain_compile_error(text_at(lua_, -1), chunk_name_);
  lua_pop(lua_, 1);
  if (memory_.take_refused()) require_full_collection();
  collect_garbage();
  return base::fail(std::move(error));
}

void Interpreter::forget(int function) {
  if (function == kNoFunction) return;
  luaL_unref(lua_, LUA_REGISTRYINDEX, function);
}

void Interpreter::set_global(const char* name) {
  lua_setfield(lua_, kGlobals, name);
}

void Interpreter::push_name(Global global) {
  lua_rawgeti(lua_, LUA_REGISTRYINDEX, names_[global]);
}

void Interpreter::set_pushed_global() {
  lua_rawset(lua_, kGlobals);
}

void Interpreter::seal() {
  refuse_missing();
  protect();
}

int Interpreter::add_globals() {
  refuse_missing();
  return luaL_ref(lua_, LUA_REGISTRYINDEX);
}

void Interpreter::show_globals(int table) {
  lua_pushvalue(lua_, LUA_GLOBALSINDEX);
  lua_getmetatable(lua_, -1);
  if (table == kAllGlobals) {
    lua_pushvalue(lua_, kGlobals);
  } else {
    lua_rawgeti(lua_, LUA_REGISTRYINDEX, table);
  }
  lua_setfield(lua_, -2, "__index");
  lua_pop(lua_, 2);
}

bool Interpreter::run(int function, int arguments) {
  stopped_with_ = nullptr;
  calls_ = 0;
  stack_floor_ = stack_end_ != nullptr
                     ? static_cast<const char*>(stack_end_) + kKeptStack
                     : static_cast<char*>(__builtin_frame_address(0)) - own_stack_ + kKeptStack;
  // Garbage of earlier scripts must not count against the limit of this one.
  if (memory_.left() < memory_.used() &&
      memory_.total_allocated() - collected_at_ > memory_.left() / 4) [[unlikely]]
    collect_all();
  lua_rawgeti(lua_, LUA_REGISTRYINDEX, function);
  if (arguments > 0) lua_insert(lua_, -1 - arguments);
  bool succeeded = false;
  {
    const LuaMemory::Enforcement limit(memory_);
    running_ = true;
    succeeded = lua_pcall(lua_, arguments, 1, kErrorHandler) == 0;
    running_ = false;
  }
  if (!succeeded) forget_dead_frames();
  if (tuned_) [[unlikely]]
    reset_collector();
  if (memory_.take_refused()) [[unlikely]] {
    require_probe();
    require_full_collection();
  }
  if (stopped_with_ == nullptr) [[likely]]
    return succeeded;
  // Replaces the result or error of the run, but for its place: the script may have caught the
  // error that stops it.
  if (succeeded || !lua_istable(lua_, -1)) {
    lua_pop(lua_, 1);
    push_error_table(lua_, stopped_with_);
    return false;
  }
  lua_pushstring(lua_, stopped_with_);
  lua_setfield(lua_, -2, kErrorText);
  lua_pushnil(lua_);
  lua_setfield(lua_, -2, kErrorCounted);
  return false;
}

void Interpreter::forget_dead_frames() const {
#ifdef LATCHKEY_ADDRESS_SANITIZER
  const char* end = stack_floor_ - kKeptStack;
  const auto* frame = static_cast<const char*>(__builtin_frame_address(0));
  __asan_unpoison_memory_region(end, static_cast<size_t>(frame - end));
#endif
}

// --- Limits of a run -----------------------------------------------------------------------------

void Interpreter::raise_stack_overflow(lua_State* lua) {
  lua_pushliteral(lua, "C stack overflow");
  lua_error(lua);
  __builtin_unreachable();
}

void Interpreter::stop(lua_State* lua, const char* error) {
  stopped_with_ = error;
  require_probe();
  push_error_table(lua, error);
  lua_error(lua);
  __builtin_unreachable();
}

void Interpreter::poll(lua_State* lua) {
  const lua_Hook hook = lua_gethook(lua);
  // The debugger's hook also handles lines, and there are none here.
  if (hook != nullptr && lua_gethookmask(lua) == LUA_MASKCOUNT) hook(lua, nullptr);
}

bool Interpreter::poll_quietly(lua_State* lua) {
  if (lua_gethook(lua) == nullptr) [[likely]]
    return true;
  const auto hear = [](lua_State* state) {
    of(state).poll(state);
    return 0;
  };
  if (lua_cpcall(lua, hear, nullptr) == 0) return true;
  forget_dead_frames();
  lua_pop(lua, 1);
  return false;
}

bool Interpreter::passes_probe() {
  const auto probe = [this] {
    const bool succeeded = run(probe_);
    const bool as_it_should = succeeded && lua_tointeger(lua_, -1) == kProbeResult;
    clear_stack();
    return as_it_should;
  };
  if (lua_status(lua_) != 0 || !probe()) return false;
  lua_sethook(lua_, interrupt_probe, LUA_MASKCOUNT, 1);
  const bool interrupted = !probe();
  lua_sethook(lua_, nullptr, 0, 0);
  return interrupted && probe();
}

ScriptError Interpreter::take_error() {
  ScriptError error{.text = "ERR unknown error", .place = {}};
  if (lua_istable(lua_, -1)) {
    push_raw_field(lua_, -1, kErrorText);
    if (lua_isstring(lua_, -1) != 0) error.text = text_at(lua_, -1);
    push_raw_field(lua_, -2, kErrorCounted);
    error.counted = lua_toboolean(lua_, -1) != 0;
    push_raw_field(lua_, -3, kErrorSource);
    push_raw_field(lua_, -4, kErrorLine);
    if (lua_isstring(lua_, -2) != 0) {
      error.place = std::string(text_at(lua_, -2)) + ":" + std::to_string(lua_tointeger(lua_, -1));
    }
    lua_pop(lua_, 4);
  } else if (lua_isstring(lua_, -1) != 0) {
    error.text = "ERR " + std::string(text_at(lua_, -1));
  }
  lua_pop(lua_, 1);
  return error;
}

// --- Memory --------------------------------------------------------------------------------------

void Interpreter::collect_some(int kilobytes) {
  lua_gc(lua_, LUA_GCSTEP, kilobytes);
}

void Interpreter::require_full_collection() {
  full_collection_due_ = true;
  collect_from_ = 0;
}

bool Interpreter::collect_slice() {
  if (running_) return false;
  if (full_collection_due_) [[unlikely]] {
    full_collection_due_ = false;
    collect_all();
    return true;
  }
  if (cycles_left_ == 0) {
    collected_at_ = memory_.total_allocated();
    collect_from_ = 0;
    cycles_left_ = 2;
  }
  if (lua_gc(lua_, LUA_GCSTEP, kSliceKilobytes) != 0 && --cycles_left_ == 0) collected();
  return true;
}

void Interpreter::collect_all() {
  lua_gc(lua_, LUA_GCCOLLECT, 0);
  collected_at_ = memory_.total_allocated();
  cycles_left_ = 0;
  collected();
}

void Interpreter::collected() {
  collect_from_ = collected_at_ + std::max(kWorthCollecting, memory_.used());
}

void Interpreter::hurry_collector() {
  constexpr int kPause = 110;
  constexpr int kStepMultiplier = 1000;
  if (lua_ == nullptr || tuned_) return;
  tuned_ = true;
  lua_gc(lua_, LUA_GCSETPAUSE, kPause);
  lua_gc(lua_, LUA_GCSETSTEPMUL, kStepMultiplier);
}

void Interpreter::reset_collector() {
  constexpr int kUsual = 200;
  tuned_ = false;
  lua_gc(lua_, LUA_GCSETPAUSE, kUsual);
  lua_gc(lua_, LUA_GCSETSTEPMUL, kUsual);
  // Restarts the collector with the pause it has after a cycle.
  lua_gc(lua_, LUA_GCRESTART, -1);
}

void Interpreter::clear_stack() {
  lua_settop(lua_, kBottom);
}

}  // namespace latchkey::script
