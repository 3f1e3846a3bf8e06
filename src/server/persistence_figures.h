// What INFO tells of the dataset's way to disk and back; filled in by persistence, a layer above
// (Server::on_persistence_figures). As it stands it is that of a server that keeps its dataset in
// memory only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace latchkey::server {

struct PersistenceFigures {
  // The child that writes in the background; zero when there is none.
  size_t copied_bytes = 0;  // by copy on write
  size_t most_copied_bytes = 0;
  int64_t copied_bytes_age_s = 0;
  uint64_t keys_written = 0;
  size_t keys_total = 0;
  int64_t latest_fork_us = 0;
  uint64_t forks = 0;

  // Snapshots.
  uint64_t changes_since_save = 0;
  bool saving = false;
  int64_t last_save_s = 0;  // Unix time
  bool last_save_ok = true;
  int64_t last_save_duration_s = -1;
  int64_t save_duration_s = -1;  // of the one that goes on, or -1
  uint64_t saves = 0;
  size_t last_save_copied_bytes = 0;

  // Loading: what the last one found, then how far the present one is.
  uint64_t keys_loaded = 0;
  uint64_t keys_expired = 0;
  int64_t loading_since_s = 0;  // Unix time
  uint64_t loading_total_bytes = 0;
  uint64_t loading_done_bytes = 0;
  uint64_t loading_dataset_memory = 0;  // when it was saved
  int64_t loading_left_s = 0;
};

}  // namespace latchkey::server
