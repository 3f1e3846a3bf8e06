#include "simulation/node.h"

#include <utility>

#include "all_commands.h"
#include "base/log.h"
#include "persist/persistence.h"
#include "replication/replica_role.h"
#include "replication/replication.h"
#include "script/engine.h"
#include "server/acl/access_control.h"
#include "server/client/authentication.h"
#include "server/config/config.h"
#include "server/server.h"
#include "server/tasks.h"
#include "simulation/steps.h"

namespace latchkey::simulation {

struct Node::Parts {
  Parts(SimulatedClock& clock, const std::string& settings, const std::string& log_file)
      : config(std::make_unique<server::PrivateDirectory>()),
        server(clock, configure(settings, log_file), log, nullptr) {}

  server::Config& configure(const std::string& settings, const std::string& log_file) {
    log.set_level(log_file.empty() ? base::LogLevel::kNothing : base::LogLevel::kDebug);
    if (!log_file.empty()) log.set_file(log_file);
    server::ConfigError error;
    if (!config.load("", settings, &error)) throw CheckFailed(error.report());
    return config;
  }

  base::Logger log;
  server::Config config;
  server::Server server;
  SimulatedSnapshots* snapshots = nullptr;
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
  parts_ = std::make_unique<Parts>(clock_, settings, log_);
  ++generation_;
  server::Server& server = parts_->server;
  add_all_commands(server);
  server::ConfigError error;
  if (!server.access().configure(&error)) throw CheckFailed(error.report());
  const auto engine = std::make_shared<script::Engine>(server);
  engine->runner().interrupt_after(shape_.script_instructions);
  server.set_scripts(engine);
  const auto persistence =
      std::make_shared<persist::Persistence>(server, persist::ChildProcessParts{});
  server.set_persistence(persistence);
  auto snapshots = std::make_unique<SimulatedSnapshots>(server, dice_, directory_ / "sync.rdb");
  parts_->snapshots = snapshots.get();
  const auto replication = std::make_shared<replication::Replication>(server, std::move(snapshots));
  replication->stream().on_counting(
      [file = &persistence->aof().file()](bool counts) { file->count_offset(!counts); });
  server.set_replication(replication);
  server.refresh_clock();

  auto loaded = persist::Loading::Result::kFailed;
  server.tasks().run([&] { loaded = persistence->loading().load_at_start(); });
  while (server.tasks().any()) server.tasks().resume_ready();
  if (loaded == persist::Loading::Result::kFailed || loaded == persist::Loading::Result::kStopped)
    throw CheckFailed(name() + " cannot load what it has saved");
  if (const auto& place = persistence->loading().place_at_start())
    replication->resume_from(*place, persistence->loading().take_dropped_at_start());
  if (!persistence->aof().open_at_start())
    throw CheckFailed(name() + " cannot open its append-only file");
}

void Node::crash() {
  parts_.reset();
}

server::Server& Node::server() {
  return parts_->server;
}

replication::ReplicaRole& Node::replica_role() {
  return parts_->server.replication().replica_role();
}

SimulatedSnapshots& Node::snapshots() {
  return *parts_->snapshots;
}

uint32_t Node::state() {
  return parts_->server.state();
}

void Node::end_turn() {
  parts_->server.tick();
}

std::string Node::run(const Words& words, int database) {
  server::Client& client = server().clients().add(nullptr);
  server::assume_default_user(client);
  client.database = database;
  std::string request = encode(words);
  client.on_input(request);
  std::string reply = client.has(server::kClientSuspended) ? "" : take_all(client.out());
  client.close();
  return reply;
}

int Node::master() {
  return replica_role().active() ? replica_role().port() - kFirstPort : -1;
}

}  // namespace latchkey::simulation
