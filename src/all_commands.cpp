#include "all_commands.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "cluster/rows.h"
#include "commands/groups.h"
#include "locks/rows.h"
#include "persist/rows.h"
#include "replication/rows.h"
#include "script/rows.h"
#include "sentinel/rows.h"
#include "server/server.h"
#include "testing/rows.h"

namespace latchkey {

namespace {

// A Sentinel has some of the commands of other servers, and its own.
std::shared_ptr<const server::CommandSet> make_sentinel_set(const server::Edition& edition) {
  auto set = std::make_shared<server::CommandSet>(edition);
  for (const auto rows : {commands::acl_rows(), commands::client_rows(), commands::command_rows(),
                          commands::connection_rows(), commands::info_rows(),
                          commands::pubsub_rows(), commands::server_rows()}) {
    set->add(rows, sentinel::is_shared_command);
  }
  set->add(sentinel::sentinel_rows());
  set->add(sentinel::mode_rows());
  return set;
}

std::shared_ptr<const server::CommandSet> make_set(const server::Edition& edition) {
  auto set = std::make_shared<server::CommandSet>(edition);
  commands::add_all(*set);
  set->add(cluster::cluster_rows());
  set->add(locks::lock_rows());
  set->add(persist::aof_rows());
  set->add(persist::backup_rows());
  set->add(persist::dump_rows());
  set->add(persist::snapshot_rows());
  set->add(replication::migrate_rows());
  set->add(replication::role_rows());
  set->add(replication::sync_rows());
  set->add(script::function_rows());
  set->add(script::script_rows());
  set->add(testing::checkpoint_rows());
  set->add(testing::clock_rows());
  set->add(testing::space_rows());
  set->add(testing::calls_rows());
  set->add(testing::fault_rows());
  return set;
}

}  // namespace

void add_all_commands(server::Server& server) {
  if (server.is_sentinel()) return server.commands().share(make_sentinel_set(server.edition()));
  // They never change, and all servers of the process that stand for the same release share one.
  static std::vector<std::shared_ptr<const server::CommandSet>> sets;
  auto found = std::find_if(sets.begin(), sets.end(),
                            [&](const auto& set) { return set->edition() == server.edition(); });
  if (found == sets.end()) found = sets.insert(sets.end(), make_set(server.edition()));
  server.commands().share(*found);
  server.add_debug_subcommands(cluster::cluster_debug_subcommands());
  server.add_debug_subcommands(persist::dump_debug_subcommands());
  server.add_debug_subcommands(persist::object_debug_subcommands());
}

}  // namespace latchkey
