// ASKING, READONLY, READWRITE: what clients of a cluster say to its nodes, and what others are
// told.
#include "commands/groups.h"
#include "server/command_context.h"

namespace latchkey::commands {

using namespace server;

namespace {

void refuse(CommandContext& ctx) {
  ctx.reply.error("ERR This instance has cluster support disabled");
}

constexpr CommandRow kClusterRows[] = {
    {"ASKING",
     refuse,
     "",
     kFast,
     {},
     kAclConnection,
     Group::kCluster,
     "3.0.0",
     "O(1)",
     "Signals that a cluster client is following an -ASK redirect."},
    {"READONLY",
     refuse,
     "",
     kLoading | kStale | kFast,
     {},
     kAclConnection,
     Group::kCluster,
     "3.0.0",
     "O(1)",
     "Enables read-only queries for a connection to a Redis Cluster replica node."},
    {"READWRITE",
     refuse,
     "",
     kLoading | kStale | kFast,
     {},
     kAclConnection,
     Group::kCluster,
     "3.0.0",
     "O(1)",
     "Enables read-write queries for a connection to a Reids Cluster replica node."},
};

}  // namespace

std::span<const CommandRow> cluster_rows() {
  return kClusterRows;
}

}  // namespace latchkey::commands
