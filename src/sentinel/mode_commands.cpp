// PUBLISH and ROLE of a Sentinel, and the list of commands that it shares with other servers.
#include <algorithm>

#include "sentinel/hello.h"
#include "sentinel/rows.h"
#include "sentinel/sentinel_server.h"
#include "server/command/command_context.h"
#include "server/server.h"

namespace latchkey::sentinel {

using namespace server;

namespace {

bool is_among(std::string_view name, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool is_shared_command(std::string_view full_name) {
  constexpr std::string_view kCommands[] = {
      "acl",  "auth",       "client",       "command",  "hello",     "info",
      "ping", "psubscribe", "punsubscribe", "shutdown", "subscribe", "unsubscribe",
  };
  constexpr std::string_view kClientSubcommands[] = {
      "caching", "getname",  "getredir",     "help",    "id",      "info",
      "kill",    "list",     "no-evict",     "pause",   "reply",   "setinfo",
      "setname", "tracking", "trackinginfo", "unblock", "unpause",
  };
  const size_t bar = full_name.find('|');
  const std::string_view command = full_name.substr(0, bar);
  if (!is_among(command, kCommands)) return false;
  return bar == std::string_view::npos || command != "client" ||
         is_among(full_name.substr(bar + 1), kClientSubcommands);
}

namespace {

void publish(CommandContext& ctx) {
  if (ctx.args[1] != kHelloChannel)
    return ctx.reply.error("ERR Only HELLO messages are accepted by Sentinel instances.");
  ctx.server.layer<SentinelServer>().sentinel().discovery().process_hello(ctx.args[2]);
  ctx.reply.integer(1);
}

void role(CommandContext& ctx) {
  const auto& masters = ctx.server.layer<SentinelServer>().sentinel().masters();
  ctx.reply.array(2);
  ctx.reply.bulk("sentinel");
  ctx.reply.array(masters.size());
  for (const auto& [name, master] : masters) ctx.reply.bulk(name);
}

constexpr CommandRow kModeRows[] = {
    {"PUBLISH",
     publish,
     "channel message",
     kPubSub | kLoading | kStale | kFast,
     {},
     0,
     Group::kPubSub,
     "2.0.0",
     "O(N+M) where N is the number of clients subscribed to the receiving channel and M is the "
     "total number of subscribed patterns (by any client).",
     "Posts a message to a channel.",
     {.channels = {.first = 1, .only_one = true}}},
    {"ROLE",
     role,
     "",
     kNoScript | kLoading | kStale | kFast,
     {},
     kAclAdmin | kAclDangerous,
     Group::kServer,
     "2.8.12",
     "O(1)",
     "Returns the replication role."},
};

}  // namespace

std::span<const CommandRow> mode_rows() {
  return kModeRows;
}

}  // namespace latchkey::sentinel
