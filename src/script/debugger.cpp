#include "script/debugger.h"

#include <algorithm>
#include <cstdio>
#include <lua.hpp>

#include "base/text/number.h"
#include "base/text/split.h"
#include "base/text/text.h"
#include "base/time_units.h"
#include "script/debug_text.h"
#include "script/lua/dialect.h"
#include "script/lua/interpreter.h"
#include "script/lua/lua_text.h"
#include "script/lua/sandbox.h"
#include "script/script_runner.h"
#include "server/emulation/valkey_words.h"
#include "server/server.h"

namespace latchkey::script {

namespace {

constexpr char kScriptChunk[] = "user_script";
constexpr char kEvalChunk[] = "ldb_eval";
constexpr char kAborted[] = "ERR script aborted for user request";
constexpr char kMalformed[] = "ERR protocol error";
constexpr char kEndlessAlone[] = "ERR timeout during Lua debugging with client closing connection";

// Instructions between two checks of the clock, for scripts that do not reach another line.
constexpr int kInstructions = 100'000;
constexpr int64_t kContextLines = 5;
constexpr size_t kMaxBreakpoints = 64;
constexpr size_t kShortestLimit = 60;

std::string join(std::span<const std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) {
    if (!text.empty()) text += ' ';
    text += word;
  }
  return text;
}

// Pops an error, a text or a table with one, and returns its text.
std::string error_text(lua_State* lua) {
  if (lua_istable(lua, -1)) {
    push_raw_field(lua, -1, kErrorText);
    lua_remove(lua, -2);
  }
  const char* text = lua_tostring(lua, -1);
  return text != nullptr ? text : "unknown error";
}

}  // namespace

const Debugger::Command Debugger::kCommands[] = {
    {"help", "h", 1, &Debugger::help},     {"step", "s", 1, &Debugger::step},
    {"next", "n", 1, &Debugger::step},     {"continue", "c", 1, &Debugger::go_on},
    {"list", "l", 1, &Debugger::list},     {"whole", "w", 1, &Debugger::whole},
    {"print", "p", 1, &Debugger::print},   {"break", "b", 1, &Debugger::breakpoints},
    {"trace", "t", 1, &Debugger::trace},   {"eval", "e", 2, &Debugger::evaluate},
    {"redis", "r", 2, &Debugger::command}, {"maxlen", "m", 1, &Debugger::limit_lines},
    {"abort", "a", 1, &Debugger::abort},
};

Debugger::Debugger(ScriptRunner& runner, DebugConsole& console, std::string_view source)
    : runner_(runner),
      console_(console),
      lines_(base::split_fields(source, '\n')),
      running_since_us_(runner.server().clock().monotonic_us()) {
  runner_.set_debugger(this);
}

Debugger::~Debugger() {
  runner_.set_debugger(nullptr);
}

int Debugger::hook_mask() {
  return LUA_MASKLINE | LUA_MASKCOUNT;
}

int Debugger::hook_interval() {
  return kInstructions;
}

// --- Stopping ------------------------------------------------------------------------------------

const char* Debugger::reached(lua_State* lua, lua_Debug* where) {
  lua_getinfo(lua, "Sl", where);
  // At each line from then on, so that no pcall() keeps it going.
  if (user_gone_) return overruns() ? kEndlessAlone : nullptr;
  if (std::string_view(where->short_src) != kScriptChunk) return nullptr;
  line_ = where->currentline;
  const std::string_view reason = reason_to_stop(where->event == LUA_HOOKLINE);
  if (reason.empty()) return nullptr;
  stepping_ = false;
  stop_asked_ = false;
  console_.say("* Stopped at " + std::to_string(line_) + ", stop reason = " + std::string(reason));
  show_source(line_);
  console_.send();
  const char* error = read_commands(lua);
  running_since_us_ = runner_.server().clock().monotonic_us();
  return error;
}

std::string_view Debugger::reason_to_stop(bool at_line) {
  if (at_line) {
    if (stop_asked_) return "redis.breakpoint() called";
    if (has_breakpoint(line_)) return "break point";
    return stepping_ ? "step over" : "";
  }
  return overruns() ? "timeout reached, infinite loop?" : "";
}

