// The decoders of the script libraries, given any bytes: JSON, MessagePack, and struct with a
// format that is input too. What JSON's and MessagePack's decoder accept is encoded again.
#include <lua.hpp>
#include <memory>
#include <string_view>

#include "input.h"
#include "script/lua/interpreter.h"
#include "script/lua/lua_random.h"
#include "script/lua/lua_text.h"

namespace {

using namespace latchkey;
using script::Interpreter;

constexpr std::string_view kCode = R"(
  local input, format = INPUT, FORMAT
  local ok, value = pcall(cjson.decode, input)
  if ok then pcall(cjson.encode, value) end
  pcall(cmsgpack.unpack, input)
  pcall(cmsgpack.unpack_limit, input, #format, #format)
  ok, value = pcall(cmsgpack.unpack_one, input)
  if ok then assert(pcall(cmsgpack.pack, value)) end
  pcall(struct.unpack, format, input)
  pcall(struct.size, format)
  pcall(struct.pack, format, #input, input, 1.5, input, -1, #format)
)";

class Vm {
 public:
  Vm() : vm_(random_, "user_script") {
    const base::Result<int> function = vm_.compile(kCode);
    fuzz::require(bool(function));
    function_ = *function;
  }

  void run(std::string_view format, std::string_view bytes) {
    script::push_text(vm_.lua(), bytes);
    vm_.set_global("INPUT");
    script::push_text(vm_.lua(), format);
    vm_.set_global("FORMAT");
    fuzz::require(vm_.run(function_));
    vm_.clear_stack();
  }

 private:
  script::LuaRandom random_;
  Interpreter vm_;
  int function_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongestInput = 16'384;
  constexpr size_t kLongestFormat = 32;
  if (size == 0 || size > kLongestInput) return 0;
  static Vm world;
  fuzz::Input input(data, size);
  const size_t split = std::min<size_t>(input.byte() % kLongestFormat, size - 1);
  world.run(input.rest().substr(0, split), input.rest().substr(split));
  return 0;
}
