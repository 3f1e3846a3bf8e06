// Whole databases: SELECT, SWAPDB, DBSIZE, FLUSHDB, FLUSHALL.
#include "commands/groups.h"
#include "commands/keys/database_index.h"
#include "server/client/client.h"
#include "server/client/flush_waits.h"
#include "server/command/command_context.h"
#include "server/command/dispatcher.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;

bool read_database_index(CommandContext& ctx, std::string_view text, int* index) {
  int64_t value;
  if (!ctx.read_int64(text, &value)) return false;
  if (value < INT32_MIN || value > INT32_MAX)
    return ctx.read_int64_in(text, INT32_MIN, INT32_MAX, &value);
  if (value < 0 || value >= ctx.server.database_count())
    return ctx.refuse("ERR DB index is out of range");
  *index = static_cast<int>(value);
  return true;
}

bool has_one_database_of_cluster(const Server& server) {
  return server.in_cluster() && server.database_count() == 1 &&
         !server.edition().is_valkey_since({9, 0});
}

namespace {

void select(CommandContext& ctx) {
  int64_t number;
  if (!ctx.read_int64(ctx.args[1], &number)) return;
  if (has_one_database_of_cluster(ctx.server) && number != 0)
    return ctx.reply.error("ERR SELECT is not allowed in cluster mode");
  int index;
  if (!read_database_index(ctx, ctx.args[1], &index)) return;
  if (index != 0) ctx.server.cluster_audit().count_incompatible();
  ctx.client.database = index;
  ctx.reply.ok();
}

void swapdb(CommandContext& ctx) {
  if (ctx.server.in_cluster()) return ctx.reply.error("ERR SWAPDB is not allowed in cluster mode");
  int64_t first;
  int64_t second;
  if (!ctx.read_int64_in(ctx.args[1], INT32_MIN, INT32_MAX, &first, "ERR invalid first DB index"))
    return;
  if (!ctx.read_int64_in(ctx.args[2], INT32_MIN, INT32_MAX, &second, "ERR invalid second DB index"))
    return;
  const int64_t count = ctx.server.database_count();
  if (first < 0 || first >= count || second < 0 || second >= count) {
    return ctx.reply.error("ERR DB index is out of range");
  }
  ctx.server.cluster_audit().count_incompatible();
  if (first == second) {
    ctx.events.count(1);
    return ctx.reply.ok();
  }
  store::Keyspace& one = ctx.server.database(static_cast<int>(first));
  store::Keyspace& other = ctx.server.database(static_cast<int>(second));
  ctx.events.swapping(one, other);
  one.swap(other);
  ctx.reply.ok();
}

void dbsize(CommandContext& ctx) {
  ctx.reply.integer(static_cast<int64_t>(ctx.db.visible_size()));
}

void flush(CommandContext& ctx, store::Keyspace& keyspace, bool lazily) {
  if (keyspace.empty()) return;
  ctx.events.clearing(keyspace);
  ctx.events.count(keyspace.size());
  keyspace.clear(lazily);
}

enum class Flushed : uint8_t { kDatabase, kDataset };

// Flushes databases `first` to `last`. A client that may block gets its reply when the memory is
// freed in the background, so that the server does not stop.
void flush_range(CommandContext& ctx, int first, int last, Flushed flushed) {
  ArgReader args(ctx.args, 1);
  const bool lazily = read_flush_lazily(ctx, args);
  if (args.more()) return ctx.syntax_error();
  FlushWaits* waits = ctx.server.flush_waits();
  const bool may_wait = waits != nullptr && !ctx.client.has(kClientDenyBlocking);
  for (int i = first; i <= last; ++i) flush(ctx, ctx.server.database(i), lazily || may_wait);
  ctx.events.flushed();
  if (flushed == Flushed::kDataset) ctx.server.hooks().dataset_flushed.run();
  // Propagated even if the databases were empty.
  ctx.propagate({}, ctx.args);
  if (may_wait && !lazily && ctx.db.environment().reclaimer.pending_objects() != 0)
    return waits->wait(ctx.client);
  // A client that waits is sent the messages about the flush before its reply. Since Redis 8.0
  // every client waits that may block, however little there is to free.
  if (!lazily && !ctx.client.has(kClientDenyBlocking) && ctx.server.edition().has({8, 0}))
    ctx.server.dispatcher().send_pushes_first(ctx.client);
  ctx.reply.ok();
}

void flushdb(CommandContext& ctx) {
  flush_range(ctx, ctx.db.index(), ctx.db.index(), Flushed::kDatabase);
}

void flushall(CommandContext& ctx) {
  flush_range(ctx, 0, ctx.server.database_count() - 1, Flushed::kDataset);
}

constexpr CommandRow kDatabaseRows[] = {
    {"DBSIZE",
     dbsize,
     "",
     kReadOnly | kFast,
     {},
     kAclKeyspace,
     Group::kServer,
     "1.0.0",
     "O(1)",
     "Returns the number of keys in the database.",
     {.tips = "request_policy:all_shards response_policy:agg_sum"}},
    {"FLUSHALL",
     flushall,
     "[flush-type=ASYNC@4.0.0|SYNC@6.2.0]",
     kWrite,
     {},
     kAclKeyspace | kAclDangerous,
     Group::kServer,
     "1.0.0",
     "O(N) where N is the total number of keys in all databases",
     "Removes all keys from all databases.",
     {.tips = "request_policy:all_shards response_policy:all_succeeded",
      .history = "4.0.0 Added the `ASYNC` flushing mode modifier.\n6.2.0 Added the `SYNC` flushing "
                 "mode modifier.",
      .databases = {.every = true}}},
    {"FLUSHDB",
     flushdb,
     "[flush-type=ASYNC@4.0.0|SYNC@6.2.0]",
     kWrite,
     {},
     kAclKeyspace | kAclDangerous,
     Group::kServer,
     "1.0.0",
     "O(N) where N is the number of keys in the selected database",
     "Remove all keys from the current database.",
     {.tips = "request_policy:all_shards response_policy:all_succeeded",
      .history = "4.0.0 Added the `ASYNC` flushing mode modifier.\n6.2.0 Added the `SYNC` flushing "
                 "mode modifier."}},
    {"SELECT",
     select,
     "index",
     kLoading | kStale | kFast,
     {},
     kAclConnection,
     Group::kConnection,
     "1.0.0",
     "O(1)",
     "Changes the selected database.",
     {.databases = {.first = 1, .count = 1, .instead = true}}},
    {"SWAPDB",
     swapdb,
     "index1 index2",
     kWrite | kFast,
     {},
     kAclKeyspace | kAclDangerous,
     Group::kServer,
     "4.0.0",
     "O(N) where N is the count of clients watching or blocking on keys from both databases.",
     "Swaps two Redis databases.",
     {.databases = {.first = 1, .count = 2, .instead = true}}},
};

}  // namespace

std::span<const CommandRow> database_rows() {
  return kDatabaseRows;
}

}  // namespace latchkey::commands
