#include "commands/groups.h"

#include "server/command/command_table.h"

namespace latchkey::commands {

namespace {

template <typename Table>
void add_groups(Table& table) {
  table.add(acl_rows());
  table.add(array_cursor_rows());
  table.add(array_rows());
  table.add(array_search_rows());
  table.add(bitfield_rows());
  table.add(bitmap_rows());
  table.add(bloom_filter_rows());
  table.add(bounded_counter_rows());
  table.add(client_rows());
  table.add(command_rows());
  table.add(config_rows());
  table.add(connection_rows());
  table.add(count_min_sketch_rows());
  table.add(counter_rows());
  table.add(cuckoo_filter_rows());
  table.add(database_rows());
  table.add(debug_rows());
  table.add(expire_rows());
  table.add(geo_rows());
  table.add(geo_search_rows());
  table.add(hash_counter_rows());
  table.add(hash_deadline_rows());
  table.add(hash_import_rows());
  table.add(hash_random_rows());
  table.add(hash_rows());
  table.add(hotkeys_rows());
  table.add(hyperloglog_rows());
  table.add(info_rows());
  table.add(json_array_rows());
  table.add(json_number_rows());
  table.add(json_object_rows());
  table.add(json_reading_rows());
  table.add(json_rows());
  table.add(json_string_rows());
  table.add(key_rows());
  table.add(latency_rows());
  table.add(lcs_rows());
  table.add(list_move_rows());
  table.add(list_rows());
  table.add(list_search_rows());
  table.add(list_wait_rows());
  table.add(lolwut_rows());
  table.add(memory_rows());
  table.add(module_rows());
  table.add(monitor_rows());
  table.add(object_rows());
  table.add(pubsub_rows());
  table.add(scan_rows());
  table.add(server_rows());
  table.add(set_algebra_rows());
  table.add(set_random_rows());
  table.add(set_rows());
  table.add(slowlog_rows());
  table.add(sort_rows());
  table.add(sorted_set_algebra_rows());
  table.add(sorted_set_pop_rows());
  table.add(sorted_set_range_rows());
  table.add(sorted_set_rows());
  table.add(sorted_set_wait_rows());
  table.add(stream_group_rows());
  table.add(stream_info_rows());
  table.add(stream_pending_rows());
  table.add(stream_read_rows());
  table.add(stream_reference_rows());
  table.add(stream_request_rows());
  table.add(stream_rows());
  table.add(string_batch_rows());
  table.add(string_condition_rows());
  table.add(string_range_rows());
  table.add(string_rows());
  table.add(t_digest_rows());
  table.add(time_series_rows());
  table.add(top_k_rows());
  table.add(transaction_rows());
  table.add(vector_search_rows());
  table.add(vector_set_rows());
}

}  // namespace

void add_all(server::CommandSet& set) {
  add_groups(set);
}

void add_all(server::CommandTable& table) {
  add_groups(table);
}

}  // namespace latchkey::commands
