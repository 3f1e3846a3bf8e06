#include "simulation/network.h"

#include <algorithm>

#include "replication/master_connection.h"
#include "replication/master_session.h"
#include "replication/replica_role.h"
#include "server/client/authentication.h"
#include "server/client/client.h"
#include "server/server.h"

namespace latchkey::simulation {

namespace {

using Stage = replication::MasterConnection::Stage;

// A connection that nobody reads from: the dataset has come, and is being loaded.
bool is_paused(const replication::MasterConnection& link) {
  return link.stage() == Stage::kReceives && link.receiver() == nullptr;
}

// Gives bytes to whoever takes them, and keeps the rest.
void offer(net::ConnectionHandler& to, std::string& bytes) {
  std::string offered = bytes;
  const size_t consumed = to.on_input(offered);
  bytes.erase(0, consumed);
}

}  // namespace

Network::Network(std::span<const std::unique_ptr<Node>> nodes, Dice& dice, Steps& steps)
    : nodes_(nodes), dice_(dice), steps_(steps), links_(nodes.size()) {}

size_t Network::some(size_t size) {
  constexpr size_t kMax = 4096;
  if (healed_) return size;
  if (dice_.percent(30)) return 0;
  return dice_.percent(60) ? size : dice_.between(0, std::min(size, kMax));
}

server::Client* Network::client_of(const Link& link) {
  Node& master = *nodes_[static_cast<size_t>(link.master)];
  if (!master.up() || master.generation() != link.master_generation) return nullptr;
  return master.server().clients().find(link.client_id);
}

bool Network::replica_has_left(Node& replica, const Link& link) {
  if (!replica.up() || replica.generation() != link.replica_generation) return true;
  const replication::MasterConnection* connection = replica.replica_role().link();
  if (connection != nullptr) return connection->stage() == Stage::kConnecting;
  return replica.replica_role().session() == nullptr;
}

void Network::carry() {
  for (size_t i = 0; i < links_.size(); ++i) look_after(*nodes_[i], links_[i]);
}

void Network::look_after(Node& replica, Link& link) {
  if (link.open && replica_has_left(replica, link)) end(replica, link, "the replica has left");
  if (!link.open) {
    if (replica.up() && (healed_ || dice_.percent(25))) begin(replica, link);
    return;
  }
  if (client_of(link) == nullptr) link.master_gone = true;
  carry_to_master(link);
  carry_to_replica(replica, link);
  if (!link.open || !link.master_gone) return;
  const replication::MasterConnection* connection = replica.replica_role().link();
  if (connection != nullptr && is_paused(*connection)) return;
  // What the master has sent before comes first, unless it is lost.
  if (!healed_ && dice_.percent(20)) link.to_replica.clear();
  if (!link.to_replica.empty()) return;
  tell_replica(replica);
  end(replica, link, "the master has left");
}

void Network::begin(Node& replica, Link& link) {
  replication::MasterConnection* connection = replica.replica_role().link();
  if (connection == nullptr || connection->stage() != Stage::kConnecting) return;
  const int master = replica.master();
  if (master < 0 || !nodes_[static_cast<size_t>(master)]->up()) return;
  Node& node = *nodes_[static_cast<size_t>(master)];
  server::Client& client = node.server().clients().add(nullptr);
  server::assume_default_user(client);
  link = {.open = true,
          .replica_generation = replica.generation(),
          .master = master,
          .master_generation = node.generation(),
          .client_id = client.id};
  steps_.note(replica.name() + " connects to " + node.name());
  connection->connected(nullptr);
  collect_from_replica(replica, link);
}

void Network::end(Node& replica, Link& link, const char* why) {
  steps_.note("the link of " + replica.name() + " ends: " + why);
  if (server::Client* client = client_of(link); client != nullptr) {
    dice_.percent(50) ? client->on_disconnect() : client->on_end_of_input();
    if (client_of(link) != nullptr) client->close();
  }
  link = {};
}

void Network::tell_replica(Node& replica) {
  const bool orderly = dice_.percent(50);
  if (replication::MasterConnection* connection = replica.replica_role().link();
      connection != nullptr) {
    orderly ? connection->on_end_of_input() : connection->on_disconnect();
  } else if (replication::MasterSession* session = replica.replica_role().session();
             session != nullptr) {
    orderly ? session->client().on_end_of_input() : session->client().on_disconnect();
    if (replica.replica_role().session() == session) session->client().close();
  }
}

void Network::cut(int replica) {
  Node& node = *nodes_[static_cast<size_t>(replica)];
  Link& link = links_[static_cast<size_t>(replica)];
  if (!link.open || replica_has_left(node, link)) return;
  steps_.note("the network cuts " + node.name());
  tell_replica(node);
  end(node, link, "cut");
}

void Network::carry_to_master(Link& link) {
  const size_t size = some(link.to_master.size());
  link.at_master += link.to_master.substr(0, size);
  link.to_master.erase(0, size);
  if (link.at_master.empty()) return;
  if (server::Client* client = client_of(link); client != nullptr) offer(*client, link.at_master);
}

void Network::carry_to_replica(Node& replica, Link& link) {
  replication::MasterConnection* connection = replica.replica_role().link();
  if (connection != nullptr && is_paused(*connection)) return;
  const size_t size = some(link.to_replica.size());
  link.at_replica += link.to_replica.substr(0, size);
  link.to_replica.erase(0, size);
  if (link.at_replica.empty()) return;
  if (connection != nullptr) {
    offer(*connection, link.at_replica);
    if (replica_has_left(replica, link)) return end(replica, link, "the replica gives up");
    collect_from_replica(replica, link);
  }
  // The handshake may have ended in these bytes.
  replication::MasterSession* session = replica.replica_role().session();
  if (session != nullptr) offer(session->client(), link.at_replica);
}

void Network::collect(Node& node) {
  for (size_t i = 0; i < links_.size(); ++i) {
    Link& link = links_[i];
    if (!link.open) continue;
    if (static_cast<int>(i) == node.index() && !replica_has_left(node, link))
      collect_from_replica(node, link);
    if (link.master == node.index()) collect_from_master(link);
  }
}

void Network::collect_from_replica(Node& replica, Link& link) {
  if (replication::MasterConnection* connection = replica.replica_role().link();
      connection != nullptr) {
    link.to_master += connection->out().take_all();
  } else if (replication::MasterSession* session = replica.replica_role().session();
             session != nullptr && !session->client().has(server::kClientSuspended)) {
    link.to_master += session->client().out().take_all();
  }
}

void Network::collect_from_master(Link& link) {
  server::Client* client = client_of(link);
  if (client == nullptr || client->has(server::kClientSuspended)) return;
  link.to_replica += client->out().take_all();
  client->on_flushed();
}

bool Network::idle() const {
  return std::all_of(links_.begin(), links_.end(), [](const Link& link) {
    return link.to_master.empty() && link.at_master.empty() && link.to_replica.empty() &&
           link.at_replica.empty();
  });
}

}  // namespace latchkey::simulation
