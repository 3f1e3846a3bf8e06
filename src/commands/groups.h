// The command groups of this folder: each function returns the command rows of one file. The
// composition adds them to the server's table.
#pragma once

#include <span>

#include "server/command/command.h"

namespace latchkey::server {
class CommandSet;
class CommandTable;
}  // namespace latchkey::server

namespace latchkey::commands {

std::span<const server::CommandRow> acl_rows();
std::span<const server::CommandRow> array_cursor_rows();
std::span<const server::CommandRow> array_rows();
std::span<const server::CommandRow> array_search_rows();
std::span<const server::CommandRow> bitfield_rows();
std::span<const server::CommandRow> bitmap_rows();
std::span<const server::CommandRow> bloom_filter_rows();
std::span<const server::CommandRow> bounded_counter_rows();
std::span<const server::CommandRow> client_rows();
std::span<const server::CommandRow> command_rows();
std::span<const server::CommandRow> config_rows();
std::span<const server::CommandRow> connection_rows();
std::span<const server::CommandRow> count_min_sketch_rows();
std::span<const server::CommandRow> counter_rows();
std::span<const server::CommandRow> cuckoo_filter_rows();
std::span<const server::CommandRow> database_rows();
std::span<const server::CommandRow> debug_rows();
std::span<const server::CommandRow> expire_rows();
std::span<const server::CommandRow> geo_rows();
std::span<const server::CommandRow> geo_search_rows();
std::span<const server::CommandRow> hash_counter_rows();
std::span<const server::CommandRow> hash_deadline_rows();
std::span<const server::CommandRow> hash_import_rows();
std::span<const server::CommandRow> hash_random_rows();
std::span<const server::CommandRow> hash_rows();
std::span<const server::CommandRow> hotkeys_rows();
std::span<const server::CommandRow> hyperloglog_rows();
std::span<const server::CommandRow> info_rows();
std::span<const server::CommandRow> json_array_rows();
std::span<const server::CommandRow> json_number_rows();
std::span<const server::CommandRow> json_object_rows();
std::span<const server::CommandRow> json_reading_rows();
std::span<const server::CommandRow> json_rows();
std::span<const server::CommandRow> json_string_rows();
std::span<const server::CommandRow> key_rows();
std::span<const server::CommandRow> latency_rows();
std::span<const server::CommandRow> lcs_rows();
std::span<const server::CommandRow> list_move_rows();
std::span<const server::CommandRow> list_rows();
std::span<const server::CommandRow> list_search_rows();
std::span<const server::CommandRow> list_wait_rows();
std::span<const server::CommandRow> lolwut_rows();
std::span<const server::CommandRow> memory_rows();
std::span<const server::CommandRow> module_rows();
std::span<const server::CommandRow> monitor_rows();
std::span<const server::CommandRow> object_rows();
std::span<const server::CommandRow> pubsub_rows();
std::span<const server::CommandRow> scan_rows();
std::span<const server::CommandRow> server_rows();
std::span<const server::CommandRow> set_algebra_rows();
std::span<const server::CommandRow> set_random_rows();
std::span<const server::CommandRow> set_rows();
std::span<const server::CommandRow> slowlog_rows();
std::span<const server::CommandRow> sort_rows();
std::span<const server::CommandRow> sorted_set_algebra_rows();
std::span<const server::CommandRow> sorted_set_pop_rows();
std::span<const server::CommandRow> sorted_set_range_rows();
std::span<const server::CommandRow> sorted_set_rows();
std::span<const server::CommandRow> sorted_set_wait_rows();
std::span<const server::CommandRow> stream_group_rows();
std::span<const server::CommandRow> stream_info_rows();
std::span<const server::CommandRow> stream_pending_rows();
std::span<const server::CommandRow> stream_read_rows();
std::span<const server::CommandRow> stream_reference_rows();
std::span<const server::CommandRow> stream_request_rows();
std::span<const server::CommandRow> stream_rows();
std::span<const server::CommandRow> string_batch_rows();
std::span<const server::CommandRow> string_condition_rows();
std::span<const server::CommandRow> string_range_rows();
std::span<const server::CommandRow> string_rows();
std::span<const server::CommandRow> t_digest_rows();
std::span<const server::CommandRow> time_series_rows();
std::span<const server::CommandRow> top_k_rows();
std::span<const server::CommandRow> transaction_rows();
std::span<const server::CommandRow> vector_search_rows();
std::span<const server::CommandRow> vector_set_rows();

// Adds every group above: to a set that servers share, or to the table of one.
void add_all(server::CommandSet& set);
void add_all(server::CommandTable& table);

}  // namespace latchkey::commands
