#include "all_commands.h"

#include <memory>

#include "cluster/rows.h"
#include "commands/groups.h"
#include "locks/rows.h"
#include "persist/rows.h"
#include "replication/rows.h"
#include "script/rows.h"
#include "server/server.h"
#include "testing/rows.h"

namespace latchkey {

namespace {

std::shared_ptr<const server::CommandSet> make_set() {
  auto set = std::make_shared<server::CommandSet>();
  commands::add_all(*set);
  set->add(cluster::cluster_rows());
  set->add(locks::lock_rows());
  set->add(persist::aof_rows());
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
  // It never changes, and all servers of the process share it.
  static const std::shared_ptr<const server::CommandSet> set = make_set();
  server.commands().share(set);
  server.add_debug_subcommands(cluster::cluster_debug_subcommands());
  server.add_debug_subcommands(persist::dump_debug_subcommands());
}

}  // namespace latchkey
