// ConfigValues: the configuration of one server as plain typed fields.
//
// The rest of the server reads a setting as `config.values().tcp_keepalive`: a struct read, free on
// hot paths. A field carries the name of its directive with '-' replaced by '_'; its initializer is
// the directive's default, and nothing else repeats that default. Sizes are in bytes; other units
// are the directive's own and are named beside the field where its name does not contain them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "server/emulation/edition.h"

namespace latchkey::server {

enum class AclPubsubDefault { kAllChannels, kResetChannels };
enum class AppendFsync { kEverysec, kAlways, kNo };
enum class ClusterEndpointType { kIp, kHostname, kUnknownEndpoint };
enum class ProtectedAction { kNo, kYes, kLocal };
enum class OomScoreAdj { kNo, kRelative, kAbsolute };
enum class PropagationErrorBehavior { kIgnore, kPanic, kPanicOnReplicas };
enum class ReplDisklessLoad { kDisabled, kOnEmptyDb, kSwapdb, kFlushdb };
enum class SanitizeDumpPayload { kNo, kYes, kClients };
enum class Supervised { kUpstart, kSystemd, kAuto, kNo };
enum class TlsAuthClients { kNo, kYes, kOptional };
enum class TlsUserField { kOff, kCommonName, kUri };
enum class TsDuplicatePolicy { kBlock, kFirst, kLast, kMin, kMax, kSum };
enum class TsEncoding { kCompressed, kUncompressed };

enum class MaxmemoryPolicy {
  kVolatileLru,
  kVolatileLfu,
  kVolatileRandom,
  kVolatileTtl,
  kVolatileLrm,
  kAllkeysLru,
  kAllkeysLfu,
  kAllkeysRandom,
  kAllkeysLrm,
  kNoeviction,
};

// syslog(3)'s LOG_LOCAL0, without its header's macros.
inline constexpr int kSyslogLocal0 = 16 << 3;

// Bits of shutdown-on-sigint and shutdown-on-sigterm; none set is "default".
inline constexpr unsigned kShutdownSave = 1;
inline constexpr unsigned kShutdownNosave = 2;
inline constexpr unsigned kShutdownNow = 4;
inline constexpr unsigned kShutdownForce = 8;

// Bits of notify-keyspace-events.
inline constexpr unsigned kNotifyKeyspace = 1u << 0;      // K
inline constexpr unsigned kNotifyKeyevent = 1u << 1;      // E
inline constexpr unsigned kNotifyGeneric = 1u << 2;       // g
inline constexpr unsigned kNotifyString = 1u << 3;        // $
inline constexpr unsigned kNotifyList = 1u << 4;          // l
inline constexpr unsigned kNotifySet = 1u << 5;           // s
inline constexpr unsigned kNotifyHash = 1u << 6;          // h
inline constexpr unsigned kNotifySortedSet = 1u << 7;     // z
inline constexpr unsigned kNotifyExpired = 1u << 8;       // x
inline constexpr unsigned kNotifyEvicted = 1u << 9;       // e
inline constexpr unsigned kNotifyStream = 1u << 10;       // t
inline constexpr unsigned kNotifyKeyMiss = 1u << 11;      // m, not part of A
inline constexpr unsigned kNotifyModule = 1u << 12;       // d
inline constexpr unsigned kNotifyNewKey = 1u << 13;       // n, not part of A
inline constexpr unsigned kNotifyOverwritten = 1u << 14;  // o, not part of A
inline constexpr unsigned kNotifyTypeChanged = 1u << 15;  // c, not part of A
inline constexpr unsigned kNotifyArray = 1u << 16;        // a
// The four channels that name elements; none is part of A.
inline constexpr unsigned kNotifySubkeyspace = 1u << 17;       // S
inline constexpr unsigned kNotifySubkeyevent = 1u << 18;       // T
inline constexpr unsigned kNotifySubkeyspaceItem = 1u << 19;   // I
inline constexpr unsigned kNotifySubkeyspaceEvent = 1u << 20;  // V
inline constexpr unsigned kNotifyAll =
    kNotifyGeneric | kNotifyString | kNotifyList | kNotifySet | kNotifyHash | kNotifySortedSet |
    kNotifyExpired | kNotifyEvicted | kNotifyStream | kNotifyModule | kNotifyArray;  // A

// Bits of cluster-slot-stats-enabled.
inline constexpr unsigned kSlotStatsCpu = 1;
inline constexpr unsigned kSlotStatsNetwork = 2;
inline constexpr unsigned kSlotStatsMemory = 4;
inline constexpr unsigned kSlotStatsAll = kSlotStatsCpu | kSlotStatsNetwork | kSlotStatsMemory;

struct SavePoint {
  int64_t seconds = 0;
  int64_t changes = 0;
  bool operator==(const SavePoint&) const = default;
};

// A zero limit means no limit.
struct ClientBufferLimit {
  uint64_t hard_limit_bytes = 0;
  uint64_t soft_limit_bytes = 0;
  int64_t soft_limit_seconds = 0;
  bool operator==(const ClientBufferLimit&) const = default;
};

// Indexes of client_output_buffer_limit.
enum ClientBufferClass { kBufferNormal = 0, kBufferReplica = 1, kBufferPubsub = 2 };

// A directive that another subsystem checks later (the command table, the ACL, modules): its
// arguments without its name, and its place, for an error report.
struct DeferredDirective {
  std::vector<std::string> arguments;
  int line = 0;
  std::string line_text;
};

struct ConfigValues {
  Edition edition;  // which server it stands for (emulate)

