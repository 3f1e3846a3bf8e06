// What happens when a script takes too long: the watchdog asks Lua to call back every hundred
// instructions, and there the script's task (server/tasks.h) is suspended for others to be served.
// SCRIPT KILL or FUNCTION KILL, heard meanwhile, stops the script.
#include <lua.hpp>

#include "base/time_units.h"
#include "script/debugger.h"
#include "script/lua/interpreter.h"
#include "script/script_runner.h"
#include "server/emulation/valkey_words.h"
#include "server/server.h"
#include "server/tasks.h"

namespace latchkey::script {

using namespace server;

namespace {

// Instructions between two interruptions. Few, because each may be a call of a function that takes
// long; the interruptions themselves cost hardly more than with many.
constexpr int kInstructions = 100;

constexpr char kKilled[] = "ERR Script killed by user with SCRIPT KILL...";
// Valkey's, of a function.
constexpr char kFunctionKilled[] = "ERR Script killed by user with FUNCTION KILL...";
constexpr char kLibraryTimeout[] = "ERR FUNCTION LOAD timeout";

// Its address is the key of the runner in Lua's registry.
constexpr char kRunnerKey = 0;

void* runner_key() {
  return const_cast<char*>(&kRunnerKey);
}

}  // namespace

std::string_view busy_error(Program::Kind kind) {
  return kind == Program::Kind::kScript
             ? "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN "
               "NOSAVE."
             : "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN "
               "NOSAVE.";
}

void ScriptRunner::adopt(Interpreter& vm) {
  lua_State* lua = vm.lua();
  lua_pushlightuserdata(lua, runner_key());
  lua_pushlightuserdata(lua, this);
  lua_rawset(lua, LUA_REGISTRYINDEX);
  vm.memory().set_limit(lua_memory_limit());
}

void ScriptRunner::abandon(Interpreter& vm) {
  const std::lock_guard no_interrupt(watchdog_.lock());
  if (vm_ == &vm) vm_ = nullptr;
}

void ScriptRunner::interrupt() {
  if (vm_ != nullptr) lua_sethook(vm_->lua(), on_interrupt, LUA_MASKCOUNT, kInstructions);
}

void ScriptRunner::stop_interrupting() {
  vm_->require_probe();
  {
    const std::lock_guard lock(watchdog_.lock());
    lua_sethook(vm_->lua(), nullptr, 0, 0);
  }
  if (run_.busy) server_.set_busy({});
}

void ScriptRunner::stop(lua_State* lua, const char* error) {
  lua_sethook(lua, on_interrupt, LUA_MASKCOUNT, 1);
  Interpreter::of(lua).stop(lua, error);
}

ScriptRunner& ScriptRunner::runner_of(lua_State* lua) {
  lua_pushlightuserdata(lua, runner_key());
  lua_rawget(lua, LUA_REGISTRYINDEX);
  auto* self = static_cast<ScriptRunner*>(lua_touserdata(lua, -1));
  lua_pop(lua, 1);
  return *self;
}

void ScriptRunner::on_interrupt(lua_State* lua, lua_Debug*) {
  ScriptRunner& self = runner_of(lua);
  if (self.run_.is_library) stop(lua, kLibraryTimeout);
  if (!self.run_.killed) self.serve_others();
  if (self.run_.killed) {
    const bool names_function =
        self.server_.edition().is_valkey() && self.run_.program->kind == Program::Kind::kFunction;
    stop(lua, names_function ? kFunctionKilled : kKilled);
  }
}

void ScriptRunner::on_debugger_hook(lua_State* lua, lua_Debug* where) {
  ScriptRunner& self = runner_of(lua);
  if (const char* error = self.debugger_->reached(lua, where); error != nullptr)
    Interpreter::of(lua).stop(lua, error);
}

void ScriptRunner::become_busy() {
  const Program::Kind kind = run_.program->kind;
  run_.busy = true;
  server_.log().logf(base::LogLevel::kWarning,
                     "Slow script detected: still in execution after %lld milliseconds. You can "
                     "try killing the script using the %s command. Script name is: %.*s.",
                     static_cast<long long>(running_ms()),
                     kind == Program::Kind::kScript ? "SCRIPT KILL" : "FUNCTION KILL",
                     static_cast<int>(run_.program->name.size()), run_.program->name.data());
  server_.set_busy(busy_error(kind));
}

void ScriptRunner::serve_others() {
  Tasks& tasks = server_.tasks();
  const bool is_time = !run_.busy || interrupt_after_ != 0 || tasks.slice_is_over();
  if (!tasks.running() || !is_time) return;
  if (!run_.busy) become_busy();
  tasks.yield();
  // Its caller has not gone idle.
  run_.call.caller->last_interaction_ms = server_.machine_ms();
  // A server that is to end does not wait for its script.
  run_.killed |= tasks.finishing();
}

int64_t ScriptRunner::running_ms() const {
  const uint64_t ticks = base::CycleClock::ticks() - run_.started_ticks;
  return static_cast<int64_t>(server_.cycle_clock().to_us(ticks)) / base::kUsPerMs;
}

void ScriptRunner::kill(CommandContext& ctx, Program::Kind kind) {
  if (run_.program == nullptr) return ctx.reply.error("NOTBUSY No scripts in execution right now.");
  if (run_.call.has_written) {
    return ctx.reply.error(
        "UNKILLABLE Sorry the script already executed write commands against the dataset. You can "
        "either wait the script termination or kill the server in a hard way using the SHUTDOWN "
        "NOSAVE command.");
  }
  if (run_.program->kind != kind)
    return ctx.reply.error(in_words_of(server_, busy_error(run_.program->kind)));
  run_.killed = true;
  {
    // Whatever has become of the watchdog's interruption.
    const std::lock_guard lock(watchdog_.lock());
    interrupt();
  }
  server_.log().notice("Lua script killed by user with SCRIPT KILL.");
  ctx.reply.ok();
}

}  // namespace latchkey::script
