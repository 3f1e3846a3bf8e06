#include "persist/aof/aof_rewrite.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/time_units.h"
#include "persist/aof/aof_dataset.h"
#include "persist/aof/aof_directory.h"
#include "persist/disk_faults.h"
#include "persist/key_delay.h"
#include "persist/rdb/byte_stream.h"
#include "persist/rdb/rdb_file.h"
#include "server/server.h"

namespace latchkey::persist {

namespace {

constexpr uint64_t kFailuresBeforeDelay = 3;
constexpr int64_t kMaxDelayMinutes = 60;

bool write_dataset_to(ByteSink& sink, server::Server& server, ChildProgress* progress) {
  const server::ConfigValues& settings = server.settings();
  const int delay_us = settings.rdb_key_save_delay;
  if (progress != nullptr && delay_us > 0) progress->expect_slow_keys();
  const auto after_key = [progress, delay_us](uint64_t keys) {
    if (progress != nullptr) progress->key_written();
    delay_key(delay_us, keys);
  };
  if (settings.aof_use_rdb_preamble) {
    WriteOptions options = write_options(server);
    options.is_aof_preamble = true;
    options.after_key = [&](uint64_t keys) {
      after_key(keys);
      return true;
    };
    return write_dataset(sink, server, options);
  }
  uint64_t keys = 0;
  uint64_t skipped = 0;
  if (!write_dataset_as_requests(sink, server,
                                 {.timestamp = settings.aof_timestamp_enabled,
                                  .skipped = &skipped,
                                  .after_key = [&] { after_key(++keys); }}))
    return false;
  server.log().notice("AOF rewrite done, " + std::to_string(keys) + " keys saved, " +
                      std::to_string(skipped) + " keys skipped.");
  return true;
}

}  // namespace

bool write_aof_base(server::Server& server, const std::string& path, ChildProgress* progress) {
  base::Logger& log = server.log();
  const std::string temporary =
      server.config().directory().path_of("temp-rewriteaof-" + std::to_string(getpid()) + ".aof");
  if (progress != nullptr) progress->remove_if_orphaned(temporary);
  base::FileSystem& files = server.files();
  const int descriptor = files.open(temporary, O_WRONLY | O_CREAT | O_TRUNC, kFileMode);
  if (descriptor < 0) {
    log.warning(std::string("Opening the temp file for AOF rewrite in rewriteAppendOnlyFile(): ") +
                strerror(errno));
    return false;
  }
  const bool sync_on_the_way = server.settings().aof_rewrite_incremental_fsync;
  DescriptorSink sink(files, descriptor, sync_on_the_way ? DescriptorSink::kSyncEvery : 0);
  bool written = write_dataset_to(sink, server, progress);
  if (!written) {
    errno = sink.error();
  } else {
    written = files.sync(descriptor);
  }
  int error = errno;
  if (!files.close(descriptor) && written) {
    written = false;
    error = errno;
  }
  if (!written) {
    log.warning(std::string("Write error writing append only file on disk: ") + strerror(error));
    files.remove(temporary);
    return false;
  }
  if (!files.rename(temporary, path)) {
    log.warning(std::string("Error moving temp append only file on the final destination: ") +
                strerror(errno));
    files.remove(temporary);
    return false;
  }
  if (progress != nullptr) progress->remove_if_orphaned(path);
  return true;
}

AofRewrite::AofRewrite(server::Server& server, AofDirectory& directory, AppendOnlyFile& file,
                       BackgroundChild& child)
    : server_(server), directory_(directory), file_(file), child_(child) {}

std::string AofRewrite::temporary_base(pid_t pid) const {
  return "temp-rewriteaof-bg-" + std::to_string(pid) + ".aof";
}

std::string AofRewrite::temporary_increment() const {
  return "temp-" + server_.settings().appendfilename + ".incr";
}

int64_t AofRewrite::now_s() const {
  return server_.machine_ms() / base::kMsPerSecond;
}

// --- Beginning -----------------------------------------------------------------------------------

bool AofRewrite::start(Purpose purpose) {
  current_ = purpose;
  if (!directory_.create()) {
    last_ok_ = false;
    return false;
  }
  // Commands propagated before the fork must not be in the increment behind the base.
  if (!flush()) {
    current_ = Purpose::kRescue;
    start_offset_ = directory_.next_start_offset();
    server_.log().notice("The append-only file cannot be written to: the new base will hold all");
  } else if (purpose != Purpose::kBaseOnly && !open_increment()) {
    last_ok_ = false;
    return false;
  }
  ++rewrites_;
  // Asked here, because the child's counts are lost with it.
  const int injected = injected_file_error(server_);
  const base::Result<> started = child_.start(
      {.kind = ChildKind::kAofRewrite,
       .keys_total = server_.key_count(),
       .work =
           [this, injected](ChildProgress& progress) {
             if (injected != 0) {
               server_.log().warning(std::string("Write error writing append only file on disk: ") +
                                     strerror(injected));
               return false;
             }
             const std::string name = temporary_base(getpid());
             if (!write_aof_base(server_, directory_.path_beside(name), &progress)) return false;
             server_.log().notice("Successfully created the temporary AOF base file " + name);
             return true;
           },
       .ended = [this](const ChildEnd& end) { ended(end); }});
  if (!started) {
    last_ok_ = false;
    server_.log().warning("Can't rewrite append only file in background: " + started.error());
    // If it stayed open and could not be written to, the next try would be a kRescue, which is not
    // begun again when its child fails.
    if (current_ == Purpose::kFirst) drop_increment();
    return false;
  }
  if (current_ == Purpose::kRescue) file_.suspend();
  scheduled_ = false;
  base_is_rdb_ = server_.settings().aof_use_rdb_preamble;
  server_.log().notice("Background append only file rewriting started by pid " +
                       std::to_string(child_.pid()));
  return true;
}

bool AofRewrite::flush() {
  file_.flush(AppendOnlyFile::Wait::kForDisk);
  return file_.buffered_bytes() == 0;
}

bool AofRewrite::rotate() {
  current_ = Purpose::kReplace;
  if (flush()) return open_increment();
  server_.log().warning("Can't begin another append-only file: this one cannot be written to");
  return false;
}

int AofRewrite::open_file(const std::string& name) {
  const int descriptor = directory_.open_for_append(name, /*truncate=*/true);
  if (descriptor < 0)
    server_.log().warning("Can't open the append-only file " + name + ": " + strerror(errno));
  return descriptor;
}

bool AofRewrite::open_increment() {
  base::Logger& log = server_.log();
  AofManifest next = directory_.manifest();
  std::string name = temporary_increment();
  start_offset_ = directory_.next_start_offset();
  if (current_ == Purpose::kReplace) name = next.add_increment(start_offset_);
  const int descriptor = open_file(name);
  if (descriptor < 0) return false;
  log.notice("Creating AOF incr file " + name + " on background rewrite");
  if (current_ == Purpose::kReplace && !directory_.replace(std::move(next))) {
    server_.files().close(descriptor);
    directory_.discard(name);
    return false;
  }
  file_.open(descriptor, 0);
  return true;
}

void AofRewrite::cancel() {
  scheduled_ = false;
  if (!running()) return;
  server_.log().notice("Killing running AOF rewrite child: " + std::to_string(child_.pid()));
  cancelling_ = true;
  child_.kill_and_wait();
  cancelling_ = false;
  scheduled_ = false;
}

// --- Ending --------------------------------------------------------------------------------------

void AofRewrite::ended(const ChildEnd& end) {
  base::Logger& log = server_.log();
  const int64_t started_us = server_.clock().monotonic_us();
  last_duration_s_ = end.duration_s;
  bool done = false;
  if (end.done) {
    last_copied_bytes_ = end.copied_bytes;
    log.notice("Background AOF rewrite terminated with success");
    done = switch_files(end);
    if (done) log.notice("Background AOF rewrite finished successfully");
  } else if (end.signal == 0) {
    log.warning("Background AOF rewrite terminated with error");
  } else if (!cancelling_) {
    log.warning("Background AOF rewrite terminated by signal " + std::to_string(end.signal));
  }
  if (done) {
    last_ok_ = true;
    failures_in_a_row_ = 0;
    if (ended_) ended_(true);
    log.logf(base::LogLevel::kVerbose, "Background AOF rewrite signal handler took %lldus",
             static_cast<long long>(server_.clock().monotonic_us() - started_us));
    return;
  }
  // A child that the server itself stopped does not count as a failure.
  if (end.signal != SIGUSR1) {
    last_ok_ = false;
    ++failures_in_a_row_;
  }
  give_up(end);
  if (ended_) ended_(false);
}

// Makes the child's file the new base.
bool AofRewrite::switch_files(const ChildEnd& end) {
  base::Logger& log = server_.log();
  base::FileSystem& files = server_.files();
  AofManifest next = directory_.manifest();
  const std::string temporary = temporary_base(end.pid);
  const std::string base = next.add_base(base_is_rdb_);
  if (!files.rename(directory_.path_beside(temporary), directory_.path_of(base))) {
    log.warning("Error trying to rename the temporary AOF base file " + temporary + " into " +
                base + ": " + strerror(errno));
    return false;
  }
  log.notice("Successfully renamed the temporary AOF base file " + temporary + " into " + base);
  std::string increment;
  int descriptor = -1;  // of an increment that is opened here
  if (current_ == Purpose::kFirst) {
    // The former increments belong to another dataset.
    next.retire_increments(/*keep_last=*/false);
    increment = next.add_increment(start_offset_);
    const std::string former = temporary_increment();
    if (!files.rename(directory_.path_of(former), directory_.path_of(increment))) {
      log.warning("Error trying to rename the temporary AOF incr file " + former + " into " +
                  increment + ": " + strerror(errno));
      directory_.remove_in_background(base);
      return false;
    }
    log.notice("Successfully renamed the temporary AOF incr file " + former + " into " + increment);
  } else if (current_ == Purpose::kRescue) {
    next.retire_increments(/*keep_last=*/false);
    increment = next.add_increment(start_offset_);
    descriptor = open_file(increment);
    if (descriptor < 0) {
      directory_.remove_in_background(base);
      return false;
    }
  } else {
    next.retire_increments(/*keep_last=*/current_ == Purpose::kReplace);
  }
  if (!directory_.replace(std::move(next))) {
    const bool discarded = directory_.discard(base);
    // Restore the temporary name, under which the file is still being appended to.
    if (discarded && current_ == Purpose::kFirst)
      files.rename(directory_.path_of(increment), directory_.path_of(temporary_increment()));
    if (discarded && current_ == Purpose::kRescue) directory_.discard(increment);
    if (descriptor >= 0) files.close(descriptor);
    return false;
  }
  base_bytes_ = directory_.dataset_bytes();
  file_.set_dataset_bytes(base_bytes_);
  if (current_ == Purpose::kRescue) file_.continue_in(descriptor);
  directory_.collect_history();
  return true;
}

// Removes the files of a failed rewrite.
void AofRewrite::give_up(const ChildEnd& end) {
  const auto remove = [this](const std::string& name) {
    server_.files().remove(directory_.path_beside(name));
  };
  remove(temporary_base(end.pid));
  remove("temp-rewriteaof-" + std::to_string(end.pid) + ".aof");
  if (current_ == Purpose::kRescue) {
    // What was written to the former file now would be lost with a manifest that does not name it.
    scheduled_ = directory_.is_in_doubt();
    if (!scheduled_) file_.resume();
  }
  if (current_ != Purpose::kFirst) return;
  drop_increment();
  scheduled_ = true;
}

void AofRewrite::drop_increment() {
  const std::string increment = temporary_increment();
  server_.log().notice("Removing the temp incr aof file " + increment + " in the background");
  file_.abandon();
  directory_.remove_in_background(increment);
}

// --- When ----------------------------------------------------------------------------------------

void AofRewrite::tick(bool appending) {
  if (child_.running() || held_) return;
  if (scheduled_) {
    if (!is_limited()) start(purpose_());
    return;
  }
  if (!appending || !has_grown() || is_limited()) return;
  const uint64_t base = std::max<uint64_t>(base_bytes_, 1);
  server_.log().notice("Starting automatic rewriting of AOF on " +
                       std::to_string(file_.dataset_bytes() * 100 / base - 100) + "% growth");
  start(purpose_());
}

bool AofRewrite::has_grown() const {
  const server::ConfigValues& settings = server_.settings();
  const uint64_t bytes = file_.dataset_bytes();
  if (settings.auto_aof_rewrite_percentage == 0 ||
      bytes <= static_cast<uint64_t>(settings.auto_aof_rewrite_min_size))
    return false;
  const uint64_t base = std::max<uint64_t>(base_bytes_, 1);
  return bytes * 100 / base >= 100 + static_cast<uint64_t>(settings.auto_aof_rewrite_percentage);
}

// Whether it is too early to retry after failures.
bool AofRewrite::is_limited() {
  if (failures_in_a_row_ < kFailuresBeforeDelay) {
    delay_minutes_ = 0;
    next_try_s_ = 0;
    return false;
  }
  if (next_try_s_ != 0) {
    if (now_s() < next_try_s_) return true;
    next_try_s_ = 0;
    return false;
  }
  constexpr int64_t kSecondsPerMinute = 60;
  delay_minutes_ = delay_minutes_ == 0 ? 1 : std::min(delay_minutes_ * 2, kMaxDelayMinutes);
  next_try_s_ = now_s() + delay_minutes_ * kSecondsPerMinute;
  server_.log().warning(
      "Background AOF rewrite has repeatedly failed and triggered the limit, will retry in " +
      std::to_string(delay_minutes_) + " minutes");
  return true;
}

void AofRewrite::describe(server::AofFigures* figures) const {
  figures->rewriting = running();
  figures->rewrite_scheduled = scheduled_;
  figures->last_rewrite_duration_s = last_duration_s_;
  figures->rewrite_duration_s = running() ? child_.figures().duration_s : -1;
  figures->last_rewrite_ok = last_ok_;
  figures->rewrites = rewrites_;
  figures->rewrite_failures_in_a_row = failures_in_a_row_;
  figures->last_rewrite_copied_bytes = last_copied_bytes_;
  figures->base_bytes = base_bytes_;
}

}  // namespace latchkey::persist
