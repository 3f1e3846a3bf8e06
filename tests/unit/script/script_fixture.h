// A server with scripts, whose scripts can be stopped at a word of their own:
//
//     redis.call('stopme')    SCRIPT KILL, as if it had come from another client just now
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "commands/groups.h"
#include "script/engine.h"
#include "script/lua/interpreter.h"
#include "script/rows.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

struct ScriptServer {
  static void stop_script(server::CommandContext& ctx) {
    ctx.server.layer<script::Engine>().runner().kill(ctx, script::Program::Kind::kScript);
  }
  static std::span<const server::CommandRow> rows() {
    static constexpr server::CommandRow kRows[] = {{"STOPME",
                                                    stop_script,
                                                    "",
                                                    0,
                                                    {},
                                                    0,
                                                    server::Group::kScripting,
                                                    "1.0.0",
                                                    "O(1)",
                                                    "Stops."}};
    return kRows;
  }

  explicit ScriptServer(std::string_view settings = {}, int protocol = 2)
      : server({commands::string_rows(), commands::string_batch_rows(), commands::counter_rows(),
                commands::transaction_rows(), commands::client_rows(), commands::list_rows(),
                commands::config_rows(), script::script_rows(), script::function_rows(), rows()},
               settings),
        engine(std::make_shared<script::Engine>(server.server)) {
    server.server.add_layer(engine);
    client = std::make_unique<TestClient>(server, protocol);
  }

  std::string eval(std::string_view script) { return client->run_words({"EVAL", script, "0"}); }
  // The error that the script ends with, without what names the script and the place.
  std::string error_of(std::string_view script) {
    const std::string reply = eval(script);
    return reply.substr(0, reply.find(" script: "));
  }
  // Whether scripts run as they should and can be stopped, in the VM that is there now.
  bool works() {
    return eval("local n = 0 for i = 1, 100 do n = n + i end return n") == integer(5050) &&
           error_of("redis.call('stopme') while true do end") == kStopped &&
           eval("return redis.call('set', 'works', 'yes')") == kOk;
  }

  static constexpr std::string_view kStopped = "-ERR Script killed by user with SCRIPT KILL...";

  ServerFixture server;
  std::shared_ptr<script::Engine> engine;
  std::unique_ptr<TestClient> client;
};

}  // namespace latchkey::tests
