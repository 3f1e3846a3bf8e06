// What happens when a script takes too long: the watchdog asks Lua to call back every few thousand
// instructions, and there the engine serves other clients, hears SCRIPT KILL and stops the script.
#include <lua.hpp>

#include "net/loop.h"
#include "script/engine.h"
#include "script/interpreter.h"
#include "server/server.h"

namespace latchkey::script {

using namespace server;

namespace {

// Instructions between two interruptions, and the time between two looks at other clients.
constexpr int kInstructions = 10'000;
constexpr int64_t kServeIntervalUs = 1000;

constexpr char kKilled[] = "ERR Script killed by user with SCRIPT KILL...";

// Its address is the key of the engine in Lua's registry.
constexpr char kEngineKey = 0;

void* engine_key() {
  return const_cast<char*>(&kEngineKey);
}

}  // namespace

void Engine::remember_in(lua_State* lua) {
  lua_pushlightuserdata(lua, engine_key());
  lua_pushlightuserdata(lua, this);
  lua_rawset(lua, LUA_REGISTRYINDEX);
}

void Engine::interrupt() {
  lua_sethook(interpreter_->lua(), on_interrupt, LUA_MASKCOUNT, kInstructions);
}

void Engine::stop_interrupting() {
  {
    const std::lock_guard lock(watchdog_.lock());
    lua_sethook(interpreter_->lua(), nullptr, 0, 0);
  }
  if (!run_.busy) return;
  server_.set_state(kStateBusy, false);
  if (net::Connection* connection = run_.caller->connection(); connection != nullptr)
    connection->resume_reading();
}

void Engine::on_interrupt(lua_State* lua, lua_Debug*) {
  lua_pushlightuserdata(lua, engine_key());
  lua_rawget(lua, LUA_REGISTRYINDEX);
  auto* self = static_cast<Engine*>(lua_touserdata(lua, -1));
  lua_pop(lua, 1);
  if (!self->run_.killed) self->serve_others();
  if (!self->run_.killed) return;
  // Whatever catches the error is interrupted again at its next instruction.
  lua_sethook(lua, on_interrupt, LUA_MASKCOUNT, 1);
  lua_createtable(lua, 0, 1);
  lua_pushstring(lua, kKilled);
  lua_setfield(lua, -2, kErrorText);
  lua_error(lua);
}

void Engine::serve_others() {
  net::Loop* loop = server_.loop();
  const int64_t now_us = server_.clock().monotonic_us();
  if (loop == nullptr || now_us - run_.last_served_us < kServeIntervalUs) return;
  run_.last_served_us = now_us;
  net::Connection* connection = run_.caller->connection();
  if (!run_.busy) {
    run_.busy = true;
    server_.log().logf(
        base::LogLevel::kWarning,
        "Slow script detected: still in execution after %lld milliseconds. You can "
        "try killing the script using "
        "the SCRIPT KILL command. Script name is: %s.",
        static_cast<long long>(
            server_.cycle_clock().to_us(base::CycleClock::ticks() - run_.started_ticks) / 1000),
        run_.script->sha.c_str());
    server_.set_state(kStateBusy, true);
    if (connection != nullptr) connection->pause_reading();
  }
  // Time stands still for the script, and its caller has not gone idle.
  store::Environment& environment = server_.environment();
  const int64_t now_ms = environment.now_ms;
  const uint32_t access_clock = environment.access_clock;
  loop->run_nested();
  run_.caller->last_interaction_ms = server_.now_ms();
  environment.now_ms = now_ms;
  environment.access_clock = access_clock;
  // A server that is to end does not wait for its script. The nested turn has used the loop's order
  // to stop up.
  if (!server_.stop_requested()) return;
  run_.killed = true;
  loop->stop();
}

Engine::KillResult Engine::kill() {
  if (run_.script == nullptr) return KillResult::kNotBusy;
  if (run_.has_written) return KillResult::kHasWritten;
  run_.killed = true;
  server_.log().notice("Lua script killed by user with SCRIPT KILL.");
  return KillResult::kKilled;
}

}  // namespace latchkey::script
