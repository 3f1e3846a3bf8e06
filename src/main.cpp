// Composes a server from its parts and runs it.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "all_commands.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/version.h"
#include "cluster/cluster.h"
#include "net/loop.h"
#include "persist/check_aof.h"
#include "persist/check_rdb.h"
#include "persist/leftovers.h"
#include "persist/persistence.h"
#include "replication/child_snapshots.h"
#include "replication/replication.h"
#include "script/engine.h"
#include "server/acl/access_control.h"
#include "server/config/command_line.h"
#include "server/config/config.h"
#include "server/config/live_settings.h"
#include "server/observe/logo.h"
#include "server/observe/memory.h"
#include "server/process/crash_report.h"
#include "server/process/loop_watchdog.h"
#include "server/process/proc_title.h"
#include "server/process/process.h"
#include "server/process/shutdown.h"
#include "server/server.h"
#include "server/tasks.h"

namespace latchkey {

namespace {

using base::LogLevel;
using server::CommandLine;

// Prints why the configuration cannot be used. Returns the exit status.
int refuse_configuration(const server::ConfigError& error, base::Logger& log) {
  if (error.kind == server::ConfigError::Kind::kFile) {
    log.warning(error.message);
  } else {
    std::fputs(error.report().c_str(), stderr);
  }
  return 1;
}

void log_start(base::Logger& log, const server::Config& config, bool configured) {
  log.notice("oO0OoO0OoO0Oo Redis is starting oO0OoO0OoO0Oo");
  log.logf(LogLevel::kNotice,
           "Redis version=%s, bits=64, commit=00000000, modified=0, pid=%d, just started",
           base::kReferenceVersion, getpid());
  if (configured) {
    log.notice("Configuration loaded");
  } else {
    log.warning(
        "Warning: no config file specified, using the default config. In order to specify a config "
        "file use "
        "redis-server /path/to/redis.conf");
  }
  server::show_logo(config.values(), log);
}

// False when the locale that was asked for is not there. One that only the environment names may be
// unknown to this machine.
bool choose_collation(server::Server& server) {
  const std::string& locale = server.settings().locale_collate;
  if (server.set_collation(locale)) return true;
  if (!locale.empty()) {
    server.log().warning("Failed to configure LOCALE for invalid locale name.");
    return false;
  }
  server.log().warning("The environment's locale is not known here: SORT ALPHA compares bytes.");
  return true;
}

int serve(const CommandLine& line, const std::string& program, server::ProcessTitle& title) {
  base::Logger log;
  server::Config config;
  server::ConfigError error;
  const std::string input =
      line.read_stdin ? base::read_all(STDIN_FILENO).value_or("") : std::string();
  if (!config.load(line.config_path, line.configuration(input), &error))
    return refuse_configuration(error, log);
  const server::ConfigValues& values = config.values();

  server::configure_logger(values, log);
  cluster::adapt_configuration(config, log);
  server::CrashReporter crash_reporter(log);
  crash_reporter.enable(values.crash_log_enabled);
  server::LoopWatchdog watchdog(log);
  server::Supervision supervision(values.supervised, log);
  const bool background = values.daemonize && !supervision.active();
  if (background && !server::daemonize()) return 1;
  const std::string pidfile = server::pidfile_path(values, background);
  if (!pidfile.empty()) server::write_pidfile(pidfile, log);

  const auto clients = server::make_room_for_clients(values.maxclients, log);
  if (!clients) return 1;
  config.mutable_values().maxclients = *clients;
  server::OomScore oom_score;
  using OomRole = server::OomScore::Role;
  oom_score.apply(values, values.replicaof_host.empty() ? OomRole::kMaster : OomRole::kReplica,
                  log);
  server::pin_to_cpus(values.server_cpulist);
  if (values.disable_thp) server::disable_transparent_huge_pages();
  log_start(log, config, !line.config_path.empty() || !line.options.empty() || line.read_stdin);
  if (const auto warning = server::tcp_backlog_warning(values.tcp_backlog)) log.warning(*warning);

  base::SystemClock clock;
  net::Loop loop;
  server::Server server(clock, config, log, &loop);
  if (!choose_collation(server)) return 1;
  add_all_commands(server);
  if (!server.commands().rename(values.rename_commands, &error))
    return refuse_configuration(error, log);
  if (!server.access().configure(&error)) return refuse_configuration(error, log);
  server.set_scripts(std::make_shared<script::Engine>(server));
  const auto persistence = std::make_shared<persist::Persistence>(
      server, persist::ChildProcessParts{.oom_score = &oom_score, .show_title = [&](auto name) {
                                           server::show_title(title, std::string(name), config);
                                         }});
  server.set_persistence(persistence);
  const auto replication = std::make_shared<replication::Replication>(
      server, std::make_unique<replication::ChildSnapshots>(server, *persistence));
  replication->stream().on_counting(
      [&](bool counts) { persistence->aof().file().count_offset(!counts); });
  replication->on_acknowledged([&] { persistence->aof().serve_waiting(); });
  persistence->aof().set_replica_disks({.count =
                                            [&](int64_t offset) {
                                              return replication->count_fsynced(
                                                  static_cast<uint64_t>(offset));
                                            },
                                        .ask = [&] { replication->ask_for_acknowledgements(); }});
  replication->on_synced_offset([&] {
    const bool is_on = persistence->aof().enabled();
    return is_on ? persistence->aof().file().synced_offset() : -1;
  });
  server.set_replication(replication);
  if (values.cluster_enabled) {
    const auto node = std::make_shared<cluster::Cluster>(server);
    if (!node->start()) return 1;
    server.set_cluster(node, *node);
  }
  for (const std::string& problem : config.startup_problems()) log.warning(problem);
  if (!config.startup_problems().empty()) return 1;
  server.set_crash_reporter(&crash_reporter);
  server::register_process_settings(server,
                                    {&crash_reporter, &watchdog, &oom_score, &title, program});
  if (!server.listen()) return 1;
  if (server.in_cluster() && !server.cluster()->listen()) return 1;
  server::show_title(title, program, config);
  server.shutdown().watch_signals();
  server.shutdown().on_exit([&] {
    supervision.stopping();
    if (!pidfile.empty()) server::remove_pidfile(pidfile, log);
  });
  log.notice("Server initialized");
  persist::remove_leftovers(server);
  auto loaded = persist::Loading::Result::kFailed;
  server.tasks().run([&] { loaded = persistence->loading().load_at_start(); });
  while (server.tasks().any()) loop.run_once();
  if (loaded == persist::Loading::Result::kFailed) std::_Exit(1);
  if (loaded == persist::Loading::Result::kStopped) std::_Exit(server.exit_code());
  if (server.in_cluster() && !server.cluster()->claim_loaded_slots()) std::_Exit(1);
  if (const auto& place = persistence->loading().place_at_start())
    replication->resume_from(*place, persistence->loading().take_dropped_at_start());
  if (!persistence->aof().open_at_start()) std::_Exit(1);
  if (values.port != 0) log.notice("Ready to accept connections tcp");
  if (!values.unixsocket.empty()) log.notice("Ready to accept connections unix");
  supervision.ready();
  // Not before: a process that goes to the background leaves its threads behind.
  server::set_allocator_background_thread(values.jemalloc_bg_thread);
  // Once the first clients have been greeted, so that what they needed goes as well.
  constexpr uint64_t kSettledMs = 100;
  net::Timer settled(loop, server::release_program_pages);
  settled.start(kSettledMs);

  loop.run();
  // The dataset goes with the process: freeing it key by key would only take time.
  std::fflush(nullptr);
  std::_Exit(server.exit_code());
}

}  // namespace

}  // namespace latchkey

int main(int argc, char** argv) {
  using namespace latchkey;
  const std::vector<std::string> arguments(argv, argv + argc);
  server::ProcessTitle title(argc, argv);
  const server::CommandLine line = server::parse_command_line(arguments);
  switch (line.action) {
    case server::CommandLine::Action::kExit:
      std::fputs(line.output.c_str(), stdout);
      std::fputs(line.errors.c_str(), stderr);
      return line.exit_status;
    case server::CommandLine::Action::kCheckSystem:
      std::fputs(server::format_checks(server::check_system()).c_str(), stdout);
      return 0;
    case server::CommandLine::Action::kCheckRdb:
      return persist::run_check_rdb(arguments);
    case server::CommandLine::Action::kCheckAof:
      return persist::run_check_aof(arguments);
    case server::CommandLine::Action::kServe:
      break;
  }
  return serve(line, arguments[0], title);
}
