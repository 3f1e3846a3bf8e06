#include "script/script_runner.h"

#include <algorithm>
#include <lua.hpp>

#include "script/debugger.h"
#include "script/lua/interpreter.h"
#include "script/lua/lua_text.h"
#include "script/reply_writer.h"
#include "script/shebang.h"
#include "server/client/fieldsets.h"
#include "server/command/admission.h"
#include "server/command/command_table.h"
#include "server/command/dispatcher.h"
#include "server/emulation/valkey_words.h"
#include "server/memory_limit.h"
#include "server/observe/memory.h"
#include "server/server.h"
#include "server/tasks.h"
#include "store/key_slot.h"

namespace latchkey::script {

using namespace server;

namespace {

// Words of a request before the keys.
constexpr size_t kFirstKey = 3;

// LuaJIT ends the process for a string or a table that is larger, outside of protected calls.
bool fits_in_lua(Arguments values) {
  constexpr size_t kMaxBytes = 0x7fff0000;
  constexpr size_t kMaxCount = size_t{1} << 26;
  return values.size() <= kMaxCount && std::ranges::all_of(values, [](std::string_view value) {
           return value.size() <= kMaxBytes;
         });
}

// The CommandFlag bits of a program that starts. One that declares nothing is only kept from stale
// data: its commands are judged one by one.
uint32_t flags_to_start(const Program& program, uint32_t command_flags) {
  return (program.flags & kDeclared) != 0 ? command_flags_of(program.flags, command_flags) : 0;
}

// While it exists the VM knows where the stack of the current task ends. Does nothing without a
// task, whose `end` is null.
class [[nodiscard]] StackLimit {
 public:
  StackLimit(Interpreter& vm, const void* end) : vm_(end != nullptr ? &vm : nullptr) {
    if (vm_ != nullptr) vm_->set_stack_limit(end);
  }
  ~StackLimit() {
    if (vm_ != nullptr) vm_->set_stack_limit(nullptr);
  }
  StackLimit(const StackLimit&) = delete;
  StackLimit& operator=(const StackLimit&) = delete;

 private:
  Interpreter* vm_;
};

}  // namespace

// While it exists the runner runs code of that VM; afterwards nothing runs.
class [[nodiscard]] ScriptRunner::RunScope {
 public:
  RunScope(ScriptRunner& runner, Interpreter& vm) : runner_(runner) {
    runner_.run_ = {};
    runner_.vm_ = &vm;
  }
  ~RunScope() {
    runner_.run_.program = nullptr;
    runner_.run_.is_library = false;
  }
  RunScope(const RunScope&) = delete;
  RunScope& operator=(const RunScope&) = delete;

