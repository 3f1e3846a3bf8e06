#include "persist/snapshots.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/time_units.h"
#include "persist/background_child.h"
#include "persist/disk_faults.h"
#include "persist/persistence.h"
#include "persist/snapshot_file.h"
#include "server/client/client.h"
#include "server/command/command_context.h"
#include "server/command/dispatcher.h"
#include "server/observe/info.h"
#include "server/process/shutdown.h"
#include "server/server.h"

namespace latchkey::persist {

using namespace server;

namespace {

constexpr int64_t kRetryAfterSeconds = 5;

constexpr char kCannotSave[] =
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to "
    "disk. Commands that may modify the data set are disabled, because this instance is configured "
    "to report errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error "
    "option). Please check the Redis logs for details about the RDB error.";
constexpr char kInProgress[] = "ERR Background save already in progress";

}  // namespace

Snapshots::Snapshots(Server& server, BackgroundChild& child)
    : server_(server), child_(child), last_save_s_(now_s()), shown_save_s_(shown_now_s()) {
  server.config().on_change({"save", "stop-writes-on-bgsave-error"}, [this] { update_refusal(); });
  server.shutdown().before_exit([this](unsigned flags) { return prepare_exit(flags); });
  server.hooks().dataset_flushed.add([this] { dataset_flushed(); });
}

int64_t Snapshots::now_s() const {
  return server_.machine_ms() / base::kMsPerSecond;
}

int64_t Snapshots::shown_now_s() const {
  return server_.data_clock().wall_us() / base::kUsPerSecond;
}

uint64_t Snapshots::changes() const {
  return server_.events().total() - saved_total_;
}

bool Snapshots::running() const {
  return child_.running(ChildKind::kRdbToDisk);
}

// --- Writing them --------------------------------------------------------------------------------

bool Snapshots::save() {
  const std::string temporary = temporary_snapshot(server_, getpid());
  server_.shutdown().remove_when_interrupted(temporary);
  const bool done =
      write_snapshot(server_, server_.settings().dbfilename, nullptr, injected_file_error(server_));
  server_.shutdown().remove_when_interrupted({});
  if (done) saved(server_.events().total(), now_s());
  return done;
}

bool Snapshots::start(std::function<void(bool saved)> done) {
  ++saves_;
  last_try_s_ = now_s();
  const uint64_t changes_total = server_.events().total();
  // Asked here, because the child's counts are lost with it.
  const int injected = injected_file_error(server_);
  const base::Result<> started = child_.start(
      {.kind = ChildKind::kRdbToDisk,
       .keys_total = server_.key_count(),
       .work =
           [this, injected](ChildProgress& progress) {
             return write_snapshot(server_, server_.settings().dbfilename, &progress, injected);
           },
       .ended =
           [this, changes_total, done = std::move(done)](const ChildEnd& end) {
             ended(end, changes_total);
             if (done) done(end.done);
           }});
  if (!started) {
    server_.log().warning("Can't save in background: " + started.error());
    set_ok(false);
    return false;
  }
  server_.log().notice("Background saving started by pid " + std::to_string(child_.pid()));
  return true;
}

void Snapshots::ended(const ChildEnd& end, uint64_t changes_total) {
  base::Logger& log = server_.log();
  last_duration_s_ = end.duration_s;
  if (end.done) {
    last_copied_bytes_ = end.copied_bytes;
    log.notice("Background saving terminated with success");
    return saved(changes_total, now_s());
  }
  if (end.signal == 0) {
    log.warning("Background saving error");
    return set_ok(false);
  }
  log.warning("Background saving terminated by signal " + std::to_string(end.signal));
  remove_temporary_snapshot(server_, end.pid);
  // A child that the server itself stopped does not count as a failure.
  if (end.signal != SIGUSR1) set_ok(false);
}

void Snapshots::saved(uint64_t changes_total, int64_t at_s) {
  // A child may have ended before the server itself wrote a later snapshot, and be noticed only
  // after that.
  saved_total_ = std::max(saved_total_, changes_total);
  last_save_s_ = at_s;
  shown_save_s_ = shown_now_s();
  set_ok(true);
}

void Snapshots::set_ok(bool ok) {
  ok_ = ok;
  failures_in_a_row_ = ok ? 0 : failures_in_a_row_ + 1;
  update_refusal();
}

void Snapshots::update_refusal() {
  const ConfigValues& settings = server_.settings();
  const bool refuse = !ok_ && settings.stop_writes_on_bgsave_error && !settings.save.empty();
  server_.set_disk_error(DiskError::kSnapshot, refuse ? kCannotSave : "");
}

void Snapshots::reset_changes() {
  saved_total_ = server_.events().total();
}

void Snapshots::abandon() {
  if (child_.writes_rdb()) child_.kill();
}

// --- When they are written -----------------------------------------------------------------------

bool Snapshots::may_try(int64_t at_s) const {
  return ok_ || at_s - last_try_s_ > kRetryAfterSeconds;
}

bool Snapshots::is_due(int64_t at_s) const {
  const auto& points = server_.settings().save;
  const auto due = std::find_if(points.begin(), points.end(), [&](const SavePoint& point) {
    return changes() >= static_cast<uint64_t>(point.changes) && at_s - last_save_s_ > point.seconds;
  });
  if (due == points.end() || !may_try(at_s)) return false;
  server_.log().notice(std::to_string(due->changes) + " changes in " +
                       std::to_string(due->seconds) + " seconds. Saving...");
  return true;
}

void Snapshots::tick() {
  if (child_.running()) return;
  const int64_t at_s = now_s();
  if (!is_due(at_s) && !(scheduled_ && may_try(at_s))) return;
  if (start()) scheduled_ = false;
}

bool Snapshots::prepare_exit(unsigned flags) {
  base::Logger& log = server_.log();
  if (child_.writes_rdb()) {
    log.warning("There is a child saving an .rdb. Killing it!");
    child_.kill_and_wait();
  }
  const bool wanted = (flags & kShutdownSave) != 0 ||
                      (!server_.settings().save.empty() && (flags & kShutdownNosave) == 0);
  if (!wanted) return true;
  log.notice("Saving the final RDB snapshot before exiting.");
  if (save()) return true;
  log.warning((flags & kShutdownForce) != 0 ? "Error trying to save the DB. Exit anyway."
                                            : "Error trying to save the DB, can't exit.");
  return false;
}

void Snapshots::dataset_flushed() {
  // The dataset that the child writes is obsolete.
  abandon();
  if (!server_.settings().save.empty()) save();
}

// --- Commands ------------------------------------------------------------------------------------

void Snapshots::save_command(CommandContext& ctx) {
  if (child_.writes_rdb()) return ctx.reply.error(kInProgress);
  ++saves_;
  if (!save()) return ctx.reply.error("ERR");
  ctx.reply.ok();
}

void Snapshots::start_command(CommandContext& ctx) {
  bool may_schedule = false;
  if (ctx.args.size() > 1) {
    if (ctx.args.size() == 2 && is_word(ctx.args[1], "CANCEL")) return cancel_command(ctx);
    if (ctx.args.size() > 2 || !is_word(ctx.args[1], "SCHEDULE")) return ctx.syntax_error();
    may_schedule = true;
  }
  if (child_.writes_rdb()) return ctx.reply.error(kInProgress);
  // A fork in the middle of a transaction would save half of it.
  const bool in_transaction = server_.dispatcher().in_nested_call();
  if (child_.running() || in_transaction) {
    if (!may_schedule && !in_transaction) {
      return ctx.reply.error(
          "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE "
          "in order to schedule a BGSAVE whenever possible.");
    }
    schedule();
    return ctx.reply.status("Background saving scheduled");
  }
  if (!start()) return ctx.reply.error("ERR");
  ctx.reply.status("Background saving started");
}

void Snapshots::cancel_command(CommandContext& ctx) {
  if (running()) {
    child_.kill();
    return ctx.reply.status("Background saving cancelled");
  }
  if (std::exchange(scheduled_, false))
    return ctx.reply.status("Scheduled background saving cancelled");
  ctx.reply.error("ERR Background saving is currently not in progress or scheduled");
}

void Snapshots::last_save_command(CommandContext& ctx) {
  ctx.reply.integer(shown_save_s_);
}

// --- Figures -------------------------------------------------------------------------------------

void Snapshots::describe(PersistenceFigures* figures) const {
  figures->changes_since_save = changes();
  // Saving to a file, or sending to replicas.
  figures->saving = running() || child_.running(ChildKind::kRdbToSocket);
  figures->last_save_s = shown_save_s_;
  figures->last_save_ok = ok_;
  figures->last_save_duration_s = last_duration_s_;
  figures->save_duration_s = running() ? child_.figures().duration_s : -1;
  figures->saves = saves_;
  figures->save_failures_in_a_row = failures_in_a_row_;
  figures->last_save_copied_bytes = last_copied_bytes_;
}

}  // namespace latchkey::persist
