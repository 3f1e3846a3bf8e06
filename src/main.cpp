// Composes a server from its parts and runs it.
#include <cstdio>

#include "base/clock.h"
#include "base/log.h"
#include "commands/groups.h"
#include "net/loop.h"
#include "server/config.h"
#include "server/server.h"

int main(int argc, char** argv) {
  using namespace latchkey;
  base::Logger log;
  server::Config config;
  std::string text;
  for (int i = 1; i + 1 < argc; i += 2) text += std::string(argv[i] + 2) + " " + argv[i + 1] + "\n";
  server::ConfigError error;
  if (!config.load("", text, &error)) {
    std::fputs(error.report().c_str(), stderr);
    return 1;
  }
  base::SystemClock clock;
  net::Loop loop;
  server::Server server(clock, config, log, &loop);
  server.commands().add(commands::command_rows());
  server.commands().add(commands::counter_rows());
  server.commands().add(commands::lcs_rows());
  server.commands().add(commands::string_batch_rows());
  server.commands().add(commands::string_condition_rows());
  server.commands().add(commands::string_range_rows());
  server.commands().add(commands::string_rows());
  server.commands().add(commands::transaction_rows());
  if (!server.listen()) return 1;
  log.notice("Server initialized");
  log.notice("Ready to accept connections tcp");
  loop.run();
  return server.exit_code();
}