bool Debugger::overruns() const {
  server::Server& server = runner_.server();
  const int64_t limit_us = int64_t{server.settings().busy_reply_threshold} * base::kUsPerMs;
  return limit_us > 0 && server.clock().monotonic_us() - running_since_us_ >= limit_us;
}

const char* Debugger::read_commands(lua_State* lua) {
  std::vector<std::string_view> words;
  for (;;) {
    switch (console_.read(&words)) {
      case DebugConsole::Input::kGone:
        // The script continues without a debugger, while it is not endless: nobody else can end it.
        user_gone_ = true;
        return nullptr;
      case DebugConsole::Input::kMalformed:
        return kMalformed;
      case DebugConsole::Input::kCommand:
        break;
    }
    if (words.empty()) continue;
    const Next next = execute(lua, words);
    if (next == Next::kAbort) return kAborted;
    if (next == Next::kGoOn) return nullptr;
    console_.send();
  }
}

Debugger::Next Debugger::execute(lua_State* lua, Words words) {
  for (const Command& command : kCommands) {
    const bool is_named = base::equal_ignoring_case(words[0], command.name) ||
                          base::equal_ignoring_case(words[0], command.letter);
    if (is_named && words.size() >= command.fewest_words) return (this->*command.run)(lua, words);
  }
  const bool is_valkey = runner_.server().edition().is_valkey();
  if (is_valkey && words.size() > 1 && base::equal_ignoring_case(words[0], "server"))
    return command(lua, words);
  constexpr std::string_view kUnknown =
      "Unknown Redis Lua debugger command or wrong number of arguments.";
  const bool is_newest = runner_.server().edition().is_valkey_since({9, 1});
  console_.say("<error> " + (is_newest   ? "Unknown debugger command or wrong number of arguments."
                             : is_valkey ? server::script_error_of_valkey(kUnknown)
                                         : std::string(kUnknown)));
  return Next::kAsk;
}

Debugger::Next Debugger::step(lua_State*, Words) {
  stepping_ = true;
  return Next::kGoOn;
}

Debugger::Next Debugger::go_on(lua_State*, Words) {
  return Next::kGoOn;
}

Debugger::Next Debugger::abort(lua_State*, Words) {
  return Next::kAbort;
}

// --- Lines ---------------------------------------------------------------------------------------

bool Debugger::has_breakpoint(int line) const {
  return std::find(breakpoints_.begin(), breakpoints_.end(), line) != breakpoints_.end();
}

void Debugger::show_source(int line) {
  const bool exists = line >= 1 && static_cast<size_t>(line) <= lines_.size();
  char number[32];
  std::snprintf(number, sizeof number, "%s%s%-3d ", line == line_ ? "->" : "  ",
                has_breakpoint(line) ? "#" : " ", line);
  console_.say(number + std::string(exists ? lines_[static_cast<size_t>(line) - 1]
                                           : "<out of range source code line>"));
}

void Debugger::show_source_around(int64_t line, int64_t context) {
  const auto last = static_cast<int64_t>(lines_.size());
  const int64_t from = std::max<int64_t>(line - context, 1);
  const int64_t to = std::min(line + context, last);
  for (int64_t each = from; each <= to; ++each) show_source(static_cast<int>(each));
}

Debugger::Next Debugger::list(lua_State*, Words words) {
  constexpr int64_t kMax = 1'000'000;
  int64_t line = line_;
  int64_t context = kContextLines;
  int64_t number = 0;
  if (words.size() > 1 && base::parse_int64(words[1], &number) && number > 0)
    line = std::min(number, kMax);
  if (words.size() > 2 && base::parse_int64(words[2], &number))
    context = std::clamp<int64_t>(number, 0, kMax);
  show_source_around(line, context);
  return Next::kAsk;
}

Debugger::Next Debugger::whole(lua_State*, Words) {
  show_source_around(1, static_cast<int64_t>(lines_.size()));
  return Next::kAsk;
}

