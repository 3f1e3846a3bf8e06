// SAVE, BGSAVE, LASTSAVE, and DEBUG RELOAD.
#include <limits>
#include <string>
#include <vector>

#include "persist/loading.h"
#include "persist/persistence.h"
#include "persist/rdb/byte_stream.h"
#include "persist/rdb/rdb_file.h"
#include "persist/rows.h"
#include "server/command/command_context.h"
#include "server/function_libraries.h"
#include "server/server.h"

namespace latchkey::persist {

using namespace server;

namespace {

constexpr std::string_view kCannotLoad =
    "ERR Error trying to load the RDB dump, check server logs.";

void save(CommandContext& ctx) {
  ctx.server.layer<Persistence>().snapshots().save_command(ctx);
}

void bgsave(CommandContext& ctx) {
  ctx.server.layer<Persistence>().snapshots().start_command(ctx);
}

void lastsave(CommandContext& ctx) {
  ctx.server.layer<Persistence>().snapshots().last_save_command(ctx);
}

struct ReloadOrder {
  bool save_first = true;
  bool empty_first = true;
  Loading::FileOptions options;
};

bool read_reload(CommandContext& ctx, ReloadOrder* order) {
  for (ArgReader words(ctx.args, 2); words.more();) {
    if (words.word("MERGE")) {
      order->options.replace_existing = true;
    } else if (words.word("NOFLUSH")) {
      order->empty_first = false;
    } else if (words.word("NOSAVE")) {
      order->save_first = false;
    } else {
      return ctx.refuse("ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.");
    }
  }
  return true;
}

// Both give nothing when they have replied an error, and left the dataset as it was.
std::optional<Loading::Result> reload_from_file(CommandContext& ctx, const ReloadOrder& order) {
  Server& server = ctx.server;
  Persistence& persistence = server.layer<Persistence>();
  if (order.save_first && !persistence.snapshots().save()) return ctx.refuse("ERR", std::nullopt);
  const std::string& name = server.settings().dbfilename;
  if (!persistence.loading().may_load(server.config().directory().path_of(name)))
    return ctx.refuse(kCannotLoad, std::nullopt);
  if (order.empty_first) clear_dataset(server);
  return persistence.loading().load_snapshot(name, order.options);
}

// For a space, which has no files.
std::optional<Loading::Result> reload_in_memory(CommandContext& ctx, const ReloadOrder& order) {
  Server& server = ctx.server;
  if (!order.save_first)
    return ctx.refuse("ERR NOSAVE is not available in a space, which has no file to load",
                      std::nullopt);
  std::string bytes;
  StringSink sink(bytes);
  write_dataset(sink, server, write_options(server));
  if (order.empty_first) clear_dataset(server);
  MemorySource source(bytes);
  return server.layer<Persistence>().loading().load_from(source, bytes.size(), order.options);
}

void debug_reload(CommandContext& ctx) {
  Server& server = ctx.server;
  ReloadOrder order;
  if (!read_reload(ctx, &order) || refuses_reload(ctx)) return;
  std::vector<DroppedKey> dropped;
  order.options.dropped = &dropped;
  const std::optional<Loading::Result> result = (server.state() & kStateSpace) != 0
                                                    ? reload_in_memory(ctx, order)
                                                    : reload_from_file(ctx, order);
  if (!result) return;
  // Replicas and the append-only file still have the keys that have expired meanwhile.
  for (const auto& [database, key] : dropped)
    server.propagation().add_removal(database, key, /*lazily=*/false);
  if (*result != Loading::Result::kDone) return ctx.reply.error(kCannotLoad);
  server.log().notice("DB reloaded by DEBUG RELOAD");
  ctx.reply.ok();
}

constexpr DebugSubcommand kSnapshotDebugSubcommands[] = {
    {"RELOAD", 0, std::numeric_limits<size_t>::max(), debug_reload,
     "RELOAD [NOSAVE] [NOFLUSH] [MERGE]",
     "Save the dataset, forget it and load it again; MERGE: over keys that are there."},
};

constexpr CommandRow kSnapshotRows[] = {
    {"BGSAVE",
     bgsave,
     "[operation=SCHEDULE@3.2.2|CANCEL@8.1.0]",
     kAdmin | kNoScript | kNoAsyncLoading | kNotInSpace,
     {},
     0,
     Group::kServer,
     "1.0.0",
     "O(1)",
     "Asynchronously saves the database(s) to disk.",
     {.history = "3.2.2 Added the `SCHEDULE` option.\n8.1.0 Added the `CANCEL` option."}},
    {"LASTSAVE",
     lastsave,
     "",
     kLoading | kStale | kFast,
     {},
     kAclAdmin | kAclDangerous,
     Group::kServer,
     "1.0.0",
     "O(1)",
     "Returns the Unix timestamp of the last successful save to disk.",
     {.tips = "nondeterministic_output"}},
    {"SAVE",
     save,
     "",
     kAdmin | kNoScript | kNoAsyncLoading | kNoMulti | kNotInSpace,
     {},
     0,
     Group::kServer,
     "1.0.0",
     "O(N) where N is the total number of keys in all databases",
     "Synchronously saves the database(s) to disk."},
};

}  // namespace

std::span<const CommandRow> snapshot_rows() {
  return kSnapshotRows;
}

std::span<const DebugSubcommand> snapshot_debug_subcommands() {
  return kSnapshotDebugSubcommands;
}

}  // namespace latchkey::persist
