#include "persist/aof/append_only_file.h"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <string_view>
#include <utility>

#include "base/cycle_clock.h"
#include "base/free_if_large.h"
#include "base/time_units.h"
#include "persist/disk_faults.h"
#include "server/client/client.h"
#include "server/command/dispatcher.h"
#include "server/process/write_advice.h"
#include "server/server.h"

namespace latchkey::persist {

namespace {

using server::AppendFsync;

// A buffer larger than this is freed after the turn.
constexpr size_t kMaxKeptBytes = 256 * 1024;
// How long writes may be postponed because of a running sync.
constexpr int64_t kMaxPostponedMs = 2000;
constexpr std::string_view kSolved = "AOF write error looks solved, Redis can write again.";
constexpr int64_t kErrorLogIntervalS = 30;

// Descriptors that the system cannot sync (a pipe, a device) count as synced.
bool sync_data(base::FileSystem& files, int descriptor) {
  return files.sync_data(descriptor) || errno == EINVAL || errno == EBADF;
}

// Returns the bytes written, fewer than all when writing failed; -1 when it failed at once.
ssize_t write_all(base::FileSystem& files, int descriptor, std::string_view bytes) {
  size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t count = files.write(descriptor, bytes.substr(written));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return written > 0 ? static_cast<ssize_t>(written) : -1;
    written += static_cast<size_t>(count);
  }
  return static_cast<ssize_t>(written);
}

void pause_us(int64_t duration_us) {
  timespec pause{};
  pause.tv_sec = static_cast<time_t>(duration_us / base::kUsPerSecond);
  pause.tv_nsec = static_cast<long>(duration_us % base::kUsPerSecond * base::kNsPerUs);
  nanosleep(&pause, nullptr);
}

}  // namespace

std::string aof_timestamp(int64_t unix_time_s) {
  return "#TS:" + std::to_string(unix_time_s) + "\r\n";
}

AppendOnlyFile::AppendOnlyFile(server::Server& server, base::Worker& worker,
                               std::function<void()> fatal)
    : server_(server),
      worker_(worker),
      fatal_(std::move(fatal)),
      encoder_(server::kPropagateToFile) {
  encoder_.select_before_multi(!server.edition().has({7, 2}));
  if (!fatal_) fatal_ = [] { std::_Exit(1); };
  if (server.loop() != nullptr)
    waker_ = std::make_unique<net::Waker>(*server.loop(), [this] { apply_worker_results(); });
}

AppendOnlyFile::~AppendOnlyFile() {
  if (started_) server_.propagation().remove_sink(*this);
  forget_failures();
  worker_.drain();
  if (is_open()) server_.files().close(descriptor_);
}

void AppendOnlyFile::start() {
  if (started_) return;
  started_ = true;
  server_.propagation().add_sink(*this);
}

void AppendOnlyFile::stop() {
  if (!started_) return;
  started_ = false;
  server_.propagation().remove_sink(*this);
  buffer_.clear();
  forget_failures();
  report_problem();
}

// Of what was written to files that do not count any more.
void AppendOnlyFile::forget_failures() {
  const auto former = std::exchange(shared_, std::make_shared<Shared>());
  shared_->synced_offset = former->synced_offset.load();
  worker_.run([former, &files = server_.files()] {
    for (const int unsynced : former->unsynced) files.close(unsynced);
  });
  write_failed_ = false;
  write_error_ = 0;
}

void AppendOnlyFile::open(int descriptor, uint64_t size) {
  if (is_open()) {
    const int former = std::exchange(descriptor_, -1);
    sync_in_background(former, true);
  }
  descriptor_ = descriptor;
  suspended_ = false;
  file_bytes_ = size;
  synced_file_bytes_ = size;
  last_sync_s_ = now_ms() / base::kMsPerSecond;
  encoder_.forget_database();
}

void AppendOnlyFile::close() {
  if (is_open()) server_.files().close(std::exchange(descriptor_, -1));
}

void AppendOnlyFile::abandon() {
  buffer_.clear();
  // Closing a removed file frees its blocks, which can be slow.
  if (is_open()) {
    worker_.run([former = std::exchange(descriptor_, -1), &files = server_.files()] {
      files.close(former);
    });
  }
  forget_failures();
  report_problem();
}

void AppendOnlyFile::suspend() {
  suspended_ = true;
  covered_ = buffer_.size();
  encoder_.forget_database();
}

void AppendOnlyFile::continue_in(int descriptor) {
  server_.files().close(std::exchange(descriptor_, -1));
  forget_failures();
  buffer_.erase(0, covered_);
  open(descriptor, 0);
  server_.log().notice(kSolved);
  flush(Wait::kForDisk);
}

bool AppendOnlyFile::sync_now() {
  if (const int error = injected_sync_error(server_); error != 0) {
    errno = error;
    return false;
  }
  if (!sync_data(server_.files(), descriptor_)) return false;
  synced_file_bytes_ = file_bytes_;
  // What the file before this one got may be on its way still.
  const bool former_is_synced = shared_->pending_closes == 0 && shared_->sync_error == 0;
  if (confirming_ && former_is_synced) set_synced_offset(written_offset_);
  return true;
}

