#include "cluster/cluster.h"

#include <cerrno>
#include <cstring>

#include "base/crc16.h"
#include "base/random.h"
#include "server/blocking.h"
#include "server/command_table.h"
#include "server/config.h"
#include "server/pubsub.h"
#include "server/server.h"

namespace latchkey::cluster {

using namespace server;

namespace {

constexpr size_t kSecretDigits = 40;
constexpr int kBusPortDistance = 10000;

}  // namespace

void adapt_configuration(Config& config, base::Logger& log) {
  int& databases = config.mutable_values().databases;
  if (!config.values().cluster_enabled || databases == 1) return;
  log.warning("WARNING: Changing databases number from " + std::to_string(databases) +
              " to 1 since we are in cluster mode");
  databases = 1;
}

Cluster::Cluster(Server& server)
    : server_(server),
      file_(server.settings().cluster_config_file),
      secret_hash_(base::crc16(base::random_hex(kSecretDigits))) {
  server_.database(0).count_slots();
}

bool Cluster::start() {
  std::string text;
  std::string error;
  if (!file_.open(&text, &error)) {
    server_.log().warning(error);
    return false;
  }
  if (text.empty()) {
    state_ = new_node();
    server_.log().notice("No cluster configuration found, I'm " + state_.id);
    if (save()) return true;
    error = strerror(errno);
  } else if (parse_file(text, &state_, &error)) {
    server_.log().notice("Node configuration loaded, I'm " + state_.id);
    return true;
  }
  server_.log().warning("Unrecoverable error: the cluster configuration file " + file_.path() +
                        " cannot be used: " + error);
  return false;
}

bool Cluster::claim_loaded_slots() {
  const store::SlotCounts& counts = *server_.database(0).slot_counts();
  NodeState wanted = state_;
  for (int slot = 0; slot < store::kKeySlots; ++slot) {
    if (counts.in(slot) == 0 || wanted.slots.has(slot)) continue;
    server_.log().notice("I have keys for unassigned slot " + std::to_string(slot) +
                         ". Taking responsibility for it.");
    wanted.slots.add(slot);
  }
  if (wanted.slots.size() == state_.slots.size() || change(std::move(wanted))) return true;
  server_.log().warning("Cannot write " + file_.path() + ": " + strerror(errno));
  return false;
}

NodeAddress Cluster::address() const {
  const ConfigValues& values = server_.settings();
  NodeAddress address;
  address.ip = values.cluster_announce_ip;
  address.hostname = values.cluster_announce_hostname;
  address.port = values.cluster_announce_port != 0 ? values.cluster_announce_port : values.port;
  address.bus_port = values.port + kBusPortDistance;
  if (values.cluster_port != 0) address.bus_port = values.cluster_port;
  if (values.cluster_announce_bus_port != 0) address.bus_port = values.cluster_announce_bus_port;
  return address;
}

bool Cluster::is_up() const {
  const bool complete = state_.slots.complete();
  return server_.settings().cluster_require_full_coverage ? complete : !state_.slots.empty();
}

bool Cluster::change(NodeState wanted) {
  if (!file_.replace(file_text(wanted, address()))) return false;
  state_ = std::move(wanted);
  dismiss_the_unserved();
  return true;
}

void Cluster::dismiss_the_unserved() {
  if (state_.slots.complete()) return;
  server_.pubsub().close_shard_channels(
      [this](std::string_view channel) { return !state_.slots.has(store::key_slot(channel)); });
  server_.blocking().refuse_unserved(*this);
}

SlotGate::Answer Cluster::judge(std::span<const server::SlotGate::Request> requests) {
  Answer answer;
  bool has_channels = false;
  bool writes = false;
  for (const server::SlotGate::Request& request : requests) {
    found_.clear();
    find_slotted_words(request, &found_);
    has_channels |= !found_.empty() && request.command.has(kPubSub);
    writes |= request.command.has(kWrite);
    for (const KeyReference& word : found_) {
      const int slot = store::key_slot(request.words[word.position]);
      if (answer.slot == -1) answer.slot = slot;
      if (answer.slot != slot) return {.verdict = Verdict::kCrossSlot, .slot = slot};
      if (!state_.slots.has(slot)) return {.verdict = Verdict::kNotServed, .slot = slot};
    }
  }
  if (answer.slot == -1 || is_up()) return answer;
  const ConfigValues& values = server_.settings();
  if (has_channels) {
    if (!values.cluster_allow_pubsubshard_when_down) answer.verdict = Verdict::kDown;
  } else if (!values.cluster_allow_reads_when_down) {
    answer.verdict = Verdict::kDown;
  } else if (writes) {
    answer.verdict = Verdict::kDownForWrites;
  }
  return answer;
}

}  // namespace latchkey::cluster
