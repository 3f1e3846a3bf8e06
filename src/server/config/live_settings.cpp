#include "server/config/live_settings.h"

#include <string>

#include "net/threaded_io.h"
#include "server/observe/memory.h"
#include "server/process/crash_report.h"
#include "server/process/loop_watchdog.h"
#include "server/process/proc_title.h"
#include "server/process/process.h"
#include "server/server.h"
#include "server/tasks.h"

namespace latchkey::server {

using base::fail;
using base::Result;

namespace {

OomScore::Role oom_role(const Server& server) {
  return server.is_replica() ? OomScore::Role::kReplica : OomScore::Role::kMaster;
}

// Refuses to switch on features that this server does not have; switching them off is allowed.
void refuse_what_is_missing(Server& server) {
  Config& config = server.config();
  config.on_change({"activedefrag"}, [&server]() -> Result<> {
    if (!server.settings().activedefrag) return {};
    return fail(
        "Active defragmentation cannot be enabled: it requires a Redis server compiled with a "
        "modified Jemalloc like "
        "the one shipped by default with the Redis source distribution");
  });
}

// Starts the watchdog with watchdog-period, and stores the period that it really uses.
void watch_loop(Server& server, LoopWatchdog& watchdog) {
  const int period_ms = watchdog_period_ms(server.settings());
  server.config().mutable_values().watchdog_period = period_ms;
  watchdog.set_period(period_ms);
}

}  // namespace

bool show_title(ProcessTitle& title, const std::string& program, const Config& config) {
  const ConfigValues& values = config.values();
  const auto text = expand_proc_title(values.proc_title_template, values, program, config.file());
  if (text && values.set_proc_title) title.set(*text);
  return text.has_value();
}

void use_io_threads(int threads, net::Loop& loop, base::Logger& log) {
  loop.use_io_threads(threads);
  const int missing = loop.threaded_io() != nullptr ? loop.threaded_io()->missing_threads() : 0;
  if (missing > 0)
    log.logf(base::LogLevel::kWarning, "Can't start %d of the I/O threads; others do their work.",
             missing);
}

void register_process_settings(Server& server, const ProcessParts& parts) {
  Config& config = server.config();
  config.on_change({"io-threads"}, [&server] {
    use_io_threads(server.settings().io_threads, *server.loop(), server.log());
  });
  config.on_change({"crash-log-enabled"}, [&server, parts] {
    parts.crash_reporter->enable(server.settings().crash_log_enabled);
  });
  config.on_change({"watchdog-period", "hz"},
                   [&server, parts] { watch_loop(server, *parts.watchdog); });
  config.on_change({"oom-score-adj", "oom-score-adj-values"}, [&server, parts]() -> Result<> {
    if (parts.oom_score->apply(server.settings(), oom_role(server), server.log())) return {};
    return fail("Failed to set current oom_score_adj. Check server logs.");
  });
  watch_loop(server, *parts.watchdog);
  // A task that lets clients be served in between still holds the server up: it does not put the
  // alarm off.
  server.hooks().tick.add([&server, parts] {
    if (!server.tasks().any()) parts.watchdog->postpone();
  });
  server.hooks().role_changed.add([&server, parts] {
    parts.oom_score->apply(server.settings(), oom_role(server), server.log());
  });
  config.on_change({"proc-title-template"}, [&config, parts]() -> Result<> {
    if (show_title(*parts.title, parts.program, config)) return {};
    return fail("Unable to set process title");
  });
}

void register_live_settings(Server& server) {
  Config& config = server.config();
  config.on_change({"loglevel"}, [&server] { server.log().set_level(server.settings().loglevel); });
  config.on_change({"log-format", "log-timestamp-format"}, [&server] {
    const ConfigValues& values = server.settings();
    server.log().set_format(values.log_format, values.log_timestamp_format);
  });
  config.on_change({"maxmemory"}, [&server] {
    const uint64_t limit = server.settings().maxmemory;
    const size_t used = server.used_memory();
    if (limit != 0 && limit < used) {
      server.log().warning("WARNING: the new maxmemory value set via CONFIG SET (" +
                           std::to_string(limit) + ") is smaller than the current memory usage (" +
                           std::to_string(used) +
                           "). This will result in key eviction and/or the inability to accept new "
                           "write commands depending on the maxmemory-policy.");
    }
  });
  config.on_change({"locale-collate"}, [&server]() -> Result<> {
    if (server.set_collation(server.settings().locale_collate)) return {};
    return fail("Invalid locale name");
  });
  // As in the reference, where figures that were not kept from the start would be wrong.
  config.on_change(
      {"key-memory-histograms"},
      [&server, allowed = server.settings().key_memory_histograms]() mutable -> Result<> {
        const bool wanted = server.settings().key_memory_histograms;
        if (wanted && !allowed) return fail("memory tracking cannot be enabled at runtime");
        allowed = wanted;
        return {};
      });
  config.on_change({"hz"}, [&server] { server.start_ticking(); });
  if (server.loop() != nullptr) {
    // The limit belongs to the process; a server without sockets does not need it.
    config.on_change({"maxclients"},
                     [&server] { return grow_room_for_clients(server.settings().maxclients); });
  }
  config.on_change({"jemalloc-bg-thread"}, [&server] {
    set_allocator_background_thread(server.settings().jemalloc_bg_thread);
  });
  refuse_what_is_missing(server);
}

}  // namespace latchkey::server