void AppendOnlyFile::on_propagated(std::span<const server::PropagatedCommand> unit) {
  if (counts_offset_) {
    server_.set_replication_offset(server_.replication_offset() +
                                   static_cast<int64_t>(unit.size()));
    if (server::Client* client = server_.dispatcher().serving(); client != nullptr)
      client->written_offset = static_cast<uint64_t>(server_.replication_offset());
  }
  if (!is_open()) return;
  if (server_.settings().aof_timestamp_enabled) {
    const int64_t now_s = server_.now_ms() / base::kMsPerSecond;
    if (now_s > annotated_s_) buffer_.append(aof_timestamp(annotated_s_ = now_s));
  }
  encoder_.append(unit, &buffer_);
  server_.hold_output();
}

void AppendOnlyFile::flush(Wait wait) {
  if (!is_open()) return;
  if (suspended_ || (buffer_.empty() && !needs_sync())) {
    apply_worker_results();
    return;
  }
  const uint64_t started = base::CycleClock::ticks();
  if (buffer_.empty() || (!must_wait(wait) && write_buffer())) sync_if_due();
  flush_ticks_ += base::CycleClock::ticks() - started;
  apply_worker_results();
}

void AppendOnlyFile::tick() {
  if (postponed_since_ms_ != 0 || write_failed_ || needs_sync()) flush();
  apply_worker_results();
}

bool AppendOnlyFile::must_wait(Wait wait) {
  const bool syncing =
      server_.settings().appendfsync == AppendFsync::kEverysec && pending_syncs() != 0;
  if (!syncing || wait == Wait::kForDisk) {
    postponed_since_ms_ = 0;
    return false;
  }
  if (postponed_since_ms_ == 0) {
    postponed_since_ms_ = now_ms();
    return true;
  }
  if (now_ms() - postponed_since_ms_ < kMaxPostponedMs) return true;
  postponed_since_ms_ = 0;
  ++delayed_syncs_;
  server_.log().notice(
      "Asynchronous AOF fsync is taking too long (disk is busy?). Writing the AOF buffer without "
      "waiting for fsync to complete, this may slow down Redis.");
  return false;
}

// False when not everything could be written.
bool AppendOnlyFile::write_buffer() {
  const uint64_t started = base::CycleClock::ticks();
  if (flush_pause_us_ > 0) pause_us(flush_pause_us_);
  const int injected = injected_write_error(server_);
  const ssize_t written = injected != 0 ? -1 : write_all(server_.files(), descriptor_, buffer_);
  const int error = injected != 0 ? injected : errno;
  note_write_latency(base::CycleClock::ticks() - started);
  if (written != static_cast<ssize_t>(buffer_.size())) {
    truncate_failed_write(written, error);
    return false;
  }
  if (write_failed_) {
    server_.log().notice(kSolved);
    write_failed_ = false;
    write_error_ = 0;
  }
  count_written(buffer_.size());
  buffer_.clear();
  base::free_if_large(&buffer_, kMaxKeptBytes);
  return true;
}

// The event name says what else the disk was busy with.
void AppendOnlyFile::note_write_latency(uint64_t ticks) {
  server::LatencyMonitor& monitor = server_.latency_monitor();
  if (!monitor.is_on()) return;
  std::string_view event = "aof-write-alone";
  if (pending_syncs() != 0) {
    event = "aof-write-pending-fsync";
  } else if (child_running_ && child_running_()) {
    event = "aof-write-active-child";
  }
  const int64_t latency_ms = server_.cycle_clock().to_us(ticks) / base::kUsPerMs;
  monitor.add(event, latency_ms, server_.now_ms() / base::kMsPerSecond);
  monitor.add("aof-write", latency_ms, server_.now_ms() / base::kMsPerSecond);
}

void AppendOnlyFile::count_written(size_t bytes) {
  file_bytes_ += bytes;
  dataset_bytes_ += bytes;
  written_offset_ = server_.replication_offset();
}

// Truncates the partial write, so that the file does not end in the middle of a request; if that
// fails, keeps the written part and later writes only the rest.
void AppendOnlyFile::truncate_failed_write(ssize_t written, int error) {
  base::Logger& log = server_.log();
  const int64_t now_s = now_ms() / base::kMsPerSecond;
  const bool say_it = now_s - last_error_logged_s_ > kErrorLogIntervalS;
  if (say_it) last_error_logged_s_ = now_s;
  if (written < 0) {
    if (say_it) {
      log.warning(std::string("Error writing to the AOF file: ") + strerror(error));
      server::log_write_advice(log, server_.config().directory().current(), error);
    }
    write_error_ = error;
  } else {
    if (say_it) {
      log.warning("Short write while writing to the AOF file: (nwritten=" +
                  std::to_string(written) + ", expected=" + std::to_string(buffer_.size()) + ")");
    }
    if (!server_.files().truncate(descriptor_, file_bytes_)) {
      if (say_it) {
        log.warning(
            std::string("Could not remove short write from the append-only file.  Redis may refuse "
                        "to load the AOF the next time it starts.  ftruncate: ") +
            strerror(errno));
      }
      file_bytes_ += static_cast<size_t>(written);
      dataset_bytes_ += static_cast<size_t>(written);
      buffer_.erase(0, static_cast<size_t>(written));
    }
    write_error_ = ENOSPC;
  }
  write_failed_ = true;
  if (server_.settings().appendfsync == AppendFsync::kAlways) {
    log.warning(
        "Can't recover from AOF write error when the AOF fsync policy is 'always'. Exiting...");
    fatal_();
  }
}

