// CLIENT TRACKING and related subcommands, by which a client is notified of changes to keys it has
// read (server/client/tracking.h). Their rows are in client.cpp.
#pragma once

namespace latchkey::server {
struct CommandContext;
}

namespace latchkey::commands {

void client_caching(server::CommandContext& ctx);
void client_getredir(server::CommandContext& ctx);
void client_tracking(server::CommandContext& ctx);
void client_trackinginfo(server::CommandContext& ctx);

}  // namespace latchkey::commands
