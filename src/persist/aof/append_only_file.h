// Writes the replication stream to the open append-only file, and syncs it as appendfsync says.
//
// Propagated commands are collected during a turn of the loop and written at its end, before the
// replies are sent (the loop holds them from the first command of the turn on). With `always`, they
// are also synced before that, once for all clients of the turn. With `everysec`, a worker syncs
// about once a second; the loop does not write during a sync, since the system would block the
// write, but waits for at most two seconds. With `no`, the system decides when to sync.
//
// A failed write is truncated from the file and tried again at the next turn, and a failed sync at
// the next second, of the file before this one too; until it succeeds, write commands must be
// refused (on_problem_changed), or a new base has what could not be written (suspend()). With
// `always` a failure ends the process, since the dataset has changes that cannot be made durable.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file_system.h"
#include "base/worker.h"
#include "net/loop.h"
#include "server/command/propagation.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::persist {

// A timestamp annotation for the requests that follow it: "#TS:1795287444\r\n".
std::string aof_timestamp(int64_t unix_time_s);

class AppendOnlyFile final : public server::PropagationSink {
 public:
  // `fatal` is called when the process must end; the default exits with status 1.
  AppendOnlyFile(server::Server& server, base::Worker& worker, std::function<void()> fatal = {});
  // Does not write the buffer: call flush() first.
  ~AppendOnlyFile() override;
  AppendOnlyFile(const AppendOnlyFile&) = delete;
  AppendOnlyFile& operator=(const AppendOnlyFile&) = delete;

  // Starts to listen to propagated commands. Until open(), they only advance the offset.
  void start();
  // Stops listening; drops the buffer, and forgets failures, which nobody need wait for any more.
  void stop();
  bool started() const { return started_; }

  // Appends to `descriptor`, which holds `size` bytes, from this call on. REQUIRES: the buffer for
  // the former file was written (flush(Wait::kForDisk)). The former file is synced and closed in
  // the background.
  void open(int descriptor, uint64_t size);
  bool is_open() const { return descriptor_ >= 0; }
  // Closes the file, without a sync: call sync_now() first.
  void close();
  // Closes the file, which is given up, without a sync, and drops the buffer.
  void abandon();
  // While suspended nothing is written: a base is being made that has what is buffered by now and
  // cannot be written to the file. REQUIRES: open.
  void suspend();
  void resume() { suspended_ = false; }
  // Ends the suspension with that base on disk: what was buffered before it is dropped, and the
  // rest goes to `descriptor`, an empty file.
  void continue_in(int descriptor);
  // Syncs what was written. False, with errno, on failure.
  bool sync_now();

  void on_propagated(std::span<const server::PropagatedCommand> unit) override;

  enum class Wait : uint8_t {
    kNever,    // postpone writing while a sync is running
    kForDisk,  // write at once, even if it blocks
  };
  // Writes the buffer and syncs if due. Callers must call this at the end of each turn.
  void flush(Wait wait = Wait::kNever);
  // Tries postponed or failed writes again. Callers must call this at each tick.
  void tick();

  // Whether synced data advances synced_offset(). Off while the base that the file continues is
  // still being written, because the file is useless until then.
  void confirm(bool on);
  // Whether propagated commands advance Server::replication_offset() here. Off when the replication
  // backlog advances it.
  void count_offset(bool on) { counts_offset_ = on; }

  // `running` says whether a child is writing the dataset (no-appendfsync-on-rewrite).
  void on_child_running(std::function<bool()> running) { child_running_ = std::move(running); }
  // `fn` is called when writing or syncing begins to fail, with the system's error message, and
  // when it works again, with an empty text.
  void on_problem_changed(std::function<void(const std::string& problem)> fn) {
    problem_changed_ = std::move(fn);
  }
  // `fn` is called on the loop's thread when synced_offset() has changed.
  void on_synced(std::function<void()> fn) { synced_ = std::move(fn); }

  // --- Figures -----------------------------------------------------------------------------------

