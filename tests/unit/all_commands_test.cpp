#include "all_commands.h"

#include <set>
#include <string>

#include "server/command/command_docs.h"
#include "server/command/command_syntax.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey {

using namespace server;
using tests::ServerFixture;
using tests::TestClient;

// Two rows of one name would end the process here, and a malformed syntax line.
TEST_CASE("Every command of every folder has a place in one table", "[commands]") {
  ServerFixture server({});
  add_all_commands(server.server);
  const CommandTable& table = server.server.commands();
  for (const char* name : {"get", "acl|setuser", "cluster|slots", "debug", "eval", "function|load",
                           "bgrewriteaof", "restore", "save", "migrate", "replicaof", "psync"}) {
    INFO(name);
    CHECK(table.find_full_name(name) != nullptr);
  }
  for (const auto& command : table.all()) {
    INFO(command->full_name);
    REQUIRE(table.find_full_name(command->full_name) != nullptr);
    CHECK(table.find_full_name(command->full_name)->id == command->id);
    CHECK((command->handler != nullptr || command->is_container()));
    if (command->handler == nullptr) continue;
    const CommandRow& row = *command->row;
    const int words = command->parent == nullptr ? 1 : 2;
    CHECK(row.syntax.arity(words) == parse_syntax(row.syntax.text(), words, row.keys.size()).arity);
  }
}

TEST_CASE("Commands and subcommands stand in the documentation under their names", "[commands]") {
  ServerFixture server({});
  add_all_commands(server.server);
  TestClient client(server, 3);
  const std::string docs = client.run("COMMAND DOCS");
  for (const auto& command : server.server.commands().all()) {
    INFO(command->full_name);
    CHECK(docs.find(tests::bulk(command->full_name)) != std::string::npos);
  }
}

TEST_CASE("No two folders bring the same subcommand of DEBUG", "[commands]") {
  ServerFixture server({});
  add_all_commands(server.server);
  std::set<std::string> names;
  for (const DebugSubcommand& subcommand : server.server.debug_subcommands()) {
    INFO(subcommand.name);
    CHECK(names.insert(std::string(subcommand.name)).second);
  }
  CHECK(names.contains("SET-SKIP-CHECKSUM-VALIDATION"));
}

}  // namespace latchkey
