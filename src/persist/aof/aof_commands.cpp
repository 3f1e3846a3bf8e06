// BGREWRITEAOF, WAITAOF, and the DEBUG subcommands for the append-only file.
#include <span>
#include <string>

#include "persist/loading.h"
#include "persist/persistence.h"
#include "persist/rows.h"
#include "server/command/command_context.h"
#include "server/server.h"

namespace latchkey::persist {

using namespace server;

namespace {

void bgrewriteaof(CommandContext& ctx) {
  ctx.server.layer<Persistence>().aof().rewrite_command(ctx);
}

void waitaof(CommandContext& ctx) {
  ctx.server.layer<Persistence>().aof().waits().command(ctx);
}

void debug_loadaof(CommandContext& ctx) {
  Server& server = ctx.server;
  if (refuses_reload(ctx)) return;
  // What is loaded is no change: replicas have it, and may have no such file.
  ctx.propagate_nothing();
  Persistence& persistence = server.layer<Persistence>();
  if (!persistence.aof().reload(persistence.loading().figures()))
    return ctx.reply.error("ERR Error trying to load the AOF files, check server logs.");
  persistence.snapshots().reset_changes();
  server.log().notice("Append Only File loaded by DEBUG LOADAOF");
  ctx.reply.ok();
}

void debug_aof_flush_sleep(CommandContext& ctx) {
  ctx.server.layer<Persistence>().aof().file().set_flush_pause_us(
      std::atoll(std::string(ctx.args[2]).c_str()));
  ctx.reply.ok();
}

constexpr DebugSubcommand kAofDebugSubcommands[] = {
    {"AOF-FLUSH-SLEEP", 1, 1, debug_aof_flush_sleep, "AOF-FLUSH-SLEEP <microsec>",
     "Wait so long before each write of the append-only file."},
    {"LOADAOF", 0, 0, debug_loadaof, "LOADAOF",
     "Write out what is left, forget the dataset, and load it from the append-only file."},
};

constexpr CommandRow kAofRows[] = {
    {"BGREWRITEAOF",
     bgrewriteaof,
     "",
     kAdmin | kNoScript | kNoAsyncLoading | kNotInSpace,
     {},
     0,
     Group::kServer,
     "1.0.0",
     "O(1)",
     "Asynchronously rewrites the append-only file to disk."},
    {"WAITAOF",
     waitaof,
     "numlocal numreplicas timeout",
     kBlocking,
     {},
     kAclConnection,
     Group::kGeneric,
     "7.2.0",
     "O(1)",
     "Blocks until all of the preceding write commands sent by the connection are written to the "
     "append-only file of the master and/or replicas.",
     {.tips = "request_policy:all_shards response_policy:agg_min"}},
};

}  // namespace

std::span<const CommandRow> aof_rows() {
  return kAofRows;
}

std::span<const DebugSubcommand> aof_debug_subcommands() {
  return kAofDebugSubcommands;
}

}  // namespace latchkey::persist