  // Network
  std::vector<std::string> bind = {"*", "-::*"};
  std::string bind_source_addr;
  int port = 6379;         // 0: none, or with port_auto not chosen yet
  bool port_auto = false;  // the system chooses the port
  int tls_port = 0;
  int tcp_backlog = 511;
  std::string unixsocket;
  unsigned unixsocketperm = 0;  // file mode; 0 leaves it to the umask
  std::string unixsocketgroup;  // empty: the process's own
  int timeout = 0;              // seconds
  int tcp_keepalive = 300;      // seconds
  uint32_t socket_mark_id = 0;
  bool protected_mode = true;
  int max_new_connections_per_cycle = 10;
  int max_new_tls_connections_per_cycle = 1;
  ProtectedAction enable_protected_configs = ProtectedAction::kNo;
  ProtectedAction enable_debug_command = ProtectedAction::kNo;
  ProtectedAction enable_module_command = ProtectedAction::kNo;
  ProtectedAction enable_test_commands = ProtectedAction::kLocal;
  int max_spaces = 10000;
  int space_linger_ms = 1000;
  uint64_t space_maxmemory = 0;  // bytes; 0: no limit
  std::string clock = "wall";    // what it shows at start (testing/clock_control.h)

  // Locks (locks/lock_watch.h)
  bool lock_watch = true;
  std::string lock_patterns;  // globs, separated by spaces
  int lock_watch_max_keys = 10'000;
  int lock_log_max_len = 1024;
  bool lock_notify = false;

  // TLS
  std::string tls_cert_file;
  std::string tls_key_file;
  std::string tls_key_file_pass;
  std::string tls_client_cert_file;
  std::string tls_client_key_file;
  std::string tls_client_key_file_pass;
  std::string tls_dh_params_file;
  std::string tls_ca_cert_file;
  std::string tls_ca_cert_dir;
  TlsAuthClients tls_auth_clients = TlsAuthClients::kYes;
  TlsUserField tls_auth_clients_user = TlsUserField::kOff;
  bool tls_replication = false;
  bool tls_cluster = false;
  std::string tls_protocols;
  std::string tls_ciphers;
  std::string tls_ciphersuites;
  bool tls_prefer_server_ciphers = false;
  bool tls_session_caching = true;
  int tls_session_cache_size = 20480;
  int tls_session_cache_timeout = 300;
  int tls_auto_reload_interval = 0;  // seconds; 0: never

  // General
  bool daemonize = false;
  Supervised supervised = Supervised::kNo;
  std::string pidfile;
  base::LogLevel loglevel = base::LogLevel::kNotice;
  bool rdb_version_check_relaxed = false;
  base::LogFormat log_format = base::LogFormat::kLegacy;
  base::LogTime log_timestamp_format = base::LogTime::kLegacy;
  std::string logfile;
  bool syslog_enabled = false;
  std::string syslog_ident = "redis";
  int syslog_facility = kSyslogLocal0;  // a LOG_* facility of syslog(3)
  bool crash_log_enabled = true;
  bool crash_memcheck_enabled = true;
  bool use_exit_on_panic = false;
  int databases = 16;
  bool always_show_logo = false;
  bool hide_user_data_from_log = false;
  bool set_proc_title = true;
  std::string proc_title_template = "{title} {listen-addr} {server-mode}";
  std::string locale_collate;
  std::string dir;  // absolute; empty until something asked for it
  std::string ignore_warnings;
  int watchdog_period = 0;  // milliseconds
  std::string port_file;
  int ready_fd = -1;  // -1: none
  bool print_url = false;
  bool exit_with_parent = false;
  int exit_when_idle = 0;   // seconds; 0: never
  int64_t random_seed = 0;  // 0: the system chooses one

