// A server as the one node of a cluster (cluster-enabled): which slots it serves, who it is, and
// whether it may serve at all. There are no other nodes, so it redirects nobody and hears of
// nothing; what it says is true at once. Its state is on disk before a change of it is answered.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/node_file.h"
#include "cluster/node_state.h"
#include "server/slot_gate.h"

namespace latchkey::base {
class Logger;
}
namespace latchkey::server {
class Config;
class Server;
}  // namespace latchkey::server

namespace latchkey::cluster {

// A node has one database. To be called before the server is made.
void adapt_configuration(server::Config& config, base::Logger& log);

class Cluster final : public server::SlotGate {
 public:
  // To be made before anything is loaded.
  explicit Cluster(server::Server& server);

  // Takes the node's state from its file, or becomes a new node. False, with the reason logged,
  // when the file cannot be used. To be called before anything is loaded.
  bool start();
  // Takes slots that nobody serves though keys of theirs were loaded. False as above.
  bool claim_loaded_slots();

  const NodeState& state() const { return state_; }
  NodeAddress address() const;
  // Hashes what nodes of one cluster would share.
  int secret_hash() const { return secret_hash_; }
  // Whether all slots that must be served are.
  bool is_up() const;

  // Makes the state what it shall be. Who listens to shard channels of slots that go, or waits for
  // keys of theirs, is told. False, with errno set and the state as it was, when it cannot
  // be written.
  bool change(NodeState wanted);
  bool save() { return change(state_); }

  // server::SlotGate
  Answer judge(std::span<const server::SlotGate::Request> requests) override;

 private:
  void dismiss_the_unserved();
  server::Server& server_;
  NodeFile file_;
  NodeState state_;
  int secret_hash_;
  std::vector<server::KeyReference> found_;  // kept from one request to the next
};

}  // namespace latchkey::cluster
