// The commands of replicas to their master: SYNC, PSYNC, REPLCONF.
#include <algorithm>
#include <string>
#include <vector>

#include "base/text/number.h"
#include "base/text/text.h"
#include "replication/channel_forms.h"
#include "replication/clock_sync.h"
#include "replication/master_session.h"
#include "replication/replica_role.h"
#include "replication/replication.h"
#include "replication/rows.h"
#include "server/client/client.h"
#include "server/client/client_info.h"
#include "server/command/command_context.h"
#include "server/server.h"

namespace latchkey::replication {

using namespace server;

namespace {

// It may be a name: replica-announce-ip.
constexpr size_t kMaxHostBytes = 255;

// The first steps of SYNC and PSYNC. False when the command needs no synchronization, or an error
// has been sent.
bool may_synchronize(CommandContext& ctx, const Replica& replica) {
  if (ctx.client.has(kClientReplica)) return false;
  const ReplicaRole& role = ctx.server.layer<Replication>().replica_role();
  if (role.active() && !role.connected())
    return ctx.refuse("NOMASTERLINK Can't SYNC while not connected with my master");
  if (ctx.client.pending_output() != 0)
    return ctx.refuse("ERR SYNC and PSYNC are invalid with pending output");
  if (replica.wants_no_keys && !replica.knows_eof)
    return ctx.refuse("ERR Filtered replica requires EOF capability");
  return true;
}

void sync(CommandContext& ctx) {
  Replication& replication = ctx.server.layer<Replication>();
  Replica& replica = replication.replica_of(ctx.client);
  if (!may_synchronize(ctx, replica)) return;
  ctx.server.log().notice("Replica " + replica.name() + " asks for synchronization");
  replica.used_psync = false;
  // A channel of Redis's form has a main client, and uses PSYNC.
  if (replica.rdb_channel && replica.main_client_id == 0) {
    if (!replication.may_use_dual_channel())
      return ctx.reply.error("ERR Dual channel replication is not enabled");
    replica.dual_channel = replica.rdb_only = true;
  }
  replication.synchronize(replica);
}

// PSYNC FAILOVER: the master asks this replica to replace it. False when it cannot.
bool take_over(CommandContext& ctx, std::string_view id) {
  ctx.server.log().notice("Failover request received for replid " + std::string(id) + ".");
  ReplicaRole& role = ctx.server.layer<Replication>().replica_role();
  if (!role.active()) return ctx.refuse("ERR PSYNC FAILOVER can't be sent to a master.");
  if (!base::equal_ignoring_case(id, ctx.server.replication_id()))
    return ctx.refuse("ERR PSYNC FAILOVER replid must match my replid.");
  role.promote();
  ctx.server.log().notice("MASTER MODE enabled (failover request from '" +
                          describe_for_log(ctx.client) + "')");
  return true;
}

void psync(CommandContext& ctx) {
  const std::string_view id = ctx.args[1];
  Replication& replication = ctx.server.layer<Replication>();
  Replica& replica = replication.replica_of(ctx.client);
  if (ctx.client.has(kClientReplica)) return;
  if (ctx.args.size() > 3 && is_word(ctx.args[3], "FAILOVER") && !take_over(ctx, id)) return;
  if (!may_synchronize(ctx, replica)) return;
  ctx.server.log().notice("Replica " + replica.name() + " asks for synchronization");
  int64_t offset = 0;
  if (!base::parse_int64(ctx.args[2], &offset)) {
    ctx.server.log().warning("Replica " + replica.name() +
                             " asks for synchronization but with a wrong offset");
    return ctx.reply.error("ERR value is not an integer or out of range");
  }
  replica.used_psync = true;
  if (replication.continue_from(replica, id, offset)) return;
  if (id != "?") replication.count_refused_partial_sync();
  if (replication.may_use_rdb_channel(replica)) return replication.await_rdb_channel(replica);
  if (replica.knows_dual_channel && replication.may_use_dual_channel())
    return replication.offer_channel(replica);
  replication.synchronize(replica);
}

bool announce_ip(CommandContext& ctx, Replica& replica, std::string_view ip) {
  if (ip.size() > kMaxHostBytes)
    return ctx.refuse("ERR REPLCONF ip-address provided by replica instance is too long: " +
                      std::to_string(ip.size()) + " bytes");
  replica.announced_ip = ip;
  return true;
}

bool announce_node(CommandContext& ctx, Replica& replica, std::string_view id) {
  if (ctx.server.slot_gate() == nullptr)
    return ctx.refuse("ERR This instance has cluster support disabled");
  if (!ctx.server.slot_gate()->knows_node(id))
    return ctx.refuse("ERR Unknown node " + std::string(id));
  replica.cluster_node_id = id;
  return true;
}

bool announce_filter(CommandContext& ctx, Replica& replica, std::string_view filter) {
  // The filter is "functions" or empty.
  bool with_functions = false;
  while (!filter.empty()) {
    const size_t end = std::min(filter.find(' '), filter.size());
    const std::string_view word = filter.substr(0, end);
    filter.remove_prefix(std::min(end + 1, filter.size()));
    if (word != "functions")
      return ctx.refuse("ERR Unsupported rdb-filter-only option: " + std::string(word));
    with_functions = true;
  }
  replica.wants_no_keys = true;
  replica.wants_no_functions = !with_functions;
  return true;
}

bool join_main_client(CommandContext& ctx, Replica& replica, std::string_view text) {
  int64_t id = 0;
  if (!ctx.read_int64(text, &id)) return false;
  const std::vector<Replica*>& replicas = ctx.server.layer<Replication>().replicas();
  const bool is_known = std::any_of(replicas.begin(), replicas.end(), [&](const Replica* main) {
    return main->client.id == static_cast<uint64_t>(id) &&
           main->state == ReplicaState::kWaitsForChannel;
  });
  if (!is_known) return ctx.refuse("ERR Unrecognized RDB client id: " + std::to_string(id));
  replica.main_client_id = static_cast<uint64_t>(id);
  return true;
}

// Valkey's form of the RDB channel: the main connection names the channel.
bool join_channel(CommandContext& ctx, Replica& replica, std::string_view text) {
  int64_t id = 0;
  if (!ctx.read_int64(text, &id)) return false;
  const auto channel_id = static_cast<uint64_t>(id);
  if (!replica.was_offered_channel ||
      ctx.server.layer<Replication>().waiting_channel(channel_id) == nullptr)
    return ctx.refuse("ERR Unrecognized RDB client id " + std::to_string(id));
  replica.channel_client_id = channel_id;
  return true;
}

void acknowledge(CommandContext& ctx, Replica& replica) {
  uint64_t offset = 0;
  uint64_t fsynced = 0;
  int64_t number = 0;
  if (!base::parse_int64(ctx.args[2], &number) || number < 0) return;
  offset = static_cast<uint64_t>(number);
  if (ctx.args.size() > 4 && is_word(ctx.args[3], "FACK") &&
      base::parse_int64(ctx.args[4], &number) && number >= 0)
    fsynced = static_cast<uint64_t>(number);
  ctx.server.layer<Replication>().acknowledge(replica, offset, fsynced);
}

void follow_masters_clock(CommandContext& ctx, std::string_view state) {
  if (!follow_clock(state, &ctx.server.data_clock()))
    return ctx.server.log().warning("The master's clock cannot be followed: " + std::string(state));
  MasterSession* session = ctx.server.layer<Replication>().replica_role().session();
  if (session != nullptr) session->clock_received();
  ctx.server.data_clock_moved();
}

// REPLCONF CLOCK (clock_sync.h).
void exchange_clock(CommandContext& ctx, std::string_view state) {
  if (ctx.client.has(kClientMaster)) return follow_masters_clock(ctx, state);
  if (ctx.client.has(kClientReplica) && state == "?")
    return ctx.server.layer<Replication>().propagate_clock();
  ctx.reply.error("ERR REPLCONF CLOCK is only for connections between master and replica");
}

// Reads pairs of option and value. ACK, CLOCK and GETACK have no reply.
void replconf(CommandContext& ctx) {
  if (ctx.args.size() % 2 == 0) return ctx.syntax_error();
  Replica& replica = ctx.server.layer<Replication>().replica_of(ctx.client);
  for (ArgReader options(ctx.args, 1); options.more();) {
    const std::string_view name = options.next();
    const std::string_view value = options.next();
    int64_t number = 0;
    if (is_word(name, "LISTENING-PORT")) {
      if (!ctx.read_int64(value, &number)) return;
      replica.listening_port = static_cast<int>(number);
    } else if (is_word(name, "IP-ADDRESS")) {
      if (!announce_ip(ctx, replica, value)) return;
    } else if (is_word(name, "CAPA")) {
      // Unknown capabilities are those of newer servers.
      if (is_word(value, "EOF")) replica.knows_eof = true;
      if (is_word(value, "PSYNC2")) replica.knows_psync2 = true;
      if (is_word(value, "RDB-CHANNEL-REPL")) replica.knows_rdb_channel = true;
      if (is_word(value, "DUAL-CHANNEL")) replica.knows_dual_channel = true;
      if (is_word(value, "CLOCK")) replica.follows_clock = true;
    } else if (is_word(name, "VERSION") && ctx.server.edition().is_valkey()) {
      replica.announced_version = true;
    } else if (is_word(name, "SET-CLUSTER-NODE-ID") &&
               ctx.server.edition().is_valkey_since({9, 0})) {
      if (!announce_node(ctx, replica, value)) return;
    } else if (is_word(name, "RDB-ONLY")) {
      if (!ctx.read_int64_in(value, 0, 1, &number)) return;
      replica.rdb_only = number == 1;
    } else if (is_word(name, "RDB-FILTER-ONLY")) {
      if (!announce_filter(ctx, replica, value)) return;
    } else if (is_word(name, "RDB-CHANNEL")) {
      if (!ctx.read_int64_in(value, 0, 1, &number)) return;
      replica.rdb_channel = number == 1;
    } else if (is_word(name, "MAIN-CH-CLIENT-ID")) {
      if (!join_main_client(ctx, replica, value)) return;
    } else if (is_word(name, "SET-RDB-CLIENT-ID") && knows_dual_channel(ctx.server.edition())) {
      if (!join_channel(ctx, replica, value)) return;
    } else if (is_word(name, "ACK")) {
      return acknowledge(ctx, replica);
    } else if (is_word(name, "CLOCK")) {
      return exchange_clock(ctx, value);
    } else if (is_word(name, "GETACK")) {
      MasterSession* session = ctx.server.layer<Replication>().replica_role().session();
      if (session != nullptr && &session->client() == &ctx.client) session->acknowledge_soon();
      return;
    } else {
      return ctx.reply.error("ERR Unrecognized REPLCONF option: " + std::string(name));
    }
  }
  ctx.reply.ok();
}

constexpr CommandRow kSyncRows[] = {
    {"PSYNC",
     psync,
     "replicationid offset [_...]",
     kAdmin | kNoScript | kNoAsyncLoading | kNoMulti | kNotInSpace,
     {},
     0,
     Group::kServer,
     "2.8.0",
     nullptr,
     "An internal command used in replication."},
    {"REPLCONF",
     replconf,
     "[_...]",
     kAdmin | kNoScript | kLoading | kStale | kAllowBusy,
     {},
     0,
     Group::kServer,
     "3.0.0",
     "O(1)",
     "An internal command for configuring the replication stream.",
     {.system = true}},
    {"SYNC",
     sync,
     "",
     kAdmin | kNoScript | kNoAsyncLoading | kNoMulti | kNotInSpace,
     {},
     0,
     Group::kServer,
     "1.0.0",
     nullptr,
     "An internal command used in replication."},
};

}  // namespace

std::span<const CommandRow> sync_rows() {
  return kSyncRows;
}

}  // namespace latchkey::replication
