#include "script/redis_api.h"

#include <cmath>
#include <lua.hpp>
#include <span>

#include "base/digest/sha1.h"
#include "base/log.h"
#include "base/text/number.h"
#include "script/debugger.h"
#include "script/host_errors.h"
#include "script/lua/interpreter.h"
#include "script/lua/lua_numbers.h"
#include "script/lua/lua_text.h"
#include "script/reply_reader.h"
#include "server/acl/user.h"
#include "server/command/command_table.h"
#include "server/command/dispatcher.h"
#include "server/server.h"

namespace latchkey::script {

namespace {

constexpr char kNoArguments[] = "ERR Please specify at least one argument for this redis lib call";
constexpr char kBadArguments[] = "ERR Lua redis lib command arguments must be strings or integers";

struct Constant {
  const char* name;
  int value;
};
constexpr Constant kLogConstants[] = {
    {"LOG_DEBUG", 0},
    {"LOG_VERBOSE", 1},
    {"LOG_NOTICE", 2},
    {"LOG_WARNING", 3},
};
constexpr Constant kReplicationConstants[] = {
    {"REPL_NONE", 0},
    {"REPL_AOF", server::kPropagateToFile},
    {"REPL_SLAVE", server::kPropagateToReplicas},
    {"REPL_REPLICA", server::kPropagateToReplicas},
    {"REPL_ALL", server::kPropagateToAll},
};
constexpr base::LogLevel kLogLevels[] = {base::LogLevel::kDebug, base::LogLevel::kVerbose,
                                         base::LogLevel::kNotice, base::LogLevel::kWarning};

// Formats a number as a command's argument: integers without a point, others as short as possible.
size_t format_number(double value, char* out) {
  constexpr double kLimit = 4611686018427387904.0;  // 2^62
  if (value > -kLimit && value < kLimit && value == std::trunc(value)) {
    return base::format_int64(static_cast<int64_t>(value), out);
  }
  if (std::isnan(value) && std::signbit(value)) {
    *out = '-';
    return 1 + base::format_double(std::fabs(value), out + 1);
  }
  return base::format_double(value, out);
}

// "8.6.3" as 0x080603.
int version_number(std::string_view version) {
  constexpr int kBitsOfPart = 8;
  int number = 0;
  int part = 0;
  for (const char c : version) {
    if (c == '.') {
      number = (number | part) << kBitsOfPart;
      part = 0;
    } else {
      part = part * 10 + (c - '0');
    }
  }
  return number | part;
}

void add_constants(lua_State* lua, std::span<const Constant> constants) {
  for (const Constant& constant : constants) {
    lua_pushinteger(lua, constant.value);
    lua_setfield(lua, -2, constant.name);
  }
}

void add_version(lua_State* lua, std::string_view product, const std::string& version) {
  const std::string name = std::string(product) + "_VERSION";
  push_text(lua, version);
  lua_setfield(lua, -2, name.c_str());
  lua_pushinteger(lua, version_number(version));
  lua_setfield(lua, -2, (name + "_NUM").c_str());
}

void add_versions(lua_State* lua, const server::Edition& edition) {
  add_version(lua, "REDIS", edition.redis_version());
  if (!edition.is_valkey()) return;
  add_version(lua, "VALKEY", edition.version());
  push_text(lua, edition.product_name());
  lua_setfield(lua, -2, "SERVER_NAME");
}

}  // namespace

// Functions called from Lua. Errors leave them without running destructors: none holds an object
// with a destructor where an error may be raised.
struct RedisApi {
  static ScriptRunner& runner(lua_State* lua) {
    return *static_cast<ScriptRunner*>(lua_touserdata(lua, lua_upvalueindex(1)));
  }

  // Reads the arguments on the stack as words of a command. Returns the error, or null.
  static const char* read_words(lua_State* lua, ScriptRunner& self) {
    const int count = lua_gettop(lua);
    if (count == 0) return kNoArguments;
    self.words_.resize(static_cast<size_t>(count));
    self.number_texts_.clear();
    for (int i = 1; i <= count; ++i) {
      switch (lua_type(lua, i)) {
        case LUA_TSTRING:
          self.words_[static_cast<size_t>(i - 1)] = text_at(lua, i);
          break;
        case LUA_TNUMBER: {
          // Resized once for all numbers: words are views of it.
          if (self.number_texts_.empty())
            self.number_texts_.resize(static_cast<size_t>(count) * kNumberSize);
          char* text = self.number_texts_.data() + static_cast<size_t>(i - 1) * kNumberSize;
          self.words_[static_cast<size_t>(i - 1)] = {text,
                                                     format_number(lua_tonumber(lua, i), text)};
          break;
        }
        default:
          return kBadArguments;
      }
    }
    return nullptr;
  }

