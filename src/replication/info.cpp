#include "replication/info.h"

#include <string>

#include "replication/failover.h"
#include "replication/following.h"
#include "replication/replication.h"
#include "server/info.h"
#include "server/server.h"

namespace latchkey::replication {

namespace {

std::string describe(const Replica& replica, int64_t now_ms) {
  const int64_t lag = replica.state == ReplicaState::kOnline ? replica.lag_seconds(now_ms) : 0;
  return "ip=" + replica.ip() + ",port=" + std::to_string(replica.listening_port) +
         ",state=" + std::string(replica.state_name()) +
         ",offset=" + std::to_string(replica.acked_offset) + ",lag=" + std::to_string(lag);
}

}  // namespace

void describe(const Replication& replication, server::InfoText& text) {
  server::Server& server = replication.server();
  const server::ConfigValues& settings = server.settings();
  const Following& following = replication.following();
  text.field("role", following.active() ? "slave" : "master");
  if (following.active()) following.describe(text);
  text.field("connected_slaves", replication.count_connected());
  if (!following.active() && settings.min_replicas_to_write > 0 &&
      settings.min_replicas_max_lag > 0)
    text.field("min_slaves_good_slaves", server.good_replicas());
  size_t number = 0;
  for (const Replica* replica : replication.replicas()) {
    if (replica->rdb_channel) continue;
    text.field("slave" + std::to_string(number++), describe(*replica, server.now_ms()));
  }
  text.field("master_failover_state", name_of(replication.failover().state()));
  text.field("master_replid", server.replication_id());
  text.field("master_replid2", server.history().second_id());
  text.field("master_repl_offset", replication.offset());
  text.field("second_repl_offset", server.history().second_end());
  const Backlog* backlog = replication.stream().backlog();
  text.field("repl_backlog_active", backlog != nullptr ? 1 : 0);
  text.field("repl_backlog_size", settings.repl_backlog_size);
  text.field("repl_backlog_first_byte_offset", backlog != nullptr ? backlog->first() : 0);
  text.field("repl_backlog_histlen", backlog != nullptr ? backlog->size() : 0);
}

}  // namespace latchkey::replication
