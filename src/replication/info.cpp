#include "replication/info.h"

#include <string>

#include "base/time_units.h"
#include "net/connection.h"
#include "replication/channel_forms.h"
#include "replication/failover.h"
#include "replication/master_session.h"
#include "replication/replica_role.h"
#include "replication/replication.h"
#include "server/client/client.h"
#include "server/emulation/info_fields.h"
#include "server/observe/info.h"
#include "server/server.h"

namespace latchkey::replication {

namespace {

// The word of a replica's line that Redis 8.6 has added.
std::string io_thread_word(const server::Client& client) {
  if (!server::has_info_field(client.server.edition(), "master_client_io_thread")) return "";
  const net::Connection* const connection = client.connection();
  return ",io-thread=" + std::to_string(connection != nullptr ? connection->io_thread() : 0);
}

// Valkey since 8.0: RDB channels are listed too.
bool lists_channels(const server::Server& server) {
  return server.edition().is_valkey() && knows_dual_channel(server.edition());
}

std::string describe_as_valkey(const Replica& replica, std::string_view text) {
  constexpr std::string_view kOwnWord = "state=send_bulk_and_stream";
  std::string described(text);
  if (const size_t at = described.find(kOwnWord); at != described.npos)
    described.replace(at, kOwnWord.size(), "state=bg_transfer");
  const char* type = replica.state == ReplicaState::kStreams ? "main-channel" : "replica";
  return described + ",type=" + (replica.rdb_channel ? "rdb-channel" : type);
}

std::string describe(const Replica& replica, int64_t now_ms) {
  const int64_t lag = replica.state == ReplicaState::kOnline ? replica.lag_seconds(now_ms) : 0;
  return "ip=" + replica.ip() + ",port=" + std::to_string(replica.listening_port) +
         ",state=" + std::string(replica.state_name()) +
         ",offset=" + std::to_string(replica.acked_offset) + ",lag=" + std::to_string(lag) +
         io_thread_word(replica.client);
}

// Fields of a full resynchronisation in progress.
void describe_sync(const ReplicaRole& role, int64_t now_ms, server::InfoText& text) {
  const MasterConnection* carrier = role.carrier();
  const DatasetReceiver* receiver = carrier != nullptr ? carrier->receiver() : nullptr;
  const bool known = receiver != nullptr && !receiver->shape().has_mark();
  const int64_t total = known ? static_cast<int64_t>(receiver->shape().size) : -1;
  const int64_t done = receiver != nullptr ? static_cast<int64_t>(receiver->received()) : 0;
  text.field("master_sync_total_bytes", total);
  text.field("master_sync_read_bytes", done);
  text.field("master_sync_left_bytes", total - done);
  text.field("master_sync_perc",
             100 * static_cast<double>(done) / static_cast<double>(total == 0 ? 1 : total), 2);
  text.field("master_sync_last_io_seconds_ago",
             carrier != nullptr ? (now_ms - carrier->last_io_ms()) / base::kMsPerSecond : -1);
}

// Fields of a replica.
void describe(const ReplicaRole& role, const server::Server& server, server::InfoText& text) {
  const int64_t now_ms = server.machine_ms();
  const server::ConfigValues& settings = server.settings();
  MasterSession* session = role.session();
  const int64_t offset = role.knows_place() ? server.replication_offset() : 1;
  text.field("master_host", role.host());
  text.field("master_port", role.port());
  text.field("master_link_status", session != nullptr ? "up" : "down");
  text.field("master_last_io_seconds_ago",
             session != nullptr ? (now_ms - session->last_io_ms()) / base::kMsPerSecond : -1);
  const bool syncs = role.state() == ReplicaRole::State::kSync;
  text.field("master_sync_in_progress", syncs ? 1 : 0);
  text.field("slave_read_repl_offset", session != nullptr ? session->read_offset() : offset);
  text.field("slave_repl_offset", offset);
  if (lists_channels(server)) {
    text.field("replicas_repl_buffer_size", role.full_sync_buffer());
    text.field("replicas_repl_buffer_peak", role.full_sync_buffer_peak());
  } else {
    text.field("replica_full_sync_buffer_size", role.full_sync_buffer());
    text.field("replica_full_sync_buffer_peak", role.full_sync_buffer_peak());
  }
  text.field("master_current_sync_attempts", role.attempts());
  text.field("master_total_sync_attempts", role.attempts_in_all());
  if (syncs) describe_sync(role, now_ms, text);
  if (session != nullptr && session->client().connection() != nullptr)
    text.field("master_client_io_thread", session->client().connection()->io_thread());
  if (session == nullptr) {
    const int64_t since_ms = role.down_since_ms();
    text.field("master_link_down_since_seconds",
               since_ms != 0 ? (now_ms - since_ms) / base::kMsPerSecond : -1);
  }
  text.field("total_disconnect_time_sec", role.disconnected_ms() / base::kMsPerSecond);
  text.field("slave_priority", settings.replica_priority);
  text.field("slave_read_only", settings.replica_read_only ? 1 : 0);
  text.field("replica_announced", settings.replica_announced ? 1 : 0);
}

}  // namespace

void describe(const Replication& replication, server::InfoText& text) {
  server::Server& server = replication.server();
  const server::ConfigValues& settings = server.settings();
  const ReplicaRole& role = replication.replica_role();
  text.field("role", role.active() ? "slave" : "master");
  if (role.active()) describe(role, server, text);
  const bool lists_all = lists_channels(server);
  text.field("connected_slaves",
             lists_all ? replication.replicas().size() : replication.count_connected());
  if (!role.active() && settings.min_replicas_to_write > 0 && settings.min_replicas_max_lag > 0)
    text.field("min_slaves_good_slaves", server.good_replicas());
  size_t number = 0;
  for (const Replica* replica : replication.replicas()) {
    if (replica->rdb_channel && !lists_all) continue;
    const std::string described = describe(*replica, server.machine_ms());
    text.field("slave" + std::to_string(number++),
               lists_all ? describe_as_valkey(*replica, described) : described);
  }
  if (lists_all) text.field("replicas_waiting_psync", replication.count_waiting_channels());
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
