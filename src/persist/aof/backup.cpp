#include "persist/aof/backup.h"

#include <dirent.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/time_units.h"
#include "persist/aof/aof_directory.h"
#include "server/command/command_context.h"
#include "server/process/shutdown.h"
#include "server/server.h"

namespace latchkey::persist {

using namespace server;

namespace {

// True also when it cannot be read.
bool has_files(const std::string& directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(directory.c_str()), closedir);
  if (open == nullptr) return true;
  while (const dirent* entry = readdir(open.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") return true;
  }
  return false;
}

}  // namespace

Backup::Backup(Server& server, Aof& aof) : server_(server), aof_(aof) {
  aof_.on_rewrite_ended([this](bool done) { rewrite_ended(done); });
  aof_.on_stopping([this] {
    if (in_progress()) fail("appendonly is stopped");
  });
  server.config().check_change({"dir"}, [this] { return check_directory_change(); });
  // Not before_exit(), after which the exit may still be refused.
  server.shutdown().before_leaving([this](unsigned) {
    if (in_progress()) fail("the server is shutting down");
  });
}

bool Backup::in_progress() const {
  return state_ == State::kPending || state_ == State::kSnapshotting ||
         state_ == State::kIncrementing;
}

std::string Backup::path_of(const std::string& name) const {
  return server_.config().directory().path_of(server_.settings().backupdirname + "/" + name);
}

int64_t Backup::now_s() const {
  return server_.machine_ms() / base::kMsPerSecond;
}

int64_t Backup::shown_s(int64_t at_s) const {
  return at_s == 0 ? 0 : server_.shown_ms(at_s * base::kMsPerSecond) / base::kMsPerSecond;
}

// --- Its course ---------------------------------------------------------------------------------

void Backup::tick() {
  if (state_ == State::kPending && aof_.rewrite().running()) state_ = State::kSnapshotting;
  const int64_t kept_s = server_.settings().backup_sealed_ttl;
  if (state_ == State::kSealed && kept_s > 0 && now_s() - sealed_s_ >= kept_s) {
    server_.log().notice("Removing the sealed backup, which is as old as backup-sealed-ttl says");
    remove_files();
    state_ = State::kIdle;
  }
}

void Backup::rewrite_ended(bool done) {
  if (state_ != State::kPending && state_ != State::kSnapshotting) return;
  if (!done) return fail("the append-only file could not be rewritten");
  const auto& base_file = aof_.manifest().base();
  if (!base_file) return fail("the append-only file has no base");
  if (base::Result<> linked = link(base_file->name); !linked)
    return fail(std::move(linked).error());
  aof_.rewrite().hold(true);
  state_ = State::kIncrementing;
  server_.log().notice("Backup: the base is complete, writes are added until BACKUP SEAL");
}

void Backup::fail(std::string reason) {
  server_.log().warning("Backup failed: " + reason);
  remove_files();
  error_ = std::move(reason);
  state_ = State::kFailed;
  aof_.end_backup();
}

base::Result<> Backup::check_directory_change() const {
  if (in_progress()) return base::fail("a backup is in progress");
  if (state_ == State::kSealed)
    return base::fail("the last backup is sealed, call BACKUP CLEANUP first");
  return {};
}

base::Result<> Backup::seal() {
  if (!aof_.sync()) return base::fail("the append-only file could not be synced");
  AofManifest sealed = aof_.manifest();
  sealed.take_history();
  for (const AofFile& increment : sealed.increments())
    if (base::Result<> linked = link(increment.name); !linked) return linked;
  const std::string name = server_.settings().appendfilename + ".manifest";
  // Named before, for it may be there although its directory could not be synced.
  files_.push_back(name);
  if (!base::replace_file(path_of(name), sealed.format(), server_.files()))
    return base::fail("the manifest could not be written: " + std::string(strerror(errno)));
  // What is linked must not grow.
  if (!aof_.is_open_for_backup() && !aof_.rewrite().rotate())
    return base::fail("no other increment could be opened");
  return {};
}

// --- Files --------------------------------------------------------------------------------------

base::Result<> Backup::take_directory() const {
  const std::string& name = server_.settings().backupdirname;
  const std::string path = server_.config().directory().path_of(name);
  if (!server_.files().create_directory(path, kDirectoryMode) && errno != EEXIST)
    return base::fail("Can't create the backup directory " + name + ": " + strerror(errno));
  if (has_files(path)) return base::fail("Backup directory " + name + " is not empty");
  return {};
}

base::Result<> Backup::link(const std::string& name) {
  if (server_.files().link(aof_.path_of(name), path_of(name)) &&
      base::sync_directory_of(path_of(name), server_.files())) {
    files_.push_back(name);
    return {};
  }
  std::string error = "the file " + name + " could not be linked: " + strerror(errno);
  server_.files().remove(path_of(name));
  return base::fail(std::move(error));
}

void Backup::remove_files() {
  for (const std::string& name : files_) {
    if (server_.files().remove(path_of(name)) || errno == ENOENT) continue;
    server_.log().warning("Can't remove the file " + name + " of a backup: " + strerror(errno));
  }
  files_.clear();
}

// --- Commands -----------------------------------------------------------------------------------

void Backup::start_command(CommandContext& ctx) {
  if (in_progress()) return ctx.reply.error("ERR Backup already in progress");
  if (state_ == State::kSealed)
    return ctx.reply.error("ERR The last backup is sealed, call BACKUP CLEANUP first");
  if (const base::Result<> taken = take_directory(); !taken)
    return ctx.reply.error("ERR " + taken.error());
  if (const base::Result<> begun = aof_.begin_backup(); !begun)
    return ctx.reply.error("ERR " + begun.error());
  error_.clear();
  started_s_ = now_s();
  sealed_s_ = 0;
  state_ = aof_.rewrite().running() ? State::kSnapshotting : State::kPending;
  ctx.reply.ok();
}

void Backup::seal_command(CommandContext& ctx) {
  if (state_ != State::kIncrementing) return ctx.reply.error("ERR No backup ready to seal");
  if (const base::Result<> sealed = seal(); !sealed) {
    fail(sealed.error());
    return ctx.reply.error("ERR Backup failed: " + sealed.error());
  }
  state_ = State::kSealed;
  sealed_s_ = now_s();
  aof_.end_backup();
  server_.log().notice("Backup: sealed");
  ctx.reply.ok();
}

void Backup::abort_command(CommandContext& ctx) {
  if (!in_progress()) return ctx.reply.error("ERR No backup in progress");
  fail("aborted by user");
  ctx.reply.ok();
}

void Backup::cleanup_command(CommandContext& ctx) {
  if (in_progress())
    return ctx.reply.error("ERR Backup in progress, call BACKUP SEAL or BACKUP ABORT first");
  remove_files();
  state_ = State::kIdle;
  error_.clear();
  started_s_ = 0;
  sealed_s_ = 0;
  ctx.reply.ok();
}

void Backup::status_command(CommandContext& ctx) const {
  constexpr std::string_view kNames[] = {"idle",         "pending", "snapshotting",
                                         "incrementing", "sealed",  "failed"};
  ctx.reply.map(4);
  ctx.reply.bulk("state");
  ctx.reply.bulk(kNames[static_cast<size_t>(state_)]);
  ctx.reply.bulk("error");
  ctx.reply.bulk(error_);
  ctx.reply.bulk("start_time");
  ctx.reply.bulk(std::to_string(shown_s(started_s_)));
  ctx.reply.bulk("end_time");
  ctx.reply.bulk(std::to_string(shown_s(sealed_s_)));
}

void Backup::list_command(CommandContext& ctx) const {
  const std::string directory =
      server_.config().directory().current() + "/" + server_.settings().backupdirname + "/";
  ctx.reply.array(files_.size());
  for (const std::string& name : files_) ctx.reply.bulk(directory + name);
}

}  // namespace latchkey::persist
