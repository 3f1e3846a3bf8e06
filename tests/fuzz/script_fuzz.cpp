// Two things, as the first byte chooses: text from outside as a script, which is compiled and not
// run; and scripts that hand values to commands and back, whose replies must be well-formed.
#include <memory>
#include <string>
#include <string_view>

#include "commands/groups.h"
#include "input.h"
#include "reply_check.h"
#include "script/engine.h"
#include "script/rows.h"
#include "unit/server_fixture.h"

namespace {

using namespace latchkey;
using fuzz::Input;
using fuzz::require;

class World {
 public:
  World()
      : server_({commands::string_rows(), commands::hash_rows(), commands::list_rows(),
                 commands::sorted_set_rows(), commands::database_rows(),
                 commands::connection_rows(), script::script_rows()}) {
    server_.server.add_layer(std::make_shared<script::Engine>(server_.server));
    client_ = std::make_unique<tests::TestClient>(server_);
  }

  void load(std::string_view text) {
    send({"SCRIPT", "LOAD", text});
    forget_scripts();
  }

  void exchange(Input input) {
    send({"HELLO", (input.byte() & 1) != 0 ? "3" : "2"});
    send({"FLUSHALL"});
    std::string script = (input.byte() & 1) != 0 ? "redis.setresp(3) " : "";
    while (!input.empty() && script.size() < kLongestScript) script += statement(input);
    script += "return " + value(input, 0);
    send({"EVAL", script, "1", "key", "argument"});
    forget_scripts();
  }

 private:
  static constexpr size_t kLongestScript = 4'096;
  static constexpr int kDeepest = 6;

  void send(std::initializer_list<std::string_view> words) {
    const std::string reply = client_->run_words(words);
    require(fuzz::ReplyCheck(reply).count() == 1);
  }
  // Thousands of scripts would otherwise be kept.
  void forget_scripts() {
    constexpr int kOften = 256;
    if (++since_flush_ % kOften == 0) send({"SCRIPT", "FLUSH"});
  }

  static std::string statement(Input& input) {
    static constexpr std::string_view kCommands[] = {
        "set",  "get",    "hset",   "hgetall", "rpush",       "lrange",
        "zadd", "zscore", "zrange", "append",  "ping",        "select",
        "echo", "hget",   "getset", "nothing", "hincrbyfloat"};
    std::string text = (input.byte() & 1) != 0 ? "local r = redis.pcall('" : "r = redis.call('";
    text = "do " + (text[0] == 'r' ? "local " + text : text);
    text += kCommands[input.byte() % std::size(kCommands)];
    text += "'";
    for (int left = input.byte() % 5; left > 0; --left) text += ", " + value(input, kDeepest - 1);
    return text + ") end ";
  }

  // A string literal of any bytes.
  static std::string literal(Input& input) {
    std::string text = "\"";
    for (const char byte : input.text().substr(0, 64)) {
      char escaped[5];
      std::snprintf(escaped, sizeof(escaped), "\\%03u", static_cast<unsigned char>(byte));
      text += escaped;
    }
    return text + "\"";
  }

  static std::string value(Input& input, int depth) {
    static constexpr std::string_view kFields[] = {"ok",  "err",        "double",          "map",
                                                   "set", "big_number", "verbatim_string", "other"};
    switch (input.byte() % (depth < kDeepest ? 12 : 8)) {
      case 0:
        return "nil";
      case 1:
        return "true";
      case 2:
        return "false";
      case 3:
        return std::to_string(static_cast<int64_t>(input.word()) >> (input.byte() % 64));
      case 4:
        return "1/" + std::to_string(input.byte());
      case 5:
        return "KEYS[1]";
      case 6:
        return "redis.pcall('get', KEYS[1])";
      case 7:
        return literal(input);
      case 8:
        return "{" + std::string(kFields[input.byte() % std::size(kFields)]) + "=" +
               value(input, depth + 1) + "}";
      case 9:
        return "{map={[" + literal(input) + "]=" + value(input, depth + 1) + "}}";
      default: {
        std::string text = "{";
        for (int left = input.byte() % 4; left > 0; --left) text += value(input, depth + 1) + ",";
        return text + "}";
      }
    }
  }

  tests::ServerFixture server_;
  std::unique_ptr<tests::TestClient> client_;
  int since_flush_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongestInput = 4'096;
  if (size == 0 || size > kLongestInput) return 0;
  static World world;
  Input input(data, size);
  if ((input.byte() & 1) != 0) {
    world.load(input.rest());
  } else {
    world.exchange(input);
  }
  return 0;
}
