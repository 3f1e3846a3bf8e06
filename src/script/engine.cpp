#include "script/engine.h"

#include <lua.hpp>
#include <utility>

#include "base/sha1.h"
#include "script/interpreter.h"
#include "script/lua_text.h"
#include "script/redis_api.h"
#include "script/reply_writer.h"
#include "script/shebang.h"
#include "server/command_table.h"
#include "server/dispatcher.h"
#include "server/server.h"

namespace latchkey::script {

using namespace server;

namespace {

constexpr char kOutOfMemory[] = "OOM command not allowed when used memory > 'maxmemory'.";
// Arguments of EVAL before the keys.
constexpr size_t kFirstKey = 3;

}  // namespace

Interpreter& Engine::world() {
  if (interpreter_ == nullptr) [[unlikely]] {
    interpreter_ = std::make_unique<Interpreter>(random_);
    add_redis_library(*interpreter_, *this);
    remember_in(interpreter_->lua());
  }
  return *interpreter_;
}

Engine::Engine(Server& server)
    : server_(server),
      client_(server.clients().add_internal()),
      cache_(server.environment().secret),
      watchdog_([this] { interrupt(); }) {
  client_.set(kClientScript | kClientDenyBlocking);
  server_.on_script_figures([this] { return figures(); });
}

Engine::~Engine() {
  server_.on_script_figures(nullptr);
}

// --- Finding scripts ----------------------------------------------------------------------------

bool Engine::read_key_count(CommandContext& ctx, size_t* count) {
  int64_t number = 0;
  if (!ctx.read_int64(ctx.args[2], &number)) return false;
  if (number > static_cast<int64_t>(ctx.args.size() - kFirstKey)) {
    ctx.reply.error("ERR Number of keys can't be greater than number of args");
    return false;
  }
  if (number < 0) {
    ctx.reply.error("ERR Number of keys can't be negative");
    return false;
  }
  *count = static_cast<size_t>(number);
  return true;
}

void Engine::eval(CommandContext& ctx, bool read_only) {
  size_t key_count = 0;
  if (!read_key_count(ctx, &key_count)) return;
  Script* script = cache_.find_body(ctx.args[1]);
  if (script == nullptr) [[unlikely]] {
    std::string error;
    script = find_or_add(ctx.args[1], /*evictable=*/true, &error);
    if (script == nullptr) return ctx.reply.error(error);
  }
  run(ctx, *script, read_only, key_count);
}

void Engine::eval_sha(CommandContext& ctx, bool read_only) {
  constexpr std::string_view kNoScript = "NOSCRIPT No matching script. Please use EVAL.";
  constexpr size_t kShaLength = 40;
  size_t key_count = 0;
  if (ctx.args[1].size() != kShaLength) return ctx.reply.error(kNoScript);
  if (!read_key_count(ctx, &key_count)) return;
  Script* script = cache_.find_sha(ctx.args[1]);
  if (script == nullptr) return ctx.reply.error(kNoScript);
  run(ctx, *script, read_only, key_count);
}

Script* Engine::find_or_add(std::string_view body, bool evictable, std::string* error) {
  if (Script* known = cache_.find_body(body); known != nullptr) return known;
  Shebang shebang;
  if (!parse_shebang(body, &shebang, error)) return nullptr;
  std::string message;
  const int function = world().compile(shebang.code, &message);
  if (function == Interpreter::kNoFunction) {
    *error = "ERR Error compiling script (new function): " + message;
    return nullptr;
  }
  if (evictable) evict();
  auto script = std::make_unique<Script>();
  script->body = body;
  script->sha = base::sha1_hex(body);
  script->flags = shebang.flags;
  script->function = function;
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

const std::string* Engine::load(std::string_view body, std::string* error) {
  Script* script = find_or_add(body, /*evictable=*/false, error);
  if (script == nullptr) return nullptr;
  cache_.keep(*script);
  return &script->sha;
}

void Engine::flush(bool in_background) {
  const size_t scripts = cache_.size();
  cache_.clear();
  const std::lock_guard no_interrupt(watchdog_.lock());
  std::shared_ptr<Interpreter> old = std::move(interpreter_);
  if (in_background && old != nullptr)
    server_.environment().reclaimer.free_later(scripts, [old]() mutable { old.reset(); });
}

ScriptFigures Engine::figures() const {
  return {.interpreter_bytes = interpreter_ != nullptr ? interpreter_->memory_usage() : 0,
          .scripts_bytes = cache_.memory_usage(),
          .cached_scripts = cache_.size(),
          .evicted_scripts = server_.stats().evicted_scripts};
}

// --- Running them -------------------------------------------------------------------------------

bool Engine::may_run(CommandContext& ctx, const Script& script, bool read_only) const {
  const bool from_master = ctx.client.has(kClientMaster);
  if ((server_.state() & kStateStale) != 0 && !from_master && (script.flags & kAllowStale) == 0) {
    ctx.reply.error(kStaleReplica);
    return false;
  }
  if ((script.flags & kDeclared) == 0 || (script.flags & kNoWrites) != 0) return true;
  if (read_only) {
    ctx.reply.error("ERR Can not execute a script with write flag using *_ro command.");
    return false;
  }
  if ((server_.state() & kStateReadOnly) != 0 && !from_master) {
    ctx.reply.error(kReadOnlyReplica);
    return false;
  }
  if ((server_.state() & server::kStateDiskError) != 0 && !from_master) {
    ctx.reply.error(server_.disk_error());
    return false;
  }
  if ((server_.state() & server::kStateFewReplicas) != 0 && !from_master) {
    ctx.reply.error(server::kFewReplicas);
    return false;
  }
  if (run_.out_of_memory && (script.flags & kAllowOom) == 0) {
    ctx.reply.error(kOutOfMemory);
    return false;
  }
  return true;
}

void Engine::push_table(const char* name, Arguments values) {
  lua_State* lua = interpreter_->lua();
  lua_createtable(lua, static_cast<int>(values.size()), 0);
  for (size_t i = 0; i < values.size(); ++i) {
    push_text(lua, values[i]);
    lua_rawseti(lua, -2, static_cast<int>(i + 1));
  }
  interpreter_->set_global(name);
}

void Engine::run(CommandContext& ctx, Script& script, bool read_only, size_t key_count) {
  run_ = {};
  run_.out_of_memory = (server_.state() & kStateMemoryLimit) != 0 &&
                       server_.used_memory() > static_cast<size_t>(server_.settings().maxmemory);
  if (!may_run(ctx, script, read_only)) return;
  // What its commands do is written.
  ctx.propagate_nothing();
  cache_.used(script);
  run_.script = &script;
  run_.caller = &ctx.client;
  run_.read_only = read_only || (script.flags & kNoWrites) != 0;
  run_.allow_oom = (script.flags & kAllowOom) != 0;
  run_.started_ticks = base::CycleClock::ticks();
  client_.database = ctx.client.database;
  client_.set(kClientReadOnlyScript, run_.read_only);
  client_.set(kClientNoTouch, ctx.client.has(kClientNoTouch));
  client_.reply.set_protocol(2);
  push_table("KEYS", ctx.args.subspan(kFirstKey, key_count));
  push_table("ARGV", ctx.args.subspan(kFirstKey + key_count));

  watchdog_.begin(server_.settings().busy_reply_threshold);
  const bool succeeded = interpreter_->run(script.function);
  if (watchdog_.end()) [[unlikely]]
    stop_interrupting();

  if (succeeded) {
    const bool counted = write_reply(interpreter_->lua(), client_.reply.protocol(), ctx.reply);
    ctx.client.set(kClientErrorCounted, counted);
  } else {
    reply_error(ctx, script);
  }
  interpreter_->clear_stack();
  run_.script = nullptr;
  server_.propagation().restrict_readers(kEffectForAll);
}

void Engine::reply_error(CommandContext& ctx, const Script& script) {
  lua_State* lua = interpreter_->lua();
  std::string text = "ERR unknown error";
  std::string place;
  bool counted = false;
  if (lua_istable(lua, -1)) {
    push_raw_field(lua, -1, kErrorText);
    if (lua_isstring(lua, -1) != 0) text = text_at(lua, -1);
    push_raw_field(lua, -2, kErrorCounted);
    counted = lua_toboolean(lua, -1) != 0;
    push_raw_field(lua, -3, kErrorSource);
    push_raw_field(lua, -4, kErrorLine);
    if (lua_isstring(lua, -2) != 0) {
      place = std::string(text_at(lua, -2)) + ":" + std::to_string(lua_tointeger(lua, -1));
    }
  } else if (lua_isstring(lua, -1) != 0) {
    text = "ERR " + std::string(text_at(lua, -1));
  }
  text += " script: " + script.sha;
  if (!place.empty()) text += ", on " + place + ".";
  ctx.client.set(kClientErrorCounted, counted);
  ctx.reply.error("-" + text);
}

// --- Their commands -----------------------------------------------------------------------------

std::string_view Engine::refusal(const Command& command) const {
  if (command.has(kNoScript) && !server_.debug_settings().scripts_may_call_denied)
    return "ERR This Redis command is not allowed from script";
  if (command.has(kWrite | kMayReplicate) && run_.read_only) {
    return "ERR Write commands are not allowed from read-only scripts.";
  }
  const uint32_t state = run_.caller->has(kClientMaster) ? 0 : server_.state();
  if (command.has(kWrite) && (state & kStateReadOnly) != 0) return kReadOnlyReplica;
  if (command.has(kWrite) && (state & kStateDiskError) != 0) return server_.disk_error();
  if (command.has(kWrite) && (state & kStateFewReplicas) != 0) return kFewReplicas;
  if (!command.has(kStale) && (state & kStateStale) != 0)
    return "ERR Can not execute the command on a stale replica";
  // A script that has begun to write goes on, so that it does not end half done.
  if (run_.out_of_memory && command.has(kDenyOom) && !run_.allow_oom && !run_.has_written)
    return kOutOfMemory;
  return {};
}

void Engine::run_command(Arguments words) {
  Dispatcher& dispatcher = server_.dispatcher();
  Command* command = dispatcher.lookup(words);
  if (command == nullptr)
    return dispatcher.reject(client_, nullptr, "ERR Unknown Redis command called from script");
  if (command->is_container() || !command->accepts_word_count(words.size())) {
    return dispatcher.reject(client_, command,
                             "ERR Wrong number of args calling Redis command from script");
  }
  if (const std::string_view error = refusal(*command); !error.empty()) {
    return dispatcher.reject(client_, command, error);
  }
  run_.has_written |= command->has(kWrite);
  dispatcher.call(client_, *command, words);
}

std::string_view Engine::reply_bytes() {
  struct Piece {
    char* data;
    size_t size;
  };
  constexpr size_t kMostPieces = 16;
  Piece pieces[kMostPieces];
  resp::OutputBuffer& out = client_.out();
  size_t count = out.gather(pieces, kMostPieces);
  if (count == 1) return {pieces[0].data, pieces[0].size};
  joined_reply_.clear();
  while (!out.empty()) {
    size_t size = 0;
    for (const Piece& piece : std::span(pieces, count)) {
      joined_reply_.append(piece.data, piece.size);
      size += piece.size;
    }
    out.take(size);
    count = out.gather(pieces, kMostPieces);
  }
  return joined_reply_;
}

}  // namespace latchkey::script
