#include "cluster/topology.h"

#include <string>
#include <string_view>

#include "cluster/cluster.h"
#include "server/command_context.h"
#include "server/server.h"

namespace latchkey::cluster {

using namespace server;

namespace {

// What clients shall call the node, where they are told a hostname or an address: "?" is a hostname
// that it does not have.
std::string preferred_endpoint(const Server& server, const NodeAddress& address) {
  if (server.settings().cluster_preferred_endpoint_type == ClusterEndpointType::kIp)
    return address.ip;
  return address.hostname.empty() ? "?" : address.hostname;
}

void reply_endpoint(CommandContext& ctx, const Cluster& cluster) {
  const NodeAddress address = cluster.address();
  const auto preferred = ctx.server.settings().cluster_preferred_endpoint_type;
  if (preferred == ClusterEndpointType::kUnknownEndpoint) {
    ctx.reply.null();
  } else {
    ctx.reply.bulk(preferred_endpoint(ctx.server, address));
  }
  ctx.reply.integer(address.port);
  ctx.reply.bulk(cluster.state().id);
  const bool with_ip = preferred != ClusterEndpointType::kIp && !address.ip.empty();
  const bool with_hostname =
      preferred != ClusterEndpointType::kHostname && !address.hostname.empty();
  ctx.reply.map(size_t{with_ip} + size_t{with_hostname});
  if (with_ip) {
    ctx.reply.bulk("ip");
    ctx.reply.bulk(address.ip);
  }
  if (with_hostname) {
    ctx.reply.bulk("hostname");
    ctx.reply.bulk(address.hostname);
  }
}

void reply_shard_node(CommandContext& ctx, const Cluster& cluster) {
  const NodeAddress address = cluster.address();
  const auto field = [&](std::string_view name, std::string_view value) {
    ctx.reply.bulk(name);
    ctx.reply.bulk(value);
  };
  const bool unnamed = ctx.server.settings().cluster_preferred_endpoint_type ==
                       ClusterEndpointType::kUnknownEndpoint;
  ctx.reply.map(address.hostname.empty() ? 7 : 8);
  field("id", cluster.state().id);
  ctx.reply.bulk("port");
  ctx.reply.integer(address.port);
  field("ip", address.ip);
  field("endpoint", unnamed ? std::string() : preferred_endpoint(ctx.server, address));
  if (!address.hostname.empty()) field("hostname", address.hostname);
  field("role", "master");
  ctx.reply.bulk("replication-offset");
  ctx.reply.integer(ctx.server.replication_offset());
  field("health", "online");
}

}  // namespace

// -----------------------------------------------------------

void cluster_info(CommandContext& ctx, Cluster& cluster) {
  const NodeState& state = cluster.state();
  const size_t slots = state.slots.size();
  std::string text;
  const auto field = [&](std::string_view name, const std::string& value) {
    text.append(name).append(":").append(value).append("\r\n");
  };
  field("cluster_state", cluster.is_up() ? "ok" : "fail");
  field("cluster_slots_assigned", std::to_string(slots));
  field("cluster_slots_ok", std::to_string(slots));
  field("cluster_slots_pfail", "0");
  field("cluster_slots_fail", "0");
  field("cluster_known_nodes", "1");
  field("cluster_size", slots > 0 ? "1" : "0");
  field("cluster_current_epoch", std::to_string(state.current_epoch));
  field("cluster_my_epoch", std::to_string(state.config_epoch));
  field("cluster_stats_messages_sent", "0");
  field("cluster_stats_messages_received", "0");
  field("total_cluster_links_buffer_limit_exceeded", "0");
  ctx.reply.verbatim("txt", text);
}

void cluster_nodes(CommandContext& ctx, Cluster& cluster) {
  ctx.reply.verbatim("txt", describe(cluster.state(), cluster.address()) + "\n");
}

void cluster_myid(CommandContext& ctx, Cluster& cluster) {
  ctx.reply.bulk(cluster.state().id);
}

void cluster_myshardid(CommandContext& ctx, Cluster& cluster) {
  ctx.reply.bulk(cluster.state().shard_id);
}

void cluster_slots(CommandContext& ctx, Cluster& cluster) {
  const SlotSet& slots = cluster.state().slots;
  ctx.reply.array(slots.runs());
  slots.for_each_run([&](int first, int last) {
    ctx.reply.array(3);
    ctx.reply.integer(first);
    ctx.reply.integer(last);
    ctx.reply.array(4);
    reply_endpoint(ctx, cluster);
  });
}

void cluster_shards(CommandContext& ctx, Cluster& cluster) {
  const SlotSet& slots = cluster.state().slots;
  ctx.reply.array(1);
  ctx.reply.map(2);
  ctx.reply.bulk("slots");
  ctx.reply.array(slots.runs() * 2);
  slots.for_each_run([&](int first, int last) {
    ctx.reply.integer(first);
    ctx.reply.integer(last);
  });
  ctx.reply.bulk("nodes");
  ctx.reply.array(1);
  reply_shard_node(ctx, cluster);
}

void cluster_links(CommandContext& ctx, Cluster&) {
  ctx.reply.empty_array();
}

}  // namespace latchkey::cluster
