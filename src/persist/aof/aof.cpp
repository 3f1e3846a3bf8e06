#include "persist/aof/aof.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/time_units.h"
#include "server/client/client.h"
#include "server/command/command_context.h"
#include "server/command/dispatcher.h"
#include "server/process/process.h"
#include "server/process/shutdown.h"
#include "server/process/write_advice.h"
#include "server/server.h"
#include "server/stream_offset.h"

namespace latchkey::persist {

using namespace server;

namespace {

constexpr int kMaxTries = 10;
constexpr int64_t kTryAgainMs = 1000;

// Whether a unit of propagated commands is open whose changes are in the dataset already: of a
// transaction or script, or of a request that has propagated something. A base that is forked now
// would have these changes, and the increment behind it would get their commands again.
bool is_amid_unit(Server& server) {
  return server.dispatcher().in_nested_call() || server.propagation().has_open_commands();
}

struct AofSizes {
  uint64_t base = 0;   // bytes of the base
  uint64_t total = 0;  // bytes of all files
};

// Nothing, with the reason logged, when one of the files is not there.
std::optional<AofSizes> measure(const std::vector<AofFile>& files, const std::string& directory,
                                base::Logger& log) {
  AofSizes sizes;
  for (const AofFile& file : files) {
    struct stat status {};
    if (stat((directory + file.name).c_str(), &status) != 0) {
      log.warning("Unable to obtain the AOF file " + file.name +
                  " length. stat: " + strerror(errno));
      return std::nullopt;
    }
    const auto bytes = static_cast<uint64_t>(status.st_size);
    sizes.total += bytes;
    if (file.type == AofFileType::kBase) sizes.base += bytes;
  }
  return sizes;
}

}  // namespace

Aof::Aof(Server& server, BackgroundChild& child)
    : server_(server),
      child_(child),
      worker_("bio_aof", [cpus = server.settings().bio_cpulist] { server::pin_to_cpus(cpus); }),
      directory_(server, worker_),
      file_(server, worker_),
      rewrite_(server, directory_, file_, child),
      loader_(server),
      waits_(server, *this) {
  server.on_turn_end(TurnEnd::kAppendOnlyFile, [this] { file_.flush(); });
  server.config().on_change({"appendonly"}, [this] { return setting_changed(); });
  server.config().on_change({"aof-disable-auto-gc"}, [this]() -> base::Result<> {
    if (directory_.collect_history()) return {};
    return base::fail("The manifest cannot be written. Check server logs.");
  });
  server.shutdown().before_exit([this](unsigned flags) { return prepare_exit(flags); });
  file_.on_child_running([this] { return child_.running(); });
  file_.on_problem_changed([this](const std::string& problem) {
    server_.set_disk_error(
        DiskError::kAppendOnlyFile,
        problem.empty() ? std::string() : "MISCONF Errors writing to the AOF file: " + problem);
  });
  file_.on_synced([this] { waits_.serve(); });
  rewrite_.on_start_needed([this] { return purpose(); });
  rewrite_.on_ended([this](bool done) { rewrite_ended(done); });
}

// --- Loading -------------------------------------------------------------------------------------

Loading::Result Aof::load_at_start(LoadingFigures& figures) {
  if (!directory_.migrate_old_file()) return Loading::Result::kFailed;
  loaded_ = true;
  if (directory_.manifest().empty()) return Loading::Result::kNoFile;
  const Loading::Result result = load_timed(directory_.manifest(), directory_.path_of(""), figures);
  if (result == Loading::Result::kDone) follow_offset();
  return result;
}

Loading::Result Aof::load_other(const std::string& path, LoadingFigures& figures) {
  base::Logger& log = server_.log();
  const auto text = base::read_within(path, {.pipe_patience_ms = 0}, server_.files());
  if (!text) {
    log.warning("Fatal error: can't open the AOF manifest file " + path +
                " for reading: " + base::read_error_text(errno));
    return Loading::Result::kFailed;
  }
  AofManifest manifest(server_.settings().appendfilename);
  if (const base::Result<void, AofManifestError> parsed = manifest.parse(*text); !parsed) {
    for (const std::string& line : parsed.error().log_lines()) log.warning(line);
    return Loading::Result::kFailed;
  }
  return load_timed(manifest, path.substr(0, path.rfind('/') + 1), figures);
}

Loading::Result Aof::load_timed(const AofManifest& manifest, const std::string& directory,
                                LoadingFigures& figures) {
  const int64_t started_us = server_.clock().monotonic_us();
  const Loading::Result result = load_files(manifest, directory, figures);
  if (result != Loading::Result::kDone) return result;
  server_.log().logf(
      base::LogLevel::kNotice, "DB loaded from append only file: %.3f seconds",
      static_cast<double>(server_.clock().monotonic_us() - started_us) / base::kUsPerSecond);
  return result;
}

bool Aof::reload(LoadingFigures& figures) {
  if (state_ == State::kOn) file_.flush(AppendOnlyFile::Wait::kForDisk);
  if (!directory_.load()) return false;
  clear_dataset(server_);
  if (directory_.manifest().empty()) return false;
  return load_files(directory_.manifest(), directory_.path_of(""), figures) ==
         Loading::Result::kDone;
}

// `directory` ends in a slash, or is empty.
Loading::Result Aof::load_files(const AofManifest& manifest, const std::string& directory,
                                LoadingFigures& figures) {
  base::Logger& log = server_.log();
  std::vector<AofFile> files;
  if (manifest.base()) files.push_back(*manifest.base());
  files.insert(files.end(), manifest.increments().begin(), manifest.increments().end());
  const auto sizes = measure(files, directory, log);
  if (!sizes) return Loading::Result::kFailed;

  LoadingScope scope(server_, figures, sizes->total);
  const Propagation::MuteScope muted(server_.propagation());
  uint64_t done_bytes = 0;
  auto result = AofLoader::Result::kDone;
  for (const AofFile& file : files) {
    const bool is_base = file.type == AofFileType::kBase;
    const int64_t started_us = server_.clock().monotonic_us();
    result =
        loader_.load({.name = file.name,
                      .path = directory + file.name,
                      .is_last = manifest.is_last(file.name),
                      .is_old_style = is_base && file.name == server_.settings().appendfilename,
                      .bytes_before = done_bytes},
                     scope);
    if (result == AofLoader::Result::kFailed || result == AofLoader::Result::kStopped) break;
    struct stat status {};
    if (stat((directory + file.name).c_str(), &status) == 0)
      done_bytes += static_cast<uint64_t>(status.st_size);
    if (result == AofLoader::Result::kEmpty) continue;
    const int64_t took_us = server_.clock().monotonic_us() - started_us;
    log.logf(base::LogLevel::kNotice, "DB loaded from %s file %s: %.3f seconds",
             is_base ? "base" : "incr", file.name.c_str(),
             static_cast<double>(took_us) / base::kUsPerSecond);
  }
  if (result == AofLoader::Result::kStopped) return Loading::Result::kStopped;
  if (result == AofLoader::Result::kFailed) return Loading::Result::kFailed;
  file_.set_dataset_bytes(done_bytes);
  rewrite_.set_base_bytes(sizes->base);
  return Loading::Result::kDone;
}

// Sets the replication offset to where the last increment ended.
void Aof::follow_offset() {
  const auto& increments = directory_.manifest().increments();
  if (increments.empty() || increments.back().start_offset < 0) return;
  const AofFile& last = increments.back();
  int64_t offset = last.end_offset;
  if (offset < 0) {
    struct stat status {};
    if (stat(directory_.path_of(last.name).c_str(), &status) != 0) return;
    if (!is_stream_offset(last.start_offset)) return;
    offset = last.start_offset + status.st_size;
  }
  if (is_stream_offset(offset)) server_.set_replication_offset(offset);
}

// --- Opening and closing -------------------------------------------------------------------------

bool Aof::open_at_start() {
  if (!server_.settings().appendonly) return true;
  // appendonly was switched on while a snapshot was being loaded: existing files, if any, belong to
  // another dataset.
  if (!loaded_) return switch_on();
  base::Logger& log = server_.log();
  if (!directory_.create()) return false;
  AofManifest next = directory_.manifest();
  if (next.empty() && !create_base(&next)) return false;
  std::string name;
  const bool is_new = next.increments().empty();
  if (is_new) {
    name = next.add_increment(directory_.next_start_offset());
    log.notice("Creating AOF incr file " + name + " on server start");
  } else {
    name = next.last_increment().name;
    next.last_increment().end_offset = -1;
    log.notice("Opening AOF incr file " + name + " on server start");
  }
  // A new one may have been left behind by a first rewrite that was not finished.
  const int descriptor = directory_.open_for_append(name, /*truncate=*/is_new);
  struct stat status {};
  if (descriptor < 0 || fstat(descriptor, &status) != 0) {
    const int error = errno;
    if (descriptor >= 0) server_.files().close(descriptor);
    log.warning("Can't open the append-only file " + name + ": " + strerror(error));
    log_write_advice(log, directory_.path_of(name), error);
    return false;
  }
  if (next.format() != directory_.manifest().format() && !directory_.replace(std::move(next))) {
    server_.files().close(descriptor);
    return false;
  }
  directory_.collect_history();
  file_.open(descriptor, static_cast<uint64_t>(status.st_size));
  file_.set_dataset_bytes(directory_.dataset_bytes());
  if (rewrite_.base_bytes() == 0) rewrite_.set_base_bytes(file_.dataset_bytes());
  file_.confirm(true);
  file_.start();
  state_ = State::kOn;
  return true;
}

// Creates the first base from the dataset, which is empty or was loaded from a snapshot.
bool Aof::create_base(AofManifest* next) {
  const std::string name = next->add_base(server_.settings().aof_use_rdb_preamble);
  server_.log().notice("Creating AOF base file " + name + " on server start");
  return write_aof_base(server_, directory_.path_of(name), nullptr);
}

base::Result<> Aof::setting_changed() {
  // While the dataset is being loaded or replaced, nothing can be started; open_at_start() or
  // end_replacement() will apply the setting.
  if ((server_.state() & kStateLoading) != 0 || dataset_changes_) return {};
  if (!server_.settings().appendonly) {
    if (enabled() && !is_open_for_backup()) {
      if (stopping_) stopping_();
      switch_off();
    }
    return {};
  }
  // What is open for a backup is the server's file from now on.
  is_open_for_backup_ = false;
  if (!enabled() && !switch_on()) return base::fail("Unable to turn on AOF. Check server logs.");
  return {};
}

bool Aof::switch_on() {
  base::Logger& log = server_.log();
  if (directory_.manifest().empty() && !directory_.load()) return false;
  state_ = State::kWaitForRewrite;
  file_.confirm(false);
  file_.start();
  if (child_.running() && !rewrite_.running()) {
    rewrite_.schedule();
    log.notice(
        "AOF was enabled but there is already another background operation. An AOF background was "
        "scheduled to start when possible.");
    return true;
  }
  if (rewrite_.running()) {
    log.notice(
        "AOF was enabled but there is already an AOF rewriting in background. Stopping background "
        "AOF and starting a rewrite now.");
    rewrite_.cancel();
  }
  if (is_amid_unit(server_)) {
    rewrite_.schedule();
    log.notice(
        "AOF was enabled during a transaction. An AOF background was scheduled to start when "
        "possible.");
    return true;
  }
  if (rewrite_.start(AofRewrite::Purpose::kFirst)) return true;
  file_.stop();
  file_.abandon();
  state_ = State::kOff;
  log.warning(
      "Redis needs to enable the AOF but can't trigger a background AOF rewrite operation. Check "
      "the above logs for more info about the error.");
  return false;
}

void Aof::switch_off() {
  // First, because a first rewrite may have succeeded unseen, which makes the state kOn. If it has
  // not, AofRewrite removes its increment.
  rewrite_.cancel();
  if (state_ == State::kOn) {
    file_.flush(AppendOnlyFile::Wait::kForDisk);
    if (!file_.sync_now())
      server_.log().warning(std::string("Fail to fsync the AOF file: ") + strerror(errno));
    file_.close();
    note_end();
  }
  file_.stop();
  file_.confirm(false);
  state_ = State::kOff;
  waits_.refuse();
}

void Aof::begin_replacement() {
  dataset_changes_ = true;
  tries_left_ = 0;
  if (enabled() && stopping_) stopping_();
  if (enabled()) switch_off();
}

void Aof::end_replacement(const std::string& snapshot) {
  dataset_changes_ = false;
  const ConfigValues& settings = server_.settings();
  if (!snapshot.empty() && settings.appendonly && settings.aof_use_rdb_preamble && !enabled() &&
      server_.edition().has(kNever, {9, 1}) && switch_on_with(snapshot))
    return;
  tries_left_ = kMaxTries;
  try_to_switch_on();
}

void Aof::try_to_switch_on() {
  if (!server_.settings().appendonly || enabled() || switch_on()) {
    tries_left_ = 0;
    return;
  }
  if (--tries_left_ > 0) {
    server_.log().warning(
        "Failed enabling the AOF after successful master synchronization! Trying it again in one "
        "second.");
    next_try_ms_ = server_.machine_ms() + kTryAgainMs;
    return;
  }
  server_.log().warning(
      "FATAL: this replica instance finished the synchronization with its master, but the AOF "
      "can't be turned on. Exiting now.");
  server_.request_stop(1);
}

// Begins the file without a rewrite: its base is the snapshot, by a second name.
bool Aof::switch_on_with(const std::string& snapshot) {
  if (!directory_.create() || (directory_.manifest().empty() && !directory_.load())) return false;
  AofManifest next = directory_.manifest();
  const std::string base = next.add_base(/*as_rdb=*/true);
  next.retire_increments(/*keep_last=*/false);
  const std::string increment = next.add_increment(directory_.next_start_offset());
  base::Logger& log = server_.log();
  const auto failed = [&log](const std::string& what) {
    log.notice("Cannot reuse the RDB file from the master as AOF base file, but will write one: " +
               what);
    return false;
  };
  if (!server_.files().link(snapshot, directory_.path_of(base))) return failed(strerror(errno));
  const int descriptor = directory_.open_for_append(increment, /*truncate=*/true);
  if (descriptor < 0 || !directory_.replace(std::move(next))) {
    const std::string reason = strerror(errno);
    if (descriptor >= 0) server_.files().close(descriptor);
    directory_.discard(base);
    directory_.discard(increment);
    return failed(reason);
  }
  file_.open(descriptor, 0);
  file_.set_dataset_bytes(directory_.dataset_bytes());
  rewrite_.set_base_bytes(file_.dataset_bytes());
  file_.confirm(true);
  file_.start();
  state_ = State::kOn;
  tries_left_ = 0;
  directory_.collect_history();
  log.notice("Reused RDB file from master sync as AOF base file " + base);
  return true;
}

void Aof::note_end() {
  AofManifest next = directory_.manifest();
  if (next.increments().empty() || next.last_increment().start_offset < 0) return;
  next.last_increment().end_offset = server_.replication_offset();
  directory_.replace(std::move(next));
}

bool Aof::prepare_exit(unsigned flags) {
  base::Logger& log = server_.log();
  if (!enabled()) {
    rewrite_.cancel();
    return true;
  }
  // The backup fails when the server ends (Backup), which removes the file.
  if (is_open_for_backup()) return true;
  // Polls because a finished first rewrite must not prevent the exit; a running script may have
  // kept the server from noticing its end.
  child_.poll();
  if (rewrite_.running()) {
    if (state_ == State::kWaitForRewrite) {
      if ((flags & kShutdownForce) == 0) {
        log.warning("Writing initial AOF, can't exit.");
        return false;
      }
      log.warning("Writing initial AOF. Exit anyway.");
    }
    log.warning("There is a child rewriting the AOF. Killing it!");
    rewrite_.cancel();
  }
  if (!file_.is_open()) return true;
  log.notice("Calling fsync() on the AOF file.");
  file_.flush(AppendOnlyFile::Wait::kForDisk);
  if (!file_.sync_now())
    log.warning(std::string("Fail to fsync the AOF file: ") + strerror(errno) + ".");
  if (state_ == State::kOn) note_end();
  return true;
}

// --- Rewriting -----------------------------------------------------------------------------------

AofRewrite::Purpose Aof::purpose() const {
  switch (state_) {
    case State::kOff:
      return AofRewrite::Purpose::kBaseOnly;
    case State::kWaitForRewrite:
      return AofRewrite::Purpose::kFirst;
    case State::kOn:
      break;
  }
  return AofRewrite::Purpose::kReplace;
}

void Aof::rewrite_ended(bool done) {
  if (done && state_ == State::kWaitForRewrite) {
    state_ = State::kOn;
    file_.confirm(true);
  }
  if (rewrite_ended_) rewrite_ended_(done);
}

void Aof::tick() {
  if (enabled()) file_.tick();
  if (tries_left_ > 0 && server_.machine_ms() >= next_try_ms_) try_to_switch_on();
  rewrite_.tick(state_ == State::kOn);
}

void Aof::rewrite_command(CommandContext& ctx) {
  if (rewrite_.running())
    return ctx.reply.error("ERR Background append only file rewriting already in progress");
  if (child_.running() || is_amid_unit(server_) || rewrite_.held()) {
    rewrite_.schedule();
    rewrite_.forget_failures();
    return ctx.reply.status("Background append only file rewriting scheduled");
  }
  if (rewrite_.start(purpose()))
    return ctx.reply.status("Background append only file rewriting started");
  ctx.reply.error(
      "ERR Can't execute an AOF background rewriting. Please check the server logs for more "
      "information.");
}

// --- Backups -------------------------------------------------------------------------------------

base::Result<> Aof::begin_backup() {
  if (dataset_changes_)
    return base::fail("Can't begin the backup while the dataset is being replaced");
  const auto failed = [] {
    return base::fail("Can't begin the backup. Please check the server logs for more information.");
  };
  if (state_ == State::kOff) {
    was_there_before_backup_ = directory_.exists();
    if (!switch_on()) return failed();
    // With appendonly on, the file was to be opened again after a replacement.
    is_open_for_backup_ = !server_.settings().appendonly;
    return {};
  }
  if (rewrite_.running() || rewrite_.scheduled()) return {};
  if (child_.running() || is_amid_unit(server_)) {
    rewrite_.schedule();
    return {};
  }
  if (!rewrite_.start(purpose())) return failed();
  return {};
}

bool Aof::is_open_for_backup() const {
  // CONFIG SET appendonly is stored before setting_changed() acts on it, which waits for a load.
  return is_open_for_backup_ && !server_.settings().appendonly;
}

void Aof::end_backup() {
  rewrite_.hold(false);
  const bool must_close = is_open_for_backup();
  is_open_for_backup_ = false;
  if (!must_close) return;
  switch_off();
  if (!was_there_before_backup_) directory_.remove_all();
}

bool Aof::sync() {
  file_.flush(AppendOnlyFile::Wait::kForDisk);
  return file_.buffered_bytes() == 0 && file_.sync_now();
}

// --- Figures -------------------------------------------------------------------------------------

void Aof::describe(AofFigures* figures) const {
  figures->enabled = enabled() && !is_open_for_backup();
  figures->last_write_ok = !file_.has_problem();
  figures->current_bytes = file_.dataset_bytes();
  figures->buffered_bytes = file_.buffered_bytes();
  figures->buffer_memory = file_.memory_usage();
  figures->pending_syncs = file_.pending_syncs();
  figures->delayed_syncs = file_.delayed_syncs();
  figures->flush_us = server_.cycle_clock().to_us(file_.flush_ticks());
  rewrite_.describe(figures);
}

}  // namespace latchkey::persist
