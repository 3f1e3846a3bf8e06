// CLIENT TRACKING and its kin: how a client is told of changes to what it has read
// (server/client/tracking.h). Their rows stand with those of CLIENT.
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
