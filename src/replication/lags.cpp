#include "replication/lags.h"

#include <algorithm>
#include <string>

#include "replication/replication.h"
#include "server/server.h"

namespace latchkey::replication {

using base::LogLevel;

bool any_lags(const Replication& replication) {
  const auto& replicas = replication.replicas();
  return std::any_of(replicas.begin(), replicas.end(), [&](const Replica* replica) {
    return replica->used_psync && !replica->rdb_channel &&
           replica->acked_offset != replication.offset();
  });
}

void log_lags(const Replication& replication) {
  server::Server& server = replication.server();
  size_t in_sync = 0;
  for (const Replica* replica : replication.replicas()) {
    if (replica->rdb_channel) continue;
    if (replica->acked_offset == replication.offset()) {
      ++in_sync;
      continue;
    }
    server.log().logf(LogLevel::kNotice,
                      "Lagging replica %s reported offset %lld behind master, lag=%lld, state=%s.",
                      replica->name().c_str(),
                      static_cast<long long>(replication.offset() - replica->acked_offset),
                      static_cast<long long>(replica->state == ReplicaState::kOnline
                                                 ? replica->lag_seconds(server.machine_ms())
                                                 : 0),
                      std::string(replica->state_name()).c_str());
  }
  if (!replication.replicas().empty())
    server.log().logf(LogLevel::kNotice, "%zu of %zu replicas are in sync when shutting down.",
                      in_sync, replication.count_connected());
}

}  // namespace latchkey::replication