  // Snapshots
  std::vector<SavePoint> save = {{3600, 1}, {300, 100}, {60, 10000}};
  bool stop_writes_on_bgsave_error = true;
  bool rdbcompression = true;
  bool rdbchecksum = true;
  SanitizeDumpPayload sanitize_dump_payload = SanitizeDumpPayload::kNo;
  std::string dbfilename = "dump.rdb";
  bool rdb_del_sync_files = false;
  bool rdb_save_incremental_fsync = true;
  int rdb_key_save_delay = 0;  // microseconds
  int key_load_delay = 0;      // microseconds
  int loading_process_events_interval_bytes = 524288;

  // Replication
  std::string replicaof_host;  // empty: a master
  int replicaof_port = 0;
  std::string masterauth;
  std::string masteruser;
  bool replica_serve_stale_data = true;
  bool replica_read_only = true;
  bool replica_ignore_disk_write_errors = false;
  bool repl_diskless_sync = true;
  int repl_diskless_sync_delay = 5;  // seconds
  int repl_diskless_sync_max_replicas = 0;
  ReplDisklessLoad repl_diskless_load = ReplDisklessLoad::kDisabled;
  bool repl_rdb_channel = true;
  bool import_mode = false;
  // Valkey's: HELLO and LOLWUT say "redis". Here they do unless Valkey is emulated.
  bool extended_redis_compatibility = false;
  std::string availability_zone;
  int repl_ping_replica_period = 10;  // seconds
  int repl_timeout = 60;              // seconds
  bool repl_disable_tcp_nodelay = false;
  int64_t repl_backlog_size = 1048576;
  int64_t repl_backlog_ttl = 3600;  // seconds
  int64_t replica_full_sync_buffer_limit = 0;
  int replica_priority = 100;
  bool replica_announced = true;
  PropagationErrorBehavior propagation_error_behavior = PropagationErrorBehavior::kIgnore;
  bool replica_ignore_maxmemory = true;
  bool replica_lazy_flush = false;
  int min_replicas_to_write = 0;
  int min_replicas_max_lag = 10;  // seconds
  std::string replica_announce_ip;
  int replica_announce_port = 0;

  // Access
  std::string requirepass;
  std::string aclfile;
  int64_t acllog_max_len = 128;
  AclPubsubDefault acl_pubsub_default = AclPubsubDefault::kResetChannels;
  int64_t tracking_table_max_keys = 1000000;

  // Clients and memory
  uint32_t maxclients = 10000;
  uint64_t maxmemory = 0;
  MaxmemoryPolicy maxmemory_policy = MaxmemoryPolicy::kNoeviction;
  int maxmemory_samples = 5;
  int maxmemory_eviction_tenacity = 10;
  int64_t maxmemory_clients = 0;  // bytes; when negative, that many percent of maxmemory
  // Memory limit of the Lua VM of scripts, and of that of functions: bytes, 0 for no limit; when
  // negative, that many percent of maxmemory, or of the machine's memory when maxmemory is 0.
  int64_t lua_memory_limit = -50;
  std::array<ClientBufferLimit, 3> client_output_buffer_limit = {{
      {0, 0, 0},
      {268435456, 67108864, 60},
      {33554432, 8388608, 60},
  }};
  int64_t client_query_buffer_limit = 1073741824;
  int64_t proto_max_bulk_len = 536870912;
  int lookahead = 32;  // requests
  int active_expire_effort = 1;
  // Whether SCAN within a transaction or script removes the expired keys that it comes across.
  bool lazyexpire_nested_arbitrary_keys = true;
  bool lazyfree_lazy_eviction = false;
  bool lazyfree_lazy_expire = false;
  bool lazyfree_lazy_server_del = false;
  bool lazyfree_lazy_user_del = false;
  bool lazyfree_lazy_user_flush = false;

  // Threads and kernel
  int io_threads = 1;
  OomScoreAdj oom_score_adj = OomScoreAdj::kNo;
  std::array<int, 3> oom_score_adj_values = {0, 200, 800};  // master, replica, background child
  bool disable_thp = true;
  bool jemalloc_bg_thread = true;
  std::string server_cpulist;
  std::string bio_cpulist;
  std::string aof_rewrite_cpulist;
  std::string bgsave_cpulist;

