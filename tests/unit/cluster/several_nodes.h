// Several nodes of a cluster in one process, on virtual time and without sockets: what they send to
// each other is carried by hand.
//
//     Nodes nodes(3);
//     nodes.make_cluster(3);
//     nodes.cut_off(0);
//     nodes.pass(4000);
#pragma once

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/rows.h"
#include "commands/groups.h"
#include "replication/replica_role.h"
#include "replication/replication.h"
#include "unit/replication/fake_snapshots.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

class ClusterNode {
 public:
  ClusterNode(const std::string& directory, int port, std::string_view settings)
      : server({cluster::cluster_rows(), commands::client_rows(), commands::config_rows(),
                commands::connection_rows(), commands::database_rows(), commands::key_rows(),
                commands::list_rows(), commands::list_wait_rows(), commands::pubsub_rows(),
                commands::scan_rows(), commands::string_batch_rows(), commands::string_rows(),
                commands::transaction_rows()},
               "cluster-enabled yes\ndatabases 1\ncluster-node-timeout 2000\nport " +
                   std::to_string(port) + "\ncluster-announce-ip 127.0.0.1\ncluster-config-file " +
                   directory + "/" + std::to_string(port) + ".conf\n" + std::string(settings)) {
    auto maker = std::make_unique<FakeSnapshots>();
    snapshots = maker.get();
    server.server.add_layer(
        std::make_shared<replication::Replication>(server.server, std::move(maker)));
    cluster = std::make_shared<cluster::Cluster>(server.server);
    if (!cluster->start()) std::abort();
    server.server.add_layer(cluster);
    server.server.set_slot_gate(cluster.get());
    client = std::make_unique<TestClient>(server);
  }
  std::string run(std::string_view line) { return client->run(line); }
  const std::string& id() const { return cluster->myself().id; }
  replication::ReplicaRole& replica_role() {
    return server.server.layer<replication::Replication>().replica_role();
  }
  int bus_port() const { return cluster->myself().address.bus_port; }

  ServerFixture server;
  // Of its replicas.
  FakeSnapshots* snapshots = nullptr;
  std::shared_ptr<cluster::Cluster> cluster;
  std::unique_ptr<TestClient> client;
};

class Nodes {
 public:
  explicit Nodes(size_t count, std::string_view settings = {}) {
    char name[] = "/tmp/latchkey-nodes-XXXXXX";
    directory_ = mkdtemp(name);
    constexpr int kFirstPort = 7000;
    for (size_t i = 0; i < count; ++i) {
      nodes_.push_back(
          std::make_unique<ClusterNode>(directory_, kFirstPort + static_cast<int>(i), settings));
    }
  }
  ~Nodes() {
    nodes_.clear();
    std::filesystem::remove_all(directory_);
  }

  ClusterNode& operator[](size_t index) { return *nodes_[index]; }
  size_t size() const { return nodes_.size(); }
  // Of the nodes' files; it is gone with them.
  const std::string& directory() const { return directory_; }

  // They know each other, and the first so many share the slots.
  void make_cluster(size_t masters) {
    constexpr size_t kSlots = 16384;
    for (size_t i = 0; i < masters; ++i) {
      nodes_[i]->run("CLUSTER SET-CONFIG-EPOCH " + std::to_string(i + 1));
      nodes_[i]->run("CLUSTER ADDSLOTSRANGE " + std::to_string(kSlots * i / masters) + " " +
                     std::to_string(kSlots * (i + 1) / masters - 1));
    }
    for (size_t i = 1; i < nodes_.size(); ++i)
      nodes_[0]->run("CLUSTER MEET 127.0.0.1 " + std::to_string(7000 + i));
    constexpr int64_t kLongEnoughMs = 3000;
    pass(kLongEnoughMs);
  }

