// The program: acts as the server, or as one of the tools that come with it.
#include <cstdio>
#include <string>
#include <vector>

#include "composition/application.h"
#include "composition/config_check.h"
#include "persist/check_aof.h"
#include "persist/check_rdb.h"
#include "server/config/command_line.h"
#include "server/process/proc_title.h"
#include "server/process/process.h"

int main(int argc, char** argv) {
  using namespace latchkey;
  server::open_standard_streams();
  const std::vector<std::string> arguments(argv, argv + argc);
  server::ProcessTitle title(argc, argv);
  const server::CommandLine line = server::parse_command_line(arguments);
  switch (line.action) {
    case server::CommandLine::Action::kExit:
      std::fputs(line.output.c_str(), stdout);
      std::fputs(line.errors.c_str(), stderr);
      return line.exit_status;
    case server::CommandLine::Action::kCheckConfig: {
      const composition::ConfigCheck check = composition::check_configuration(line);
      std::fputs(check.report.c_str(), stdout);
      return check.fine ? 0 : 1;
    }
    case server::CommandLine::Action::kPing:
      return composition::ping_server(line);
    case server::CommandLine::Action::kCheckSystem:
      std::fputs(server::format_checks(server::check_system()).c_str(), stdout);
      return 0;
    case server::CommandLine::Action::kCheckRdb:
      return persist::run_check_rdb(arguments);
    case server::CommandLine::Action::kCheckAof:
      return persist::run_check_aof(arguments);
    case server::CommandLine::Action::kServe:
      break;
  }
  return composition::Application(line, arguments, title).run();
}