Debugger::Next Debugger::breakpoints(lua_State*, Words words) {
  for (const std::string_view word : words.subspan(1)) change_breakpoint(word);
  if (words.size() > 1) return Next::kAsk;
  if (breakpoints_.empty()) {
    console_.say("No breakpoints set. Use 'b <line>' to add one.");
    return Next::kAsk;
  }
  console_.say(std::to_string(breakpoints_.size()) + " breakpoints set:");
  for (const int line : breakpoints_) show_source(line);
  return Next::kAsk;
}

void Debugger::change_breakpoint(std::string_view word) {
  int64_t number = 0;
  if (!base::parse_int64(word, &number))
    return console_.say("Invalid argument:'" + std::string(word) + "'");
  if (number == 0) {
    breakpoints_.clear();
    return console_.say("All breakpoints removed.");
  }
  const auto last = static_cast<int64_t>(lines_.size());
  if (number < 0) {
    const bool removed = number >= -last && std::erase(breakpoints_, static_cast<int>(-number)) > 0;
    return console_.say(removed ? "Breakpoint removed." : "No breakpoint in the specified line.");
  }
  if (breakpoints_.size() == kMaxBreakpoints) return console_.say("Too many breakpoints set.");
  if (number > last) return console_.say("Wrong line number.");
  const int line = static_cast<int>(number);
  if (!has_breakpoint(line)) breakpoints_.push_back(line);
  show_source_around(line, 1);
}

Debugger::Next Debugger::trace(lua_State* lua, Words) {
  lua_Debug where{};
  for (int level = 0; lua_getstack(lua, level, &where) != 0; ++level) {
    lua_getinfo(lua, "Snl", &where);
    if (std::string_view(where.short_src) != kScriptChunk) continue;
    const std::string name = where.name != nullptr ? where.name : "top level";
    console_.say((level == 0 ? "In " : "From ") + name + ":");
    show_source(where.currentline);
  }
  return Next::kAsk;
}

// --- Values --------------------------------------------------------------------------------------

void Debugger::show_value(lua_State* lua, std::string_view what, int index) {
  console_.say_at_length(std::string(what) + value_text(lua, index));
}

Debugger::Next Debugger::print(lua_State* lua, Words words) {
  if (words.size() != 2) {
    show_locals(lua);
  } else if (!show_variable(lua, std::string(words[1]))) {
    console_.say("No such variable.");
  }
  return Next::kAsk;
}

void Debugger::show_locals(lua_State* lua) {
  lua_Debug where{};
  bool any = false;
  if (lua_getstack(lua, 0, &where) != 0) {
    for (int i = 1; const char* name = lua_getlocal(lua, &where, i); ++i) {
      if (std::string_view(name) != "(*temporary)") {
        show_value(lua, "<value> " + std::string(name) + " = ", -1);
        any = true;
      }
      lua_pop(lua, 1);
    }
  }
  if (!any) console_.say("No local variables in the current context.");
}

bool Debugger::show_variable(lua_State* lua, const std::string& name) {
  lua_Debug where{};
  for (int level = 0; lua_getstack(lua, level, &where) != 0; ++level) {
    for (int i = 1; const char* local = lua_getlocal(lua, &where, i); ++i) {
      if (name == local) show_value(lua, "<value> ", -1);
      lua_pop(lua, 1);
      if (name == local) return true;
    }
  }
  if (name != "KEYS" && name != "ARGV") return false;
  lua_getglobal(lua, name.c_str());
  show_value(lua, "<value> ", -1);
  lua_pop(lua, 1);
  return true;
}

void Debugger::show_values(lua_State* lua) {
  if (user_gone_) return;
  std::string line = "<debug> line " + std::to_string(line_) + ": ";
  const int count = lua_gettop(lua);
  for (int i = 1; i <= count; ++i) {
    if (i > 1) line += ", ";
    line += value_text(lua, i);
  }
  console_.say_at_length(std::move(line));
}

