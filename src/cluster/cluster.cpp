#include "cluster/cluster.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/digest/crc16.h"
#include "base/port.h"
#include "cluster/nodes_text.h"
#include "cluster/setslot.h"
#include "cluster/slot_keys.h"
#include "replication/replica_role.h"
#include "replication/replication.h"
#include "server/client/blocking.h"
#include "server/client/client.h"
#include "server/config/config.h"
#include "server/server.h"
#include "server/tasks.h"
#include "store/slot_index.h"

namespace latchkey::cluster {

using namespace server;

namespace {

constexpr uint64_t kTickMs = 100;
// A master that restarts may have been replaced meanwhile: it does not serve for this long.
constexpr int64_t kSilenceAtStartMs = 2000;
// A node that was cut off from the majority waits for a time in this range before it serves again.
constexpr int64_t kShortestRejoinMs = 500;
constexpr int64_t kLongestRejoinMs = 5000;

}  // namespace

void adapt_configuration(Config& config, base::Logger& log) {
  int& databases = config.mutable_values().databases;
  const int wanted = config.values().cluster_databases;
  if (!config.values().cluster_enabled || databases == wanted) return;
  if (config.values().edition.is_valkey_since({9, 0})) return;
  log.warning("WARNING: Changing databases number from " + std::to_string(databases) + " to " +
              std::to_string(wanted) + " since we are in cluster mode");
  databases = wanted;
}

ClientView view_of(const server::Client& client) {
  net::Connection* const connection = client.connection();
  return {.secure = client.is_secure(),
          .ipv6 = connection != nullptr && connection->peer_address().starts_with('['),
          .clock_ahead_ms = client.server.shown_ms(0)};
}

std::string preferred_endpoint(const Server& server, const Node& node, const ClientView& view) {
  switch (server.settings().cluster_preferred_endpoint_type) {
    case ClusterEndpointType::kIp:
      return node.ip_for(view);
    case ClusterEndpointType::kHostname:
      return node.hostname.empty() ? "?" : node.hostname;
    case ClusterEndpointType::kUnknownEndpoint:
      break;
  }
  return {};
}

Cluster::Cluster(Server& server)
    : server_(server),
      file_(server.config().directory().path_of(server.settings().cluster_config_file),
            server.files()),
      bus_(server, *this),
      gossip_(*this),
      detector_(*this),
      claims_(*this),
      slot_stats_(server),
      slot_migration_(*this),
      slot_jobs_(*this),
      election_(*this),
      manual_failover_(*this),
      shutdown_failover_(*this),
      migration_(*this),
      heartbeat_(*this),
      secret_(server_.random_source().hex(kIdDigits)) {
  const auto hidden = std::make_shared<store::HiddenSlots>();
  for (const auto& database : server_.databases()) database->index_slots(hidden);
  validate_bus_settings();
  const auto announce = [this] {
    update_myself();
    reconcile();
  };
  server_.config().on_change(
      {"port", "tls-port", "tls-cluster", "tls-replication", "cluster-announce-ip",
       "cluster-announce-port", "cluster-announce-tls-port", "cluster-announce-bus-port",
       "cluster-announce-hostname", "cluster-announce-human-nodename",
       "cluster-announce-client-ipv4", "cluster-announce-client-ipv6",
       "cluster-announce-client-port", "cluster-announce-client-tls-port", "availability-zone",
       "cluster-replica-no-failover", "cluster-require-full-coverage"},
      announce);
  server_.on_turn_end(server::TurnEnd::kClusterBus, [this] { end_turn(); });
  // Redis goes on counting.
  server_.hooks().stats_reset.add([this] {
    if (server_.edition().is_valkey_since({9, 1})) bus_.reset_counts();
  });
}

void Cluster::validate_bus_settings() {
  const auto is_refused = [this] {
    return server_.settings().cluster_bus_port_protected_mode && !server_.settings().tls_cluster;
  };
  server_.config().on_change({"cluster-bus-port-protected-mode"}, [is_refused]() -> base::Result<> {
    if (!is_refused()) return {};
    return base::fail("can't enable cluster-bus-port-protected-mode while tls-cluster is disabled");
  });
  server_.config().on_change({"tls-cluster"}, [this, is_refused]() -> base::Result<> {
    if (is_refused()) {
      return base::fail(
          "can't disable tls-cluster while cluster-bus-port-protected-mode is enabled");
    }
    warn_of_open_bus();
    return {};
  });
}

void Cluster::warn_of_open_bus() {
  if (server_.settings().tls_cluster || !server_.edition().has({8, 8})) return;
  server_.log().warning(
      "The cluster bus port is not authenticated: whoever reaches it can join the cluster. Set "
      "tls-cluster, or keep all but the nodes away from the port.");
}

Cluster::~Cluster() {
  for (Node* node : nodes_.all()) bus_.drop_links(*node);
}

bool Cluster::migrates(int slot) const {
  SlotSet slots;
  slots.add(slot);
  return migrates_any(slots);
}

bool Cluster::migrates_any(const SlotSet& slots) const {
  return slot_migration_.tasks().find_overlapping(slots) != nullptr || slot_jobs_.moves_any(slots);
}

bool Cluster::imports_slots() const {
  return slot_migration_.imports() || slot_jobs_.receives() || nodes_.any_imports();
}

// --- The start ----------------------------------------------------------------------------------

bool Cluster::start() {
  base::Logger& log = server_.log();
  const base::Result<std::string> text = file_.open();
  if (!text) {
    log.warning(text.error());
    return false;
  }
  if (text->empty()) {
    Node& myself =
        nodes_.add(server_.random_source().hex(kIdDigits), kMyself | kMaster, server_.machine_ms());
    myself.shard_id = server_.random_source().hex(kIdDigits);
    log.notice("No cluster configuration found, I'm " + myself.id);
    changed();
  } else if (const base::Result<> parsed = parse_file(*text, server_.machine_ms(), &nodes_);
             !parsed) {
    log.warning("Unrecoverable error: the cluster configuration file " + file_.path() +
                " cannot be used: " + parsed.error());
    return false;
  } else {
    log.notice("Node configuration loaded, I'm " + myself().id);
    if (nodes_.size() > 1) serves_from_ms_ = server_.machine_ms() + kSilenceAtStartMs;
  }
  update_myself();
  update_state();
  server_.pubsub().set_relay(*this);
  if (!unsaved_ || save()) return true;
  log.warning("Cannot write " + file_.path() + ": " + strerror(errno));
  return false;
}

bool Cluster::listen() {
  if (!bus_.listen()) return false;
  warn_of_open_bus();
  timer_ = std::make_unique<net::Timer>(*server_.loop(), [this] {
    server_.refresh_clock();
    tick();
  });
  timer_->start(kTickMs, kTickMs);
  update_myself();
  return true;
}

bool Cluster::claim_loaded_slots() {
  if (myself().is_replica()) {
    // A replica that has started without a dataset is like a new one.
    is_new_in_shard_ = !has_keys() && server_.replication_offset() == 0;
    return true;
  }
  // Keys of other nodes' slots were left over by a migration that has ended without this node;
  // before Redis 8.4 they were taken for an import that goes on.
  const bool trims = slot_migration_.is_available();
  for (int slot = 0; slot < store::kKeySlots; ++slot) {
    Node* const owner = nodes_.owner(slot);
    if (trims && owner != nullptr) continue;
    if (keys_in_slot(server_, slot) == 0 || owner == &myself() ||
        nodes_.importing_from(slot) != nullptr || slot_migration_.trimmer().covers(slot))
      continue;
    const std::string number = std::to_string(slot);
    if (owner == nullptr) {
      server_.log().notice("I have keys for unassigned slot " + number +
                           ". Taking responsibility for it.");
      nodes_.assign(slot, myself());
    } else {
      server_.log().notice("I have keys for slot " + number +
                           ", but the slot is assigned to another node. Setting it to importing "
                           "state.");
      nodes_.set_importing(slot, owner);
    }
    changed();
  }
  if (trims) slot_migration_.trim_unowned();
  if (!unsaved_ || commit()) return true;
  server_.log().warning("Cannot write " + file_.path() + ": " + strerror(errno));
  return false;
}

void Cluster::update_myself() {
  const ConfigValues& values = server_.settings();
  Node& node = myself();
  if (!values.cluster_announce_ip.empty()) node.address.ip = values.cluster_announce_ip;
  node.address.port =
      values.cluster_announce_port != 0 ? values.cluster_announce_port : values.port;
  node.address.tls_port =
      values.cluster_announce_tls_port != 0 ? values.cluster_announce_tls_port : values.tls_port;
  node.address.bus_port =
      values.cluster_announce_bus_port != 0 ? values.cluster_announce_bus_port : bus_.port();
  node.hostname = values.cluster_announce_hostname;
  node.human_name = values.cluster_announce_human_nodename;
  node.client_ipv4 = values.cluster_announce_client_ipv4;
  node.client_ipv6 = values.cluster_announce_client_ipv6;
  node.client_port = values.cluster_announce_client_port;
  node.client_tls_port = values.cluster_announce_client_tls_port;
  const std::string& zone = values.availability_zone;
  node.availability_zone = is_safe_in_nodes_file(zone) ? zone : std::string();
  node.set(kNoFailover, values.cluster_replica_no_failover);
  changed();
}

// --- Properties ---------------------------------------------------------------------------------

int64_t Cluster::timeout_ms() const {
  return server_.settings().cluster_node_timeout;
}

int Cluster::secret_hash() const {
  return base::crc16(secret_);
}

Node* Cluster::shard_master() const {
  return myself().is_master() ? &myself() : myself().master;
}

std::vector<Node*> Cluster::shard() const {
  Node* const master = shard_master();
  if (master == nullptr) return {&myself()};
  std::vector<Node*> nodes = master->replicas;
  nodes.push_back(master);
  return nodes;
}

bool Cluster::has_dataset() const {
  const replication::ReplicaRole& role = server_.layer<replication::Replication>().replica_role();
  if (is_new_in_shard_ || role.installs_dataset()) return false;
  // After an error in the stream the place is lost, but not the dataset. One that could not be
  // loaded leaves neither place nor keys.
  return role.knows_place() || has_keys();
}

bool Cluster::is_synchronized() const {
  return has_dataset() && server_.layer<replication::Replication>().replica_role().connected();
}

bool Cluster::has_keys() const {
  return !std::ranges::all_of(server_.databases(), [](const auto& each) { return each->empty(); });
}

uint64_t Cluster::offset() const {
  if (myself().is_replica()) {
    const replication::ReplicaRole& role = server_.layer<replication::Replication>().replica_role();
    if (!has_dataset() || !role.knows_place()) return 0;
  }
  return static_cast<uint64_t>(std::max<int64_t>(server_.replication_offset(), 0));
}

Message Cluster::message(MessageType type) {
  const Node& node = myself();
  const Node& served = node.master != nullptr ? *node.master : node;
  Message message;
  message.type = type;
  message.current_epoch = nodes_.current_epoch;
  message.config_epoch = served.config_epoch;
  message.offset = offset();
  message.sender = node.id;
  message.slots = served.slots;
  if (node.master != nullptr) message.master = node.master->id;
  message.address = node.address;
  // Without an announced ip the receivers use the address from which the message comes.
  message.address.ip = server_.settings().cluster_announce_ip;
  message.flags = node.flags;
  if (node.master != nullptr && node.master->has(kFailing)) message.flags |= kMasterFails;
  message.down = !up_;
  message.message_flags = kKnowsExtensions;
  // A script that was busy before the pause writes until it ends.
  if (manual_failover_.successor() != nullptr && !is_occupied())
    message.message_flags |= kWritesPaused;
  return message;
}

// --- Changes ------------------------------------------------------------------------------------

void Cluster::lost(const std::vector<int>& slots) {
  for (const int slot : slots) lost_.add(slot);
}

bool Cluster::is_occupied() const {
  constexpr uint32_t kOccupied = kStateLoading | kStateAsyncLoading | kStateBusy;
  return server_.tasks().any() || (server_.state() & kOccupied) != 0;
}

void Cluster::reconcile() {
  unreconciled_ = true;
  if (is_occupied()) return;
  unreconciled_ = false;
  // What ends with this node's last slots has succeeded; as a replica it would be given up.
  slot_migration_.slots_changed();
  slot_jobs_.slots_changed();
  align_role();
  update_state();
  if (const Node* master = shard_master(); master != nullptr)
    slot_stats_.slots_changed(master->slots);
  delete_lost_keys();
  disconnect_unserved_clients();
}

bool Cluster::save() {
  std::string text = file_text(nodes_);
  if (!unsaved_ && text == saved_text_) return true;
  const base::Result<> replaced = file_.replace(text);
  if (replaced) {
    unsaved_ = save_fails_ = false;
    saved_text_ = std::move(text);
    return true;
  }
  const int reason = errno;
  saved_text_.clear();
  base::Logger& log = server_.log();
  log.warning(replaced.error() + ": " + strerror(reason));
  // What could not be written is tried again at the end of the turn, or with the next change.
  unsaved_ = !server_.settings().cluster_config_save_best_effort;
  if (!unsaved_ && !std::exchange(save_fails_, true)) {
    log.warning(
        "Cluster config updated even though writing the cluster config file to disk "
        "failed.");
  }
  errno = reason;
  return !unsaved_;
}

bool Cluster::commit() {
  reconcile();
  return save();
}

bool Cluster::commit_soon() {
  unreconciled_ = true;
  return save();
}

void Cluster::bump_epoch() {
  Node& node = myself();
  const uint64_t highest = nodes_.highest_epoch();
  if (node.config_epoch != 0 && node.config_epoch == highest) return;
  nodes_.current_epoch = highest + 1;
  node.config_epoch = nodes_.current_epoch;
  server_.log().notice("New configEpoch set to " + std::to_string(node.config_epoch));
  changed();
}

void Cluster::remove(Node& node) {
  slot_migration_.node_removed(node);
  bus_.drop_links(node);
  manual_failover_.forget(node);
  nodes_.remove(node);
}

void Cluster::reset(bool hard) {
  Node& node = myself();
  manual_failover_.reset();
  election_.reset();
  is_new_in_shard_ = false;
  if (node.is_replica()) {
    nodes_.make_master(node);
    node.shard_id = server_.random_source().hex(kIdDigits);
  }
  for (Node* other : nodes_.all()) {
    if (other != &node) remove(*other);
  }
  SlotSet(node.slots).for_each([&](int slot) { nodes_.unassign(slot); });
  nodes_.end_moves();
  changed();
  if (!hard) return;
  node.config_epoch = 0;
  nodes_.current_epoch = 0;
  nodes_.last_vote_epoch = 0;
  nodes_.rename(node, server_.random_source().hex(kIdDigits));
  node.shard_id = server_.random_source().hex(kIdDigits);
  server_.log().notice("configEpoch set to 0 via CLUSTER RESET HARD");
  server_.log().notice("Node hard reset, now I'm " + node.id);
}

bool Cluster::meet(const NodeAddress& address) {
  in_addr v4{};
  in6_addr v6{};
  const bool is_ip = inet_pton(AF_INET, address.ip.c_str(), &v4) == 1 ||
                     inet_pton(AF_INET6, address.ip.c_str(), &v6) == 1;
  const auto is_port = [](int port) { return port > 0 && port <= base::kLastPort; };
  const int port = address.port_for(server_.settings().tls_cluster);
  if (!is_ip || !is_port(port) || !is_port(address.bus_port)) return false;
  if (!in_handshake_with(address)) add_handshake_node(address, kHandshake | kMeet);
  return true;
}

bool Cluster::in_handshake_with(const NodeAddress& address) const {
  return std::ranges::any_of(nodes_.all(), [&](const Node* node) {
    return node->has(kHandshake) && node->address.ip == address.ip &&
           node->address.bus_port == address.bus_port;
  });
}

void Cluster::add_handshake_node(const NodeAddress& address, uint16_t flags) {
  Node& node = nodes_.add(server_.random_source().hex(kIdDigits), flags, server_.machine_ms());
  node.shard_id = server_.random_source().hex(kIdDigits);
  node.address = address;
}

void Cluster::replicate_from(Node& master) {
  const bool changes_shard = master.shard_id != myself().shard_id;
  is_new_in_shard_ |= changes_shard;
  nodes_.make_replica(myself(), &master);
  // Replicas of Valkey know what their shard moves.
  if (changes_shard || !server_.edition().is_valkey()) nodes_.end_moves();
  manual_failover_.reset();
  election_.reset();
  changed();
  // The tick, which calls this too, does not reconcile by itself.
  unreconciled_ = true;
  gossip_.broadcast_pong();
}

void Cluster::take_over() {
  Node& node = myself();
  const SlotSet slots = node.master->slots;
  nodes_.make_master(node);
  is_new_in_shard_ = false;
  slots.for_each([&](int slot) { nodes_.assign(slot, node); });
  manual_failover_.reset();
  election_.reset();
  changed();
  reconcile();
  gossip_.broadcast_pong();
}

void Cluster::leave_shard() {
  Node& node = myself();
  nodes_.make_master(node);
  node.shard_id = server_.random_source().hex(kIdDigits);
  nodes_.end_moves();
  is_new_in_shard_ = false;
  manual_failover_.reset();
  election_.reset();
  server_.log().notice("Moving myself to a new shard " + node.shard_id + ".");
  changed();
  reconcile();
  gossip_.broadcast_pong();
}

// --- Updating the server ---------------------------------------------------------------------

void Cluster::align_role() {
  const Node& node = myself();
  if (node.is_master()) {
    if (server_.is_replica()) server_.layer<replication::Replication>().replica_role().promote();
    return;
  }
  if (node.master == nullptr || node.master->address.ip.empty()) return;
  const NodeAddress& master = node.master->address;
  replication::ReplicaRole& role = server_.layer<replication::Replication>().replica_role();
  const int port = master.port_for(server_.settings().tls_replication);
  if (role.active() && role.host() == master.ip && role.port() == port) return;
  role.replicate_from(master.ip, port);
}

std::string_view Cluster::reason_to_be_down() {
  size_t reached = 0;
  for (const Node* node : nodes_.all()) {
    if (node->votes() && !node->has(kSuspect | kFailing)) ++reached;
  }
  if (reached < nodes_.quorum()) {
    // Where no master has slots yet there is no majority that could have gone on without this node.
    if (nodes_.voters() > 0) minority_ms_ = server_.machine_ms();
    return "I am part of a minority partition.";
  }
  if (!server_.settings().cluster_require_full_coverage) return {};
  for (int slot = 0; slot < store::kKeySlots; ++slot) {
    const Node* const owner = nodes_.owner(slot);
    if (owner == nullptr || owner->has(kFailing))
      return "At least one hash slot is not served by any available node.";
  }
  return {};
}

void Cluster::update_state() {
  const int64_t now_ms = server_.machine_ms();
  const std::string_view reason = reason_to_be_down();
  bool up = reason.empty();
  if (up && !up_ && myself().is_master()) {
    const int64_t rejoin_ms = std::clamp(timeout_ms(), kShortestRejoinMs, kLongestRejoinMs);
    const bool rejoins = minority_ms_ != 0 && nodes_.voters() > 1;
    if (now_ms < serves_from_ms_ || (rejoins && now_ms - minority_ms_ < rejoin_ms)) up = false;
  }
  if (!up_ && !up && !reason.empty() && reason != down_because_ && !down_because_.empty())
    server_.log().notice("Cluster is still down, for another reason: " + std::string(reason));
  down_because_ = reason;
  if (up == up_) return;
  up_ = up;
  if (up) {
    server_.log().notice("Cluster state changed: ok");
  } else {
    server_.log().warning("Cluster state changed: fail");
    server_.log().notice("Cluster is down: " + std::string(reason));
  }
  if (!up) disconnect_unserved_clients();
}

void Cluster::delete_lost_keys() {
  if (lost_.empty()) return;
  const SlotSet slots = std::exchange(lost_, {});
  // A replica receives deletions from its master.
  if (myself().is_replica()) return;
  if (slot_migration_.is_available()) return slot_migration_.trim_lost(slots);
  slots.for_each([&](int slot) {
    if (keys_in_slot(server_, slot) == 0) return;
    server_.log().notice("Deleting keys in dirty slot " + std::to_string(slot) + " on node " +
                         myself().id + ", which does not serve it any more.");
    delete_slot(server_, slot, [this](store::Keyspace& db, const std::string& key) {
      server_.events().moved_away(db, key);
      server_.propagation().add(db.index(), {"DEL", key});
    });
  });
}

void Cluster::disconnect_unserved_clients() {
  const Node* const master = shard_master();
  server_.pubsub().close_shard_channels([&](std::string_view channel) {
    const int slot = store::key_slot(channel);
    const Node* const owner = nodes_.owner(slot);
    // A master that has been replaced learns of it before it follows the other.
    const bool stays =
        owner != nullptr && (owner == master || owner->shard_id == myself().shard_id);
    return !stays && nodes_.importing_from(slot) == nullptr;
  });
  server_.blocking().refuse_unserved(*this);
}

// --- Periodic work ------------------------------------------------------------------------------

void Cluster::tick() {
  heartbeat_.tick();
  manual_failover_.tick();
  slot_migration_.tick();
  slot_jobs_.tick();
  if (!is_occupied()) {
    election_.tick();
    migration_.tick();
    // A replica of a replica becomes a replica of that one's master.
    Node* const master = myself().master;
    if (master != nullptr && master->master != nullptr && master->master != &myself()) {
      server_.log().notice("I'm a sub-replica! Reconfiguring myself as a replica of " +
                           master->master->id + " from " + master->id);
      replicate_from(*master->master);
    }
    align_role();
    if (server_.layer<replication::Replication>().replica_role().connected())
      is_new_in_shard_ = false;
    update_state();
  }
  if (server_.loop() == nullptr) end_turn();
}

void Cluster::end_turn() {
  if (unreconciled_) reconcile();
  slot_migration_.end_turn();
  slot_jobs_.end_turn();
  if (unsaved_ && nodes_.has_myself() && !save()) {
    server_.log().warning("Fatal: can't update cluster config file: " +
                          std::string(strerror(errno)));
    server_.request_stop(1);
  }
  bus_.flush();
  bus_.collect();
}

// --- Messages -----------------------------------------------------------------------------------

void Cluster::link_ready(Link& link) {
  Node& node = *link.node;
  gossip_.send(link, node.has(kMeet) ? MessageType::kMeet : MessageType::kPing);
}

void Cluster::link_lost(Node& node) {
  if (node.ping_sent_ms == 0) node.ping_sent_ms = server_.machine_ms();
}

void Cluster::received(Link& link, const Message& message) {
  Node* sender = nodes_.find(message.sender);
  if (sender != nullptr && sender->has(kHandshake)) sender = nullptr;
  if (link.node != nullptr) link.node->data_received_ms = server_.machine_ms();
  if (sender != nullptr && sender != &myself()) note_sender(*sender, link, message);
  dispatch(link, sender, message);
  if (unsaved_ || !lost_.empty()) reconcile();
}

void Cluster::note_sender(Node& sender, Link& link, const Message& message) {
  sender.data_received_ms = server_.machine_ms();
  if (link.incoming) bus_.set_sender(link, sender);
  if (message.has(kKnowsExtensions)) sender.set(kExtensions);
  if (message.current_epoch > nodes_.current_epoch) nodes_.current_epoch = message.current_epoch;
  if (message.config_epoch > sender.config_epoch) {
    sender.config_epoch = message.config_epoch;
    changed();
  }
  sender.offset = message.offset;
  manual_failover_.receive_offset(sender, message);
}

void Cluster::dispatch(Link& link, Node* sender, const Message& message) {
  using enum MessageType;
  if (message.type == kPing || message.type == kPong || message.type == kMeet)
    return gossip_.receive(link, sender, message);
  if (sender == nullptr || sender == &myself()) {
    if (message.type == kFail) {
      server_.log().notice("Ignoring FAIL message from unknown node " + message.sender + " about " +
                           message.subject);
    }
    return;
  }
  switch (message.type) {
    case kFail:
      return detector_.receive_fail(*sender, message);
    case kPublish:
    case kPublishToShard:
      return deliver_published(message);
    case kAskForVote:
      return election_.vote_requested(*sender, message);
    case kVote:
      return election_.vote_received(*sender, message);
    case kUpdate:
      return claims_.process_update(message);
    case kManualFailover:
      return manual_failover_.requested(*sender);
    case kModule:
    case kPing:
    case kPong:
    case kMeet:
      break;
  }
}

void Cluster::deliver_published(const Message& message) {
  if (message.type == MessageType::kPublish) {
    server_.pubsub().publish(message.channel, message.content);
  } else {
    server_.pubsub().publish_to_shard(message.channel, message.content);
  }
}

void Cluster::relay(TopicKind kind, std::string_view channel, std::string_view content) {
  if (nodes_.size() == 1) return;
  const bool to_shard = kind == TopicKind::kShardChannel;
  Message published = message(to_shard ? MessageType::kPublishToShard : MessageType::kPublish);
  published.channel = channel;
  published.content = content;
  bus_.send_to(to_shard ? shard() : nodes_.all(), published);
}

bool Cluster::admit_node(Client& client, std::string_view secret) {
  if (secret.size() != secret_.size()) return false;
  unsigned differences = 0;
  for (size_t i = 0; i < secret.size(); ++i)
    differences |= static_cast<unsigned char>(secret[i] ^ secret_[i]);
  if (differences != 0) return false;
  client.node = std::make_unique<NodeSession>(slot_migration_, client);
  // What nodes send each other is paced by what the socket has taken.
  if (client.connection() != nullptr) client.connection()->use_io_thread(false);
  client.user = nullptr;
  client.authenticated = true;
  client.set(kClientNeedsAuth | kClientRestricted, false);
  return true;
}

server::DatasetSlots Cluster::slots_in_dataset() const {
  if (!server_.edition().is_valkey()) return {};
  return {.moves = moves_text(nodes_), .imports = slot_jobs_.imports()};
}

void Cluster::adopt_slots(const server::DatasetSlots& told) {
  if (!server_.edition().is_valkey()) return;
  slot_jobs_.adopt(told.imports);
  if (myself().is_master()) return slot_jobs_.end_adopted("The node was restarted meanwhile");
  nodes_.end_moves();
  add_moves(told.moves, &nodes_);
  changed();
}

SlotGate::LinkFigures Cluster::link_figures() const {
  const SlotMigration::Figures migration = slot_migration_.figures();
  return {.links = bus_.size(),
          .bytes = bus_.memory(),
          .migration_output = migration.output_bytes + slot_jobs_.figures().output_bytes,
          .migration_input = migration.input_bytes,
          .most_migration_input = migration.most_input_bytes};
}

}  // namespace latchkey::cluster
