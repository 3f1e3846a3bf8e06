// A server for tests of commands about the server itself.
#pragma once

#include "commands/groups.h"
#include "persist/rows.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

// DEBUG is for servers that say so.
struct DebugServer : ServerFixture {
  DebugServer()
      : ServerFixture(
            {commands::debug_rows(), commands::string_rows(), commands::key_rows(),
             commands::database_rows(), commands::server_rows(), commands::lolwut_rows(),
             commands::memory_rows(), commands::list_rows(), commands::set_rows(),
             commands::hash_rows(), commands::hash_deadline_rows(), commands::sorted_set_rows(),
             commands::config_rows(), commands::client_rows()},
            "enable-debug-command yes\nsave \"\"\n") {
    server.add_debug_subcommands(persist::object_debug_subcommands());
  }
};

}  // namespace latchkey::tests
