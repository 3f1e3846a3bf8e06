// The sections of INFO that every server has, in the reference's order.
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/text/number.h"
#include "base/time_units.h"
#include "base/version.h"
#include "net/loop.h"
#include "net/threaded_io.h"
#include "server/acl/denial_log.h"
#include "server/client/blocking.h"
#include "server/client/client.h"
#include "server/client/pause.h"
#include "server/client/pubsub.h"
#include "server/client/tracking.h"
#include "server/command/built_in_modules.h"
#include "server/command/call_meters.h"
#include "server/command/dispatcher.h"
#include "server/command/slot_gate.h"
#include "server/command/watch.h"
#include "server/memory_limit.h"
#include "server/observe/hot_keys.h"
#include "server/observe/info.h"
#include "server/observe/memory_report.h"
#include "server/process/secure_transport.h"
#include "server/process/shutdown.h"
#include "server/server.h"
#include "tls/context.h"

namespace latchkey::server {

namespace {

// Figures of the connections between the nodes of a cluster.
SlotGate::LinkFigures link_figures(Server& server) {
  const SlotGate* const node = server.slot_gate();
  return node != nullptr ? node->link_figures() : SlotGate::LinkFigures();
}

// These two do not change while the process runs.
const std::string& system_description() {
  static const std::string description = [] {
    utsname name{};
    uname(&name);
    return std::string(name.sysname) + " " + name.release + " " + name.machine;
  }();
  return description;
}

const std::string& executable_path() {
  static const std::string executable = [] {
    char path[4096];
    const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
    return size > 0 ? std::string(path, static_cast<size_t>(size)) : std::string();
  }();
  return executable;
}

std::string_view supervisor_name(Supervised supervised) {
  switch (supervised) {
    case Supervised::kUpstart:
      return "upstart";
    case Supervised::kSystemd:
      return "systemd";
    case Supervised::kAuto:
    case Supervised::kNo:
      break;
  }
  return "no";
}

void describe_listeners(InfoText& text, const ConfigValues& settings) {
  // Numbers belong to kinds of listeners.
  const auto ports = [&](std::string_view field, std::string_view name, int port) {
    if (port == 0) return;
    std::string value = "name=" + std::string(name);
    for (const std::string& address : settings.bind) value += ",bind=" + address;
    text.field(field, value + ",port=" + std::to_string(port));
  };
  ports("listener0", "tcp", settings.port);
  if (!settings.unixsocket.empty())
    text.field("listener1", "name=unix,bind=" + settings.unixsocket);
  ports("listener2", "tls", settings.tls_port);
}

// Null without I/O threads.
net::ThreadedIo* threaded_io(Server& server) {
  return server.loop() != nullptr ? server.loop()->threaded_io() : nullptr;
}

void server_section(InfoText& text, Server& server) {
  const ConfigValues& settings = server.settings();
  const Edition& edition = text.edition();
  text.field("redis_version", edition.redis_version());
  text.field("server_name", edition.is_valkey() ? edition.product_name() : "latchkey");
  if (edition.is_valkey()) {
    text.field("valkey_version", edition.version());
    text.field("valkey_release_stage", "ga");
  }
  text.field("latchkey_version", base::kLatchkeyVersion);
  text.field("redis_git_sha1", "00000000");
  text.field("redis_git_dirty", 0);
  text.field("redis_build_id", base::build_id());
  const std::string_view mode = server_mode(server.settings());
  text.field("redis_mode", mode);
  if (edition.is_valkey()) text.field("server_mode", mode);
  text.field("os", system_description());
  text.field("arch_bits", sizeof(void*) * 8);
  text.field("monotonic_clock", "POSIX clock_gettime");
  text.field("multiplexing_api", "epoll");
  if (!text.edition().is_valkey()) text.field("atomicvar_api", "atomic-builtin");
  text.field("gcc_version", std::to_string(__GNUC__) + "." + std::to_string(__GNUC_MINOR__) + "." +
                                std::to_string(__GNUC_PATCHLEVEL__));
  text.field("process_id", getpid());
  text.field("process_supervised", supervisor_name(settings.supervised));
  text.field("run_id", server.run_id());
  text.field("tcp_port", settings.port != 0 ? settings.port : settings.tls_port);
  text.field("server_time_usec", server.data_clock().wall_us());
  text.field("uptime_in_seconds", server.uptime_seconds());
  text.field("uptime_in_days", server.uptime_seconds() / base::kSecondsPerDay);
  text.field("hz", settings.hz);
  text.field("configured_hz", settings.hz);
  if (edition.is_valkey()) text.field("clients_hz", settings.hz);
  text.field("lru_clock", static_cast<uint32_t>(server.now_ms() / base::kMsPerSecond) &
                              store::Entry::kMaxAccess);
  text.field("executable", executable_path());
  text.field("config_file", server.config().file());
  // Valkey tells how many threads work just now: none does while this one makes a reply.
  const bool has_threads = threaded_io(server) != nullptr && threaded_io(server)->threads() > 1;
  text.field("io_threads_active", has_threads && !server.edition().is_valkey() ? 1 : 0);
  text.field("availability_zone", settings.availability_zone);
  describe_listeners(text, settings);
  if (const int64_t until_ms = server.shutdown().deadline_ms(); until_ms != 0)
    text.field("shutdown_in_milliseconds", std::max<int64_t>(until_ms - server.machine_ms(), 0));
  text.field("random_seed", server.random_source().seed());
}

std::string_view reason_name(const PauseControl::ActivePause& holding) {
  if (holding.kind == PauseControl::Kind::kNone) return "none";
  switch (holding.reason) {
    case PauseControl::Reason::kShutdown:
      return "shutdown_in_progress";
    case PauseControl::Reason::kFailover:
      return "failover_in_progress";
    case PauseControl::Reason::kSlotHandoff:
      return "slot_migration_in_progress";
    case PauseControl::Reason::kClient:
      break;
  }
  return "client_pause";
}

// As of Valkey 9.1. Without TLS the fields are there, for none.
void tls_section(InfoText& text, Server& server) {
  const tls::Context* const context = server.secure_transport().context();
  const int64_t now_s = server.clock().wall_us() / base::kUsPerSecond;
  const auto certificate = [&](const std::string& name, const tls::CertificateFacts& facts) {
    text.field(name + "_serial", facts.serial.empty() ? "none" : facts.serial);
    text.field(name + "_expires_in_seconds", std::max<int64_t>(facts.expires_s - now_s, 0));
  };
  const tls::CertificateFacts none;
  certificate("tls_server_cert", context != nullptr ? context->server_certificate() : none);
  certificate("tls_client_cert", context != nullptr ? context->client_certificate() : none);
  certificate("tls_ca_cert", context != nullptr ? context->authority() : none);
}

void clients_section(InfoText& text, Server& server) {
  size_t largest_input = 0;
  size_t largest_output = 0;
  size_t subscribers = 0;
  size_t waiting_with_timeout = 0;
  server.clients().for_each([&](Client& client) {
    if (client.connection() != nullptr) {
      largest_input = std::max(largest_input, client.connection()->input_capacity());
    }
    largest_output = std::max(largest_output, client.out().memory_usage());
    if (client.has(kClientSubscribed)) ++subscribers;
    if (client.block != nullptr && client.block->deadline_ms != 0) ++waiting_with_timeout;
  });
  text.field("connected_clients",
             server.clients().size() - server.figures().replication().replicas);
  text.field("cluster_connections", link_figures(server).links);
  text.field("maxclients", server.settings().maxclients);
  text.field("client_recent_max_input_buffer", largest_input);
  text.field("client_recent_max_output_buffer", largest_output);
  text.field("blocked_clients", server.clients().blocked());
  text.field("tracking_clients", server.tracking().clients());
  text.field("pubsub_clients", subscribers);
  text.field("watching_clients", server.watches().watching_clients());
  text.field("clients_in_timeout_table", waiting_with_timeout);
  text.field("total_watched_keys", server.watches().watched_keys());
  text.field("total_blocking_keys", server.blocking().keys());
  text.field("total_blocking_keys_on_nokey", server.blocking().keys_also_without_key());
  const PauseControl::ActivePause holding = server.pauses().active();
  text.field("paused_reason", reason_name(holding));
  text.field("paused_actions", holding.kind == PauseControl::Kind::kNone  ? "none"
                               : holding.kind == PauseControl::Kind::kAll ? "all"
                                                                          : "write");
  text.field("paused_timeout_milliseconds", holding.left_ms);
}

double ratio(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

int64_t difference(size_t left, size_t right) {
  return static_cast<int64_t>(left) - static_cast<int64_t>(right);
}

void script_memory(InfoText& text, const ScriptFigures& scripts) {
  text.field("used_memory_lua", scripts.interpreter_bytes);
  text.field("used_memory_vm_eval", scripts.interpreter_bytes);
  text.field("used_memory_lua_human", human_bytes(scripts.interpreter_bytes));
  text.field("used_memory_scripts_eval", scripts.scripts_bytes);
  text.field("number_of_cached_scripts", scripts.cached_scripts);
  text.field("number_of_functions", scripts.functions);
  text.field("number_of_libraries", scripts.libraries);
  text.field("used_memory_vm_functions", scripts.function_interpreter_bytes);
  text.bytes("used_memory_vm_total", scripts.all_interpreter_bytes());
  text.field("used_memory_functions", scripts.functions_bytes);
  text.bytes("used_memory_scripts", scripts.all_sources_bytes());
}

void memory_section(InfoText& text, Server& server) {
  const MemoryReport memory = measure_memory(server);
  const ConfigValues& settings = server.settings();
  text.bytes("used_memory", memory.used);
  text.bytes("used_memory_rss", memory.resident);
  text.bytes("used_memory_peak", memory.peak);
  text.field("used_memory_peak_time", server.stats().peak_memory_time_s);
  text.percent("used_memory_peak_perc", memory.peak_percent());
  text.field("used_memory_overhead", memory.overhead());
  text.field("used_memory_startup", memory.startup);
  text.field("used_memory_dataset", memory.dataset());
  text.percent("used_memory_dataset_perc", memory.dataset_percent());
  text.field("allocator_allocated", memory.allocator.allocated);
  text.field("allocator_active", memory.allocator.active);
  text.field("allocator_resident", memory.allocator.resident);
  text.field("allocator_muzzy", memory.allocator.muzzy);
  static const size_t machine_memory = system_memory();
  text.bytes("total_system_memory", machine_memory);
  script_memory(text, memory.scripts);
  text.bytes("maxmemory", settings.maxmemory);
  const std::string_view policy = "maxmemory-policy";
  text.field("maxmemory_policy", server.config().get(std::span(&policy, 1)).at(0).second);
  text.field("allocator_frag_ratio", memory.allocator_fragmentation(), 2);
  text.field("allocator_frag_bytes",
             difference(memory.allocator.active, memory.allocator.allocated));
  text.field("allocator_rss_ratio", memory.allocator_resident_ratio(), 2);
  text.field("allocator_rss_bytes", difference(memory.allocator.resident, memory.allocator.active));
  text.field("rss_overhead_ratio", memory.resident_overhead_ratio(), 2);
  text.field("rss_overhead_bytes", difference(memory.resident, memory.allocator.resident));
  text.field("mem_fragmentation_ratio", memory.fragmentation(), 2);
  text.field("mem_fragmentation_bytes", difference(memory.resident, memory.used));
  text.field("mem_not_counted_for_evict", server.memory_limit().not_counted());
  const ReplicationFigures replication = server.figures().replication();
  text.field("mem_replication_backlog", replication.backlog_memory);
  text.field("mem_total_replication_buffers", replication.buffers_memory);
  text.field("mem_replica_full_sync_buffer", replication.full_sync_buffer);
  text.field("mem_clients_slaves", replication.clients_memory);
  text.field("mem_clients_normal", memory.clients - replication.clients_memory);
  const SlotGate::LinkFigures links = link_figures(server);
  text.field("mem_cluster_slot_migration_output_buffer", links.migration_output);
  text.field("mem_cluster_slot_migration_input_buffer", links.migration_input);
  text.field("mem_cluster_slot_migration_input_buffer_peak", links.most_migration_input);
  text.field("mem_cluster_links", links.bytes);
  text.field("mem_aof_buffer", server.figures().persistence().aof.buffer_memory);
  text.field("mem_allocator", base::allocator_name());
  // Tables grow by one bucket at a time, never by a second table beside the first.
  text.field("mem_overhead_db_hashtable_rehashing", 0);
  text.field("active_defrag_running", 0);
  text.field("lazyfree_pending_objects", server.environment().reclaimer.pending_objects());
  text.field("lazyfreed_objects", server.environment().reclaimer.freed_objects());
}

void loading_figures(InfoText& text, const PersistenceFigures& figures) {
  text.field("loading_start_time", figures.loading_since_s);
  text.field("loading_total_bytes", figures.loading_total_bytes);
  text.field("loading_rdb_used_mem", figures.loading_dataset_memory);
  text.field("loading_loaded_bytes", figures.loading_done_bytes);
  text.field("loading_loaded_perc",
             100 * ratio(figures.loading_done_bytes, figures.loading_total_bytes), 2);
  text.field("loading_eta_seconds", figures.loading_left_s);
}

void append_only_figures(InfoText& text, const AofFigures& figures) {
  text.field("aof_current_size", figures.current_bytes);
  text.field("aof_base_size", figures.base_bytes);
  text.field("aof_pending_rewrite", figures.rewrite_scheduled ? 1 : 0);
  text.field("aof_buffer_length", figures.buffered_bytes);
  text.field("aof_pending_bio_fsync", figures.pending_syncs);
  text.field("aof_delayed_fsync", figures.delayed_syncs);
}

void persistence_section(InfoText& text, Server& server) {
  const PersistenceFigures figures = server.figures().persistence();
  const bool loading = (server.state() & kStateLoading) != 0;
  text.field("loading", loading ? 1 : 0);
  const bool loading_beside = (server.state() & kStateAsyncLoading) != 0;
  text.field("async_loading", loading_beside ? 1 : 0);
  text.field("current_cow_peak", figures.most_copied_bytes);
  text.field("current_cow_size", figures.copied_bytes);
  text.field("current_cow_size_age", figures.copied_bytes_age_s);
  text.field("current_fork_perc", 100 * ratio(figures.keys_written, figures.keys_total), 2);
  text.field("current_save_keys_processed", figures.keys_written);
  text.field("current_save_keys_total", figures.keys_total);
  text.field("rdb_changes_since_last_save", figures.changes_since_save);
  text.field("rdb_bgsave_in_progress", figures.saving ? 1 : 0);
  text.field("rdb_last_save_time", figures.last_save_s);
  text.field("rdb_last_bgsave_status", figures.last_save_ok ? "ok" : "err");
  text.field("rdb_last_bgsave_time_sec", figures.last_save_duration_s);
  text.field("rdb_current_bgsave_time_sec", figures.save_duration_s);
  text.field("rdb_saves", figures.saves);
  text.field("rdb_saves_consecutive_failures", figures.save_failures_in_a_row);
  text.field("rdb_last_cow_size", figures.last_save_copied_bytes);
  text.field("rdb_last_load_keys_expired", figures.keys_expired);
  text.field("rdb_last_load_keys_loaded", figures.keys_loaded);
  const AofFigures& aof = figures.aof;
  text.field("aof_enabled", aof.enabled ? 1 : 0);
  text.field("aof_rewrite_in_progress", aof.rewriting ? 1 : 0);
  text.field("aof_rewrite_scheduled", aof.rewrite_scheduled ? 1 : 0);
  text.field("aof_last_rewrite_time_sec", aof.last_rewrite_duration_s);
  text.field("aof_current_rewrite_time_sec", aof.rewrite_duration_s);
  text.field("aof_last_bgrewrite_status", aof.last_rewrite_ok ? "ok" : "err");
  text.field("aof_rewrites", aof.rewrites);
  text.field("aof_rewrites_consecutive_failures", aof.rewrite_failures_in_a_row);
  text.field("aof_last_write_status", aof.last_write_ok ? "ok" : "err");
  text.field("aof_last_cow_size", aof.last_rewrite_copied_bytes);
  text.field("module_fork_in_progress", 0);
  text.field("module_fork_last_cow_size", 0);
  if (aof.enabled) append_only_figures(text, aof);
  if (loading || loading_beside) loading_figures(text, figures);
}

net::Loop::Counters loop_counters(Server& server) {
  return server.loop() != nullptr ? server.loop()->counters() : net::Loop::Counters();
}

// The clients are this server's; reads and writes are counted by the process.
void threads_section(InfoText& text, Server& server) {
  const net::ThreadedIo* const threaded = threaded_io(server);
  std::vector<size_t> clients(threaded != nullptr ? static_cast<size_t>(threaded->threads()) : 1);
  if (threaded == nullptr) {
    clients[0] = server.clients().size();
  } else {
    server.clients().for_each([&clients](const Client& client) {
      const net::Connection* const connection = client.connection();
      ++clients[connection != nullptr ? static_cast<size_t>(connection->io_thread()) : 0];
    });
  }
  const net::Loop::Counters counters = loop_counters(server);
  for (size_t thread = 0; thread < clients.size(); ++thread) {
    net::ThreadedIo::Figures done;
    if (thread > 0) {
      done = threaded->figures(static_cast<int>(thread));
    } else {
      const auto others = threaded != nullptr ? threaded->total() : net::ThreadedIo::Figures();
      done = {.reads = counters.reads - others.reads, .writes = counters.writes - others.writes};
    }
    text.field("io_thread_" + std::to_string(thread), "clients=" + std::to_string(clients[thread]) +
                                                          ",reads=" + std::to_string(done.reads) +
                                                          ",writes=" + std::to_string(done.writes));
  }
}

double to_ms(int64_t us) {
  return static_cast<double>(us) / base::kUsPerMs;
}

double kbps(const RateMeter& rate) {
  return static_cast<double>(rate.rate()) / 1024;
}

void traffic_stats(InfoText& text, Server& server) {
  const Stats& stats = server.stats();
  const net::Loop::Counters counters = loop_counters(server);
  const ReplicationFigures replication = server.figures().replication();
  text.field("total_connections_received", stats.connections_received);
  text.field("total_commands_processed", stats.commands_processed);
  text.field("instantaneous_ops_per_sec", stats.commands_rate.rate());
  text.field("total_net_input_bytes", counters.bytes_read);
  text.field("total_net_output_bytes", counters.bytes_written);
  text.field("total_net_repl_input_bytes", replication.bytes_received);
  text.field("total_net_repl_output_bytes", replication.bytes_sent);
  text.field("instantaneous_input_kbps", kbps(stats.input_rate), 2);
  text.field("instantaneous_output_kbps", kbps(stats.output_rate), 2);
  text.field("instantaneous_input_repl_kbps", kbps(stats.replication_input_rate), 2);
  text.field("instantaneous_output_repl_kbps", kbps(stats.replication_output_rate), 2);
  text.field("rejected_connections", stats.connections_rejected);
  text.field("sync_full", replication.full_syncs);
  text.field("sync_partial_ok", replication.partial_syncs);
  text.field("sync_partial_err", replication.refused_partial_syncs);
}

void keyspace_stats(InfoText& text, Server& server) {
  const Stats& stats = server.stats();
  const store::Environment& environment = server.environment();
  text.field("expired_subkeys", environment.figures.expired_elements);
  if (text.edition().is_valkey())
    text.field("expired_fields", environment.figures.expired_elements);
  text.field("expired_subkeys_active", environment.figures.found_expired_elements);
  text.field("expired_keys", environment.figures.expired_keys);
  text.field("expired_keys_active", environment.figures.found_expired_keys);
  // The reference's estimate of the keys that its samples have missed: here an index of deadlines
  // names every key that is due.
  text.field("expired_stale_perc", 0, 2);
  if (server.edition().is_valkey_since({9, 1}))
    text.field("expired_keys_with_volatile_items_stale_perc", 0, 2);
  text.field("expired_time_cap_reached_count", stats.expiry_cap_reached);
  text.field("expire_cycle_cpu_milliseconds",
             server.cycle_clock().to_us(stats.expiry_ticks) / base::kUsPerMs);
  text.field("evicted_keys", stats.evicted_keys);
  text.field("evicted_clients", stats.evicted_clients);
  text.field("evicted_scripts", server.figures().scripts().evicted_scripts);
  text.field("total_eviction_exceeded_time", stats.eviction_exceeded_us / base::kUsPerMs);
  text.field("current_eviction_exceeded_time",
             server.memory_limit().current_excess_us() / base::kUsPerMs);
  text.field("keyspace_hits", environment.figures.hits);
  text.field("keyspace_misses", environment.figures.misses);
  text.field("pubsub_channels", server.pubsub().topics(TopicKind::kChannel));
  text.field("pubsub_patterns", server.pubsub().topics(TopicKind::kPattern));
  text.field("pubsubshard_channels", server.pubsub().topics(TopicKind::kShardChannel));
}

void process_stats(InfoText& text, Server& server) {
  const PersistenceFigures persistence = server.figures().persistence();
  const ReplicationFigures replication = server.figures().replication();
  text.field("latest_fork_usec", persistence.latest_fork_us);
  text.field("total_forks", persistence.forks);
  text.field("migrate_cached_sockets", replication.migration_sockets);
  text.field("slave_expires_tracked_keys", replication.locally_expiring_keys);
  // The allocator is not one that defragments: activedefrag is refused.
  text.field("active_defrag_hits", 0);
  text.field("active_defrag_misses", 0);
  text.field("active_defrag_key_hits", 0);
  text.field("active_defrag_key_misses", 0);
  text.field("total_active_defrag_time", 0);
  text.field("current_active_defrag_time", 0);
  text.field("tracking_total_keys", server.tracking().keys());
  text.field("tracking_total_items", server.tracking().items());
  text.field("tracking_total_prefixes", server.tracking().prefixes());
}

void event_loop_stats(InfoText& text, Server& server) {
  const Stats& stats = server.stats();
  const net::Loop::Counters counters = loop_counters(server);
  const net::ThreadedIo::Figures threaded =
      threaded_io(server) != nullptr ? threaded_io(server)->total() : net::ThreadedIo::Figures();
  const base::CycleClock& cycles = server.cycle_clock();
  text.field("unexpected_error_replies", stats.unexpected_error_replies);
  text.field("total_error_replies", stats.error_replies);
  // Checks that sanitize-dump-payload asks for: payloads are checked whatever it says.
  text.field("dump_payload_sanitizations", 0);
  text.field("total_reads_processed", counters.reads);
  text.field("total_writes_processed", counters.writes);
  text.field("io_threaded_reads_processed", threaded.reads);
  text.field("io_threaded_writes_processed", threaded.writes);
  if (server.edition().is_valkey()) {
    // Threads read and write, and do nothing else.
    for (const std::string_view name : {"io_threaded_freed_objects", "io_threaded_accept_processed",
                                        "io_threaded_poll_processed"})
      text.field(name, 0);
  }
  // As in Redis, whatever thread reads the requests.
  text.field("io_threaded_total_prefetch_batches", stats.prefetched_batches);
  text.field("io_threaded_total_prefetch_entries", stats.prefetched_keys);
  text.field("client_query_buffer_limit_disconnections", stats.query_buffer_limit_disconnections);
  text.field("client_output_buffer_limit_disconnections", stats.output_buffer_limit_disconnections);
  // Clients have no reply buffer of their own whose size would follow their replies.
  text.field("reply_buffer_shrinks", 0);
  text.field("reply_buffer_expands", 0);
  text.field("eventloop_cycles", counters.cycles);
  text.field("eventloop_duration_sum", cycles.to_us(counters.busy_ticks));
  text.field("eventloop_duration_cmd_sum", cycles.to_us(stats.command_ticks));
  text.field("instantaneous_eventloop_cycles_per_sec", stats.turns_rate.rate());
  text.field("instantaneous_eventloop_duration_usec", stats.turn_duration.mean());
  text.field("slowlog_commands_count", stats.slow_calls.calls);
  text.field("slowlog_commands_time_ms_sum", to_ms(stats.slow_calls.total_us), 2);
  text.field("slowlog_commands_time_ms_max", to_ms(stats.slow_calls.longest_us), 2);
}

void access_stats(InfoText& text, const Stats& stats) {
  const auto denied = [&](acl::Denial::Reason reason) {
    return stats.denied[static_cast<size_t>(reason)];
  };
  text.field("acl_access_denied_auth", denied(acl::Denial::Reason::kAuth));
  text.field("acl_access_denied_cmd", denied(acl::Denial::Reason::kCommand));
  text.field("acl_access_denied_key", denied(acl::Denial::Reason::kKey));
  text.field("acl_access_denied_channel", denied(acl::Denial::Reason::kChannel));
  text.field("acl_access_denied_tls_cert", denied(acl::Denial::Reason::kTlsCertificate));
  text.field("acl_access_denied_db", denied(acl::Denial::Reason::kDatabase));
}

void stats_section(InfoText& text, Server& server) {
  traffic_stats(text, server);
  keyspace_stats(text, server);
  process_stats(text, server);
  event_loop_stats(text, server);
  access_stats(text, server.stats());
  if ((server.state() & kStateClusterAudit) != 0)
    text.field("cluster_incompatible_ops", server.cluster_audit().count());
}

void cpu_section(InfoText& text, Server& server) {
  const auto usage = [&](std::string_view suffix, decltype(RUSAGE_SELF) who) {
    rusage used{};
    getrusage(who, &used);
    const auto time = [&](std::string_view name, const timeval& value) {
      text.field(std::string(name).append(suffix),
                 static_cast<double>(value.tv_sec) +
                     static_cast<double>(value.tv_usec) / base::kUsPerSecond,
                 6);
    };
    time("used_cpu_sys", used.ru_stime);
    time("used_cpu_user", used.ru_utime);
  };
  usage("", RUSAGE_SELF);
  usage("_children", RUSAGE_CHILDREN);
  usage("_main_thread", static_cast<decltype(RUSAGE_SELF)>(RUSAGE_THREAD));
  if (!text.edition().is_valkey()) return;
  const int64_t busy_us = server.cycle_clock().to_us(loop_counters(server).busy_ticks);
  text.field("used_active_time_main_thread", static_cast<double>(busy_us) / base::kUsPerSecond, 6);
}

// The end of a line of commandstats; of commands that were never slow there is none.
std::string slow_calls_text(const Edition& edition, const SlowCalls& slow) {
  if (slow.calls == 0 || !edition.has({8, 8})) return {};
  char text[128];
  std::snprintf(
      text, sizeof(text), ",slowlog_count=%llu,slowlog_time_ms_sum=%.2f,slowlog_time_ms_max=%.2f",
      static_cast<unsigned long long>(slow.calls), to_ms(slow.total_us), to_ms(slow.longest_us));
  return text;
}

void commandstats_section(InfoText& text, Server& server) {
  for (const auto& command : server.commands().used()) {
    if (command == nullptr) continue;
    const CommandStats& stats = command->stats;
    if (stats.calls == 0 && stats.rejected_calls == 0 && stats.failed_calls == 0) continue;
    const int64_t usec = server.cycle_clock().to_us(stats.total_ticks);
    const double per_call =
        stats.calls == 0 ? 0 : static_cast<double>(usec) / static_cast<double>(stats.calls);
    char mean[64];
    std::snprintf(mean, sizeof(mean), "%.2f", per_call);
    text.field("cmdstat_" + command->full_name,
               "calls=" + std::to_string(stats.calls) + ",usec=" + std::to_string(usec) +
                   ",usec_per_call=" + mean +
                   ",rejected_calls=" + std::to_string(stats.rejected_calls) +
                   ",failed_calls=" + std::to_string(stats.failed_calls) +
                   slow_calls_text(text.edition(), stats.slow_calls));
  }
}

void errorstats_section(InfoText& text, Server& server) {
  for (const auto& [code, count] : server.stats().errors) {
    text.field("errorstat_" + code, "count=" + std::to_string(count));
  }
}

void latencystats_section(InfoText& text, Server& server) {
  if (!server.settings().latency_tracking) return;
  for (const auto& command : server.commands().used()) {
    if (command == nullptr || command->stats.latency == nullptr) continue;
    std::string value;
    for (const double percentile : server.settings().latency_tracking_info_percentiles) {
      char number[base::kMaxDoubleText];
      const size_t size = base::format_double(percentile, number);
      char usec[64];
      std::snprintf(
          usec, sizeof(usec), "=%.3f",
          static_cast<double>(command->stats.latency->value_at(percentile)) / base::kNsPerUs);
      if (!value.empty()) value += ',';
      value.append("p").append(number, size).append(usec);
    }
    text.field("latency_percentiles_usec_" + command->full_name, value);
  }
}

void keyspace_section(InfoText& text, Server& server) {
  for (int i = 0; i < server.database_count(); ++i) {
    const store::Keyspace& database = server.database(i);
    if (database.empty()) continue;
    std::string value = "keys=" + std::to_string(database.size()) +
                        ",expires=" + std::to_string(database.volatile_size()) +
                        ",avg_ttl=" + std::to_string(database.mean_ttl_ms());
    if (text.edition().has({7, 4}))
      value += ",subexpiry=" + std::to_string(database.volatile_elements_size());
    if (text.edition().is_valkey_since({9, 0}))
      value += ",keys_with_volatile_items=" + std::to_string(database.volatile_elements_size());
    text.field("db" + std::to_string(i), value);
  }
}

// "0", "1", "2", ... "512", "1K", ...
std::string size_label(size_t bin) {
  constexpr size_t kBitsPerUnit = 10;
  constexpr std::string_view kUnits[] = {"", "K", "M", "G", "T", "P", "E"};
  if (bin == 0) return "0";
  const size_t power = bin - 1;
  return std::to_string(size_t{1} << (power % kBitsPerUnit)).append(kUnits[power / kBitsPerUnit]);
}

struct ShownSizes {
  store::Type type;
  std::string_view name;
};

// A line for each of these types that has values, with their number in each bin.
void add_sizes(InfoText& text, int database, const store::KeySizes& sizes,
               std::span<const ShownSizes> shown) {
  for (const auto& [type, name] : shown) {
    std::string value;
    for (size_t bin = 0; bin < store::KeySizes::kBins; ++bin) {
      const uint64_t count = sizes.count(type, bin);
      if (count == 0) continue;
      if (!value.empty()) value += ',';
      value.append(size_label(bin)).append("=").append(std::to_string(count));
    }
    if (!value.empty())
      text.field("db" + std::to_string(database) + "_distrib_" + std::string(name), value);
  }
}

bool shows_key_memory(const ConfigValues& settings) {
  return settings.key_memory_histograms ||
         (settings.cluster_enabled &&
          (settings.cluster_slot_stats_enabled & kSlotStatsMemory) != 0);
}

// The bytes of each collection, measured now: O(keys and elements).
store::KeySizes measure_key_memory(const store::Keyspace& keyspace) {
  store::KeySizes sizes;
  keyspace.table().for_each([&](const store::Entry* entry) {
    if (!entry->is_string())
      sizes.add(entry->type(), store::KeySizes::bin_of(entry->memory_usage()));
  });
  return sizes;
}

void keysizes_section(InfoText& text, Server& server) {
  static constexpr ShownSizes kItems[] = {{store::Type::kString, "strings_sizes"},
                                          {store::Type::kList, "lists_items"},
                                          {store::Type::kSet, "sets_items"},
                                          {store::Type::kSortedSet, "zsets_items"},
                                          {store::Type::kHash, "hashes_items"}};
  static constexpr ShownSizes kBytes[] = {{store::Type::kList, "lists_sizes"},
                                          {store::Type::kSet, "sets_sizes"},
                                          {store::Type::kSortedSet, "zsets_sizes"},
                                          {store::Type::kHash, "hashes_sizes"}};
  server.database(0).update_sizes();
  for (int i = 0; i < server.database_count(); ++i) {
    const store::Keyspace& keyspace = server.database(i);
    if (keyspace.sizes() == nullptr) continue;
    add_sizes(text, i, *keyspace.sizes(), kItems);
    if (shows_key_memory(server.settings()))
      add_sizes(text, i, measure_key_memory(keyspace), kBytes);
  }
}

void hotkeys_section(InfoText& text, Server& server) {
  HotKeys& hot_keys = server.dispatcher().meters().hot_keys();
  if (hot_keys.is_empty()) return;
  text.field("hotkeys-tracking-active", hot_keys.is_active() ? 1 : 0);
  // In milliseconds. Redis 8.6 shows 0 whatever runs.
  text.field("hotkeys-cmd-cpu-time",
             server.cycle_clock().to_us(hot_keys.all().ticks) / base::kUsPerMs);
}

void debug_section(InfoText& text, Server& server) {
  const Stats& stats = server.stats();
  const base::CycleClock& cycles = server.cycle_clock();
  text.field("eventloop_duration_aof_sum", server.figures().persistence().aof.flush_us);
  text.field("eventloop_duration_cron_sum", cycles.to_us(stats.cron_ticks));
  text.field("eventloop_duration_max", cycles.to_us(loop_counters(server).longest_turn_ticks));
  text.field("eventloop_cmd_per_cycle_max", stats.most_commands_in_turn);
}

}  // namespace

void add_standard_sections(InfoSections& sections, Server& server) {
  using Shown = InfoSections::Shown;
  const auto add = [&](std::string title, Shown shown, void (*write)(InfoText&, Server&)) {
    sections.add(std::move(title), shown,
                 [write, &server](InfoText& text) { write(text, server); });
  };
  add("Server", Shown::kDefault, server_section);
  add("TLS", Shown::kAll, tls_section);
  add("Clients", Shown::kDefault, clients_section);
  add("Memory", Shown::kDefault, memory_section);
  add("Persistence", Shown::kDefault, persistence_section);
  add("Threads", Shown::kDefault, threads_section);
  add("Stats", Shown::kDefault, stats_section);
  // Its fields are added by replication, a layer above.
  sections.add("Replication", Shown::kDefault, [](InfoText&) {});
  add("CPU", Shown::kDefault, cpu_section);
  add("Hotkeys", Shown::kDefault, hotkeys_section);
  sections.add("Modules", Shown::kDefault, [](InfoText& text) {
    for (const BuiltInModule& module : built_in_modules(text.edition())) {
      text.field("module", "name=" + std::string(module.name) +
                               ",ver=" + std::to_string(module_version(module, text.edition())) +
                               ",api=1,filters=0,usedby=[],using=[],options=[" + module.options +
                               ']');
    }
  });
  add("Commandstats", Shown::kAll, commandstats_section);
  add("Errorstats", Shown::kDefault, errorstats_section);
  add("Latencystats", Shown::kAll, latencystats_section);
  sections.add("Cluster", Shown::kDefault, [&server](InfoText& text) {
    text.field("cluster_enabled", server.in_cluster() ? 1 : 0);
  });
  add("Keyspace", Shown::kDefault, keyspace_section);
  add("Keysizes", Shown::kDefault, keysizes_section);
  add("Debug", Shown::kNamed, debug_section);
}

}  // namespace latchkey::server