void AppendOnlyFile::sync_if_due() {
  if (!needs_sync()) return;
  const server::ConfigValues& settings = server_.settings();
  if (settings.no_appendfsync_on_rewrite && child_running_ && child_running_()) return;
  const bool failed_before = shared_->sync_error != 0;
  if (settings.appendfsync == AppendFsync::kAlways && synced_file_bytes_ != file_bytes_) {
    const server::LatencyTimer timer(server_, "aof-fsync-always");
    if (!sync_now()) {
      server_.log().warning(
          std::string("Can't persist AOF for fsync error when the AOF fsync policy is 'always': ") +
          strerror(errno) + ". Exiting...");
      fatal_();
    }
    if (!failed_before) last_sync_s_ = now_ms() / base::kMsPerSecond;
  }
  if (settings.appendfsync == AppendFsync::kEverysec || failed_before) {
    const int64_t now_s = now_ms() / base::kMsPerSecond;
    if (now_s == last_sync_s_ || pending_syncs() != 0) return;
    last_sync_s_ = now_s;
    if (const int error = injected_sync_error(server_); error != 0) {
      // Nothing was synced, so the next second's sync takes it along.
      shared_->sync_error = error;
      return;
    }
    synced_file_bytes_ = file_bytes_;
    sync_in_background(descriptor_, false);
  }
}

void AppendOnlyFile::sync_in_background(int descriptor, bool and_close) {
  // Counted separately, because writes to another file need not wait for the sync of a file that is
  // being closed.
  std::atomic<uint64_t>& pending = and_close ? shared_->pending_closes : shared_->pending_syncs;
  ++pending;
  const int64_t offset = confirming_ ? written_offset_ : kUnknownOffset;
  worker_.run([descriptor, and_close, offset, &pending, shared = shared_, waker = waker_.get(),
               &files = server_.files()] {
    if (sync_files(files, descriptor, and_close, *shared)) {
      shared->sync_error = 0;
      if (offset > shared->synced_offset) shared->synced_offset = offset;
    } else {
      shared->sync_error = errno;
    }
    --pending;
    if (waker != nullptr) waker->wake();
  });
}

// Syncs a file, closes it if it is to be, and tries again those that were to be closed before and
// could not be synced. False, with errno, when anything is not on disk. Runs on the worker.
bool AppendOnlyFile::sync_files(base::FileSystem& files, int descriptor, bool and_close,
                                Shared& shared) {
  int error = 0;
  std::erase_if(shared.unsynced, [&](int former) {
    const bool synced = sync_data(files, former);
    if (synced) {
      files.close(former);
    } else {
      error = errno;
    }
    return synced;
  });
  const bool synced = sync_data(files, descriptor);
  if (!synced) error = errno;
  if (and_close && synced) files.close(descriptor);
  if (and_close && !synced) shared.unsynced.push_back(descriptor);
  errno = error;
  return error == 0;
}

void AppendOnlyFile::confirm(bool on) {
  confirming_ = on;
  if (!on) set_synced_offset(kUnknownOffset);
}

void AppendOnlyFile::apply_worker_results() {
  // Bytes of the stream that are not written to the file, such as pings of replicas, need no sync.
  // A job sets its error before it counts as done.
  if (confirming_ && is_open() && buffer_.empty() && pending_syncs() == 0 &&
      shared_->pending_closes == 0 && !needs_sync() &&
      synced_offset() != server_.replication_offset()) {
    set_synced_offset(server_.replication_offset());
  }
  report_problem();
  if (const int64_t offset = synced_offset(); offset != reported_offset_) {
    reported_offset_ = offset;
    if (synced_) synced_();
  }
}

void AppendOnlyFile::report_problem() {
  const int error = write_failed_ ? write_error_ : shared_->sync_error.load();
  if (error != problem_) {
    if (!write_failed_ && error != 0) {
      server_.log().warning(std::string("Fail to fsync the AOF file: ") + strerror(error));
    }
    problem_ = error;
    if (problem_changed_) problem_changed_(error == 0 ? std::string() : strerror(error));
  }
}

int64_t AppendOnlyFile::now_ms() const {
  return server_.machine_ms();
}

}  // namespace latchkey::persist