Debugger::Next Debugger::limit_lines(lua_State*, Words words) {
  int64_t limit = 0;
  if (words.size() == 2 && base::parse_int64(words[1], &limit)) {
    const auto shortest = static_cast<int64_t>(kShortestLimit);
    console_.set_longest(limit <= 0 ? 0 : static_cast<size_t>(std::max(limit, shortest)));
  }
  console_.say(console_.longest() == 0 ? "<value> replies are unlimited."
                                       : "<value> replies are truncated at " +
                                             std::to_string(console_.longest()) + " bytes.");
  return Next::kAsk;
}

// --- Code and commands ---------------------------------------------------------------------------

Debugger::Next Debugger::evaluate(lua_State* lua, Words words) {
  const std::string code = join(words.subspan(1));
  const std::string chunk = std::string("@") + kEvalChunk;
  const auto load = [&](const std::string& text) {
    const base::Result<std::string> translated = translate_dialect(text);
    const std::string& read = translated ? *translated : text;
    return luaL_loadbufferx(lua, read.data(), read.size(), chunk.c_str(), "t") == 0;
  };
  const int top = lua_gettop(lua);
  // Compiles the code as an expression, or else as a statement.
  if (!load("return " + code)) {
    lua_settop(lua, top);
    if (!load(code)) {
      console_.say("<error> " + plain_compile_error(text_at(lua, -1), kEvalChunk));
      lua_settop(lua, top);
      return Next::kAsk;
    }
  }
  if (lua_pcall(lua, 0, 1, 0) == 0) {
    show_value(lua, "<retval> ", -1);
  } else {
    console_.say_at_length("<error> " + error_text(lua));
  }
  lua_settop(lua, top);
  return Next::kAsk;
}

Debugger::Next Debugger::command(lua_State*, Words words) {
  stepping_ = true;
  runner_.run_debugger_command(words.subspan(1));
  stepping_ = false;
  return Next::kAsk;
}

void Debugger::command_called(Words words) {
  if (stepping_ && !user_gone_) console_.say("<redis> " + join(words));
}

void Debugger::command_replied(std::string_view reply, bool refused) {
  if (!stepping_ || user_gone_) return;
  if (refused) {
    // Leaves out the error's code.
    const std::string_view error = reply.substr(0, reply.find('\r'));
    return console_.say("<error> " + std::string(error.substr(error.find(' ') + 1)));
  }
  if (reply.starts_with('-'))
    console_.say("<error> " + std::string(reply.substr(0, reply.find('\r'))));
  console_.say_at_length("<reply> " + reply_text(reply));
}

Debugger::Next Debugger::help(lua_State*, Words) {
  for (const char* line :
       {"Redis Lua debugger help:",
        "[h]elp               Show this help.",
        "[s]tep               Run the line and stop before the next.",
        "[n]ext               The same.",
        "[c]ontinue           Run up to the next breakpoint.",
        "[l]ist               Show the source around the line where the script stopped.",
        "[l]ist [line]        Show the source around a line; 0 is where it stopped.",
        "[l]ist [line] [ctx]  The same, with so many lines before and behind it.",
        "[w]hole              Show all of the source.",
        "[p]rint              Show all local variables.",
        "[p]rint <var>        Show a variable; KEYS and ARGV too.",
        "[b]reak              Show all breakpoints.",
        "[b]reak <line>       Stop at this line from now on.",
        "[b]reak -<line>      Do not stop at this line any more.",
        "[b]reak 0            Remove all breakpoints.",
        "[t]race              Show which functions called one another.",
        "[e]val <code>        Run some Lua code, which does not see local variables.",
        "[r]edis <cmd>        Run a command of the server.",
        "[m]axlen [len]       Cut replies and values short at so many bytes; 0 is never.",
        "[a]bort              End the script. What it has written stays in sync mode.",
        "",
        "What scripts can call:",
        "redis.debug()        Shows its arguments here.",
        "redis.breakpoint()   Stops before the next line."})
    console_.say(line);
  return Next::kAsk;
}

}  // namespace latchkey::script