  static int run_command(lua_State* lua, bool raise) {
    ScriptRunner& self = runner(lua);
    if (const char* error = read_words(lua, self); error != nullptr) {
      push_error(lua, error);
      return raise ? lua_error(lua) : 1;
    }
    // A reply is left here when Lua had no memory for it.
    self.client_.out().clear();
    // Lua would catch what is thrown where memory cannot be had, and leave the command half done:
    // the process ends by it, as it does outside of scripts.
    [&]() noexcept { self.run_debugged_command(self.words_); }();
    const std::string_view reply = self.reply_bytes();
    const bool failed = reply.front() == '-';
    // Lua's stack is bounded, and the arguments may fill it.
    lua_settop(lua, 0);
    push_reply(lua, reply);
    self.client_.out().clear();
    return raise && failed ? lua_error(lua) : 1;
  }
  static int call(lua_State* lua) { return run_command(lua, true); }
  static int pcall(lua_State* lua) { return run_command(lua, false); }

  static int error_reply(lua_State* lua) {
    if (lua_gettop(lua) != 1 || lua_type(lua, 1) != LUA_TSTRING) {
      return push_error(lua, "ERR wrong number or type of arguments");
    }
    std::string_view text = text_at(lua, 1);
    if (text.starts_with('-')) text.remove_prefix(1);
    // An error text begins with a code.
    const bool has_code = text.find(' ') != text.npos;
    lua_createtable(lua, 0, 1);
    if (!has_code) lua_pushliteral(lua, "ERR ");
    push_text(lua, text);
    if (!has_code) lua_concat(lua, 2);
    lua_setfield(lua, -2, kErrorText);
    return 1;
  }

  static int status_reply(lua_State* lua) {
    if (lua_gettop(lua) != 1 || lua_type(lua, 1) != LUA_TSTRING) {
      return push_error(lua, "ERR wrong number or type of arguments");
    }
    lua_createtable(lua, 0, 1);
    lua_pushvalue(lua, 1);
    lua_setfield(lua, -2, "ok");
    return 1;
  }

  static int sha1hex(lua_State* lua) {
    if (lua_gettop(lua) != 1) return raise_error(lua, "ERR wrong number of arguments");
    // A value that is not a string counts as an empty one.
    const std::string_view text = lua_isstring(lua, 1) != 0 ? text_at(lua, 1) : std::string_view();
    char digest[kDigestSize];
    base::sha1_hex(text).copy(digest, kDigestSize);
    push_text(lua, {digest, kDigestSize});
    return 1;
  }

  static int log(lua_State* lua) {
    const int count = lua_gettop(lua);
    if (count < 2) return raise_error(lua, "ERR redis.log() requires two arguments or more.");
    if (lua_isnumber(lua, 1) == 0)
      return raise_error(lua, "ERR First argument must be a number (log level).");
    const int level = as_int32(lua_tonumber(lua, 1));
    if (level < 0 || level >= static_cast<int>(std::size(kLogLevels))) {
      return raise_error(lua, runner(lua).server_.edition().has({7, 2})
                                  ? "ERR Invalid log level."
                                  : "ERR Invalid debug level.");
    }
    // Values without a text are left out.
    lua_pushliteral(lua, "");
    for (int i = 2; i <= count; ++i) {
      if (lua_isstring(lua, i) == 0) continue;
      if (i > 2) lua_pushliteral(lua, " ");
      lua_pushvalue(lua, i);
      lua_concat(lua, i > 2 ? 3 : 2);
    }
    runner(lua).server_.log().log(kLogLevels[level], text_at(lua, -1));
    return 0;
  }

  static int setresp(lua_State* lua) {
    if (lua_gettop(lua) != 1) return raise_error(lua, "ERR redis.setresp() requires one argument.");
    const int protocol = as_int32(lua_tonumber(lua, 1));
    if (protocol != 2 && protocol != 3) return raise_error(lua, "ERR RESP version must be 2 or 3.");
    runner(lua).client_.reply.set_protocol(protocol);
    return 0;
  }

  // Scripts are always replicated by their effects: there is nothing to switch to.
  static int replicate_commands(lua_State* lua) {
    lua_pushboolean(lua, 1);
    return 1;
  }

