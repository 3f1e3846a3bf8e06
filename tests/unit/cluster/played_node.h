// A node of a cluster with sockets, and another node that the test plays: the one that this node
// connects to. Time is virtual; nothing of the cluster's periodic work happens but by tick().
//
//     NodeWithPeer scene("repl-timeout 10\n");
//     scene.migration().import(slots_of({0}));
//     PlayedChannel& channel = scene.peer.accept([] { return false; });
//     CHECK(channel.received() == bulks({"AUTH", "internal connection", scene.cluster.secret()}));
//     channel.says("+OK\r\n");
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "cluster/slot_set.h"
#include "composition/whole_server.h"
#include "net/connection.h"
#include "net/listener.h"
#include "net/loop.h"
#include "unit/catch.h"
#include "unit/net/wire.h"
#include "unit/required.h"
#include "unit/temporary_directory.h"

namespace latchkey::tests {

inline cluster::SlotSet slots_of(std::initializer_list<int> slots) {
  cluster::SlotSet set;
  for (const int slot : slots) set.add(slot);
  return set;
}

// One of the connections that a node has opened to the played one. Once the node, or hangs_up(),
// has closed it, nothing more is said on it.
class PlayedChannel final : public net::ConnectionHandler {
 public:
  PlayedChannel(net::Loop& loop, net::Connection& connection)
      : loop_(loop), connection_(&connection) {
    connection_->start(*this, 0);
  }
  ~PlayedChannel() override { close(); }
  PlayedChannel(const PlayedChannel&) = delete;
  PlayedChannel& operator=(const PlayedChannel&) = delete;

  // What the node has said since.
  std::string received() {
    turn(loop_);
    return std::exchange(received_, {});
  }
  void says(std::string_view bytes) {
    if (connection_ != nullptr) {
      connection_->out().append(bytes);
      connection_->flush();
    }
    turn(loop_);
  }
  // One byte after the other.
  void says_slowly(std::string_view bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) says(bytes.substr(i, 1));
  }
  // Whether it reads what the node says. While it does not, the system keeps some megabytes.
  void reads(bool on) { on ? connection_->resume_reading() : connection_->pause_reading(); }
  void hangs_up() {
    close();
    turn(loop_);
  }
  bool is_over() const { return connection_ == nullptr; }

  // net::ConnectionHandler
  size_t on_input(std::span<char> bytes) override {
    received_.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  size_t wanted_input() const override { return 0; }
  void on_end_of_input() override { close(); }
  void on_disconnect() override { close(); }
  void on_flushed() override {}

 private:
  void close() {
    if (connection_ != nullptr) std::exchange(connection_, nullptr)->close();
  }

  net::Loop& loop_;
  net::Connection* connection_;
  std::string received_;
};

class PlayedNode {
 public:
  explicit PlayedNode(net::Loop& loop) : loop_(loop) {
    const auto accepted = [this](net::Connection* connection) {
      channels_.push_back(std::make_unique<PlayedChannel>(loop_, *connection));
    };
    auto made = net::Listener::tcp(loop, "127.0.0.1", 0, 16,
                                   {.accepted = accepted, .cannot_accept = {}, .limit = {}});
    REQUIRE(made);
    listener_ = *std::move(made);
    port_ = listener_->port();
  }

  int port() const { return port_; }
  // Whom connects from here on is refused.
  void stops_listening() {
    listener_.reset();
    turn(loop_);
  }
  // Waits for the next connection. Fails the test when the node has given up first.
  PlayedChannel& accept(const std::function<bool()>& has_given_up) {
    while (channels_.size() == accepted_ && !has_given_up()) wait_a_turn();
    turn(loop_);
    REQUIRE(channels_.size() > accepted_);
    return *channels_[accepted_++];
  }
  // How many have come.
  size_t connections() const { return channels_.size(); }

  // A turn of the loop while another thread (that looks up names) has something to do.
  void wait_a_turn() {
    loop_.run_once();
    std::this_thread::yield();
  }

 private:
  net::Loop& loop_;
  std::unique_ptr<net::Listener> listener_;
  int port_ = 0;
  std::vector<std::unique_ptr<PlayedChannel>> channels_;
  size_t accepted_ = 0;
};

// This node is a master of the slots from 8192 on, the played one of those below. A third master
// has none.
struct NodeWithPeer {
  explicit NodeWithPeer(const std::string& settings = {})
      : peer(loop),
        whole(required(composition::WholeServer::make_space(
            directory.setting() + "cluster-enabled yes\ncluster-announce-ip 127.0.0.1\n" + settings,
            {.clock = clock, .log = quiet(), .loop = &loop}))),
        server(whole->server()),
        cluster(server.layer<cluster::Cluster>()) {
    cluster::NodeTable& nodes = cluster.nodes();
    add(kPeer, peer.port());
    add(kThird, 1);
    for (int slot = 0; slot < store::kKeySlots; ++slot)
      nodes.assign(slot, slot < 8192 ? *nodes.find(kPeer) : cluster.myself());
    cluster.commit();
    // From here on it serves.
    pass(5'000);
    cluster.commit();
  }
  ~NodeWithPeer() {
    whole.reset();
    turn(loop);
  }

  inline static const std::string kPeer = std::string(40, 'b');
  inline static const std::string kThird = std::string(40, 'c');

  cluster::SlotMigration& migration() { return cluster.slot_migration(); }
  cluster::SlotJobs& jobs() { return cluster.slot_jobs(); }
  store::Keyspace& database() { return server.database(0); }
  // What it has under the key, of a string; even where clients do not see it.
  std::string value_of(std::string_view key) {
    char scratch[20];
    const store::KeyRef found = database().find(key, store::Keyspace::kPeek);
    return found ? std::string(found->string(scratch)) : "(none)";
  }
  // The slot becomes that node's, as the bus would tell.
  void give(int slot, const std::string& id) {
    cluster.nodes().assign(slot, *cluster.nodes().find(id));
    cluster.commit();
  }
  void pass(int64_t ms) {
    clock.advance_ms(ms);
    server.refresh_clock();
  }
  // The cluster's periodic work, after some time.
  void tick(int64_t ms = 0) {
    pass(ms);
    cluster.tick();
    turn(loop);
  }

  net::Loop loop;
  TemporaryDirectory directory;
  base::VirtualClock clock;
  base::Logger log;
  PlayedNode peer;
  std::unique_ptr<composition::WholeServer> whole;
  server::Server& server;
  cluster::Cluster& cluster;

 private:
  base::Logger& quiet() {
    log.set_level(base::LogLevel::kNothing);
    return log;
  }
  void add(const std::string& id, int port) {
    cluster::Node& node = cluster.nodes().add(id, cluster::kMaster, server.machine_ms());
    node.shard_id = id;
    node.address = {.ip = "127.0.0.1", .port = port, .bus_port = 1};
    node.config_epoch = 7;
  }
};

}  // namespace latchkey::tests
