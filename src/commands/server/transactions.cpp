// MULTI, EXEC, DISCARD, WATCH, UNWATCH.
#include "commands/groups.h"
#include "server/client/client.h"
#include "server/command/command_context.h"
#include "server/command/dispatcher.h"
#include "server/command/lock_claims.h"
#include "server/command/transaction.h"
#include "server/command/watch.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;

namespace {

void multi(CommandContext& ctx) {
  if (ctx.client.has(kClientInMulti)) return ctx.reply.error("ERR MULTI calls can not be nested");
  ctx.client.transaction = std::make_unique<Transaction>();
  ctx.client.set(kClientInMulti);
  ctx.reply.ok();
}

void discard(CommandContext& ctx) {
  if (!ctx.client.has(kClientInMulti)) return ctx.reply.error("ERR DISCARD without MULTI");
  end_transaction(ctx.server, ctx.client);
  ctx.reply.ok();
}

void exec(CommandContext& ctx) {
  Client& client = ctx.client;
  if (!client.has(kClientInMulti)) return ctx.reply.error("ERR EXEC without MULTI");
  if (ctx.server.watches().any_expired(client)) client.watched_key_changed = true;
  if (client.transaction->aborted) {
    end_transaction(ctx.server, ctx.client);
    return ctx.reply.error("EXECABORT Transaction discarded because of previous errors.");
  }
  if (client.watched_key_changed) {
    end_transaction(ctx.server, ctx.client);
    return ctx.reply.null_array();
  }
  const auto transaction = std::move(client.transaction);
  client.set(kClientInMulti, false);
  if (ctx.server.lock_claims() != nullptr) ctx.server.lock_claims()->transaction_begins(client);
  ctx.server.watches().unwatch_all(client);

  // The queued commands are propagated, not EXEC itself.
  ctx.propagate_nothing();
  const bool could_block = !client.has(kClientDenyBlocking);
  client.set(kClientDenyBlocking);
  ctx.reply.array(transaction->requests.size());
  bool all_permitted = true;
  for (const StoredRequest& request : transaction->requests)
    all_permitted &= ctx.server.dispatcher().run_queued(client, request.command(), request.words());
  if (!all_permitted) client.set(kClientErrorCounted);
  if (could_block) client.set(kClientDenyBlocking, false);
  // CLIENT CACHING within the transaction was in effect until here.
  client.set(kClientCaching, false);
}

void watch(CommandContext& ctx) {
  if (ctx.client.has(kClientInMulti))
    return ctx.reply.error("ERR WATCH inside MULTI is not allowed");
  // Once a watched key has changed, EXEC fails whatever else is watched.
  if (!ctx.client.watched_key_changed) {
    for (const std::string_view key : ctx.args.subspan(1))
      ctx.server.watches().watch(ctx.client, key);
  }
  ctx.reply.ok();
}

void unwatch(CommandContext& ctx) {
  ctx.server.watches().unwatch_all(ctx.client);
  ctx.reply.ok();
}

constexpr CommandRow kTransactionRows[] = {
    {"DISCARD",
     discard,
     "",
     kNoScript | kLoading | kStale | kFast | kAllowBusy | kNotQueued,
     {},
     kAclTransaction,
     Group::kTransactions,
     "2.0.0",
     "O(N), when N is the number of queued commands",
     "Discards a transaction."},
    {"EXEC",
     exec,
     "",
     kNoScript | kLoading | kStale | kSkipSlowlog | kNotQueued | kRunsQueued,
     {},
     kAclTransaction,
     Group::kTransactions,
     "1.2.0",
     "Depends on commands in the transaction",
     "Executes all commands in a transaction."},
    {"MULTI",
     multi,
     "",
     kNoScript | kLoading | kStale | kFast | kAllowBusy | kNotQueued,
     {},
     kAclTransaction,
     Group::kTransactions,
     "1.2.0",
     "O(1)",
     "Starts a transaction."},
    {"UNWATCH",
     unwatch,
     "",
     kNoScript | kLoading | kStale | kFast | kAllowBusy,
     {},
     kAclTransaction,
     Group::kTransactions,
     "2.2.0",
     "O(1)",
     "Forgets about watched keys of a transaction."},
    {"WATCH", watch, "key...", kNoScript | kLoading | kStale | kFast | kAllowBusy | kNotQueued,
     keys(1, -1).ro(), kAclTransaction, Group::kTransactions, "2.2.0", "O(1) for every key.",
     "Monitors changes to keys to determine the execution of a transaction."},
};

}  // namespace

std::span<const CommandRow> transaction_rows() {
  return kTransactionRows;
}

}  // namespace latchkey::commands
