#include "composition/application.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "composition/idle_memory.h"
#include "composition/space_host.h"
#include "composition/whole_server.h"
#include "net/loop.h"
#include "persist/leftovers.h"
#include "replication/replica_role.h"
#include "replication/replication.h"
#include "sentinel/sentinel_server.h"
#include "server/acl/access_control.h"
#include "server/client/client_registry.h"
#include "server/config/live_settings.h"
#include "server/observe/logo.h"
#include "server/observe/memory.h"
#include "server/process/listeners.h"
#include "server/process/proc_title.h"
#include "server/process/shutdown.h"

namespace latchkey::composition {

using base::LogLevel;
using server::ConfigError;
using server::ConfigValues;

namespace {

// Empty when it cannot be told.
std::filesystem::path working_directory() {
  std::error_code ignored;
  return std::filesystem::current_path(ignored);
}

}  // namespace

Application::Application(server::CommandLine line, std::vector<std::string> arguments,
                         server::ProcessTitle& title)
    : line_(std::move(line)),
      arguments_(std::move(arguments)),
      started_in_(working_directory()),
      parent_(getppid()),
      title_(title),
      crash_reporter_(log_),
      watchdog_(log_) {}

int Application::run() {
  if (!load_configuration() || !set_up_process() || !set_up_resources()) return 1;
  log_start();

  base::SystemClock clock;
  net::Loop loop;
  const auto show_title = [this, &config = *config_](std::string_view name) {
    server::show_title(title_, std::string(name), config);
  };
  // After the process has gone to the background, which leaves threads behind.
  server::use_io_threads(config_->values().io_threads, loop, log_);
  auto made = WholeServer::make(std::move(config_),
                                {.clock = clock,
                                 .log = log_,
                                 .loop = &loop,
                                 .child = {.oom_score = &oom_score_, .show_title = show_title}});
  if (!made) {
    report(made.error());
    return 1;
  }
  const std::unique_ptr<WholeServer> whole = *std::move(made);
  std::unique_ptr<testing::Spaces> spaces;
  if (!line_.sentinel) spaces = make_spaces(*whole, clock, loop);
  if (!start(*whole)) return 1;
  IdleMemory idle_memory(whole->server(), loop);

  loop.run();
  std::fflush(nullptr);
  if (const auto delay_ms = whole->server().shutdown().restart_delay_ms()) restart(*delay_ms);
  std::_Exit(whole->server().exit_code());
}

void Application::restart(int64_t delay_ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
  std::error_code ignored;
  std::filesystem::current_path(started_in_, ignored);
  std::vector<char*> words;
  for (const std::string& argument : arguments_)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  // Descriptors close by themselves (O_CLOEXEC).
  execv("/proc/self/exe", words.data());
  std::_Exit(1);
}

bool Application::load_configuration() {
  config_ = std::make_unique<server::Config>();
  if (line_.sentinel) {
    config_->be_sentinel();
    log_.set_role('X');
  }
  const std::string input =
      line_.read_stdin ? base::read_all(STDIN_FILENO).value_or("") : std::string();
  auto ready = config_->load(line_.config_path, line_.configuration(input));
  edition_ = config_->values().edition;
  if (ready) ready = readiness_.prepare(*config_);
  if (!ready) report(ready.error());
  return bool{ready};
}

void Application::report(const ConfigError& error) {
  switch (error.kind) {
    case ConfigError::Kind::kLogged:
      break;
    case ConfigError::Kind::kFile:
      log_.warning(error.message);
      break;
    case ConfigError::Kind::kLine:
    case ConfigError::Kind::kWhole:
      std::fputs(error.report(edition_).c_str(), stderr);
  }
}

bool Application::set_up_process() {
  const ConfigValues& values = config_->values();
  server::configure_logger(values, log_);
  crash_reporter_.enable(values.crash_log_enabled);
  supervision_ = std::make_unique<server::Supervision>(values.supervised, log_);
  const bool background = values.daemonize && !supervision_->active();
  if (background && !server::daemonize()) return false;
  pidfile_ = server::pidfile_path(values, background);
  if (!pidfile_.empty()) server::write_pidfile(pidfile_, log_);
  return true;
}

bool Application::set_up_resources() {
  const ConfigValues& values = config_->values();
  const auto clients = server::make_room_for_clients(values.maxclients, log_);
  if (!clients) return false;
  config_->mutable_values().maxclients = *clients;
  using Role = server::OomScore::Role;
  oom_score_.apply(values, values.replicaof_host.empty() ? Role::kMaster : Role::kReplica, log_);
  server::pin_to_cpus(values.server_cpulist);
  if (values.disable_thp) server::disable_transparent_huge_pages();
  server::keep_large_free_pages();
  return true;
}

void Application::log_start() {
  log_.notice("oO0OoO0OoO0Oo Redis is starting oO0OoO0OoO0Oo");
  log_.logf(LogLevel::kNotice,
            "Redis version=%s, bits=64, commit=00000000, modified=0, pid=%d, just started",
            config_->values().edition.version().c_str(), getpid());
  if (!line_.config_path.empty() || !line_.options.empty() || line_.read_stdin) {
    log_.notice("Configuration loaded");
  } else {
    log_.warning(
        "Warning: no config file specified, using the default config. In order to specify a config "
        "file use "
        "redis-server /path/to/redis.conf");
  }
  if (const auto warning = server::tcp_backlog_warning(config_->values().tcp_backlog))
    log_.warning(*warning);
}

bool Application::start(WholeServer& whole) {
  server::Server& server = whole.server();
  attach_process(whole);
  if (!whole.listen()) return false;
  server::show_logo(server.settings(), log_);
  server::show_title(title_, arguments_[0], whole.config());
  server.shutdown().watch_signals();
  server.shutdown().on_exit([this] {
    supervision_->stopping();
    readiness_.withdraw();
    if (!pidfile_.empty()) server::remove_pidfile(pidfile_, log_);
  });
  server.config().on_change({"port", "tls-port", "bind"},
                            [this, &server] { readiness_.moved(server.listeners().address()); });
  exit_when_not_needed(server);
  if (server.is_sentinel()) {
    server.layer<sentinel::SentinelServer>().run();
  } else {
    log_.notice("Server initialized");
    persist::remove_leftovers(server);
    load_dataset(whole);
    warn_of_open_access(server);
    log_readiness(server.settings());
  }
  announce_readiness(server);
  // Not before: a process that goes to the background leaves its threads behind.
  server::set_allocator_background_thread(server.settings().jemalloc_bg_thread);
  return true;
}

void Application::attach_process(WholeServer& whole) {
  server::Server& server = whole.server();
  server.set_crash_reporter(&crash_reporter_);
  server::register_process_settings(
      server, {&crash_reporter_, &watchdog_, &oom_score_, &title_, arguments_[0]});
}

void Application::load_dataset(WholeServer& whole) {
  using Result = persist::Loading::Result;
  const Result loaded = whole.load_dataset();
  if (loaded == Result::kStopped) std::_Exit(whole.server().exit_code());
  if (loaded == Result::kFailed || !whole.adopt_dataset() || !whole.open_append_only_file())
    std::_Exit(1);
}

void Application::exit_when_not_needed(server::Server& server) {
  const auto clients = [&server] {
    // The master's link is no client of this server's.
    server::AutomaticExit::Clients all = {
        .connected = server.clients().size() -
                     (server.layer<replication::Replication>().replica_role().connected() ? 1 : 0),
        .connections_received = server.stats().connections_received};
    // A Sentinel has no spaces.
    const testing::Spaces* const spaces = server.find_layer<testing::Spaces>();
    if (spaces == nullptr) return all;
    for (const auto& [name, space] : spaces->all()) {
      all.connected += space->server().clients().size();
      all.connections_received += space->server().stats().connections_received;
    }
    return all;
  };
  std::function<bool()> parent_has_gone;
  if (server.settings().exit_with_parent) {
    // It is another process's parent then, also when it was killed.
    parent_has_gone = [parent = parent_] { return getppid() != parent; };
    if (parent_ == 0)
      log_.warning("exit-with-parent: the parent is in another PID namespace and cannot be seen.");
  }
  automatic_exit_ =
      std::make_unique<server::AutomaticExit>(server, clients, std::move(parent_has_gone));
}

void Application::warn_of_open_access(server::Server& server) {
  const ConfigValues& values = server.settings();
  if ((values.port == 0 && values.tls_port == 0) ||
      !server.access().default_user()->needs_no_password)
    return;
  const bool all_interfaces =
      std::any_of(values.bind.begin(), values.bind.end(), [](std::string_view address) {
        if (address.starts_with('-')) address.remove_prefix(1);
        return address == "*" || address == "0.0.0.0" || address == "::*" || address == "::";
      });
  if (values.protected_mode) {
    log_.warning("WARNING: Redis does not require authentication: any local client is served.");
  } else if (all_interfaces) {
    log_.warning(
        "WARNING: Redis does not require authentication and is not protected by network "
        "restrictions: clients of any address are served on all network interfaces.");
  } else {
    log_.warning(
        "WARNING: Redis does not require authentication: clients of any address are served on "
        "each configured network interface.");
  }
}

void Application::log_readiness(const ConfigValues& values) {
  if (values.port != 0) log_.notice("Ready to accept connections tcp");
  if (!values.unixsocket.empty()) log_.notice("Ready to accept connections unix");
  if (values.tls_port != 0) log_.notice("Ready to accept connections tls");
}

void Application::announce_readiness(server::Server& server) {
  if (!readiness_.announce(server.listeners().address())) std::_Exit(1);
  supervision_->ready();
}

}  // namespace latchkey::composition
