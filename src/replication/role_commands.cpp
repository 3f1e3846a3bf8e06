// The replication role, and acknowledgements of replicas: ROLE, REPLICAOF, FAILOVER, WAIT.
#include <algorithm>
#include <climits>
#include <string>
#include <vector>

#include "base/port.h"
#include "base/text/number.h"
#include "base/text/text.h"
#include "replication/failover.h"
#include "replication/replica_role.h"
#include "replication/replication.h"
#include "replication/rows.h"
#include "replication/waits.h"
#include "server/client/client.h"
#include "server/client/client_info.h"
#include "server/command/command_context.h"
#include "server/server.h"

namespace latchkey::replication {

using namespace server;

namespace {

void role_of_replica(CommandContext& ctx, const ReplicaRole& role) {
  ctx.reply.array(5);
  ctx.reply.bulk("slave");
  ctx.reply.bulk(role.host());
  ctx.reply.integer(role.port());
  ctx.reply.bulk(name_of(role.state()));
  ctx.reply.integer(role.connected() ? ctx.server.replication_offset() : -1);
}

void role(CommandContext& ctx) {
  const Replication& replication = ctx.server.layer<Replication>();
  if (replication.replica_role().active()) return role_of_replica(ctx, replication.replica_role());
  const std::vector<Replica*>& replicas = replication.replicas();
  const auto is_online = [](const Replica* replica) {
    return replica->state == ReplicaState::kOnline;
  };
  ctx.reply.array(3);
  ctx.reply.bulk("master");
  ctx.reply.integer(static_cast<int64_t>(replication.offset()));
  ctx.reply.array(static_cast<size_t>(std::count_if(replicas.begin(), replicas.end(), is_online)));
  for (const Replica* replica : replicas) {
    if (!is_online(replica)) continue;
    ctx.reply.array(3);
    ctx.reply.bulk(replica->ip());
    ctx.reply.bulk(std::to_string(replica->listening_port));
    ctx.reply.bulk(std::to_string(replica->acked_offset));
  }
}

void promote(CommandContext& ctx, ReplicaRole& role) {
  if (role.active()) {
    role.promote();
    ctx.server.log().notice("MASTER MODE enabled (user request from '" +
                            describe_for_log(ctx.client) + "')");
  }
  ctx.reply.ok();
}

void replicaof(CommandContext& ctx) {
  if (ctx.server.in_cluster()) return ctx.reply.error("ERR REPLICAOF not allowed in cluster mode.");
  if (ctx.server.layer<Replication>().failover().active())
    return ctx.reply.error("ERR REPLICAOF not allowed while failing over.");
  ReplicaRole& role = ctx.server.layer<Replication>().replica_role();
  if (is_word(ctx.args[1], "NO") && is_word(ctx.args[2], "ONE")) return promote(ctx, role);
  if (ctx.client.has(kClientReplica)) {
    return ctx.reply.error("ERR Command is not valid when client is a replica.");
  }
  int64_t port = 0;
  if (!base::parse_int64(ctx.args[2], &port) || port < 0 || port > base::kLastPort)
    return ctx.reply.error("ERR Invalid master port");
  const std::string host(ctx.args[1]);
  // It would be the replica of nobody, which no REPLICAOF NO ONE could end.
  if (host.empty()) return ctx.reply.error("ERR Invalid master host");
  if (role.active() && base::equal_ignoring_case(role.host(), host) && role.port() == port) {
    ctx.server.log().notice(
        "REPLICAOF would result into synchronization with the master we are already connected "
        "with. No operation performed.");
    return ctx.reply.status("OK Already connected to specified master");
  }
  role.replicate_from(host, static_cast<int>(port));
  ctx.server.log().notice("REPLICAOF " + host + ":" + std::to_string(port) +
                          " enabled (user request from '" + describe_for_log(ctx.client) + "')");
  ctx.reply.ok();
}

struct FailoverRequest {
  bool abort = false;
  Failover::Order order;
};

// Accepts each option once, and ABORT only alone.
bool read_failover_request(CommandContext& ctx, FailoverRequest* request) {
  Failover::Order& order = request->order;
  std::string_view value;
  for (ArgReader options(ctx.args, 1); options.more();) {
    int64_t number = 0;
    if (ctx.args.size() == 2 && options.word("ABORT")) {
      request->abort = true;
    } else if (order.timeout_ms == 0 && options.word("TIMEOUT", &value)) {
      if (!ctx.read_int64(value, &order.timeout_ms)) return false;
      if (order.timeout_ms > 0) continue;
      return ctx.refuse("ERR FAILOVER timeout must be greater than 0");
    } else if (!order.target && options.left() >= 3 && options.word("TO")) {
      order.target = Failover::Target{.host = std::string(options.next())};
      if (!ctx.read_int64_in(options.next(), INT_MIN, INT_MAX, &number)) return false;
      order.target->port = static_cast<int>(number);
    } else if (!order.force && options.word("FORCE")) {
      order.force = true;
    } else {
      ctx.syntax_error();
      return false;
    }
  }
  return true;
}

bool may_fail_over_to(CommandContext& ctx, const Failover::Target& target) {
  const std::vector<Replica*>& replicas = ctx.server.layer<Replication>().replicas();
  const auto found = std::find_if(replicas.begin(), replicas.end(), [&](const Replica* replica) {
    return !replica->rdb_channel && replica->is_at(target.host, target.port);
  });
  if (found == replicas.end())
    return ctx.refuse("ERR FAILOVER target HOST and PORT is not a replica.");
  if ((*found)->state != ReplicaState::kOnline)
    return ctx.refuse("ERR FAILOVER target replica is not online.");
  return true;
}

void abort_failover(CommandContext& ctx, Failover& failover) {
  if (!failover.active()) return ctx.reply.error("ERR No failover in progress.");
  failover.abort("Failover manually aborted");
  ctx.reply.ok();
}

void failover(CommandContext& ctx) {
  if (ctx.server.in_cluster()) {
    return ctx.reply.error(
        "ERR FAILOVER not allowed in cluster mode. Use CLUSTER FAILOVER command instead.");
  }
  FailoverRequest request;
  if (!read_failover_request(ctx, &request)) return;
  Replication& replication = ctx.server.layer<Replication>();
  if (request.abort) return abort_failover(ctx, replication.failover());
  if (replication.failover().active()) return ctx.reply.error("ERR FAILOVER already in progress.");
  if (ctx.server.is_replica())
    return ctx.reply.error("ERR FAILOVER is not valid when server is a replica.");
  if (replication.replicas().empty())
    return ctx.reply.error("ERR FAILOVER requires connected replicas.");
  const Failover::Order& order = request.order;
  if (order.force && (!order.target || order.timeout_ms == 0)) {
    return ctx.reply.error(
        "ERR FAILOVER with force option requires both a timeout and target HOST and IP.");
  }
  if (order.target && !may_fail_over_to(ctx, *order.target)) return;
  replication.failover().begin(order);
  ctx.reply.ok();
}

void wait(CommandContext& ctx) {
  if (ctx.server.is_replica()) {
    return ctx.reply.error(
        "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if "
        "a replica is configured to be writable (which is not the default) writes to replicas are "
        "just local and are not propagated.");
  }
  int64_t wanted = 0;
  int64_t deadline_ms = 0;
  if (!ctx.read_int64(ctx.args[1], &wanted) || !ctx.read_wait_ms(ctx.args[2], &deadline_ms)) return;
  Replication& replication = ctx.server.layer<Replication>();
  const auto have = static_cast<int64_t>(replication.count_acknowledged(ctx.client.written_offset));
  if (have >= wanted || ctx.client.has(kClientDenyBlocking)) return ctx.reply.integer(have);
  replication.waits().wait(ctx.client, wanted, deadline_ms);
}

constexpr CommandRow kRoleRows[] = {
    {"FAILOVER",
     failover,
     "[TO target=host port [FORCE]] [ABORT] [TIMEOUT milliseconds]",
     kAdmin | kNoScript | kStale | kNotInSpace,
     {},
     0,
     Group::kServer,
     "6.2.0",
     "O(1)",
     "Starts a coordinated failover from a server to one of its replicas."},
    {"REPLICAOF",
     replicaof,
     "{args={host-port=host port}|{no-one=NO ONE}}",
     kAdmin | kNoScript | kStale | kNoAsyncLoading | kNotInSpace,
     {},
     0,
     Group::kServer,
     "5.0.0",
     "O(1)",
     "Configures a server as replica of another, or promotes it to a master."},
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
    {"SLAVEOF",
     replicaof,
     "{args={host-port=host port}|{no-one=NO ONE}}",
     kAdmin | kNoScript | kStale | kNoAsyncLoading | kNotInSpace,
     {},
     0,
     Group::kServer,
     "1.0.0",
     "O(1)",
     "Sets a Redis server as a replica of another, or promotes it to being a master.",
     {.deprecated_since = "5.0.0", .replaced_by = "`REPLICAOF`"}},
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

std::span<const CommandRow> role_rows() {
  return kRoleRows;
}

}  // namespace latchkey::replication
