#include "script/functions.h"

#include <utility>
#include <vector>

#include "persist/rdb/dump_payload.h"
#include "script/function_dump.h"
#include "script/library_header.h"
#include "script/load_api.h"
#include "script/lua/interpreter.h"
#include "script/lua/lua_deprecated.h"
#include "script/redis_api.h"
#include "script/shebang.h"
#include "server/emulation/valkey_words.h"
#include "server/server.h"

namespace latchkey::script {

using namespace server;

namespace {

constexpr int64_t kLoadLimitMs = 500;
constexpr int kCollectedKilobytes = 8;

}  // namespace

Functions::~Functions() {
  flush(/*in_background=*/false);
}

Interpreter& Functions::vm() {
  if (interpreter_ != nullptr && !interpreter_->is_sound()) [[unlikely]]
    renew();
  if (interpreter_ == nullptr) [[unlikely]] {
    interpreter_ = std::make_shared<Interpreter>(random_, "user_function");
    add_redis_library(*interpreter_, runner_, Program::Kind::kFunction);
    if (server_.settings().lua_enable_deprecated_api) add_deprecated_functions(*interpreter_);
    load_globals_ = add_load_globals(*interpreter_, *this, runner_);
    runner_.adopt(*interpreter_);
  }
  return *interpreter_;
}

void Functions::renew() {
  server_.log().warning("The Lua interpreter of functions was left unusable and is made anew.");
  const FunctionStore old = std::exchange(store_, {});
  runner_.abandon(*interpreter_);
  interpreter_.reset();
  for (const auto& [name, library] : old.libraries()) {
    if (const base::Result<> loaded = load(library->code, /*replace=*/false); !loaded)
      server_.log().warning("Library " + name + " was lost: " + loaded.error());
  }
}

void Functions::call(CommandContext& ctx, bool read_only) {
  if (!store_.libraries().empty()) vm();
  const Function* function = store_.find_function(ctx.args[1]);
  if (function == nullptr) return ctx.reply.error("ERR Function not found");
  size_t key_count = 0;
  if (!ScriptRunner::read_key_count(ctx, &key_count, "ERR Bad number of keys provided")) return;
  const Program program{.kind = Program::Kind::kFunction,
                        .name = function->name,
                        .flags = declared_by(function->name),
                        .function = function->callback};
  runner_.run(ctx, *interpreter_, program, read_only, key_count);
}

uint32_t Functions::declared_by(std::string_view function) const {
  const Function* known = store_.find_function(function);
  return known == nullptr ? 0 : known->flags | kDeclared;
}

// --- Loading ------------------------------------------------------------------------------------

// While it exists the code that runs is that of a library: it sees the globals for loading, and the
// functions that it registers are added to the library.
class [[nodiscard]] Functions::LoadScope {
 public:
  LoadScope(Functions& functions, FunctionLibrary& library) : functions_(functions) {
    functions_.loading_ = &library;
    functions_.interpreter_->show_globals(functions_.load_globals_);
  }
  ~LoadScope() {
    functions_.interpreter_->show_globals(Interpreter::kAllGlobals);
    functions_.loading_ = nullptr;
    functions_.loading_names_.clear();
  }
  LoadScope(const LoadScope&) = delete;
  LoadScope& operator=(const LoadScope&) = delete;

