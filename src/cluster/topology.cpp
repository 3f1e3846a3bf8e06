#include "cluster/topology.h"

#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/nodes_text.h"
#include "server/command/command_context.h"
#include "server/server.h"

namespace latchkey::cluster {

using namespace server;

namespace {

uint64_t offset_of(Cluster& cluster, const Node& node) {
  return node.is_myself() ? cluster.offset() : node.offset;
}

// Whether clients may read from the replica: it is up, and has received its master's dataset.
bool is_available(Cluster& cluster, const Node& node) {
  return !node.has(kFailing) && offset_of(cluster, node) != 0;
}

// --- CLUSTER INFO --------------------------------------------------------------------------------

// How many nodes cannot be reached.
struct NodeFigures {
  size_t suspect = 0;
  size_t failing = 0;
  size_t suspect_voters = 0;
  size_t failing_voters = 0;
};

NodeFigures count_nodes(const NodeTable& nodes) {
  NodeFigures figures;
  for (const Node* node : nodes.all()) {
    if (node->has(kFailing)) {
      ++figures.failing;
      figures.failing_voters += node->votes() ? 1 : 0;
    } else if (node->has(kSuspect)) {
      ++figures.suspect;
      figures.suspect_voters += node->votes() ? 1 : 0;
    }
  }
  return figures;
}

struct SlotFigures {
  size_t assigned = 0;
  size_t suspect = 0;
  size_t failing = 0;
};

SlotFigures count_slots(const NodeTable& nodes) {
  SlotFigures figures;
  for (const Node* node : nodes.all()) {
    figures.assigned += node->slots.size();
    if (node->has(kFailing)) {
      figures.failing += node->slots.size();
    } else if (node->has(kSuspect)) {
      figures.suspect += node->slots.size();
    }
  }
  return figures;
}

class InfoLines {
 public:
  void field(std::string_view name, std::string_view value) {
    text_.append(name).append(":").append(value).append("\r\n");
  }
  void field(std::string_view name, uint64_t value) { field(name, std::to_string(value)); }
  // The counts above zero, and their sum.
  void messages(std::string_view direction, const std::array<uint64_t, kMessageTypes>& counts) {
    const std::string prefix = "cluster_stats_messages_";
    uint64_t all = 0;
    for (size_t type = 0; type < kMessageTypes; ++type) {
      all += counts[type];
      if (counts[type] == 0) continue;
      field(prefix + std::string(name_of(static_cast<MessageType>(type))) + "_" +
                std::string(direction),
            counts[type]);
    }
    field(prefix + std::string(direction), all);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// --- Nodes for clients ---------------------------------------------------------------------------

void reply_endpoint(CommandContext& ctx, const Node& node) {
  const auto preferred = ctx.server.settings().cluster_preferred_endpoint_type;
  const ClientView view = view_of(ctx.client);
  if (preferred == ClusterEndpointType::kUnknownEndpoint) {
    ctx.reply.null();
  } else {
    ctx.reply.bulk(preferred_endpoint(ctx.server, node, view));
  }
  ctx.reply.integer(node.port_for(view));
  ctx.reply.bulk(node.id);
  const bool with_ip = preferred != ClusterEndpointType::kIp && !node.address.ip.empty();
  const bool with_hostname = preferred != ClusterEndpointType::kHostname && !node.hostname.empty();
  const bool with_zone = !node.availability_zone.empty();
  ctx.reply.map(size_t{with_ip} + size_t{with_hostname} + size_t{with_zone});
  if (with_ip) {
    ctx.reply.bulk("ip");
    ctx.reply.bulk(node.ip_for(view));
  }
  if (with_hostname) {
    ctx.reply.bulk("hostname");
    ctx.reply.bulk(node.hostname);
  }
  if (with_zone) {
    ctx.reply.bulk("availability-zone");
    ctx.reply.bulk(node.availability_zone);
  }
}

std::string_view health_of(Cluster& cluster, const Node& node) {
  if (node.has(kFailing)) return "fail";
  return node.is_replica() && offset_of(cluster, node) == 0 ? "loading" : "online";
}

void reply_shard_node(CommandContext& ctx, Cluster& cluster, const Node& node) {
  const auto field = [&](std::string_view name, std::string_view value) {
    ctx.reply.bulk(name);
    ctx.reply.bulk(value);
  };
  const auto port = [&](std::string_view name, int number) {
    if (number == 0) return;
    ctx.reply.bulk(name);
    ctx.reply.integer(number);
  };
  constexpr size_t kFields = 6;
  const int plain_port = node.port_for(ClientView{.secure = false});
  const int tls_port = node.port_for(ClientView{.secure = true});
  ctx.reply.map(kFields + size_t{!node.hostname.empty()} + size_t{plain_port != 0} +
                size_t{tls_port != 0} + size_t{!node.availability_zone.empty()});
  field("id", node.id);
  port("port", plain_port);
  port("tls-port", tls_port);
  const ClientView view = view_of(ctx.client);
  field("ip", node.ip_for(view));
  field("endpoint", preferred_endpoint(ctx.server, node, view));
  if (!node.hostname.empty()) field("hostname", node.hostname);
  field("role", node.is_master() ? "master" : "replica");
  ctx.reply.bulk("replication-offset");
  ctx.reply.integer(static_cast<int64_t>(offset_of(cluster, node)));
  field("health", health_of(cluster, node));
  if (!node.availability_zone.empty()) field("availability-zone", node.availability_zone);
}

void reply_slots(CommandContext& ctx, const SlotSet& slots) {
  ctx.reply.array(slots.runs() * 2);
  slots.for_each_run([&](int first, int last) {
    ctx.reply.integer(first);
    ctx.reply.integer(last);
  });
}

// Consecutive slots with the same owner.
struct SlotRange {
  int first;
  int last;
  const Node* owner;
};

std::vector<SlotRange> ranges_of(const NodeTable& nodes) {
  std::vector<SlotRange> ranges;
  for (int slot = 0; slot < store::kKeySlots; ++slot) {
    const Node* const owner = nodes.owner(slot);
    if (owner == nullptr) continue;
    if (!ranges.empty() && ranges.back().last == slot - 1 && ranges.back().owner == owner) {
      ranges.back().last = slot;
    } else {
      ranges.push_back({slot, slot, owner});
    }
  }
  return ranges;
}

void reply_link(CommandContext& ctx, const Node& node, const Link& link) {
  constexpr size_t kFields = 6;
  ctx.reply.map(kFields);
  ctx.reply.bulk("direction");
  ctx.reply.bulk(link.incoming ? "from" : "to");
  ctx.reply.bulk("node");
  ctx.reply.bulk(node.id);
  ctx.reply.bulk("create-time");
  ctx.reply.integer(ctx.server.shown_ms(link.created_ms));
  ctx.reply.bulk("events");
  ctx.reply.bulk(link.queued() > 0 ? "rw" : "r");
  ctx.reply.bulk("send-buffer-allocated");
  ctx.reply.integer(static_cast<int64_t>(link.memory()));
  ctx.reply.bulk("send-buffer-used");
  ctx.reply.integer(static_cast<int64_t>(link.queued()));
}

// What Valkey tells since 9.1.
void add_node_lines(const NodeTable& nodes, InfoLines* lines) {
  const NodeFigures figures = count_nodes(nodes);
  lines->field("cluster_nodes_pfail", figures.suspect);
  lines->field("cluster_nodes_fail", figures.failing);
  lines->field("cluster_voting_nodes_pfail", figures.suspect_voters);
  lines->field("cluster_voting_nodes_fail", figures.failing_voters);
}

void add_byte_lines(const Bus::Counts& counts, InfoLines* lines) {
  using Bytes = std::array<uint64_t, kMessageTypes>;
  const auto of = [](const Bytes& bytes, MessageType type) {
    return bytes[static_cast<size_t>(type)];
  };
  const auto all = [](const Bytes& bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
  };
  const auto published = [&](const Bytes& bytes) {
    return of(bytes, MessageType::kPublish) + of(bytes, MessageType::kPublishToShard);
  };
  lines->field("cluster_stats_bytes_sent", all(counts.bytes_sent));
  lines->field("cluster_stats_bytes_received", all(counts.bytes_received));
  lines->field("cluster_stats_pubsub_bytes_sent", published(counts.bytes_sent));
  lines->field("cluster_stats_pubsub_bytes_received", published(counts.bytes_received));
  lines->field("cluster_stats_module_bytes_sent", of(counts.bytes_sent, MessageType::kModule));
  lines->field("cluster_stats_module_bytes_received",
               of(counts.bytes_received, MessageType::kModule));
}

void add_migration_lines(Cluster& cluster, InfoLines* lines) {
  const Trimmer::Figures trim = cluster.slot_migration().trimmer().figures();
  lines->field("cluster_slot_migration_active_tasks",
               cluster.slot_migration().figures().active_tasks);
  lines->field("cluster_slot_migration_active_trim_running", trim.running);
  lines->field("cluster_slot_migration_active_trim_current_job_keys", trim.keys);
  lines->field("cluster_slot_migration_active_trim_current_job_trimmed", trim.trimmed);
  lines->field("cluster_slot_migration_stats_active_trim_started", trim.started);
  lines->field("cluster_slot_migration_stats_active_trim_completed", trim.completed);
  lines->field("cluster_slot_migration_stats_active_trim_cancelled", trim.cancelled);
}

}  // namespace

// --- Commands ------------------------------------------------------------------------------------

void cluster_info(CommandContext& ctx, Cluster& cluster) {
  const NodeTable& nodes = cluster.nodes();
  const SlotFigures slots = count_slots(nodes);
  const Node* const master = cluster.shard_master();
  InfoLines lines;
  lines.field("cluster_state", cluster.is_up() ? "ok" : "fail");
  lines.field("cluster_slots_assigned", slots.assigned);
  lines.field("cluster_slots_ok", slots.assigned - slots.suspect - slots.failing);
  lines.field("cluster_slots_pfail", slots.suspect);
  lines.field("cluster_slots_fail", slots.failing);
  const bool has_more_lines = ctx.server.edition().is_valkey_since({9, 1});
  if (has_more_lines) add_node_lines(nodes, &lines);
  lines.field("cluster_known_nodes", nodes.size());
  lines.field("cluster_size", nodes.voters());
  lines.field("cluster_current_epoch", nodes.current_epoch);
  lines.field("cluster_my_epoch",
              master != nullptr ? master->config_epoch : cluster.myself().config_epoch);
  lines.messages("sent", cluster.bus().counts().sent);
  lines.messages("received", cluster.bus().counts().received);
  if (has_more_lines) add_byte_lines(cluster.bus().counts(), &lines);
  lines.field("total_cluster_links_buffer_limit_exceeded", cluster.bus().counts().over_limit);
  if (cluster.slot_migration().is_available()) add_migration_lines(cluster, &lines);
  ctx.reply.verbatim("txt", lines.text());
}

void cluster_nodes(CommandContext& ctx, Cluster& cluster) {
  ctx.reply.verbatim("txt", describe_all(cluster.nodes(), view_of(ctx.client)));
}

void cluster_replicas(CommandContext& ctx, Cluster& cluster) {
  const Node* const node = cluster.nodes().find(ctx.args[2]);
  if (node == nullptr) return ctx.reply.error("ERR Unknown node " + std::string(ctx.args[2]));
  if (!node->is_master()) return ctx.reply.error("ERR The specified node is not a master");
  ctx.reply.array(node->replicas.size());
  for (const Node* replica : node->replicas)
    ctx.reply.bulk(describe(cluster.nodes(), *replica, view_of(ctx.client)));
}

void cluster_myid(CommandContext& ctx, Cluster& cluster) {
  ctx.reply.bulk(cluster.myself().id);
}

void cluster_myshardid(CommandContext& ctx, Cluster& cluster) {
  ctx.reply.bulk(cluster.myself().shard_id);
}

void cluster_slots(CommandContext& ctx, Cluster& cluster) {
  const std::vector<SlotRange> ranges = ranges_of(cluster.nodes());
  ctx.reply.array(ranges.size());
  constexpr size_t kEndpointFields = 4;
  for (const SlotRange& range : ranges) {
    std::vector<const Node*> nodes = {range.owner};
    for (const Node* replica : range.owner->replicas) {
      if (is_available(cluster, *replica)) nodes.push_back(replica);
    }
    ctx.reply.array(2 + nodes.size());
    ctx.reply.integer(range.first);
    ctx.reply.integer(range.last);
    for (const Node* node : nodes) {
      ctx.reply.array(kEndpointFields);
      reply_endpoint(ctx, *node);
    }
  }
}

void cluster_shards(CommandContext& ctx, Cluster& cluster) {
  std::map<std::string_view, std::vector<const Node*>> shards;
  for (const Node* node : cluster.nodes().all()) {
    if (!node->has(kHandshake)) shards[node->shard_id].push_back(node);
  }
  ctx.reply.array(shards.size());
  for (const auto& [id, nodes] : shards) {
    SlotSet slots;
    for (const Node* node : nodes) {
      if (!node->slots.empty()) slots = node->slots;
    }
    ctx.reply.map(2);
    ctx.reply.bulk("slots");
    reply_slots(ctx, slots);
    ctx.reply.bulk("nodes");
    ctx.reply.array(nodes.size());
    for (const Node* node : nodes) reply_shard_node(ctx, cluster, *node);
  }
}

void cluster_links(CommandContext& ctx, Cluster& cluster) {
  struct NodeLink {
    const Node* node;
    const Link* link;
  };
  std::vector<NodeLink> links;
  for (const Node* node : cluster.nodes().all()) {
    for (const Link* link : {node->link, node->incoming}) {
      if (link != nullptr) links.push_back({node, link});
    }
  }
  ctx.reply.array(links.size());
  for (const NodeLink& each : links) reply_link(ctx, *each.node, *each.link);
}

}  // namespace latchkey::cluster
