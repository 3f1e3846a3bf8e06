#include "simulation/node.h"

#include <utility>

#include "base/log.h"
#include "composition/whole_server.h"
#include "replication/replica_role.h"
#include "replication/replication.h"
#include "script/engine.h"
#include "server/client/authentication.h"
#include "server/config/config.h"
#include "server/server.h"
#include "simulation/steps.h"

namespace latchkey::simulation {

struct Node::Parts {
  base::Logger log;
  SimulatedSnapshots* snapshots = nullptr;
  std::unique_ptr<composition::WholeServer> whole;
};

Node::Node(Shape shape, SimulatedClock& clock, Dice& dice, std::filesystem::path directory,
           std::string log)
    : shape_(std::move(shape)),
      clock_(clock),
      dice_(dice),
      directory_(std::move(directory)),
      log_(std::move(log)) {}

Node::~Node() = default;

void Node::start() {
  std::string settings = "dir " + directory_.string() +
                         "\n"
                         "save \"\"\n"
                         "busy-reply-threshold 0\n"
                         "enable-debug-command yes\n"
                         "auto-aof-rewrite-percentage 0\n"
                         "repl-diskless-sync-delay 0\n"
                         "repl-rdb-channel no\n"
                         "loading-process-events-interval-bytes 1024\n";
  settings += "port " + std::to_string(port(shape_.index)) + "\n";
  if (shape_.append_only) settings += "appendonly yes\nappendfsync always\n";
  if (shape_.follows >= 0) {
    settings += "replicaof node" + std::to_string(shape_.follows) + " " +
                std::to_string(port(shape_.follows)) + "\n";
  }
  settings += shape_.settings;
  parts_ = std::make_unique<Parts>();
  ++generation_;
  parts_->log.set_level(log_.empty() ? base::LogLevel::kNothing : base::LogLevel::kDebug);
  if (!log_.empty()) parts_->log.set_file(log_);
  const auto make_snapshots = [this](server::Server& server) {
    auto snapshots = std::make_unique<SimulatedSnapshots>(server, dice_, directory_ / "sync.rdb");
    parts_->snapshots = snapshots.get();
    return snapshots;
  };
  auto made = composition::WholeServer::make_space(
      settings, {.clock = clock_, .log = parts_->log, .snapshots = make_snapshots});
  if (!made) throw CheckFailed(made.error().report());
  parts_->whole = *std::move(made);
  composition::WholeServer& whole = *parts_->whole;
  whole.server().layer<script::Engine>().runner().interrupt_after(shape_.script_instructions);
  whole.server().refresh_clock();

  const auto loaded = whole.load_dataset();
  if (loaded == persist::Loading::Result::kFailed || loaded == persist::Loading::Result::kStopped)
    throw CheckFailed(name() + " cannot load what it has saved");
  if (!whole.adopt_dataset() || !whole.open_append_only_file())
    throw CheckFailed(name() + " cannot open its append-only file");
}

void Node::crash() {
  parts_.reset();
}

server::Server& Node::server() {
  return parts_->whole->server();
}

replication::ReplicaRole& Node::replica_role() {
  return server().layer<replication::Replication>().replica_role();
}

SimulatedSnapshots& Node::snapshots() {
  return *parts_->snapshots;
}

uint32_t Node::state() {
  return server().state();
}

void Node::end_turn() {
  server().tick();
}

std::string Node::run(const Words& words, int database) {
  server::Client& client = server().clients().add(nullptr);
  server::assume_default_user(client);
  client.database = database;
  std::string request = encode(words);
  client.on_input(request);
  std::string reply = client.has(server::kClientSuspended) ? "" : client.out().take_all();
  client.close();
  return reply;
}

int Node::master() {
  return replica_role().active() ? replica_role().port() - kFirstPort : -1;
}

}  // namespace latchkey::simulation
