// The table of directives. Defaults are in ConfigValues; the order is that of CONFIG GET.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <syslog.h>
#include <cctype>
#include <cstring>

#include <algorithm>
#include <bit>
#include <limits>

#include "base/port.h"
#include "base/text/number.h"
#include "base/time_units.h"
#include "server/config/config_kinds.h"
#include "server/config/config_time_series.h"
#include "server/process/proc_title.h"

namespace latchkey::server {

using base::fail;
using base::Result;

namespace {

using V = ConfigValues;

constexpr uint64_t kMaxSignedBytes = static_cast<uint64_t>(kMaxInt64);
constexpr uint64_t kMaxBytes = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kOneMegabyte = 1024 * 1024;
constexpr int64_t kMaxUint32 = std::numeric_limits<uint32_t>::max();

// Why directives have no effect.
constexpr std::string_view kNoDefragmentation = "there is no active defragmentation";
constexpr std::string_view kNoMultipath = "connections are made by plain TCP";
constexpr std::string_view kNoRdma = "there is no RDMA, and clients come by TCP";
constexpr std::string_view kOtherThreads =
    "threads for input and output divide their work in another way";

Directive without_effect(Directive row, std::string_view reason) {
  row.no_effect_because = reason;
  return row;
}

TextCheck file_name(bool may_be_empty, const char* empty_message, const char* path_message) {
  return [=](const std::string& name, const ConfigValues&) -> Result<> {
    if (name.empty() && !may_be_empty) return fail(empty_message);
    if (name.find('/') != std::string::npos) return fail(path_message);
    return {};
  };
}

Result<> check_preload_file(const std::string& file, const ConfigValues&) {
  const std::string_view text = file;
  const bool is_rdb = text.starts_with("rdb:");
  if (text.empty()) return {};
  if (!is_rdb && !text.starts_with("aof:"))
    return fail("argument must be in the format 'rdb:PATH' or 'aof:PATH'");
  if (text.ends_with(is_rdb ? ".rdb" : ".manifest")) return {};
  return fail(
      "preload-file must end with an extension: .rdb of a snapshot, .manifest of a manifest");
}

Result<> check_proc_title(const std::string& pattern, const ConfigValues& values) {
  // The title of a process must not be empty. The file's name is not known here, but is not empty
  // either.
  const auto title = expand_proc_title(pattern, values, "", "file");
  if (title && !title->empty()) return {};
  return fail("template format is invalid or contains unknown variables");
}

Result<> check_hostname(const std::string& name, const ConfigValues&) {
  constexpr size_t kMaxHostname = 256;
  if (name.size() >= kMaxHostname) return fail("Hostnames must be less than 256 characters");
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool digit = c >= '0' && c <= '9';
    if (!letter && !digit && c != '-' && c != '.')
      return fail("Hostnames may only contain alphanumeric characters, hyphens or dots");
  }
  return {};
}

// Whether Valkey 9.1 would take an announced address, and what it says is wrong with it.
Result<> accept_as_valkey(const std::string& ip) {
  const bool is_valid = std::all_of(ip.begin(), ip.end(), [](unsigned char byte) {
    return std::isalnum(byte) != 0 || byte >= 0x80 || std::strchr("-._:/", byte) != nullptr;
  });
  if (ip.find('\0') != std::string::npos || !is_valid)
    return fail("cluster-announce-ip contains invalid character");
  if (ip.size() >= INET6_ADDRSTRLEN) return fail("cluster-announce-ip is too long");
  return {};
}

Result<> check_announced_ip(const std::string& ip, const ConfigValues& values) {
  unsigned char address[sizeof(in6_addr)];
  const bool is_ip = ip.size() < INET6_ADDRSTRLEN && ip.find('\0') == std::string::npos &&
                     (inet_pton(AF_INET, ip.c_str(), address) == 1 ||
                      inet_pton(AF_INET6, ip.c_str(), address) == 1);
  if (ip.empty() || is_ip) return {};
  if (values.edition.is_valkey_since({9, 1})) {
    if (auto accepted = accept_as_valkey(ip); !accepted) return accepted;
  }
  return fail("Cluster announce IP must be a valid IPv4 or IPv6 address");
}

TextCheck client_address(int family, const char* message) {
  return [=](const std::string& ip, const ConfigValues&) -> Result<> {
    unsigned char address[sizeof(in6_addr)];
    if (ip.empty() ||
        (ip.find('\0') == std::string::npos && inet_pton(family, ip.c_str(), address) == 1))
      return {};
    return fail(message);
  };
}

// The name is told to others in lines and lists, which no character of it may end. Other nodes take
// no longer one.
Result<> check_human_name(const std::string& name, const ConfigValues&) {
  constexpr size_t kLongest = 255;
  const auto is_allowed = [](char c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool beyond_ascii = (static_cast<unsigned char>(c) & 0x80) != 0;
    return letter || beyond_ascii ||
           std::string_view("0123456789-./_`").find(c) != std::string::npos;
  };
  if (!std::all_of(name.begin(), name.end(), is_allowed))
    return fail("Announced human node name contained invalid character");
  if (name.size() > kLongest)
    return fail("Announced human node name must be less than 256 characters");
  return {};
}

void add_network(std::vector<Directive>& table) {
  table.push_back(bind_directive());
  table.push_back(text("bind-source-addr", &V::bind_source_addr));
  table.push_back(port_directive());
  table.push_back(number("tls-port", &V::tls_port, 0, base::kLastPort));
  table.push_back(number("tcp-backlog", &V::tcp_backlog, 0, kMaxInt, kImmutable));
  table.push_back(text("unixsocket", &V::unixsocket, kImmutable));
  table.push_back(unixsocketperm_directive());
  table.push_back(text("unixsocketgroup", &V::unixsocketgroup, kImmutable | kOfValkey));
  table.push_back(number("timeout", &V::timeout, 0, kMaxInt));
  table.push_back(number("tcp-keepalive", &V::tcp_keepalive, 0, kMaxInt));
  table.push_back(number("socket-mark-id", &V::socket_mark_id, 0, kMaxUint32, kImmutable));
  table.push_back(boolean("protected-mode", &V::protected_mode));
  table.push_back(
      number("max-new-connections-per-cycle", &V::max_new_connections_per_cycle, 1, 1000));
  table.push_back(
      number("max-new-tls-connections-per-cycle", &V::max_new_tls_connections_per_cycle, 1, 1000));
  const std::initializer_list<Word<ProtectedAction>> actions = {{"no", ProtectedAction::kNo},
                                                                {"yes", ProtectedAction::kYes},
                                                                {"local", ProtectedAction::kLocal}};
  table.push_back(
      choice("enable-protected-configs", &V::enable_protected_configs, actions, kImmutable));
  table.push_back(choice("enable-debug-command", &V::enable_debug_command, actions, kImmutable));
  table.push_back(choice("enable-module-command", &V::enable_module_command, actions, kImmutable));
  table.push_back(
      choice("enable-test-commands", &V::enable_test_commands, actions, kImmutable | kHidden));
  table.push_back(emulate_directive());
  table.push_back(text("clock", &V::clock, kImmutable | kHidden));
  table.push_back(number("max-spaces", &V::max_spaces, 0, kMaxInt));
  table.push_back(memory("space-maxmemory", &V::space_maxmemory, 0, kMaxBytes));
  table.push_back(number("space-linger-ms", &V::space_linger_ms, 0, kMaxInt));
}

void add_locks(std::vector<Directive>& table) {
  constexpr int64_t kMax = 1'000'000;
  table.push_back(boolean("lock-watch", &V::lock_watch));
  table.push_back(text("lock-patterns", &V::lock_patterns, 0, {.empty_is_a_value = true}));
  table.push_back(number("lock-watch-max-keys", &V::lock_watch_max_keys, 1, kMax));
  table.push_back(number("lock-log-max-len", &V::lock_log_max_len, 1, kMax));
  table.push_back(boolean("lock-notify", &V::lock_notify));
}

void add_tls(std::vector<Directive>& table) {
  // A file may have another content under its name: setting it again reads it again.
  table.push_back(text("tls-cert-file", &V::tls_cert_file, kActsAlways));
  table.push_back(text("tls-key-file", &V::tls_key_file, kActsAlways));
  table.push_back(text("tls-key-file-pass", &V::tls_key_file_pass, kSensitive));
  table.push_back(text("tls-client-cert-file", &V::tls_client_cert_file, kActsAlways));
  table.push_back(text("tls-client-key-file", &V::tls_client_key_file, kActsAlways));
  table.push_back(text("tls-client-key-file-pass", &V::tls_client_key_file_pass, kSensitive));
  table.push_back(text("tls-dh-params-file", &V::tls_dh_params_file, kActsAlways));
  table.push_back(text("tls-ca-cert-file", &V::tls_ca_cert_file, kActsAlways));
  table.push_back(text("tls-ca-cert-dir", &V::tls_ca_cert_dir, kActsAlways));
  table.push_back(choice<TlsAuthClients>("tls-auth-clients", &V::tls_auth_clients,
                                         {{"no", TlsAuthClients::kNo},
                                          {"yes", TlsAuthClients::kYes},
                                          {"optional", TlsAuthClients::kOptional}}));
  table.push_back(choice<TlsUserField>("tls-auth-clients-user", &V::tls_auth_clients_user,
                                       {{"CN", TlsUserField::kCommonName},
                                        {"URI", TlsUserField::kUri},
                                        {"off", TlsUserField::kOff}}));
  table.push_back(boolean("tls-replication", &V::tls_replication));
  table.push_back(boolean("tls-cluster", &V::tls_cluster));
  table.push_back(text("tls-protocols", &V::tls_protocols));
  table.push_back(text("tls-ciphers", &V::tls_ciphers));
  table.push_back(text("tls-ciphersuites", &V::tls_ciphersuites));
  table.push_back(boolean("tls-prefer-server-ciphers", &V::tls_prefer_server_ciphers));
  table.push_back(boolean("tls-session-caching", &V::tls_session_caching));
  table.push_back(number("tls-session-cache-size", &V::tls_session_cache_size, 0, kMaxInt));
  table.push_back(number("tls-session-cache-timeout", &V::tls_session_cache_timeout, 0, kMaxInt));
  table.push_back(number("tls-auto-reload-interval", &V::tls_auto_reload_interval, 0, kMaxInt));
}

void add_general(std::vector<Directive>& table) {
  table.push_back(boolean("daemonize", &V::daemonize, kImmutable));
  table.push_back(choice<Supervised>("supervised", &V::supervised,
                                     {{"upstart", Supervised::kUpstart},
                                      {"systemd", Supervised::kSystemd},
                                      {"auto", Supervised::kAuto},
                                      {"no", Supervised::kNo}},
                                     kImmutable));
  table.push_back(text("pidfile", &V::pidfile, kImmutable));
  table.push_back(text("port-file", &V::port_file, kImmutable | kHidden));
  table.push_back(number("ready-fd", &V::ready_fd, -1, kMaxInt, kImmutable | kHidden));
  table.push_back(boolean("print-url", &V::print_url, kImmutable | kHidden));
  table.push_back(boolean("exit-with-parent", &V::exit_with_parent, kImmutable | kHidden));
  table.push_back(number("exit-when-idle", &V::exit_when_idle, 0, kMaxInt));
  table.push_back(choice<base::LogLevel>("loglevel", &V::loglevel,
                                         {{"debug", base::LogLevel::kDebug},
                                          {"verbose", base::LogLevel::kVerbose},
                                          {"notice", base::LogLevel::kNotice},
                                          {"warning", base::LogLevel::kWarning},
                                          {"nothing", base::LogLevel::kNothing}}));
  table.push_back(choice<bool>("rdb-version-check", &V::rdb_version_check_relaxed,
                               {{"strict", false}, {"relaxed", true}}));
  table.push_back(choice<base::LogFormat>("log-format", &V::log_format,
                                          {{"legacy", base::LogFormat::kLegacy},
                                           {"logfmt", base::LogFormat::kLogfmt},
                                           {"json", base::LogFormat::kJson}}));
  table.push_back(choice<base::LogTime>("log-timestamp-format", &V::log_timestamp_format,
                                        {{"legacy", base::LogTime::kLegacy},
                                         {"iso8601", base::LogTime::kIso8601},
                                         {"milliseconds", base::LogTime::kMilliseconds}}));
  table.push_back(text("logfile", &V::logfile, kImmutable, {.empty_is_a_value = true}));
  table.push_back(boolean("syslog-enabled", &V::syslog_enabled, kImmutable));
  table.push_back(text("syslog-ident", &V::syslog_ident, kImmutable, {.empty_is_a_value = true}));
  table.push_back(choice<int>("syslog-facility", &V::syslog_facility,
                              {{"user", LOG_USER},
                               {"local0", LOG_LOCAL0},
                               {"local1", LOG_LOCAL1},
                               {"local2", LOG_LOCAL2},
                               {"local3", LOG_LOCAL3},
                               {"local4", LOG_LOCAL4},
                               {"local5", LOG_LOCAL5},
                               {"local6", LOG_LOCAL6},
                               {"local7", LOG_LOCAL7}},
                              kImmutable));
  table.push_back(boolean("crash-log-enabled", &V::crash_log_enabled));
  table.push_back(without_effect(boolean("crash-memcheck-enabled", &V::crash_memcheck_enabled),
                                 "a crash report does not test the memory"));
  table.push_back(without_effect(boolean("use-exit-on-panic", &V::use_exit_on_panic, kHidden),
                                 "a failed assertion always ends in abort()"));
  table.push_back(number("databases", &V::databases, 1, kMaxInt, kImmutable));
  table.push_back(boolean("always-show-logo", &V::always_show_logo, kImmutable));
  table.push_back(boolean("hide-user-data-from-log", &V::hide_user_data_from_log));
  table.push_back(boolean("set-proc-title", &V::set_proc_title, kImmutable));
  table.push_back(text("proc-title-template", &V::proc_title_template, 0,
                       {.empty_is_a_value = true, .check = check_proc_title}));
  table.push_back(text("locale-collate", &V::locale_collate, 0, {.empty_is_a_value = true}));
  table.push_back(dir_directive());
  table.push_back(
      without_effect(text("ignore-warnings", &V::ignore_warnings, 0, {.empty_is_a_value = true}),
                     "the fault of old kernels for ARM64 that it is about is not looked for"));
  table.push_back(number("random-seed", &V::random_seed, 0, kMaxInt64, kActsAlways));
  table.push_back(number("watchdog-period", &V::watchdog_period, 0, kMaxInt, kHidden));
}

void add_snapshots(std::vector<Directive>& table) {
  table.push_back(save_directive());
  table.push_back(boolean("stop-writes-on-bgsave-error", &V::stop_writes_on_bgsave_error));
  table.push_back(boolean("rdbcompression", &V::rdbcompression));
  table.push_back(boolean("rdbchecksum", &V::rdbchecksum, kImmutable));
  table.push_back(
      without_effect(choice<SanitizeDumpPayload>("sanitize-dump-payload", &V::sanitize_dump_payload,
                                                 {{"no", SanitizeDumpPayload::kNo},
                                                  {"yes", SanitizeDumpPayload::kYes},
                                                  {"clients", SanitizeDumpPayload::kClients}}),
                     "every payload is checked before it is used"));
  table.push_back(
      text("dbfilename", &V::dbfilename, kProtectedDirective,
           {.empty_is_a_value = true,
            .check = file_name(true, "", "dbfilename can't be a path, just a filename")}));
  table.push_back(boolean("rdb-del-sync-files", &V::rdb_del_sync_files));
  table.push_back(boolean("rdb-save-incremental-fsync", &V::rdb_save_incremental_fsync));
  table.push_back(number("rdb-key-save-delay", &V::rdb_key_save_delay, kMinInt, kMaxInt, kHidden));
  table.push_back(number("key-load-delay", &V::key_load_delay, kMinInt, kMaxInt, kHidden));
  table.push_back(number("loading-process-events-interval-bytes",
                         &V::loading_process_events_interval_bytes, 1024, kMaxInt, kHidden));
}

void add_replication(std::vector<Directive>& table) {
  table.push_back(replicaof_directive());
  table.push_back(text({"masterauth", "primaryauth"}, &V::masterauth, kSensitive));
  table.push_back(text({"masteruser", "primaryuser"}, &V::masteruser, kSensitive));
  table.push_back(boolean({"replica-serve-stale-data", "slave-serve-stale-data"},
                          &V::replica_serve_stale_data));
  table.push_back(boolean({"replica-read-only", "slave-read-only"}, &V::replica_read_only));
  table.push_back(
      boolean("replica-ignore-disk-write-errors", &V::replica_ignore_disk_write_errors));
  table.push_back(boolean("repl-diskless-sync", &V::repl_diskless_sync));
  table.push_back(number("repl-diskless-sync-delay", &V::repl_diskless_sync_delay, 0, kMaxInt));
  table.push_back(
      number("repl-diskless-sync-max-replicas", &V::repl_diskless_sync_max_replicas, 0, kMaxInt));
  table.push_back(choice<ReplDisklessLoad>("repl-diskless-load", &V::repl_diskless_load,
                                           {{"disabled", ReplDisklessLoad::kDisabled},
                                            {"on-empty-db", ReplDisklessLoad::kOnEmptyDb},
                                            {"swapdb", ReplDisklessLoad::kSwapdb},
                                            {"flushdb", ReplDisklessLoad::kFlushdb},
                                            {"flush-before-load", ReplDisklessLoad::kFlushdb}},
                                           kDenyLoading));
  table.push_back(boolean({"repl-rdb-channel", "dual-channel-replication-enabled"},
                          &V::repl_rdb_channel, kHidden));
  table.push_back(boolean("import-mode", &V::import_mode));
  table.push_back(boolean("extended-redis-compatibility", &V::extended_redis_compatibility));
  table.push_back(text("availability-zone", &V::availability_zone));
  table.push_back(number({"repl-ping-replica-period", "repl-ping-slave-period"},
                         &V::repl_ping_replica_period, 1, kMaxInt));
  table.push_back(number("repl-timeout", &V::repl_timeout, 1, kMaxInt));
  table.push_back(boolean("repl-disable-tcp-nodelay", &V::repl_disable_tcp_nodelay));
  table.push_back(repl_backlog_size_directive());
  table.push_back(number("repl-backlog-ttl", &V::repl_backlog_ttl, 0, kMaxInt64));
  table.push_back(memory("replica-full-sync-buffer-limit", &V::replica_full_sync_buffer_limit, 0,
                         kMaxSignedBytes));
  table.push_back(number({"replica-priority", "slave-priority"}, &V::replica_priority, 0, kMaxInt));
  table.push_back(boolean("replica-announced", &V::replica_announced));
  table.push_back(choice<PropagationErrorBehavior>(
      "propagation-error-behavior", &V::propagation_error_behavior,
      {{"ignore", PropagationErrorBehavior::kIgnore},
       {"panic", PropagationErrorBehavior::kPanic},
       {"panic-on-replicas", PropagationErrorBehavior::kPanicOnReplicas}}));
  table.push_back(boolean({"replica-ignore-maxmemory", "slave-ignore-maxmemory"},
                          &V::replica_ignore_maxmemory));
  table.push_back(boolean({"replica-lazy-flush", "slave-lazy-flush"}, &V::replica_lazy_flush));
  table.push_back(number({"min-replicas-to-write", "min-slaves-to-write"},
                         &V::min_replicas_to_write, 0, kMaxInt));
  table.push_back(
      number({"min-replicas-max-lag", "min-slaves-max-lag"}, &V::min_replicas_max_lag, 0, kMaxInt));
  table.push_back(text({"replica-announce-ip", "slave-announce-ip"}, &V::replica_announce_ip));
  table.push_back(number({"replica-announce-port", "slave-announce-port"},
                         &V::replica_announce_port, 0, base::kLastPort));
}

void add_access(std::vector<Directive>& table) {
  table.push_back(text("requirepass", &V::requirepass, kSensitive));
  table.push_back(text("aclfile", &V::aclfile, kImmutable, {.empty_is_a_value = true}));
  table.push_back(number("acllog-max-len", &V::acllog_max_len, 0, kMaxInt64));
  table.push_back(choice<AclPubsubDefault>("acl-pubsub-default", &V::acl_pubsub_default,
                                           {{"allchannels", AclPubsubDefault::kAllChannels},
                                            {"resetchannels", AclPubsubDefault::kResetChannels}}));
  table.push_back(number("tracking-table-max-keys", &V::tracking_table_max_keys, 0, kMaxInt64));
}

void add_clients_and_memory(std::vector<Directive>& table) {
  table.push_back(number("maxclients", &V::maxclients, 1, kMaxUint32));
  table.push_back(memory("maxmemory", &V::maxmemory, 0, kMaxBytes));
  table.push_back(choice<MaxmemoryPolicy>("maxmemory-policy", &V::maxmemory_policy,
                                          {{"volatile-lru", MaxmemoryPolicy::kVolatileLru},
                                           {"volatile-lfu", MaxmemoryPolicy::kVolatileLfu},
                                           {"volatile-random", MaxmemoryPolicy::kVolatileRandom},
                                           {"volatile-ttl", MaxmemoryPolicy::kVolatileTtl},
                                           {"volatile-lrm", MaxmemoryPolicy::kVolatileLrm},
                                           {"allkeys-lru", MaxmemoryPolicy::kAllkeysLru},
                                           {"allkeys-lfu", MaxmemoryPolicy::kAllkeysLfu},
                                           {"allkeys-random", MaxmemoryPolicy::kAllkeysRandom},
                                           {"allkeys-lrm", MaxmemoryPolicy::kAllkeysLrm},
                                           {"noeviction", MaxmemoryPolicy::kNoeviction}}));
  table.push_back(number("maxmemory-samples", &V::maxmemory_samples, 1, 64));
  table.push_back(number("maxmemory-eviction-tenacity", &V::maxmemory_eviction_tenacity, 0, 100));
  table.push_back(bytes_or_percent_directive("maxmemory-clients", &V::maxmemory_clients));
  table.push_back(client_output_buffer_limit_directive());
  table.push_back(memory("client-query-buffer-limit", &V::client_query_buffer_limit, kOneMegabyte,
                         kMaxSignedBytes));
  table.push_back(
      memory("proto-max-bulk-len", &V::proto_max_bulk_len, kOneMegabyte, kMaxSignedBytes));
  table.push_back(number("lookahead", &V::lookahead, 1, kMaxInt));
  table.push_back(
      without_effect(number("active-expire-effort", &V::active_expire_effort, 1, 10),
                     "keys are deleted at their deadlines, and not looked for by samples"));
  table.push_back(
      boolean("lazyexpire-nested-arbitrary-keys", &V::lazyexpire_nested_arbitrary_keys, kHidden));
  table.push_back(boolean("lazyfree-lazy-eviction", &V::lazyfree_lazy_eviction));
  table.push_back(boolean("lazyfree-lazy-expire", &V::lazyfree_lazy_expire));
  table.push_back(boolean("lazyfree-lazy-server-del", &V::lazyfree_lazy_server_del));
  table.push_back(boolean("lazyfree-lazy-user-del", &V::lazyfree_lazy_user_del));
  table.push_back(boolean("lazyfree-lazy-user-flush", &V::lazyfree_lazy_user_flush));
}

void add_threads_and_kernel(std::vector<Directive>& table) {
  table.push_back(number("io-threads", &V::io_threads, 1, 128, kImmutable | kLiveInValkey));
  table.push_back(choice<OomScoreAdj>("oom-score-adj", &V::oom_score_adj,
                                      {{"no", OomScoreAdj::kNo},
                                       {"yes", OomScoreAdj::kRelative},
                                       {"relative", OomScoreAdj::kRelative},
                                       {"absolute", OomScoreAdj::kAbsolute}}));
  table.push_back(oom_score_adj_values_directive());
  table.push_back(boolean("disable-thp", &V::disable_thp, kImmutable));
  table.push_back(boolean("jemalloc-bg-thread", &V::jemalloc_bg_thread));
  table.push_back(text({"server-cpulist", "server_cpulist"}, &V::server_cpulist, kImmutable));
  table.push_back(text({"bio-cpulist", "bio_cpulist"}, &V::bio_cpulist, kImmutable));
  table.push_back(
      text({"aof-rewrite-cpulist", "aof_rewrite_cpulist"}, &V::aof_rewrite_cpulist, kImmutable));
  table.push_back(text({"bgsave-cpulist", "bgsave_cpulist"}, &V::bgsave_cpulist, kImmutable));
}

void add_append_only_file(std::vector<Directive>& table) {
  table.push_back(boolean("appendonly", &V::appendonly, kDenyLoadingInValkey));
  table.push_back(text("appendfilename", &V::appendfilename, kImmutable,
                       {.empty_is_a_value = true,
                        .check = file_name(false, "appendfilename can't be empty",
                                           "appendfilename can't be a path, just a filename")}));
  table.push_back(text("appenddirname", &V::appenddirname, kImmutable,
                       {.empty_is_a_value = true,
                        .check = file_name(false, "appenddirname can't be empty",
                                           "appenddirname can't be a path, just a dirname")}));
  table.push_back(text("backupdirname", &V::backupdirname, kImmutable | kHidden,
                       {.empty_is_a_value = true,
                        .check = file_name(false, "backupdirname can't be empty",
                                           "backupdirname can't be a path, just a dirname")}));
  table.push_back(number("backup-sealed-ttl", &V::backup_sealed_ttl, 0, kMaxInt64));
  table.push_back(text("preload-file", &V::preload_file, kImmutable | kHidden,
                       {.empty_is_a_value = true, .check = check_preload_file}));
  table.push_back(choice<AppendFsync>("appendfsync", &V::appendfsync,
                                      {{"everysec", AppendFsync::kEverysec},
                                       {"always", AppendFsync::kAlways},
                                       {"no", AppendFsync::kNo}}));
  table.push_back(boolean("no-appendfsync-on-rewrite", &V::no_appendfsync_on_rewrite));
  table.push_back(
      number("auto-aof-rewrite-percentage", &V::auto_aof_rewrite_percentage, 0, kMaxInt));
  table.push_back(
      memory("auto-aof-rewrite-min-size", &V::auto_aof_rewrite_min_size, 0, kMaxSignedBytes));
  table.push_back(boolean("aof-load-truncated", &V::aof_load_truncated));
  table.push_back(
      number("aof-load-corrupt-tail-max-size", &V::aof_load_corrupt_tail_max_size, 0, kMaxInt64));
  table.push_back(boolean("aof-use-rdb-preamble", &V::aof_use_rdb_preamble));
  table.push_back(boolean("aof-timestamp-enabled", &V::aof_timestamp_enabled));
  table.push_back(boolean("aof-rewrite-incremental-fsync", &V::aof_rewrite_incremental_fsync));
  table.push_back(boolean("aof-disable-auto-gc", &V::aof_disable_auto_gc, kHidden));
}

void add_shutdown_and_scripts(std::vector<Directive>& table) {
  table.push_back(number("shutdown-timeout", &V::shutdown_timeout, 0, kMaxInt));
  table.push_back(shutdown_directive("shutdown-on-sigint", &V::shutdown_on_sigint));
  table.push_back(shutdown_directive("shutdown-on-sigterm", &V::shutdown_on_sigterm));
  table.push_back(
      number({"busy-reply-threshold", "lua-time-limit"}, &V::busy_reply_threshold, 0, kMaxInt64));
  table.push_back(bytes_or_percent_directive("lua-memory-limit", &V::lua_memory_limit));
  table.push_back(
      boolean("lua-enable-deprecated-api", &V::lua_enable_deprecated_api, kImmutable | kHidden));
  // Valkey's name for it, under which it can be changed.
  table.push_back(boolean("lua-enable-insecure-api", &V::lua_enable_deprecated_api, kHidden));
}

void add_cluster(std::vector<Directive>& table) {
  table.push_back(boolean("cluster-enabled", &V::cluster_enabled, kImmutable));
  table.push_back(
      text("cluster-config-file", &V::cluster_config_file, kImmutable, {.empty_is_a_value = true}));
  table.push_back(number("cluster-node-timeout", &V::cluster_node_timeout, 0, kMaxInt64));
  table.push_back(
      number("cluster-ping-interval", &V::cluster_ping_interval, 0, kMaxInt64, kHidden));
  table.push_back(
      number("cluster-manual-failover-timeout", &V::cluster_manual_failover_timeout, 1, kMaxInt));
  table.push_back(number("cluster-blacklist-ttl", &V::cluster_blacklist_ttl, 0, kMaxInt));
  table.push_back(number("cluster-port", &V::cluster_port, 0, base::kLastPort, kImmutable));
  table.push_back(boolean("cluster-bus-port-protected-mode", &V::cluster_bus_port_protected_mode));
  table.push_back(number({"cluster-replica-validity-factor", "cluster-slave-validity-factor"},
                         &V::cluster_replica_validity_factor, 0, kMaxInt));
  table.push_back(number("cluster-migration-barrier", &V::cluster_migration_barrier, 0, kMaxInt));
  table.push_back(boolean("cluster-allow-replica-migration", &V::cluster_allow_replica_migration));
  table.push_back(boolean("cluster-require-full-coverage", &V::cluster_require_full_coverage));
  table.push_back(boolean({"cluster-replica-no-failover", "cluster-slave-no-failover"},
                          &V::cluster_replica_no_failover));
  table.push_back(boolean("cluster-allow-reads-when-down", &V::cluster_allow_reads_when_down));
  table.push_back(
      boolean("cluster-allow-pubsubshard-when-down", &V::cluster_allow_pubsubshard_when_down));
  table.push_back(
      memory("cluster-link-sendbuf-limit", &V::cluster_link_sendbuf_limit, 0, kMaxBytes));
  table.push_back(text("cluster-announce-client-ipv4", &V::cluster_announce_client_ipv4, 0,
                       {.check = client_address(AF_INET, "Invalid IPv4 address")}));
  table.push_back(text("cluster-announce-client-ipv6", &V::cluster_announce_client_ipv6, 0,
                       {.check = client_address(AF_INET6, "Invalid IPv6 address")}));
  table.push_back(text("cluster-announce-hostname", &V::cluster_announce_hostname, 0,
                       {.check = check_hostname}));
  table.push_back(text("cluster-announce-human-nodename", &V::cluster_announce_human_nodename, 0,
                       {.check = check_human_name}));
  table.push_back(choice<ClusterEndpointType>(
      "cluster-preferred-endpoint-type", &V::cluster_preferred_endpoint_type,
      {{"ip", ClusterEndpointType::kIp},
       {"hostname", ClusterEndpointType::kHostname},
       {"unknown-endpoint", ClusterEndpointType::kUnknownEndpoint}}));
  table.push_back(memory("cluster-slot-migration-handoff-max-lag-bytes",
                         &V::cluster_slot_migration_handoff_max_lag_bytes, 0, kMaxSignedBytes));
  table.push_back(number("cluster-slot-migration-write-pause-timeout",
                         &V::cluster_slot_migration_write_pause_timeout, 0, kMaxInt64));
  table.push_back(number("cluster-slot-migration-sync-buffer-drain-timeout",
                         &V::cluster_slot_migration_sync_buffer_drain_timeout, 0, kMaxInt64,
                         kHidden));
  table.push_back(number("cluster-slot-migration-max-archived-tasks",
                         &V::cluster_slot_migration_max_archived_tasks, 1, kMaxInt, kHidden));
  table.push_back(
      number("cluster-compatibility-sample-ratio", &V::cluster_compatibility_sample_ratio, 0, 100));
  table.push_back(cluster_slot_stats_directive());
  table.push_back(
      text("cluster-announce-ip", &V::cluster_announce_ip, 0, {.check = check_announced_ip}));
  table.push_back(number("cluster-announce-port", &V::cluster_announce_port, 0, base::kLastPort));
  table.push_back(
      number("cluster-announce-tls-port", &V::cluster_announce_tls_port, 0, base::kLastPort));
  table.push_back(
      number("cluster-databases", &V::cluster_databases, 1, kMaxInt, kImmutable | kOfValkey));
  table.push_back(number("cluster-slot-migration-log-max-len",
                         &V::cluster_slot_migration_log_max_len, 0, kMaxInt64));
  table.push_back(number("slot-migration-max-failover-repl-bytes",
                         &V::slot_migration_max_failover_repl_bytes, -1, kMaxInt64));
  table.push_back(text("hash-seed", &V::hash_seed, kImmutable | kOfValkey));
  table.push_back(number("cluster-announce-client-port", &V::cluster_announce_client_port, 0,
                         base::kLastPort, kOfValkey));
  table.push_back(number("cluster-announce-client-tls-port", &V::cluster_announce_client_tls_port,
                         0, base::kLastPort, kOfValkey));
  table.push_back(choice("cluster-config-save-behavior", &V::cluster_config_save_best_effort,
                         {{"sync", false}, {"best-effort", true}}, kOfValkey));
  table.push_back(
      number("cluster-message-gossip-perc", &V::cluster_message_gossip_perc, 0, 100, kHidden));
  table.push_back(
      number("cluster-announce-bus-port", &V::cluster_announce_bus_port, 0, base::kLastPort));
}

// Other servers' tuning, which is without effect here: Valkey's own, and what is gone from them.
void add_tuning_of_others(std::vector<Directive>& table) {
  table.push_back(without_effect(
      number("active-defrag-cycle-us", &V::active_defrag_cycle_us, 0, 100'000, kOfValkey),
      kNoDefragmentation));
  table.push_back(without_effect(
      number("prefetch-batch-max-size", &V::prefetch_batch_max_size, 0, 128, kOfValkey),
      "the number of keys that are prefetched together is fixed"));
  table.push_back(without_effect(
      boolean("io-threads-always-active", &V::io_threads_always_active, kHidden), kOtherThreads));
  table.push_back(without_effect(number("min-io-threads-avoid-copy-reply",
                                        &V::min_io_threads_avoid_copy_reply, 0, kMaxInt, kHidden),
                                 kOtherThreads));
  table.push_back(without_effect(number("min-string-size-avoid-copy-reply",
                                        &V::min_string_size_avoid_copy_reply, 0, kMaxInt, kHidden),
                                 kOtherThreads));
  table.push_back(
      without_effect(number("min-string-size-avoid-copy-reply-threaded",
                            &V::min_string_size_avoid_copy_reply_threaded, 0, kMaxInt, kHidden),
                     kOtherThreads));
  table.push_back(
      without_effect(boolean("mptcp", &V::mptcp, kImmutable | kOfValkey), kNoMultipath));
  table.push_back(without_effect(boolean("repl-mptcp", &V::repl_mptcp, kOfValkey), kNoMultipath));
  table.push_back(without_effect(rdma_bind_directive(), kNoRdma));
  table.push_back(without_effect(rdma_port_directive(), kNoRdma));
  table.push_back(without_effect(
      number("rdma-rx-size", &V::rdma_rx_size, 64 * 1024, 16 * 1024 * 1024, kImmutable | kOfValkey),
      kNoRdma));
  table.push_back(without_effect(number("rdma-completion-vector", &V::rdma_completion_vector, -1,
                                        1024, kImmutable | kOfValkey),
                                 kNoRdma));
  table.push_back(
      without_effect(number("events-per-io-thread", &V::events_per_io_thread, 0, kMaxInt, kHidden),
                     kOtherThreads));
  table.push_back(without_effect(
      boolean("io-threads-do-reads", &V::io_threads_do_reads, kImmutable), kOtherThreads));
}

void add_observation(std::vector<Directive>& table) {
  table.push_back(number({"slowlog-log-slower-than", "commandlog-execution-slower-than"},
                         &V::slowlog_log_slower_than, -1, kMaxInt64));
  table.push_back(number({"slowlog-max-len", "commandlog-slow-execution-max-len"},
                         &V::slowlog_max_len, 0, kMaxInt64));
  // The name of the command and the note of what was left out.
  constexpr int64_t kMinWords = 2;
  table.push_back(number("slowlog-entry-max-argc", &V::slowlog_entry_max_argc, kMinWords, kMaxInt));
  table.push_back(
      number("slowlog-entry-max-string-len", &V::slowlog_entry_max_string_len, 1, kMaxInt64));
  table.push_back(
      number("commandlog-request-larger-than", &V::commandlog_request_larger_than, -1, kMaxInt64));
  table.push_back(number("commandlog-large-request-max-len", &V::commandlog_large_request_max_len,
                         0, kMaxInt64));
  table.push_back(
      number("commandlog-reply-larger-than", &V::commandlog_reply_larger_than, -1, kMaxInt64));
  table.push_back(
      number("commandlog-large-reply-max-len", &V::commandlog_large_reply_max_len, 0, kMaxInt64));
  table.push_back(number("latency-monitor-threshold", &V::latency_monitor_threshold, 0, kMaxInt64));
  table.push_back(boolean("latency-tracking", &V::latency_tracking));
  table.push_back(latency_percentiles_directive());
  table.push_back(notify_keyspace_events_directive());
  table.push_back(boolean("key-memory-histograms", &V::key_memory_histograms));
  table.push_back(without_effect(
      boolean("vset-force-single-threaded-execution", &V::vset_force_single_threaded_execution),
      "vector sets are always searched by one thread"));
}

Directive array_slice_size() {
  Directive row = number("array-slice-size", &V::array_slice_size, 1, kMaxInt);
  row.parse = [parse_number = row.parse](DirectiveArguments arguments,
                                         DirectiveContext& context) -> Result<> {
    if (auto parsed = parse_number(arguments, context); !parsed) return parsed;
    if (std::has_single_bit(static_cast<unsigned>(context.values.array_slice_size))) return {};
    return fail("array-slice-size must be a power of two");
  };
  return row;
}

void add_encodings(std::vector<Directive>& table) {
  table.push_back(number({"hash-max-listpack-entries", "hash-max-ziplist-entries"},
                         &V::hash_max_listpack_entries, 0, kMaxInt64));
  table.push_back(memory({"hash-max-listpack-value", "hash-max-ziplist-value"},
                         &V::hash_max_listpack_value, 0, kMaxSignedBytes));
  table.push_back(
      number({"hash-min-template-entries"}, &V::hash_min_template_entries, 0, kMaxInt64));
  table.push_back(
      number({"hash-max-template-entries"}, &V::hash_max_template_entries, 0, kMaxInt64));
  table.push_back(number({"hash-rdb-load-min-template-entries"},
                         &V::hash_rdb_load_min_template_entries, 0, kMaxInt64));
  table.push_back(number({"hash-rdb-load-max-template-entries"},
                         &V::hash_rdb_load_max_template_entries, 0, kMaxInt64));
  table.push_back(number({"list-max-listpack-size", "list-max-ziplist-size"},
                         &V::list_max_listpack_size, kMinInt, kMaxInt));
  table.push_back(number("list-compress-depth", &V::list_compress_depth, 0, kMaxInt));
  table.push_back(number("set-max-intset-entries", &V::set_max_intset_entries, 0, kMaxInt64));
  table.push_back(number("set-max-listpack-entries", &V::set_max_listpack_entries, 0, kMaxInt64));
  table.push_back(number("set-max-listpack-value", &V::set_max_listpack_value, 0, kMaxInt64));
  table.push_back(number({"zset-max-listpack-entries", "zset-max-ziplist-entries"},
                         &V::zset_max_listpack_entries, 0, kMaxInt64));
  table.push_back(memory({"zset-max-listpack-value", "zset-max-ziplist-value"},
                         &V::zset_max_listpack_value, 0, kMaxSignedBytes));
  table.push_back(memory("hll-sparse-max-bytes", &V::hll_sparse_max_bytes, 0, kMaxSignedBytes));
  table.push_back(memory("stream-node-max-bytes", &V::stream_node_max_bytes, 0, kMaxSignedBytes));
  table.push_back(number("stream-node-max-entries", &V::stream_node_max_entries, 0, kMaxInt64));
  constexpr int64_t kMaxRemembered = 10'000;
  table.push_back(
      number("stream-idmp-duration", &V::stream_idmp_duration, 1, base::kSecondsPerDay));
  table.push_back(number("stream-idmp-maxsize", &V::stream_idmp_maxsize, 1, kMaxRemembered));
  table.push_back(array_slice_size());
  table.push_back(number("array-sparse-kmax", &V::array_sparse_kmax, 0, kMaxInt));
  table.push_back(without_effect(number("array-sparse-kmin", &V::array_sparse_kmin, 0, kMaxInt),
                                 "arrays are not stored in slices"));
  add_time_series(table);
}

std::string not_of_filter(std::string_view name, std::string_view range) {
  return "Value for `" + std::string(name) + "` must be in the range " + std::string(range);
}

// A whole number in the range that `range` gives for the values as they are; the messages are those
// of the reference's module.
template <typename Number>
Directive filter_number(
    const char* name, Number V::*member,
    std::function<std::pair<int64_t, int64_t>(const ConfigValues& values)> range) {
  return special(
      name, 0,
      [=](DirectiveArguments arguments, DirectiveContext& context) -> Result<> {
        int64_t value;
        if (!base::parse_int64(arguments[0], &value))
          return fail("Invalid value for `" + std::string(name) + "`");
        const auto [least, most] = range(context.values);
        if (value < least || value > most)
          return fail(
              not_of_filter(name, "[" + std::to_string(least) + ", " + std::to_string(most) + "]"));
        context.values.*member = static_cast<Number>(value);
        return {};
      },
      [=](const ConfigValues& values) { return std::to_string(values.*member); });
}

// Kept and shown as it was written.
Directive bf_error_rate() {
  constexpr const char* kName = "bf-error-rate";
  constexpr double kMost = 0.25;
  return special(
      kName, 0,
      [](DirectiveArguments arguments, DirectiveContext& context) -> Result<> {
        double rate;
        if (!base::parse_double(arguments[0], &rate))
          return fail("Invalid value for `" + std::string(kName) + "`");
        if (!(rate > 0 && rate < 1)) return fail(not_of_filter(kName, "(0.000000, 1.000000)"));
        context.values.bf_error_rate = rate > kMost ? "0.25" : arguments[0];
        return {};
      },
      [](const ConfigValues& values) { return values.bf_error_rate; });
}

void add_filters(std::vector<Directive>& table) {
  static constexpr int64_t kMaxItems = int64_t{1} << 30;
  constexpr int64_t kMaxExpansion = 32768;
  static constexpr int64_t kMaxBucketSize = 255;
  const auto fixed = [](int64_t least, int64_t most) {
    return [=](const ConfigValues&) { return std::pair{least, most}; };
  };
  table.push_back(bf_error_rate());
  table.push_back(filter_number("bf-initial-size", &V::bf_initial_size, fixed(1, kMaxItems)));
  table.push_back(
      filter_number("bf-expansion-factor", &V::bf_expansion_factor, fixed(0, kMaxExpansion)));
  // A new filter has two buckets at least.
  table.push_back(
      filter_number("cf-bucket-size", &V::cf_bucket_size, [](const ConfigValues& values) {
        return std::pair{int64_t{1}, std::min<int64_t>(values.cf_initial_size / 2, kMaxBucketSize)};
      }));
  table.push_back(
      filter_number("cf-initial-size", &V::cf_initial_size, [](const ConfigValues& values) {
        return std::pair{int64_t{2} * values.cf_bucket_size, kMaxItems};
      }));
  table.push_back(filter_number("cf-max-iterations", &V::cf_max_iterations, fixed(1, 65535)));
  table.push_back(
      filter_number("cf-expansion-factor", &V::cf_expansion_factor, fixed(0, kMaxExpansion)));
  table.push_back(filter_number("cf-max-expansions", &V::cf_max_expansions, fixed(1, 65536)));
}

void add_cron(std::vector<Directive>& table) {
  table.push_back(hz_directive());
  table.push_back(without_effect(boolean("dynamic-hz", &V::dynamic_hz),
                                 "with many clients more is done each time, not more often"));
  table.push_back(
      without_effect(boolean("activerehashing", &V::activerehashing),
                     "tables grow in small steps with each change, and need no idle time for it"));
  table.push_back(boolean("activedefrag", &V::activedefrag));
  table.push_back(without_effect(
      memory("active-defrag-ignore-bytes", &V::active_defrag_ignore_bytes, 1, kMaxSignedBytes),
      kNoDefragmentation));
  table.push_back(without_effect(
      number("active-defrag-threshold-lower", &V::active_defrag_threshold_lower, 0, 1000),
      kNoDefragmentation));
  table.push_back(without_effect(
      number("active-defrag-threshold-upper", &V::active_defrag_threshold_upper, 0, 1000),
      kNoDefragmentation));
  table.push_back(without_effect(
      number("active-defrag-cycle-min", &V::active_defrag_cycle_min, 1, 99), kNoDefragmentation));
  table.push_back(without_effect(
      number("active-defrag-cycle-max", &V::active_defrag_cycle_max, 1, 99), kNoDefragmentation));
  table.push_back(without_effect(
      number("active-defrag-max-scan-fields", &V::active_defrag_max_scan_fields, 1, kMaxInt64),
      kNoDefragmentation));
  table.push_back(number("lfu-log-factor", &V::lfu_log_factor, 0, kMaxInt));
  table.push_back(number("lfu-decay-time", &V::lfu_decay_time, 0, kMaxInt));
}

}  // namespace

std::vector<Directive> make_directive_table() {
  constexpr size_t kRoughSize = 400;
  std::vector<Directive> table;
  table.reserve(kRoughSize);
  add_network(table);
  add_locks(table);
  add_tls(table);
  add_general(table);
  add_snapshots(table);
  add_replication(table);
  add_access(table);
  add_clients_and_memory(table);
  add_threads_and_kernel(table);
  add_append_only_file(table);
  add_shutdown_and_scripts(table);
  add_cluster(table);
  add_observation(table);
  add_tuning_of_others(table);
  add_encodings(table);
  add_filters(table);
  add_cron(table);
  return table;
}

}  // namespace latchkey::server