 private:
  Functions& functions_;
};

base::Result<> Functions::run_code(FunctionLibrary& library, std::string_view code,
                                   TimeLimit limit) {
  Interpreter& lua = vm();
  const base::Result<int> chunk = lua.compile(code);
  if (!chunk) return base::fail("ERR Error compiling function: " + chunk.error());
  const int64_t limit_ms = limit == TimeLimit::kNone ? 0 : kLoadLimitMs;
  base::Result<> result;
  {
    const LoadScope scope(*this, library);
    if (!runner_.run_library(lua, *chunk, limit_ms))
      result = base::fail(server::registration_error(server_.edition(), lua.take_error().text));
  }
  lua.clear_stack();
  lua.forget(*chunk);
  // Most of the memory that loading takes is garbage afterwards.
  lua.collect_some(kCollectedKilobytes);
  lua.collect_garbage();
  return result;
}

base::Result<std::shared_ptr<FunctionLibrary>> Functions::compile(std::string_view text,
                                                                  TimeLimit limit) {
  base::Result<LibraryHeader> header = parse_library_header(text);
  if (!header) return header.failure();
  auto library = std::make_shared<FunctionLibrary>();
  library->name = std::move(header->name);
  library->code = text;
  base::Result<> ran = run_code(*library, header->code, limit);
  std::vector<int> callbacks;
  for (const Function& function : library->functions) callbacks.push_back(function.callback);
  library->compiled =
      std::shared_ptr<const void>(interpreter_.get(), [lua = interpreter_, callbacks](const void*) {
        if (lua == nullptr) return;
        for (const int callback : callbacks) lua->forget(callback);
      });
  if (!ran) return ran.failure();
  if (library->functions.empty()) return base::fail("ERR No functions registered");
  return library;
}

base::Result<std::string> Functions::add(std::string_view code, bool replace, TimeLimit limit) {
  base::Result<LibraryHeader> header = parse_library_header(code);
  if (!header) return header.failure();
  if (!replace && store_.find_library(header->name) != nullptr)
    return base::fail(FunctionStore::library_exists(header->name));
  base::Result<std::shared_ptr<FunctionLibrary>> library = compile(code, limit);
  if (!library) return library.failure();
  // Changes the store itself: a copy would cost O(libraries).
  const FunctionStore::Library old = store_.remove(header->name);
  if (base::Result<> added = store_.add(*library); !added) {
    // It was in the store before, so nothing is in its way.
    if (old != nullptr) static_cast<void>(store_.add(old));
    return added.failure();
  }
  return std::move(header->name);
}

base::Result<> Functions::load(std::string_view code, bool replace) {
  if (base::Result<std::string> added = add(code, replace, TimeLimit::kNone); !added)
    return added.failure();
  return {};
}

bool Functions::remove(std::string_view library) {
  return store_.remove(library) != nullptr;
}

void Functions::flush(bool in_background) {
  // The VM counts as one object.
  const size_t objects = store_.function_count() + 1;
  FunctionStore libraries = std::exchange(store_, {});
  if (interpreter_ == nullptr) return;
  runner_.abandon(*interpreter_);
  // The libraries are destroyed before the VM.
  std::pair old(std::move(interpreter_), std::move(libraries));
  if (in_background) server_.environment().reclaimer.destroy_later(objects, std::move(old));
}

// --- Dumps --------------------------------------------------------------------------------------

base::Result<> Functions::restore(std::string_view dump, RestorePolicy policy, TimeLimit limit) {
  base::Result<std::vector<std::string>> codes = read_function_dump(
      dump, server_.debug_settings().skip_checksums, persist::newest_dump_version(server_));
  if (!codes) return codes.failure();
  FunctionStore restored;
  for (const std::string& code : *codes) {
    base::Result<std::shared_ptr<FunctionLibrary>> library = compile(code, limit);
    if (!library) return library.failure();
    if (base::Result<> added = restored.add(*library); !added) return added;
  }
  FunctionStore next = policy == RestorePolicy::kFlush ? FunctionStore() : store_;
  for (const auto& [name, library] : restored.libraries()) {
    if (policy == RestorePolicy::kReplace) next.remove(name);
    if (next.find_library(name) != nullptr)
      return base::fail("ERR Library " + name + " already exists");
    if (base::Result<> added = next.add(library); !added) return added;
  }
  store_ = std::move(next);
  return {};
}

void Functions::for_each_code(const std::function<void(std::string_view code)>& visit) const {
  for (const auto& [unused, library] : store_.libraries()) visit(library->code);
}

void Functions::add_figures(ScriptFigures* figures) const {
  figures->function_interpreter_bytes = interpreter_ != nullptr ? interpreter_->memory_usage() : 0;
  figures->functions_bytes = store_.memory_usage();
  figures->functions = store_.function_count();
  figures->libraries = store_.library_count();
}

}  // namespace latchkey::script
