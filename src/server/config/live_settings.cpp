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

namespace {

OomScore::Role oom_role(const Server& server) {
  return server.is_replica() ? OomScore::Role::kReplica : OomScore::Role::kMaster;
}

// Refuses to switch on features that this server does not have; switching them off is allowed.
void refuse_what_is_missing(Server& server) {
  Config& config = server.config();
  config.on_change({"activedefrag"}, [&server](std::string* error) {
    if (!server.settings().activedefrag) return true;
    *error =
        "Active defragmentation cannot be enabled: it requires a Redis server compiled with a "
        "modified Jemalloc like "
        "the one shipped by default with the Redis source distribution";
    return false;
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
  config.on_change({"io-threads"}, [&server](std::string*) {
    use_io_threads(server.settings().io_threads, *server.loop(), server.log());
    return true;
  });
  config.on_change({"crash-log-enabled"}, [&server, parts](std::string*) {
    parts.crash_reporter->enable(server.settings().crash_log_enabled);
    return true;
  });
  config.on_change({"watchdog-period", "hz"}, [&server, parts](std::string*) {
    watch_loop(server, *parts.watchdog);
    return true;
  });
  config.on_change({"oom-score-adj", "oom-score-adj-values"}, [&server, parts](std::string* error) {
    if (parts.oom_score->apply(server.settings(), oom_role(server), server.log())) return true;
    *error = "Failed to set current oom_score_adj. Check server logs.";
    return false;
  });
  watch_loop(server, *parts.watchdog);
  // A task that lets clients be served in between still holds the server up: it does not put the
  // alarm off.
  server.hooks().tick.add([&server, parts] {
    if (!server.tasks().any()) parts.watchdog->put_off();
  });
  server.hooks().role_changed.add([&server, parts] {
    parts.oom_score->apply(server.settings(), oom_role(server), server.log());
  });
  config.on_change({"proc-title-template"}, [&config, parts](std::string* error) {
    if (show_title(*parts.title, parts.program, config)) return true;
    *error = "Unable to set process title";
    return false;
  });
}

void register_live_settings(Server& server) {
  Config& config = server.config();
  config.on_change({"loglevel"}, [&server](std::string*) {
    server.log().set_level(server.settings().loglevel);
    return true;
  });
  config.on_change({"log-format", "log-timestamp-format"}, [&server](std::string*) {
    const ConfigValues& values = server.settings();
    server.log().set_format(values.log_format, values.log_timestamp_format);
    return true;
  });
  config.on_change({"maxmemory"}, [&server](std::string*) {
    const uint64_t limit = server.settings().maxmemory;
    const size_t used = server.used_memory();
    if (limit != 0 && limit < used) {
      server.log().warning("WARNING: the new maxmemory value set via CONFIG SET (" +
                           std::to_string(limit) + ") is smaller than the current memory usage (" +
                           std::to_string(used) +
                           "). This will result in key eviction and/or the inability to accept new "
                           "write commands depending on the maxmemory-policy.");
    }
    return true;
  });
  config.on_change({"locale-collate"}, [&server](std::string* error) {
    if (server.set_collation(server.settings().locale_collate)) return true;
    *error = "Invalid locale name";
    return false;
  });
  // As in the reference, where figures that were not kept from the start would be wrong.
  config.on_change(
      {"key-memory-histograms"},
      [&server, allowed = server.settings().key_memory_histograms](std::string* error) mutable {
        const bool wanted = server.settings().key_memory_histograms;
        if (wanted && !allowed) {
          *error = "memory tracking cannot be enabled at runtime";
          return false;
        }
        allowed = wanted;
        return true;
      });
  config.on_change({"hz"}, [&server](std::string*) {
    server.start_ticking();
    return true;
  });
  if (server.loop() != nullptr) {
    // The limit belongs to the process; a server without sockets does not need it.
    config.on_change({"maxclients"}, [&server](std::string* error) {
      return grow_room_for_clients(server.settings().maxclients, error);
    });
  }
  config.on_change({"jemalloc-bg-thread"}, [&server](std::string*) {
    set_allocator_background_thread(server.settings().jemalloc_bg_thread);
    return true;
  });
  refuse_what_is_missing(server);
}

}  // namespace latchkey::server
