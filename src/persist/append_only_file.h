// Writes the replication stream to the file that is being appended to, and syncs it as appendfsync
// says.
//
// KeyspaceEvents are gathered while a turn of the loop runs its requests and written at its end,
// before the replies leave (the loop holds them from the first effect of the turn on). With
// `always` they are synced before that too, once for all clients of the turn. With `everysec` a
// worker syncs what was written, about once a second; while it does, the loop does not write, since
// the system would make it wait, but for no longer than two seconds. With `no` the system syncs
// when it likes.
//
// A write that fails is taken back and tried again at the next turn; until it succeeds
// commands that write are to be refused (on_problem_changed). With `always` there is no way back
// from a failure, since changes have been made that cannot be promised: the process ends.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/worker.h"
#include "net/loop.h"
#include "server/command/propagation.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::persist {

// A line that tells the time of what follows it: "#TS:1795287444\r\n".
std::string aof_timestamp(int64_t unix_time_s);

class AppendOnlyFile final : public server::PropagationSink {
 public:
  // `fatal` is called when the process must end; by default it ends it with status 1.
  AppendOnlyFile(server::Server& server, base::Worker& worker, std::function<void()> fatal = {});
  // Writes nothing that is left: flush() first.
  ~AppendOnlyFile() override;
  AppendOnlyFile(const AppendOnlyFile&) = delete;
  AppendOnlyFile& operator=(const AppendOnlyFile&) = delete;

  // Listens to effects from here on. What it hears before there is a file only counts.
  void start();
  // Stops listening; drops what was not written.
  void stop();
  bool started() const { return started_; }

  // Appends to `descriptor`, which holds `size` bytes, from here on. What was gathered for the file
  // before must have been written (flush(Wait::kForDisk)); that file is synced and closed in the
  // background.
  void open(int descriptor, uint64_t size);
  bool is_open() const { return descriptor_ >= 0; }
  // Syncs and closes the file now.
  void close();
  // Closes it without a sync, and forgets what was gathered for it: it is given up.
  void abandon();
  // False, with errno: what was written is on disk.
  bool sync_now();

  void on_propagated(std::span<const server::PropagatedCommand> unit) override;

  enum class Wait : uint8_t {
    kNever,    // leave writing for later while a sync is going on
    kForDisk,  // write now, whatever it costs
  };
  // Writes what was gathered and syncs as is due. To be called at the end of each turn.
  void flush(Wait wait = Wait::kNever);
  // Tries again what was postponed or failed. To be called at each tick.
  void tick();

  // Whether what is synced counts as safe (synced_offset). Not while the file is of no use yet,
  // since the base it continues is still being written.
  void confirm(bool on);
  // Whether it moves Server::replication_offset() with what it hears. Not when replicas do.
  void count_offset(bool on) { counts_offset_ = on; }

  // Whether another process writes the dataset just now (no-appendfsync-on-rewrite).
  void on_child_running(std::function<bool()> running) { child_running_ = std::move(running); }
  // `fn` is called when writing or syncing begins to fail and when it works again; `problem` is
  // empty then, or what the system said.
  void on_problem_changed(std::function<void(const std::string& problem)> fn) {
    problem_changed_ = std::move(fn);
  }
  // `fn` is called on the loop's thread when synced_offset() has changed.
  void on_synced(std::function<void()> fn) { synced_ = std::move(fn); }

  // --- Figures
  // ------------------------------------------------------------------------------------

  // Bytes of all files of the dataset together; whoever opens files knows the others.
  uint64_t dataset_bytes() const { return dataset_bytes_; }
  void set_dataset_bytes(uint64_t bytes) { dataset_bytes_ = bytes; }
  size_t buffered_bytes() const { return buffer_.size(); }
  // What the buffer occupies.
  size_t memory_usage() const { return buffer_.capacity(); }
  bool last_write_failed() const { return write_failed_; }
  // Whether writing or syncing fails.
  bool has_problem() const { return problem_ != 0; }
  // Syncs that the worker has not done yet.
  uint64_t pending_syncs() const { return shared_->pending_syncs.load(std::memory_order_relaxed); }
  uint64_t delayed_syncs() const { return delayed_syncs_; }
  void reset_delayed_syncs() { delayed_syncs_ = 0; }
  // Up to where in the stream (Server::replication_offset) everything is on disk; -1: not known.
  int64_t synced_offset() const { return shared_->synced_offset.load(std::memory_order_acquire); }
  // Time spent in flush().
  uint64_t flush_ticks() const { return flush_ticks_; }

  // DEBUG AOF-FLUSH-SLEEP: how long to wait before each write.
  void set_flush_pause_us(int64_t pause_us) { flush_pause_us_ = pause_us; }

 private:
  void set_synced_offset(int64_t offset) { shared_->synced_offset.store(offset); }

  // What the worker's jobs touch, which outlives the file.
  struct Shared {
    std::atomic<uint64_t> pending_syncs{0};
    std::atomic<uint64_t> pending_closes{0};  // of files that are synced before they are closed
    std::atomic<int64_t> synced_offset{0};
    std::atomic<int> sync_error{0};
  };

  static constexpr int64_t kUnknownOffset = -1;

  bool must_wait(Wait wait);
  bool write_buffer();
  void note_write_latency(uint64_t ticks);
  void count_written(size_t bytes);
  void take_back_failed_write(ssize_t written, int error);
  void sync_if_due();
  void sync_in_background(int descriptor, bool and_close);
  // Takes in what the worker has done since, and tells who wants to know.
  void look_at_worker();
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
  server::PropagationEncoder encoder_;
  std::string buffer_;
  uint64_t file_bytes_ = 0;         // of the open file
  uint64_t synced_file_bytes_ = 0;  // for which a sync has at least been ordered
  uint64_t dataset_bytes_ = 0;
  int64_t written_offset_ = 0;  // of the stream
  int64_t told_offset_ = 0;     // what on_synced has been told of
  int64_t annotated_s_ = 0;     // Unix time of the last annotation
  int64_t last_sync_s_ = 0;     // Unix time
  int64_t postponed_since_ms_ = 0;
  int64_t last_error_logged_s_ = 0;
  bool write_failed_ = false;
  int write_error_ = 0;
  int problem_ = 0;  // an errno, as told last
  uint64_t delayed_syncs_ = 0;
  uint64_t flush_ticks_ = 0;
  int64_t flush_pause_us_ = 0;
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::unique_ptr<net::Waker> waker_;  // null without a loop
};

}  // namespace latchkey::persist