  // Bytes of all files of the dataset; the code that opens files sets the size of the other files.
  uint64_t dataset_bytes() const { return dataset_bytes_; }
  void set_dataset_bytes(uint64_t bytes) { dataset_bytes_ = bytes; }
  size_t buffered_bytes() const { return buffer_.size(); }
  // Bytes allocated for the buffer; none as long as it never had anything in it.
  size_t memory_usage() const {
    const size_t capacity = buffer_.capacity();
    return capacity > std::string().capacity() ? capacity : 0;
  }
  bool last_write_failed() const { return write_failed_; }
  // Whether writing or syncing fails.
  bool has_problem() const { return problem_ != 0; }
  // Syncs that the worker has not completed.
  uint64_t pending_syncs() const { return shared_->pending_syncs.load(std::memory_order_acquire); }
  uint64_t delayed_syncs() const { return delayed_syncs_; }
  void reset_delayed_syncs() { delayed_syncs_ = 0; }
  // The replication offset (Server::replication_offset) up to which everything is on disk; -1: not
  // known.
  int64_t synced_offset() const { return shared_->synced_offset.load(std::memory_order_acquire); }
  // Time spent in flush().
  uint64_t flush_ticks() const { return flush_ticks_; }

  // DEBUG AOF-FLUSH-SLEEP: pause before each write.
  void set_flush_pause_us(int64_t pause_us) { flush_pause_us_ = pause_us; }

 private:
  void set_synced_offset(int64_t offset) { shared_->synced_offset.store(offset); }

  // State shared with the worker's jobs; it outlives this object.
  struct Shared {
    std::atomic<uint64_t> pending_syncs{0};
    std::atomic<uint64_t> pending_closes{0};  // of files that are synced and then closed
    std::atomic<int64_t> synced_offset{0};
    std::atomic<int> sync_error{0};  // of the last sync; 0: it succeeded
    // Former files that could not be synced, and are tried again with each sync. The worker's.
    std::vector<int> unsynced;
  };

  static constexpr int64_t kUnknownOffset = -1;

  // Whether anything written may not be on disk, and no sync is queued for it.
  bool needs_sync() const { return synced_file_bytes_ != file_bytes_ || shared_->sync_error != 0; }
  void forget_failures();
  bool must_wait(Wait wait);
  bool write_buffer();
  void note_write_latency(uint64_t ticks);
  void count_written(size_t bytes);
  void truncate_failed_write(ssize_t written, int error);
  void sync_if_due();
  void sync_in_background(int descriptor, bool and_close);
  static bool sync_files(base::FileSystem& files, int descriptor, bool and_close, Shared& shared);
  // Applies the results of the worker's jobs and calls the callbacks on changes.
  void apply_worker_results();
  // Calls on_problem_changed's callback on a change.
  void report_problem();
  int64_t now_ms() const;

  server::Server& server_;
  base::Worker& worker_;
  std::function<void()> fatal_;
  std::function<bool()> child_running_;
  std::function<void(const std::string&)> problem_changed_;
  std::function<void()> synced_;

  bool started_ = false;
  bool counts_offset_ = true;
  bool confirming_ = true;
  int descriptor_ = -1;
  bool suspended_ = false;
  size_t covered_ = 0;  // bytes of the buffer that were there at suspend()
  server::PropagationEncoder encoder_;
  std::string buffer_;
  uint64_t file_bytes_ = 0;         // of the open file
  uint64_t synced_file_bytes_ = 0;  // a sync has at least been queued for these
  uint64_t dataset_bytes_ = 0;
  int64_t written_offset_ = 0;   // replication offset of the last write
  int64_t reported_offset_ = 0;  // offset of the last on_synced call
  int64_t annotated_s_ = 0;      // Unix time of the last annotation
  int64_t last_sync_s_ = 0;      // Unix time
  int64_t postponed_since_ms_ = 0;
  int64_t last_error_logged_s_ = 0;
  bool write_failed_ = false;
  int write_error_ = 0;
  int problem_ = 0;  // the errno last reported to on_problem_changed
  uint64_t delayed_syncs_ = 0;
  uint64_t flush_ticks_ = 0;
  int64_t flush_pause_us_ = 0;
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::unique_ptr<net::Waker> waker_;  // null without a loop
};

}  // namespace latchkey::persist