  // Append-only file
  bool appendonly = false;
  std::string appendfilename = "appendonly.aof";
  std::string appenddirname = "appendonlydir";
  std::string backupdirname = "backupdir";
  int64_t backup_sealed_ttl = 0;  // seconds; 0: for ever
  std::string preload_file;       // "rdb:PATH" or "aof:PATH of a manifest"
  AppendFsync appendfsync = AppendFsync::kEverysec;
  bool no_appendfsync_on_rewrite = false;
  int auto_aof_rewrite_percentage = 100;
  int64_t auto_aof_rewrite_min_size = 67108864;
  bool aof_load_truncated = true;
  int64_t aof_load_corrupt_tail_max_size = 0;
  bool aof_use_rdb_preamble = true;
  bool aof_timestamp_enabled = false;
  bool aof_rewrite_incremental_fsync = true;
  bool aof_disable_auto_gc = false;

  // Shutdown
  int shutdown_timeout = 10;  // seconds
  unsigned shutdown_on_sigint = 0;
  unsigned shutdown_on_sigterm = 0;

  // Scripts
  int64_t busy_reply_threshold = 5000;  // milliseconds
  bool lua_enable_deprecated_api = false;

  // Cluster
  bool cluster_enabled = false;
  std::string cluster_config_file = "nodes.conf";
  int64_t cluster_node_timeout = 15000;            // milliseconds
  int64_t cluster_ping_interval = 0;               // milliseconds
  int64_t cluster_manual_failover_timeout = 5000;  // milliseconds
  int64_t cluster_blacklist_ttl = 60;              // seconds that CLUSTER FORGET holds
  int cluster_port = 0;
  int cluster_replica_validity_factor = 10;
  int cluster_migration_barrier = 1;
  bool cluster_allow_replica_migration = true;
  bool cluster_require_full_coverage = true;
  bool cluster_replica_no_failover = false;
  bool cluster_allow_reads_when_down = false;
  bool cluster_allow_pubsubshard_when_down = true;
  bool cluster_bus_port_protected_mode = false;
  uint64_t cluster_link_sendbuf_limit = 0;
  std::string cluster_announce_hostname;
  std::string cluster_announce_client_ipv4;
  std::string cluster_announce_client_ipv6;
  std::string cluster_announce_human_nodename;
  ClusterEndpointType cluster_preferred_endpoint_type = ClusterEndpointType::kIp;
  uint64_t cluster_slot_migration_handoff_max_lag_bytes = uint64_t{1} << 20;
  int64_t cluster_slot_migration_write_pause_timeout = 10'000;        // milliseconds
  int64_t cluster_slot_migration_sync_buffer_drain_timeout = 60'000;  // milliseconds
  int cluster_slot_migration_max_archived_tasks = 32;
  int cluster_compatibility_sample_ratio = 0;
  unsigned cluster_slot_stats_enabled = 0;
  std::string cluster_announce_ip;
  int cluster_announce_port = 0;
  // Of a node of a cluster, instead of `databases`.
  int cluster_databases = 1;
  int64_t cluster_slot_migration_log_max_len = 1000;
  // Bytes of writes that may be under way when a migration pauses writes; -1: as many as there are.
  int64_t slot_migration_max_failover_repl_bytes = 0;
  // What the hashes of keys follow from; empty: a secret of this process.
  std::string hash_seed;
  int cluster_announce_tls_port = 0;
  int cluster_announce_bus_port = 0;

  // Watching the server
  int64_t slowlog_log_slower_than = 10000;  // microseconds; negative switches the slow log off
  int64_t slowlog_max_len = 128;
  int slowlog_entry_max_argc = 32;
  int64_t slowlog_entry_max_string_len = 128;  // bytes
  // Bytes; negative switches the log off. It is on by default in Valkey only (emulate).
  int64_t commandlog_request_larger_than = -1;
  int64_t commandlog_large_request_max_len = 128;
  int64_t commandlog_reply_larger_than = -1;
  int64_t commandlog_large_reply_max_len = 128;
  int64_t latency_monitor_threshold = 0;  // milliseconds
  bool latency_tracking = true;
  std::vector<double> latency_tracking_info_percentiles = {50.0, 99.0, 99.9};
  unsigned notify_keyspace_events = 0;
  bool key_memory_histograms = false;
  bool vset_force_single_threaded_execution = false;  // changes nothing

