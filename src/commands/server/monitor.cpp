// MONITOR: adds the client to those that see every executed request.
#include "server/client/monitors.h"

#include "commands/groups.h"
#include "server/client/client.h"
#include "server/command/command_context.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;

namespace {

void monitor(CommandContext& ctx) {
  if (ctx.client.has(kClientDenyBlocking))
    return ctx.reply.error("ERR MONITOR isn't allowed for DENY BLOCKING client");
  // A client that is a monitor or a replica already gets no reply, because a reply would appear
  // between the requests or within the replication stream.
  if (ctx.client.has(kClientMonitor | kClientReplica)) return;
  ctx.server.monitors().add(ctx.client);
  ctx.reply.ok();
}

constexpr CommandRow kMonitorRows[] = {
    {"MONITOR",
     monitor,
     "",
     kAdmin | kNoScript | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "1.0.0",
     nullptr,
     "Listens for all requests received by the server in real-time."},
};

}  // namespace

std::span<const CommandRow> monitor_rows() {
  return kMonitorRows;
}

}  // namespace latchkey::commands
