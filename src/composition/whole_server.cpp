#include "composition/whole_server.h"

#include <string>
#include <utility>

#include "all_commands.h"
#include "cluster/cluster.h"
#include "composition/aof_and_replication.h"
#include "locks/lock_watch.h"
#include "persist/persistence.h"
#include "replication/child_snapshots.h"
#include "replication/replica_role.h"
#include "replication/replication.h"
#include "script/engine.h"
#include "sentinel/sentinel_server.h"
#include "server/acl/access_control.h"
#include "server/process/secure_transport.h"
#include "server/stream_offset.h"
#include "server/tasks.h"
#include "testing/calls.h"
#include "testing/checkpoints.h"
#include "testing/clock_control.h"
#include "testing/faults.h"

namespace latchkey::composition {

using base::fail_with;
using base::Result;
using server::ConfigError;

namespace {

// What a server among others starts from.
constexpr std::string_view kSpaceSettings =
    "port 0\n"
    "save \"\"\n";

// The reason is in the log.
ConfigError logged_error() {
  return ConfigError::of(ConfigError::Kind::kLogged, {});
}

}  // namespace

Result<std::unique_ptr<WholeServer>, ConfigError> WholeServer::make(
    std::unique_ptr<server::Config> config, const Dependencies& dependencies) {
  cluster::adapt_configuration(*config, dependencies.log);
  std::unique_ptr<WholeServer> whole(new WholeServer(std::move(config), dependencies));
  if (auto configured = whole->configure(); !configured) return configured.failure();
  return whole;
}

std::vector<ConfigError> WholeServer::check(std::unique_ptr<server::Config> config,
                                            const Dependencies& dependencies) {
  std::vector<ConfigError> problems;
  const auto take = [&](Result<void, ConfigError> step) {
    if (!step) problems.push_back(std::move(step).error());
  };
  const auto add = [&](std::string message) -> ConfigError& {
    return problems.emplace_back(ConfigError::of(ConfigError::Kind::kWhole, std::move(message)));
  };
  WholeServer whole(std::move(config), dependencies);
  server::ConfigValues& values = whole.config_->mutable_values();
  take(whole.set_clock());
  if (!whole.server_.set_collation(values.locale_collate) && !values.locale_collate.empty()) {
    add("locale-collate: this machine does not know the locale '" + values.locale_collate +
        "' (locale -a lists those it does)");
  }
  for (const auto& renaming : values.rename_commands)
    take(whole.server_.commands().rename({renaming}));
  // One user at a time, so that each is heard.
  const auto users = std::exchange(values.users, {});
  if (users.empty() || !values.aclfile.empty()) {
    values.users = users;
    take(whole.server_.access().configure());
  }
  for (size_t i = 0; values.aclfile.empty() && i < users.size(); ++i) {
    values.users = {users[i]};
    take(whole.server_.access().configure());
  }
  if (auto configured = whole.server_.secure_transport().configure(); !configured)
    add("TLS cannot be set up").hint = std::move(configured).error();
  if (values.sentinel_mode) {
    const auto sentinel = std::make_shared<sentinel::SentinelServer>(whole.server_);
    take(sentinel->start());
  }
  return problems;
}

Result<std::unique_ptr<WholeServer>, ConfigError> WholeServer::make_space(
    std::string_view settings, const Dependencies& dependencies, const server::Config* parent) {
  auto config = std::make_unique<server::Config>(std::make_unique<server::PrivateDirectory>());
  if (parent != nullptr) config->inherit(*parent);
  if (auto loaded = config->load_text(kSpaceSettings); !loaded) return loaded.failure();
  if (auto loaded = config->load("", settings); !loaded) return loaded.failure();
  return make(std::move(config), dependencies);
}

WholeServer::WholeServer(std::unique_ptr<server::Config> config, const Dependencies& dependencies)
    : config_(std::move(config)),
      server_(dependencies.clock, *config_, dependencies.log, dependencies.loop) {
  add_layers(dependencies);
}

WholeServer::~WholeServer() = default;

void WholeServer::add_layers(const Dependencies& dependencies) {
  add_all_commands(server_);
  server_.add_layer(std::make_shared<script::Engine>(server_));
  const auto persistence = std::make_shared<persist::Persistence>(server_, dependencies.child);
  server_.add_layer(persistence);
  auto snapshots = dependencies.snapshots
                       ? dependencies.snapshots(server_)
                       : std::make_unique<replication::ChildSnapshots>(server_, *persistence);
  const auto replication =
      std::make_shared<replication::Replication>(server_, std::move(snapshots));
  server_.add_layer(replication);
  connect(persistence->aof(), *replication);
  server_.add_layer(std::make_shared<testing::ClockControl>(server_));
  server_.add_layer(std::make_shared<testing::Checkpoints>(server_));
  const auto calls = std::make_shared<testing::Calls>(server_);
  server_.add_layer(calls);
  server_.set_call_listener(calls.get());
  const auto faults = std::make_shared<testing::Faults>(server_);
  server_.add_layer(faults);
  server_.set_fault_injector(faults.get());
  server_.add_layer(std::make_shared<locks::LockWatch>(server_));
}

Result<void, ConfigError> WholeServer::configure() {
  if (auto set = set_clock(); !set) return set;
  if (auto chosen = choose_collation(); !chosen) return chosen;
  auto renamed = server_.commands().rename(config_->values().rename_commands);
  if (!renamed) return renamed;
  if (auto configured = server_.access().configure(); !configured) return configured;
  if (config_->values().sentinel_mode) {
    const auto sentinel = std::make_shared<sentinel::SentinelServer>(server_);
    server_.add_layer(sentinel);
    if (auto started = sentinel->start(); !started) return started;
  }
  if (!join_cluster() || !report_startup_problems()) return fail_with(logged_error());
  return {};
}

Result<void, ConfigError> WholeServer::set_clock() {
  const std::string& text = config_->values().clock;
  if (server_.layer<testing::ClockControl>().start_as(text)) {
    // It watches from now on, by that clock.
    server_.layer<locks::LockWatch>().reset();
    return {};
  }
  return fail_with(ConfigError::of(
      ConfigError::Kind::kWhole,
      "clock must be 'wall' or '[frozen] <time> [rate <factor>]', not '" + text + "'"));
}

Result<void, ConfigError> WholeServer::choose_collation() {
  const std::string& locale = config_->values().locale_collate;
  if (server_.set_collation(locale)) return {};
  if (!locale.empty()) {
    server_.log().warning("Failed to configure LOCALE for invalid locale name.");
    return fail_with(logged_error());
  }
  // One that only the environment names may be unknown to this machine.
  server_.log().warning("The environment's locale is not known here: SORT ALPHA compares bytes.");
  return {};
}

bool WholeServer::join_cluster() {
  if (!config_->values().cluster_enabled) return true;
  const auto node = std::make_shared<cluster::Cluster>(server_);
  if (!node->start()) return false;
  server_.add_layer(node);
  server_.set_slot_gate(node.get());
  return true;
}

bool WholeServer::report_startup_problems() {
  const std::vector<std::string> problems = config_->startup_problems();
  for (const std::string& problem : problems) server_.log().warning(problem);
  if (!problems.empty()) return false;
  for (const std::string& line : config_->settings_without_effect()) server_.log().notice(line);
  return true;
}

bool WholeServer::listen() {
  // With `port auto` the port of the bus, which follows from the one that the system chose, may be
  // in use.
  constexpr int kMaxAttempts = 100;
  server::ConfigValues& values = config_->mutable_values();
  for (int attempt = 1;; ++attempt) {
    if (!server_.listen()) return false;
    if (!server_.in_cluster() || server_.layer<cluster::Cluster>().listen()) return true;
    if (!values.port_auto || values.cluster_port != 0 || attempt == kMaxAttempts) return false;
    server_.stop_listening();
    values.port = 0;
  }
}

persist::Loading::Result WholeServer::load_dataset() {
  persist::Loading& loading = server_.layer<persist::Persistence>().loading();
  net::Loop* const loop = server_.loop();
  if (loop != nullptr && loop->is_turning()) return loading.load_at_start();
  auto result = persist::Loading::Result::kFailed;
  server_.tasks().run([&] { result = loading.load_at_start(); });
  while (server_.tasks().any()) {
    if (loop != nullptr) {
      loop->run_once();
    } else {
      server_.tasks().resume_ready();
    }
  }
  return result;
}

bool WholeServer::adopt_dataset() {
  persist::Loading& loading = server_.layer<persist::Persistence>().loading();
  replication::Replication& replication = server_.layer<replication::Replication>();
  cluster::Cluster* const node = server_.find_layer<cluster::Cluster>();
  const auto& place = loading.place_at_start();
  if (place && node != nullptr && node->myself().is_replica() &&
      server::is_stream_offset(place->offset)) {
    // It goes on in its master's stream where the file was written, as a replica does that the
    // configuration tells of its master: the link, which reconcile() opens, asks for that place.
    replication.begin_at(place->id, place->offset);
    node->reconcile();
    replication.replica_role().resume_at(place->database);
  } else if (place) {
    replication.resume_from(*place, loading.take_dropped_at_start());
  }
  // What is deleted now is written to the stream.
  if (server_.slot_gate() != nullptr) server_.slot_gate()->adopt_slots(loading.slots_at_start());
  return node == nullptr || node->claim_loaded_slots();
}

bool WholeServer::open_append_only_file() {
  return server_.layer<persist::Persistence>().aof().open_at_start();
}

}  // namespace latchkey::composition