  // Encodings
  uint64_t hash_max_listpack_entries = 512;
  uint64_t hash_max_listpack_value = 64;
  uint64_t hash_min_template_entries = 0;
  uint64_t hash_max_template_entries = 0;
  uint64_t hash_rdb_load_min_template_entries = 0;
  uint64_t hash_rdb_load_max_template_entries = 0;
  int list_max_listpack_size = -2;
  int list_compress_depth = 0;
  uint64_t set_max_intset_entries = 512;
  uint64_t set_max_listpack_entries = 128;
  uint64_t set_max_listpack_value = 64;
  uint64_t zset_max_listpack_entries = 128;
  uint64_t zset_max_listpack_value = 64;
  uint64_t hll_sparse_max_bytes = 3000;
  uint64_t stream_node_max_bytes = 4096;
  int64_t stream_node_max_entries = 100;
  int stream_idmp_duration = 100;  // seconds
  int stream_idmp_maxsize = 100;
  int array_slice_size = 4096;  // indexes; a power of two
  int array_sparse_kmax = 10;
  int array_sparse_kmin = 5;
  // Of time series that are made without saying so. The first and third in milliseconds.
  int64_t ts_retention_policy = 0;
  int64_t ts_chunk_size_bytes = 4096;
  int64_t ts_ignore_max_time_diff = 0;
  double ts_ignore_max_val_diff = 0;
  TsDuplicatePolicy ts_duplicate_policy = TsDuplicatePolicy::kBlock;
  TsEncoding ts_encoding = TsEncoding::kCompressed;
  std::string ts_compaction_policy;  // see store/time_series/compaction_policy.h
  int ts_num_threads = 3;

  // Filters that commands make by adding to them
  std::string bf_error_rate = "0.01";  // above 0, at most 0.25
  uint32_t bf_initial_size = 100;      // items
  uint32_t bf_expansion_factor = 2;    // 0: new filters do not grow
  int cf_bucket_size = 2;              // items
  int cf_initial_size = 1024;          // items; at least 2 * cf_bucket_size
  int cf_max_iterations = 20;
  int cf_expansion_factor = 1;  // 0: new filters do not grow
  int cf_max_expansions = 32;   // layers

  // Cron
  int hz = 10;
  bool dynamic_hz = true;
  bool activerehashing = true;
  bool activedefrag = false;
  int64_t active_defrag_ignore_bytes = 104857600;
  int active_defrag_threshold_lower = 10;
  int active_defrag_threshold_upper = 100;
  int active_defrag_cycle_min = 1;
  int active_defrag_cycle_max = 25;
  uint64_t active_defrag_max_scan_fields = 1000;
  int lfu_log_factor = 10;
  int lfu_decay_time = 1;  // minutes

  // Directives that other subsystems check themselves, in file order.
  std::vector<DeferredDirective> rename_commands;  // {from, to}; an empty `to` removes the command
  std::vector<DeferredDirective> users;            // {name, rule...}
  // Whether the server is a Sentinel: set before the configuration is loaded (Config::be_sentinel).
  bool sentinel_mode = false;
  std::vector<DeferredDirective> sentinel_directives;  // {option, argument...}, of a Sentinel
  // Lines with unknown directives; the reference takes them for settings of a module.
  std::vector<DeferredDirective> unknown_directives;

  // Valkey's: the ports announced to clients instead of the node's; 0: the same.
  int cluster_announce_client_port = 0;
  int cluster_announce_client_tls_port = 0;
  bool cluster_config_save_best_effort = false;  // a node goes on without its file
  int cluster_message_gossip_perc = 10;          // of the nodes, those that a message lists
  // What Valkey lets one tune of its own loop, memory and files; accepted, and without effect here.
  int active_defrag_cycle_us = 500;
  int prefetch_batch_max_size = 16;
  bool io_threads_always_active = false;
  int min_io_threads_avoid_copy_reply = 7;
  int min_string_size_avoid_copy_reply = 16 * 1024;
  int min_string_size_avoid_copy_reply_threaded = 64 * 1024;
  bool mptcp = false;
  bool repl_mptcp = false;
  int events_per_io_thread = 2;
  std::vector<std::string> rdma_bind;
  int rdma_port = 0;
  int rdma_rx_size = 1024 * 1024;
  int rdma_completion_vector = -1;
  bool io_threads_do_reads = false;  // of Redis before 8.0; without effect here
};

// What a server of this configuration calls its mode.
constexpr std::string_view server_mode(const ConfigValues& values) {
  if (values.sentinel_mode) return "sentinel";
  return values.cluster_enabled ? "cluster" : "standalone";
}

}  // namespace latchkey::server
