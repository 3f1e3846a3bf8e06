// MULTI, EXEC, DISCARD, WATCH, UNWATCH.
#include "commands/groups.h"
#include "server/acl/access_control.h"
#include "server/client/client.h"
#include "server/command/command_context.h"
#include "server/command/dispatcher.h"
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

// The error text for a queued request that the user may no longer run.
std::string_view reason_text(acl::Forbidden what) {
  switch (what) {
    case acl::Forbidden::kCommand:
      return "no permission to execute the command or subcommand";
    case acl::Forbidden::kKey:
      return "no permission to touch the specified keys";
    case acl::Forbidden::kChannel:
      break;
  }
  return "no permission to access one of the channels used as arguments to the command";
}

// Runs a queued request, if its user still has the permission. False when an error has been sent
// and counted.
bool run_queued(CommandContext& ctx, const StoredRequest& request) {
  Client& client = ctx.client;
  if (client.has(kClientRestricted)) {
    const auto refusal = ctx.server.access().check(client, request.command(), request.words(),
                                                   acl::Denial::Context::kMulti);
    if (refusal) {
      ctx.reply.error(
          "NOPERM ACLs rules changed between the moment the transaction was accumulated and the "
          "EXEC call. This command is no longer allowed for the following reason: " +
          std::string(reason_text(refusal->what)));
      ctx.server.dispatcher().count_error(client, ctx.reply.last_error_mark());
      return false;
    }
  }
  ctx.server.dispatcher().call(client, request.command(), request.words());
  return true;
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
  ctx.server.watches().unwatch_all(client);

  // The queued commands are propagated, not EXEC itself.
  ctx.propagate_nothing();
  const bool could_block = !client.has(kClientDenyBlocking);
  client.set(kClientDenyBlocking);
  ctx.reply.array(transaction->requests.size());
  bool all_permitted = true;
  for (const StoredRequest& request : transaction->requests)
    all_permitted &= run_queued(ctx, request);
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
     kNoScript | kLoading | kStale | kFast | kAllowBusy,
     {},
     kAclTransaction,
     Group::kTransactions,
     "2.0.0",
     "O(N), when N is the number of queued commands",
     "Discards a transaction."},
    {"EXEC",
     exec,
     "",
     kNoScript | kLoading | kStale | kSkipSlowlog,
     {},
     kAclTransaction,
     Group::kTransactions,
     "1.2.0",
     "Depends on commands in the transaction",
     "Executes all commands in a transaction."},
    {"MULTI",
     multi,
     "",
     kNoScript | kLoading | kStale | kFast | kAllowBusy,
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
    {"WATCH", watch, "key...", kNoScript | kLoading | kStale | kFast | kAllowBusy, keys(1, -1).ro(),
     kAclTransaction, Group::kTransactions, "2.2.0", "O(1) for every key.",
     "Monitors changes to keys to determine the execution of a transaction."},
};

}  // namespace

std::span<const CommandRow> transaction_rows() {
  return kTransactionRows;
}

}  // namespace latchkey::commands
