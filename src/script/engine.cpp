#include "script/engine.h"

#include <unordered_set>
#include <utility>

#include "base/digest/sha1.h"
#include "script/lua/interpreter.h"
#include "script/lua/lua_deprecated.h"
#include "script/redis_api.h"
#include "script/shebang.h"
#include "server/emulation/valkey_words.h"
#include "server/server.h"

namespace latchkey::script {

using namespace server;

Interpreter& Engine::vm() {
  if (interpreter_ != nullptr && !interpreter_->is_sound()) [[unlikely]]
    renew();
  const bool deprecated_api = server_.settings().lua_enable_deprecated_api;
  // What a script is given cannot be taken from it: the next ones get another interpreter.
  if (interpreter_ != nullptr && deprecated_api != has_deprecated_api_ && !runner_.running())
      [[unlikely]]
    drop_interpreter();
  if (interpreter_ == nullptr) [[unlikely]] {
    interpreter_ = std::make_unique<Interpreter>(random_, "user_script");
    add_redis_library(*interpreter_, runner_, Program::Kind::kScript);
    has_deprecated_api_ = deprecated_api;
    if (deprecated_api) add_deprecated_functions(*interpreter_);
    runner_.adopt(*interpreter_);
  }
  return *interpreter_;
}

void Engine::renew() {
  server_.log().warning("The Lua interpreter of scripts was left unusable and is made anew.");
  drop_interpreter();
}

void Engine::drop_interpreter() {
  runner_.abandon(*interpreter_);
  interpreter_.reset();
  cache_.forget_functions();
}

Engine::Engine(Server& server)
    : server_(server),
      cache_(server.environment().secret),
      runner_(server),
      functions_(server, runner_, random_),
      debug_sessions_(server, runner_) {
  const auto seed = [this] { random_.seed(server_.random_source().script_seed()); };
  seed();
  server_.config().on_change({"random-seed"}, seed);
  server_.figures().scripts.set([this] { return figures(); });
  server_.on_script_garbage([this] { return free_garbage(); });
  server_.hooks().tick.add([this] { free_garbage(); });
  server_.set_functions(&functions_);
}

Engine::~Engine() {
  server_.set_functions(nullptr);
  server_.figures().scripts.set(nullptr);
  server_.on_script_garbage(nullptr);
}

void Engine::eval(CommandContext& ctx, bool read_only) {
  if (!debug_sessions_.wanted_by(ctx.client)) [[likely]]
    return eval_at_once(ctx, read_only);
  debug_sessions_.run(ctx, ctx.args[1], [&] { eval_at_once(ctx, read_only); });
}

void Engine::eval_at_once(CommandContext& ctx, bool read_only) {
  size_t key_count = 0;
  if (!ScriptRunner::read_key_count(ctx, &key_count)) return;
  Script* script = cache_.find_body(ctx.args[1]);
  if (script == nullptr) [[unlikely]] {
    const base::Result<Script*> added = find_or_add(ctx.args[1], /*evictable=*/true);
    if (!added) return ctx.reply.error(added.error());
    script = *added;
  }
  run(ctx, *script, read_only, key_count);
}

void Engine::eval_sha(CommandContext& ctx, bool read_only) {
  constexpr size_t kShaLength = 40;
  size_t key_count = 0;
  if (debug_sessions_.wanted_by(ctx.client))
    return ctx.reply.error("ERR Please use EVAL instead of EVALSHA for debugging");
  const std::string_view no_script = server::no_script_error(server_.edition());
  if (ctx.args[1].size() != kShaLength) return ctx.reply.error(no_script);
  if (!ScriptRunner::read_key_count(ctx, &key_count)) return;
  Script* script = cache_.find_sha(ctx.args[1]);
  if (script == nullptr) return ctx.reply.error(no_script);
  run(ctx, *script, read_only, key_count);
}

void Engine::run(CommandContext& ctx, Script& script, bool read_only, size_t key_count) {
  cache_.used(script);
  Interpreter& lua = vm();
  if (script.function == Interpreter::kNoFunction) [[unlikely]] {
    const base::Result<> compiled = compile(script);
    if (!compiled) return ctx.reply.error(compiled.error());
  }
  const Program program{.kind = Program::Kind::kScript,
                        .name = script.sha,
                        .flags = script.flags,
                        .function = script.function};
  runner_.run(ctx, lua, program, read_only, key_count);
}

uint32_t Engine::declared_by(std::string_view body) const {
  if (const Script* known = cache_.find_body(body); known != nullptr) return known->flags;
  const base::Result<Shebang> shebang = parse_shebang(body);
  return shebang ? shebang->flags : 0;
}

uint32_t Engine::declared_by_sha(std::string_view sha) const {
  const Script* known = cache_.find_sha(sha);
  return known == nullptr ? 0 : known->flags;
}

base::Result<> Engine::compile(Script& script) {
  base::Result<Shebang> shebang = parse_shebang(script.body);
  if (!shebang) {
    if (!server_.edition().is_valkey()) return shebang.failure();
    return base::fail(shebang_error_of_valkey(shebang.error()));
  }
  script.flags = shebang->flags;
  const base::Result<int> function = vm().compile(shebang->code);
  if (!function)
    return base::fail("ERR Error compiling script (new function): " + function.error());
  script.function = *function;
  return {};
}

base::Result<Script*> Engine::find_or_add(std::string_view body, bool evictable) {
  if (Script* known = cache_.find_body(body); known != nullptr) return known;
  auto script = std::make_unique<Script>();
  script->body = body;
  if (base::Result<> compiled = compile(*script); !compiled) return compiled.failure();
  if (evictable) evict();
  script->sha = base::sha1_hex(body);
  script->evictable = evictable;
  return &cache_.add(std::move(script));
}

void Engine::evict() {
  Script* oldest = cache_.to_evict();
  if (oldest == nullptr) return;
  interpreter_->forget(oldest->function);
  cache_.remove(*oldest);
  ++server_.stats().evicted_scripts;
}

base::Result<std::string> Engine::load(std::string_view body) {
  base::Result<Script*> script = find_or_add(body, /*evictable=*/false);
  if (!script) return script.failure();
  cache_.keep(**script);
  return (*script)->sha;
}

void Engine::flush(bool in_background) {
  const size_t scripts = cache_.size();
  cache_.clear();
  if (interpreter_ == nullptr) return;
  runner_.abandon(*interpreter_);
  if (in_background) {
    server_.environment().reclaimer.destroy_later(scripts, std::move(interpreter_));
  } else {
    interpreter_.reset();
  }
}

void Engine::set_scripts(const Scripts& scripts) {
  std::unordered_set<const Script*> wanted;
  for (const std::shared_ptr<Script>& script : scripts) wanted.insert(script.get());
  for (const std::shared_ptr<Script>& script : cache_.scripts()) {
    if (wanted.contains(script.get())) continue;
    if (script->function != Interpreter::kNoFunction) interpreter_->forget(script->function);
    cache_.remove(*script);
  }
  for (const std::shared_ptr<Script>& script : scripts) {
    if (cache_.find_body(script->body) != nullptr) continue;
    // Compiled again when it is run.
    script->function = Interpreter::kNoFunction;
    cache_.add(script);
  }
}

bool Engine::free_garbage() {
  Interpreter* of_functions = functions_.interpreter();
  return (interpreter_ != nullptr && interpreter_->collect_garbage()) ||
         (of_functions != nullptr && of_functions->collect_garbage());
}

ScriptFigures Engine::figures() const {
  ScriptFigures figures{
      .interpreter_bytes = interpreter_ != nullptr ? interpreter_->memory_usage() : 0,
      .scripts_bytes = cache_.memory_usage(),
      .cached_scripts = cache_.size(),
      .evicted_scripts = server_.stats().evicted_scripts};
  functions_.add_figures(&figures);
  return figures;
}

}  // namespace latchkey::script
