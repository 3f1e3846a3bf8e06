#include "all_commands.h"

#include "cluster/rows.h"
#include "commands/groups.h"
#include "persist/rows.h"
#include "replication/rows.h"
#include "script/rows.h"
#include "server/server.h"

namespace latchkey {

void add_all_commands(server::Server& server) {
  server::CommandTable& table = server.commands();
  commands::add_all(table);
  table.add(cluster::cluster_rows());
  table.add(persist::aof_rows());
  table.add(persist::dump_rows());
  table.add(persist::snapshot_rows());
  table.add(replication::migrate_rows());
  table.add(replication::role_rows());
  table.add(replication::sync_rows());
  table.add(script::function_rows());
  table.add(script::script_rows());
  server.add_debug_subcommands(cluster::cluster_debug_subcommands());
  server.add_debug_subcommands(persist::dump_debug_subcommands());
}

}  // namespace latchkey
