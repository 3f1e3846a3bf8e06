#include "server/emulation/info_fields.h"

#include <algorithm>
#include <span>

namespace latchkey::server {

namespace {

struct FieldArrival {
  std::string_view name;
  Version redis;
  Version valkey;
};

// Sorted by release, then by name.
constexpr FieldArrival kFields[] = {
    {"aof_rewrites", {7, 0}, {}},
    {"aof_rewrites_consecutive_failures", {7, 0}, {}},
    {"async_loading", {7, 0}, {}},
    {"current_active_defrag_time", {7, 0}, {}},
    {"current_cow_peak", {7, 0}, {}},
    {"current_eviction_exceeded_time", {7, 0}, {}},
    {"evicted_clients", {7, 0}, {}},
    {"instantaneous_input_repl_kbps", {7, 0}, {}},
    {"instantaneous_output_repl_kbps", {7, 0}, {}},
    {"mem_cluster_links", {7, 0}, {}},
    {"mem_total_replication_buffers", {7, 0}, {}},
    {"number_of_functions", {7, 0}, {}},
    {"number_of_libraries", {7, 0}, {}},
    {"pubsubshard_channels", {7, 0}, {}},
    {"rdb_last_load_keys_expired", {7, 0}, {}},
    {"rdb_last_load_keys_loaded", {7, 0}, {}},
    {"rdb_saves", {7, 0}, {}},
    {"reply_buffer_expands", {7, 0}, {}},
    {"reply_buffer_shrinks", {7, 0}, {}},
    {"total_active_defrag_time", {7, 0}, {}},
    {"total_eviction_exceeded_time", {7, 0}, {}},
    {"total_net_repl_input_bytes", {7, 0}, {}},
    {"total_net_repl_output_bytes", {7, 0}, {}},
    {"used_memory_functions", {7, 0}, {}},
    {"used_memory_scripts_eval", {7, 0}, {}},
    {"used_memory_vm_eval", {7, 0}, {}},
    {"used_memory_vm_functions", {7, 0}, {}},
    {"used_memory_vm_total", {7, 0}, {}},
    {"used_memory_vm_total_human", {7, 0}, {}},

    {"acl_access_denied_auth", {7, 2}, {}},
    {"acl_access_denied_channel", {7, 2}, {}},
    {"acl_access_denied_cmd", {7, 2}, {}},
    {"acl_access_denied_key", {7, 2}, {}},
    {"acl_access_denied_db", kNever, {9, 1}},
    {"acl_access_denied_tls_cert", {8, 6}, {9, 0}},
    {"eventloop_cycles", {7, 2}, {}},
    {"eventloop_duration_cmd_sum", {7, 2}, {}},
    {"eventloop_duration_sum", {7, 2}, {}},
    {"instantaneous_eventloop_cycles_per_sec", {7, 2}, {}},
    {"instantaneous_eventloop_duration_usec", {7, 2}, {}},
    {"listener0", {7, 2}, {}},
    {"listener1", {7, 2}, {}},
    {"total_blocking_keys", {7, 2}, {}},
    {"total_blocking_keys_on_nokey", {7, 2}, {}},

    {"allocator_muzzy", {7, 4}, {8, 0}},
    {"client_output_buffer_limit_disconnections", {7, 4}, {8, 0}},
    {"client_query_buffer_limit_disconnections", {7, 4}, {8, 0}},
    {"evicted_scripts", {7, 4}, {8, 0}},
    {"expired_subkeys", {7, 4}, kNever},
    {"expired_fields", kNever, {9, 0}},
    {"used_active_time_main_thread", kNever, {9, 1}},
    {"mem_overhead_db_hashtable_rehashing", {7, 4}, {8, 0}},
    {"paused_actions", kNever, {8, 1}},
    {"paused_reason", kNever, {8, 1}},
    {"paused_timeout_milliseconds", kNever, {8, 1}},
    {"pubsub_clients", {7, 4}, {8, 0}},
    {"total_watched_keys", {7, 4}, {8, 0}},
    {"watching_clients", {7, 4}, {8, 0}},

    {"io_thread_0", {8, 0}, kNever},
    {"mem_replica_full_sync_buffer", {8, 0}, kNever},

    {"expired_keys_active", {8, 2}, kNever},
    {"expired_subkeys_active", {8, 2}, kNever},
    {"io_threaded_total_prefetch_batches", {8, 2}, {8, 0}},
    {"io_threaded_total_prefetch_entries", {8, 2}, {8, 0}},
    {"mem_cluster_slot_migration_input_buffer", {8, 4}, kNever},
    {"mem_cluster_slot_migration_input_buffer_peak", {8, 4}, kNever},
    {"mem_cluster_slot_migration_output_buffer", {8, 4}, kNever},

    {"rdb_saves_consecutive_failures", {8, 6}, kNever},
    {"used_memory_peak_time", {8, 2}, kNever},

    {"master_client_io_thread", {8, 6}, kNever},
    {"master_current_sync_attempts", {8, 6}, kNever},
    {"master_total_sync_attempts", {8, 6}, kNever},
    {"total_disconnect_time_sec", {8, 6}, kNever},

    {"slowlog_commands_count", {8, 8}, kNever},
    {"slowlog_commands_time_ms_max", {8, 8}, kNever},
    {"slowlog_commands_time_ms_sum", {8, 8}, kNever},

    {"availability_zone", kNever, {8, 0}},
    {"server_mode", kNever, {8, 0}},
    {"server_name", kNever, {8, 0}},
    {"valkey_release_stage", kNever, {8, 0}},
    {"valkey_version", kNever, {8, 0}},

    // What no other server has.
    {"checkpoint_keys", kNever, kNever},
    {"checkpoints", kNever, kNever},
    {"mem_checkpoints", kNever, kNever},
    {"random_seed", kNever, kNever},
};

constexpr FieldArrival kClientFields[] = {
    {"ssub", {7, 0}, {}},
    {"multi-mem", {7, 0}, {}},
    {"rbs", {7, 0}, {}},
    {"rbp", {7, 0}, {}},
    {"resp", {7, 0}, {}},
    {"lib-name", {7, 2}, {}},
    {"lib-ver", {7, 2}, {}},
    {"watch", {7, 4}, {8, 0}},
    {"io-thread", {8, 0}, kNever},
    {"tot-net-in", {8, 2}, {8, 0}},
    {"tot-net-out", {8, 2}, {8, 0}},
    {"tot-cmds", {8, 2}, {8, 0}},
};

constexpr FieldArrival kMemoryFigures[] = {
    {"allocator.muzzy", {7, 4}, {8, 0}},
    {"db.dict.rehashing.count", {7, 4}, {8, 0}},
    {"overhead.db.hashtable.lut", {7, 4}, {8, 0}},
    {"overhead.db.hashtable.rehashing", {7, 4}, {8, 0}},
    {"replica.fullsync.buffer", {8, 0}, kNever},
    {"script.VMs", {7, 4}, kNever},
};

constexpr FieldArrival kSections[] = {
    {"Hotkeys", {8, 6}, kNever},
    {"Keysizes", {8, 0}, kNever},
    {"Threads", {8, 0}, kNever},
    {"TLS", kNever, {9, 1}},
};

bool has(const Edition& edition, std::span<const FieldArrival> arrivals, std::string_view name) {
  if (!edition.emulates()) return true;
  const auto found =
      std::find_if(arrivals.begin(), arrivals.end(),
                   [name](const FieldArrival& arrival) { return arrival.name == name; });
  return found == arrivals.end() || edition.has(found->redis, found->valkey);
}

}  // namespace

bool has_info_field(const Edition& edition, std::string_view name) {
  // Valkey says "server_mode".
  if (edition.is_valkey() && name == "redis_mode") return false;
  return has(edition, kFields, name);
}

bool has_client_field(const Edition& edition, std::string_view name) {
  // The reference's tests read the fields of CLIENT LIST in their places.
  if (name == "capa") return edition.is_valkey_since({8, 0});
  return has(edition, kClientFields, name);
}

bool has_memory_figure(const Edition& edition, std::string_view name) {
  return has(edition, kMemoryFigures, name);
}

bool has_info_section(const Edition& edition, std::string_view title) {
  return has(edition, kSections, title);
}

}  // namespace latchkey::server
