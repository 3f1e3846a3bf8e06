#include "script/functions.h"

#include <utility>
#include <vector>

#include "script/function_dump.h"
#include "script/library_header.h"
#include "script/load_api.h"
#include "script/lua/interpreter.h"
#include "script/lua/lua_deprecated.h"
#include "script/redis_api.h"
#include "script/shebang.h"
#include "server/server.h"

namespace latchkey::script {

using namespace server;

namespace {

constexpr int64_t kLoadLimitMs = 500;
constexpr int kCollectedKilobytes = 8;

std::string function_exists(std::string_view name) {
  return "ERR Function " + std::string(name) + " already exists";
}
std::string library_exists(std::string_view name) {
  return "ERR Library '" + std::string(name) + "' already exists";
}

// Adds a library; false with the error in *error.
bool add_to(FunctionStore& store, FunctionStore::Library library, std::string* error) {
  const std::string& name = library->name;
  std::string taken;
  if (store.add(library, &taken)) return true;
  *error = taken.empty() ? library_exists(name) : function_exists(taken);
  return false;
}

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
    std::string error;
    if (load(library->code, /*replace=*/false, &error)) continue;
    server_.log().warning("Library " + name + " was lost: " + error);
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

bool Functions::run_code(FunctionLibrary& library, std::string_view code, Patience patience,
                         std::string* error) {
  Interpreter& lua = vm();
  std::string message;
  const int chunk = lua.compile(code, &message);
  if (chunk == Interpreter::kNoFunction) {
    *error = "ERR Error compiling function: " + message;
    return false;
  }
  loading_ = &library;
  lua.show_globals(load_globals_);
  const int64_t limit_ms = patience == Patience::kEndless ? 0 : kLoadLimitMs;
  const bool succeeded = runner_.run_library(lua, chunk, limit_ms);
  if (!succeeded) *error = "ERR Error registering functions: " + lua.take_error().text;
  lua.show_globals(Interpreter::kAllGlobals);
  loading_ = nullptr;
  lua.clear_stack();
  lua.forget(chunk);
  // Most of the memory that loading takes is garbage afterwards.
  lua.collect_some(kCollectedKilobytes);
  lua.collect_garbage();
  return succeeded;
}

std::shared_ptr<FunctionLibrary> Functions::compile(std::string_view text, Patience patience,
                                                    std::string* error) {
  LibraryHeader header;
  if (!parse_library_header(text, &header, error)) return nullptr;
  auto library = std::make_shared<FunctionLibrary>();
  library->name = std::move(header.name);
  library->code = text;
  const bool succeeded = run_code(*library, header.code, patience, error);
  std::vector<int> callbacks;
  for (const Function& function : library->functions) callbacks.push_back(function.callback);
  library->compiled =
      std::shared_ptr<const void>(interpreter_.get(), [lua = interpreter_, callbacks](const void*) {
        if (lua == nullptr) return;
        for (const int callback : callbacks) lua->forget(callback);
      });
  if (!succeeded) return nullptr;
  if (library->functions.empty()) {
    *error = "ERR No functions registered";
    return nullptr;
  }
  return library;
}

const std::string* Functions::add(std::string_view code, bool replace, Patience patience,
                                  std::string* error) {
  LibraryHeader header;
  if (!parse_library_header(code, &header, error)) return nullptr;
  if (!replace && store_.find_library(header.name) != nullptr) {
    *error = library_exists(header.name);
    return nullptr;
  }
  const std::shared_ptr<FunctionLibrary> library = compile(code, patience, error);
  if (library == nullptr) return nullptr;
  // Changes the store itself: a copy would cost O(libraries).
  const FunctionStore::Library old = store_.remove(library->name);
  if (!add_to(store_, library, error)) {
    std::string ignored;
    if (old != nullptr) store_.add(old, &ignored);
    return nullptr;
  }
  return &library->name;
}

bool Functions::load(std::string_view code, bool replace, std::string* error) {
  return add(code, replace, Patience::kEndless, error) != nullptr;
}

bool Functions::remove(std::string_view library) {
  return store_.remove(library) != nullptr;
}

void Functions::flush(bool in_background) {
  // The VM counts as one object.
  const size_t objects = store_.function_count() + 1;
  auto libraries = std::make_shared<FunctionStore>(std::exchange(store_, {}));
  if (interpreter_ == nullptr) return;
  runner_.abandon(*interpreter_);
  std::shared_ptr<Interpreter> old = std::move(interpreter_);
  if (!in_background) return;
  server_.environment().reclaimer.free_later(objects, [old, libraries]() mutable {
    libraries.reset();
    old.reset();
  });
}

// --- Dumps --------------------------------------------------------------------------------------

bool Functions::restore(std::string_view dump, RestorePolicy policy, Patience patience,
                        std::string* error) {
  std::vector<std::string> codes;
  if (!read_function_dump(dump, server_.debug_settings().skip_checksums, &codes, error))
    return false;
  FunctionStore restored;
  for (const std::string& code : codes) {
    const std::shared_ptr<FunctionLibrary> library = compile(code, patience, error);
    if (library == nullptr || !add_to(restored, library, error)) return false;
  }
  FunctionStore next = policy == RestorePolicy::kFlush ? FunctionStore() : store_;
  for (const auto& [name, library] : restored.libraries()) {
    if (policy == RestorePolicy::kReplace) next.remove(name);
    if (next.find_library(name) != nullptr) {
      *error = "ERR Library " + name + " already exists";
      return false;
    }
    if (!add_to(next, library, error)) return false;
  }
  store_ = std::move(next);
  return true;
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