 private:
  ScriptRunner& runner_;
};

ScriptRunner::ScriptRunner(Server& server)
    : server_(server),
      client_(server.clients().add_internal()),
      system_memory_(system_memory()),
      watchdog_([this] { interrupt(); }) {
  client_.set(kClientScript | kClientDenyBlocking);
}

bool ScriptRunner::read_key_count(CommandContext& ctx, size_t* count,
                                  std::string_view not_a_number) {
  int64_t number = 0;
  if (!ctx.read_int64(ctx.args[2], &number, not_a_number)) return false;
  if (number > static_cast<int64_t>(ctx.args.size() - kFirstKey))
    return ctx.refuse("ERR Number of keys can't be greater than number of args");
  if (number < 0) return ctx.refuse("ERR Number of keys can't be negative");
  *count = static_cast<size_t>(number);
  return true;
}

bool ScriptRunner::may_run(CommandContext& ctx, const Program& program, bool read_only) {
  if ((program.flags & kNoCluster) != 0) {
    server_.cluster_audit().count_incompatible();
    if (server_.in_cluster())
      return ctx.refuse("ERR Can not run script on cluster, 'no-cluster' flag is set.");
  }
  const bool is_declared = (program.flags & kDeclared) != 0;
  if (!is_declared && (server_.state() & kStateStale) == 0) [[likely]]
    return true;
  ScriptCall script{.caller = &ctx.client,
                    .flags = flags_to_start(program, ctx.command.flags),
                    .read_only = read_only,
                    .out_of_memory = run_.call.out_of_memory};
  const Admission answer =
      admit(server_, {Origin::kScriptStart, ctx.client, ctx.command, ctx.args, &script});
  if (answer.verdict == Admission::Verdict::kRun) return true;
  return ctx.refuse(answer.error);
}

void ScriptRunner::push_table(Arguments values) {
  lua_State* lua = vm_->lua();
  lua_createtable(lua, static_cast<int>(values.size()), 0);
  for (size_t i = 0; i < values.size(); ++i) {
    push_text(lua, values[i]);
    lua_rawseti(lua, -2, static_cast<int>(i + 1));
  }
}

void ScriptRunner::begin(CommandContext& ctx, const Program& program, bool read_only) {
  run_.program = &program;
  run_.call.caller = &ctx.client;
  run_.request = ctx.args;
  run_.call.read_only = read_only || (program.flags & kNoWrites) != 0;
  run_.call.allow_oom = (program.flags & kAllowOom) != 0;
  run_.call.any_slot =
      (program.flags & kDeclared) == 0 || (program.flags & kAllowCrossSlotKeys) != 0;
  client_.database = ctx.client.database;
  client_.written_offset = ctx.client.written_offset;
  client_.set(kClientReadOnlyScript, run_.call.read_only);
  client_.set(kClientNoTouch, ctx.client.has(kClientNoTouch));
  client_.user = ctx.client.user;
  client_.set(kClientRestricted, ctx.client.has(kClientRestricted));
  client_.fieldsets.reset();
  client_.reply.set_protocol(2);
}

size_t ScriptRunner::lua_memory_limit() const {
  // With less, scripts that do nothing unusual would fail.
  constexpr size_t kMin = size_t{64} << 20;
  constexpr size_t kWhole = 100;
  const ConfigValues& values = server_.settings();
  if (values.lua_memory_limit >= 0) return static_cast<size_t>(values.lua_memory_limit);
  const size_t whole = values.maxmemory != 0 ? values.maxmemory : system_memory_;
  return std::max(kMin, whole / kWhole * static_cast<size_t>(-values.lua_memory_limit));
}

bool ScriptRunner::run_watched(int function, int arguments, int64_t limit_ms) {
  run_.started_ticks = base::CycleClock::ticks();
  vm_->memory().set_limit(lua_memory_limit());
  const StackLimit stack_limit(*vm_, server_.tasks().stack_end());
  if (debugger_ != nullptr) [[unlikely]]
    return run_debugged(function, arguments);
  const int interrupt_after = run_.is_library ? 0 : interrupt_after_;
  if (interrupt_after != 0) [[unlikely]]
    lua_sethook(vm_->lua(), on_interrupt, LUA_MASKCOUNT, interrupt_after);
  watchdog_.begin(limit_ms);
  const bool succeeded = vm_->run(function, arguments);
  if (watchdog_.end() || run_.killed || interrupt_after != 0) [[unlikely]]
    stop_interrupting();
  return succeeded;
}

bool ScriptRunner::run_debugged(int function, int arguments) {
  lua_sethook(vm_->lua(), on_debugger_hook, Debugger::hook_mask(), Debugger::hook_interval());
  const bool succeeded = vm_->run(function, arguments);
  lua_sethook(vm_->lua(), nullptr, 0, 0);
  return succeeded;
}

void ScriptRunner::run(CommandContext& ctx, Interpreter& vm, const Program& program, bool read_only,
                       size_t key_count) {
  const RunScope scope(*this, vm);
  // What a master sends and what is loaded is run whatever the memory is, also in scripts.
  run_.call.out_of_memory = !ctx.client.has(kClientMaster | kClientInternal) &&
                            (server_.state() & kStateMemoryLimit) != 0 &&
                            server_.memory_limit().is_short();
  if (!may_run(ctx, program, read_only)) return;
  if (!fits_in_lua(ctx.args))
    return ctx.reply.error("ERR The arguments of the script are larger than Lua can hold");
  // What its commands do is written.
  ctx.propagate_nothing();
  // redis.set_repl holds until the program ends.
  const Propagation::TargetScope targets(server_.propagation(), kPropagateToAll);
  begin(ctx, program, read_only);
  const bool slots_matter = (server_.state() & (kStateCluster | kStateClusterAudit)) != 0;
  if (slots_matter && key_count > 0) run_.call.slot = store::key_slot(ctx.args[kFirstKey]);
  const bool is_script = program.kind == Program::Kind::kScript;
  if (is_script) vm.push_name(Interpreter::kKeys);
  push_table(ctx.args.subspan(kFirstKey, key_count));
  if (is_script) {
    vm.set_pushed_global();
    vm.push_name(Interpreter::kArguments);
  }
  push_table(ctx.args.subspan(kFirstKey + key_count));
  if (is_script) vm.set_pushed_global();

  if (run_watched(program.function, is_script ? 0 : 2, server_.settings().busy_reply_threshold)) {
    const bool counted = write_reply(vm.lua(), client_.reply.protocol(), ctx.reply);
    ctx.client.set(kClientErrorCounted, counted);
  } else {
    reply_error(ctx, program);
  }
  vm.clear_stack();
  client_.out().clear();
  vm.collect_garbage();
}

bool ScriptRunner::run_library(Interpreter& vm, int function, int64_t limit_ms) {
  const RunScope scope(*this, vm);
  run_.is_library = true;
  return run_watched(function, 0, limit_ms);
}

void ScriptRunner::reply_error(CommandContext& ctx, const Program& program) {
  ScriptError error = vm_->take_error();
  // Valkey 9 leaves the name out.
  const bool has_name = !server_.edition().is_valkey_since({9, 0});
  error.text.append(" script: ").append(has_name ? program.name : "");
  if (!error.place.empty())
    error.text.append(has_name ? ", on " : "on ").append(error.place).append(".");
  ctx.client.set(kClientErrorCounted, error.counted);
  ctx.reply.error("-" + error.text);
}

// --- Their commands -----------------------------------------------------------------------------

void ScriptRunner::reject(Command* command, std::string_view error) {
  server_.dispatcher().reject(
      client_, command,
      server_.edition().is_valkey() ? script_error_of_valkey(error) : std::string(error));
}

void ScriptRunner::run_command(Arguments words) {
  Dispatcher& dispatcher = server_.dispatcher();
  Command* command = dispatcher.lookup(words);
  if (command == nullptr) return reject(nullptr, "ERR Unknown Redis command called from script");
  if (!command->accepts_word_count(words.size())) {
    return reject(command, "ERR Wrong number of args calling Redis command from script");
  }
  dispatcher.run_for_script(client_, *command, words, run_.call);
}

void ScriptRunner::run_debugged_command(Arguments words) {
  if (debugger_ == nullptr) [[likely]]
    return run_command(words);
  const uint64_t calls = client_.total_commands;
  debugger_->command_called(words);
  run_command(words);
  debugger_->command_replied(reply_bytes(), /*refused=*/client_.total_commands == calls);
}

void ScriptRunner::run_debugger_command(Arguments words) {
  run_debugged_command(words);
  client_.out().clear();
}

std::string_view ScriptRunner::reply_bytes() {
  struct Piece {
    char* data;
    size_t size;
  };
  // One more than is asked for, to see whether there are several.
  Piece pieces[2];
  resp::OutputBuffer& out = client_.out();
  if (out.gather(pieces, 2) == 1) return {pieces[0].data, pieces[0].size};
  joined_reply_ = out.take_all();
  return joined_reply_;
}

}  // namespace latchkey::script
