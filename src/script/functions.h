// The function libraries and their Lua VM, which is not that of scripts.
//
// The code of a library is run once, when it is loaded: it sees little more than
// redis.register_function, and the functions that it registers can be called then. A change of
// libraries is done completely or not at all.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "script/function_store.h"
#include "script/lua/lua_random.h"
#include "script/script_runner.h"
#include "server/command/command_context.h"
#include "server/function_libraries.h"
#include "server/observe/memory_report.h"

struct lua_State;

namespace latchkey::script {

class Interpreter;

class Functions final : public server::FunctionLibraries {
 public:
  // All must outlive it.
  Functions(server::Server& server, ScriptRunner& runner, LuaRandom& random)
      : server_(server), runner_(runner), random_(random) {}
  ~Functions() override;
  Functions(const Functions&) = delete;
  Functions& operator=(const Functions&) = delete;

  const FunctionStore& store() const { return store_; }
  // Null before the first library and after a flush.
  Interpreter* interpreter() { return interpreter_.get(); }

  // FCALL and FCALL_RO: args are name, function, number of keys, keys, arguments. Replies.
  void call(server::CommandContext& ctx, bool read_only);

  // The flags of a function (ScriptFlag bits), or 0 when there is none of that name.
  uint32_t declared_by(std::string_view function) const;

  // How long the code of a library may run.
  enum class TimeLimit : uint8_t {
    kHalfASecond,
    kNone,  // for libraries loaded elsewhere before: from a file, by the master
  };

  // FUNCTION LOAD. The library's name, or the error, from "ERR " on.
  base::Result<std::string> add(std::string_view code, bool replace, TimeLimit limit);
  // FUNCTION DELETE. False when there is no such library.
  bool remove(std::string_view library);
  // Drops all libraries and their Lua VM. With `in_background` another thread frees them.
  void flush(bool in_background);

  enum class RestorePolicy : uint8_t { kFlush, kAppend, kReplace };
  // FUNCTION RESTORE: `dump` as FUNCTION DUMP makes it. When it fails, nothing has changed. The
  // error is a reply, from "ERR " on.
  base::Result<> restore(std::string_view dump, RestorePolicy policy, TimeLimit limit);

  void add_figures(server::ScriptFigures* figures) const;

  // server::FunctionLibraries
  void for_each_code(const std::function<void(std::string_view code)>& visit) const override;
  base::Result<> load(std::string_view code, bool replace) override;
  void clear() override { flush(/*in_background=*/false); }

 private:
  friend struct LoadApi;

  // The Lua VM, created for the first library.
  Interpreter& vm();
  // Drops a VM that is not sound, and loads the libraries into a new one.
  void renew();
  class LoadScope;

  // Compiles a library and runs its code, which registers its functions.
  base::Result<std::shared_ptr<FunctionLibrary>> compile(std::string_view text, TimeLimit limit);
  base::Result<> run_code(FunctionLibrary& library, std::string_view code, TimeLimit limit);

  server::Server& server_;
  ScriptRunner& runner_;
  LuaRandom& random_;
  // Null until the first call of vm(). Shared with the libraries: freeing one releases its
  // functions in the VM.
  std::shared_ptr<Interpreter> interpreter_;
  // The globals of library code (Interpreter::add_globals()).
  int load_globals_ = 0;
  FunctionStore store_;
  // The library whose code is running, or null.
  FunctionLibrary* loading_ = nullptr;
  std::set<std::string, std::less<>> loading_names_;  // of its functions
};

}  // namespace latchkey::script