  static int set_repl(lua_State* lua) {
    if (lua_gettop(lua) != 1) {
      return raise_error(lua, runner(lua).server_.edition().has({7, 2})
                                  ? "ERR redis.set_repl() requires one argument."
                                  : "ERR redis.set_repl() requires two arguments.");
    }
    const int targets = as_int32(lua_tonumber(lua, 1));
    if ((targets & ~server::kPropagateToAll) != 0) {
      return raise_error(
          lua, "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.");
    }
    runner(lua).server_.propagation().restrict_targets(static_cast<uint8_t>(targets));
    return 0;
  }

  static int breakpoint(lua_State* lua) {
    Debugger* debugger = runner(lua).debugger();
    if (debugger != nullptr) debugger->stop_at_next_line();
    lua_pushboolean(lua, debugger != nullptr ? 1 : 0);
    return 1;
  }

  static int debug(lua_State* lua) {
    Debugger* debugger = runner(lua).debugger();
    if (debugger != nullptr) debugger->show_values(lua);
    return 0;
  }

  // Whether the user that runs the script may run that command.
  static int acl_check_cmd(lua_State* lua) {
    ScriptRunner& self = runner(lua);
    if (const char* error = read_words(lua, self); error != nullptr) return raise_error(lua, error);
    const server::Command* command = self.server_.dispatcher().lookup(self.words_);
    if (command == nullptr)
      return raise_error(lua, "ERR Invalid command passed to redis.acl_check_cmd()");
    // Valkey lets commands pass that would be refused for their number of words.
    const bool has_arity = command->accepts_word_count(self.words_.size());
    if (!has_arity && !self.server_.edition().is_valkey())
      return raise_error(lua, "ERR Wrong number of args for redis.acl_check_cmd()");
    const server::acl::User* user = self.client_.user.get();
    const server::acl::Place place{.database = self.client_.database,
                                   .databases = self.server_.database_count()};
    lua_pushboolean(lua, user == nullptr || !user->check(*command, self.words_, place) ? 1 : 0);
    return 1;
  }

 private:
  static constexpr size_t kDigestSize = 40;
  static constexpr size_t kNumberSize = base::kMaxDoubleText + 1;
};

namespace {

// The part of the library that functions have too.
constexpr luaL_Reg kSharedFunctions[] = {
    {"call", RedisApi::call},
    {"pcall", RedisApi::pcall},
    {"error_reply", RedisApi::error_reply},
    {"status_reply", RedisApi::status_reply},
    {"sha1hex", RedisApi::sha1hex},
    {"log", RedisApi::log},
    {"setresp", RedisApi::setresp},
    {"set_repl", RedisApi::set_repl},
    {"acl_check_cmd", RedisApi::acl_check_cmd},
};
constexpr luaL_Reg kScriptFunctions[] = {
    {"replicate_commands", RedisApi::replicate_commands},
    {"breakpoint", RedisApi::breakpoint},
    {"debug", RedisApi::debug},
};

void add_functions(lua_State* lua, std::span<const luaL_Reg> functions, ScriptRunner& runner) {
  for (const luaL_Reg& function : functions) {
    lua_pushlightuserdata(lua, &runner);
    lua_pushcclosure(lua, function.func, 1);
    lua_setfield(lua, -2, function.name);
  }
}

}  // namespace

void add_redis_library(Interpreter& interpreter, ScriptRunner& runner, Program::Kind kind) {
  lua_State* lua = interpreter.lua();
  lua_newtable(lua);
  add_functions(lua, kSharedFunctions, runner);
  if (kind == Program::Kind::kScript) add_functions(lua, kScriptFunctions, runner);
  add_constants(lua, kLogConstants);
  add_constants(lua, kReplicationConstants);
  const server::Edition& edition = runner.server().edition();
  add_versions(lua, edition);
  // Valkey's name for the same.
  if (edition.is_valkey()) {
    word_errors_as_valkey(lua);
    lua_pushvalue(lua, -1);
    interpreter.add_table("server");
  }
  interpreter.add_table("redis");
  if (edition.has({7, 4}, {8, 0})) return;
  lua_pushnil(lua);
  interpreter.set_global("os");
}

void push_load_library(lua_State* lua, ScriptRunner& runner) {
  constexpr luaL_Reg kFunctions[] = {{"log", RedisApi::log}};
  lua_newtable(lua);
  add_functions(lua, kFunctions, runner);
  add_constants(lua, kLogConstants);
  add_versions(lua, runner.server().edition());
}

}  // namespace latchkey::script
