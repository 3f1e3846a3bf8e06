// Figures of snapshots, loading and the append-only file for INFO; filled in by persistence, a
// layer above (LayerFigures). The defaults are those of a server that keeps its
// dataset in memory only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace latchkey::server {

struct AofFigures {
  bool enabled = false;
  bool last_write_ok = true;
  uint64_t current_bytes = 0;  // of all files of the dataset
  uint64_t base_bytes = 0;     // the same after the last rewrite
  size_t buffered_bytes = 0;   // not written yet
  size_t buffer_memory = 0;
  uint64_t pending_syncs = 0;
  uint64_t delayed_syncs = 0;
  int64_t flush_us = 0;  // time spent on writing

  bool rewriting = false;
  bool rewrite_scheduled = false;
  int64_t last_rewrite_duration_s = -1;
  int64_t rewrite_duration_s = -1;  // of the current rewrite, or -1
  bool last_rewrite_ok = true;
  uint64_t rewrites = 0;
  uint64_t rewrite_failures_in_a_row = 0;
  size_t last_rewrite_copied_bytes = 0;
};

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
  int64_t save_duration_s = -1;  // of the current save, or -1
  uint64_t saves = 0;
  uint64_t save_failures_in_a_row = 0;
  size_t last_save_copied_bytes = 0;

  // Loading: the results of the last load, then the progress of the current one.
  uint64_t keys_loaded = 0;
  uint64_t keys_expired = 0;
  int64_t loading_since_s = 0;  // Unix time
  uint64_t loading_total_bytes = 0;
  uint64_t loading_done_bytes = 0;
  uint64_t loading_dataset_memory = 0;  // memory of the dataset when it was saved
  int64_t loading_left_s = 0;

  AofFigures aof;
};

}  // namespace latchkey::server