  // The replica gets its master's stream, as if it had the dataset already: the test plays the
  // master. The cluster sees it with the next tick.
  void synchronize(size_t replica) {
    replication::MasterConnection& link = *nodes_[replica]->replica_role().link();
    const auto say = [&](std::string line) {
      link.on_input(line);
      return link.out().take_all();
    };
    link.connected(nullptr);
    std::string asked = say("+PONG\r\n");
    constexpr int kMostAnswers = 5;
    for (int i = 0; i < kMostAnswers && asked.find("PSYNC") == std::string::npos; ++i)
      asked = say("+OK\r\n");
    say("+CONTINUE " + std::string(40, 'a') + "\r\n");
    if (!nodes_[replica]->replica_role().connected()) std::abort();
  }

  // Nothing comes from this node or to it, until it is said again.
  void cut_off(size_t index, bool cut = true) {
    if (cut) {
      silent_.insert(nodes_[index].get());
    } else {
      silent_.erase(nodes_[index].get());
    }
  }

  // Lets time pass for all.
  void pass(int64_t ms) {
    constexpr int64_t kStepMs = 100;
    for (int64_t passed = 0; passed < ms; passed += kStepMs) {
      for (const auto& node : nodes_) {
        node->server.advance_ms(kStepMs);
        if (!silent_.contains(node.get())) node->cluster->tick();
      }
      carry();
    }
  }

  // Carries messages until nobody has anything to say.
  void carry() {
    do {
      connect();
      forget_the_dropped();
    } while (exchange());
    for (const auto& node : nodes_) node->cluster->end_turn();
  }

 private:
  struct Pair {
    ClusterNode* from;
    ClusterNode* to;
    cluster::Link* there;  // of `to`
  };

  ClusterNode* at_bus_port(int port) {
    for (const auto& node : nodes_) {
      if (node->bus_port() == port) return node.get();
    }
    return nullptr;
  }

  // Makes the links that are to be made.
  void connect() {
    for (const auto& node : nodes_) {
      for (const auto& link : node->cluster->bus().links()) {
        if (link->is_connected() || silent_.contains(node.get())) continue;
        ClusterNode* const to = at_bus_port(link->node->address.bus_port);
        if (to == nullptr || silent_.contains(to)) continue;
        pairs_[link.get()] = {node.get(), to, &to->cluster->bus().accept(nullptr)};
        link->connected(nullptr);
      }
    }
  }

  static bool has_link(ClusterNode& node, const cluster::Link* wanted) {
    for (const auto& link : node.cluster->bus().links()) {
      if (link.get() == wanted) return true;
    }
    return false;
  }

  // A link that one end has dropped is lost at the other.
  void forget_the_dropped() {
    for (auto it = pairs_.begin(); it != pairs_.end();) {
      const auto& [here, pair] = *it;
      const bool alive_here = has_link(*pair.from, here);
      const bool alive_there = has_link(*pair.to, pair.there);
      if (alive_here && alive_there) {
        ++it;
        continue;
      }
      if (alive_here) here->on_disconnect();
      if (alive_there) pair.there->on_disconnect();
      it = pairs_.erase(it);
    }
  }

  bool exchange() {
    bool any = false;
    const auto pairs = pairs_;
    for (const auto& [here, pair] : pairs) {
      if (silent_.contains(pair.from) || silent_.contains(pair.to)) continue;
      any |= move(*pair.from, here, *pair.to, pair.there);
      any |= move(*pair.to, pair.there, *pair.from, here);
    }
    return any;
  }

  static bool move(ClusterNode& from, cluster::Link* source, ClusterNode& to,
                   cluster::Link* target) {
    if (!has_link(from, source) || !has_link(to, target)) return false;
    std::string bytes = source->take_output();
    if (bytes.empty()) return false;
    target->on_input(bytes);
    return true;
  }

  std::string directory_;
  std::vector<std::unique_ptr<ClusterNode>> nodes_;
  std::set<ClusterNode*> silent_;
  std::map<cluster::Link*, Pair> pairs_;
};

// A string in a slot of another node, as it is left there when the slot goes.
inline void leave(server::Server& server, const std::string& key) {
  store::KeyRef place = server.database(0).find_for_write(key);
  server.database(0).set_string(place, "1");
}

}  // namespace latchkey::tests
