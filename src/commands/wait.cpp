// WAIT: until so many replicas have what this client wrote. There are no replicas, so that only
// WAIT for none is ever served.
#include "commands/groups.h"
#include "server/client.h"
#include "server/command_context.h"

namespace latchkey::commands {

using namespace server;

namespace {

constexpr int64_t kReplicas = 0;

void wait(CommandContext& ctx) {
  int64_t wanted = 0;
  int64_t deadline_ms = 0;
  if (!ctx.read_int64(ctx.args[1], &wanted) || !ctx.read_timeout_ms(ctx.args[2], &deadline_ms))
    return;
  Client& client = ctx.client;
  if (kReplicas >= wanted || client.has(kClientDenyBlocking)) return ctx.reply.integer(kReplicas);
  // A timeout of zero is none.
  if (deadline_ms == ctx.now_ms()) deadline_ms = 0;
  const auto ended = [&client](BlockEnd end) {
    if (end == BlockEnd::kTimeout || end == BlockEnd::kUnblocked) client.reply.integer(kReplicas);
  };
  client.wait({.deadline_ms = deadline_ms, .may_unblock = true, .ended = ended});
}

constexpr CommandRow kWaitRows[] = {
    {"WAIT",
     wait,
     "numreplicas timeout",
     kBlocking,
     {},
     kAclConnection,
     Group::kGeneric,
     "3.0.0",
     "O(1)",
     "Blocks until the asynchronous replication of all preceding write commands sent by the "
     "connection is completed.",
     {.tips = "request_policy:all_shards response_policy:agg_min"}},
};

}  // namespace

std::span<const CommandRow> wait_rows() {
  return kWaitRows;
}

}  // namespace latchkey::commands
