#include "persist/aof/aof_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/file.h"
#include "server/process/write_advice.h"
#include "server/server.h"

namespace latchkey::persist {

namespace {

bool is_there(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0;
}

bool is_directory(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::string error_text() {
  return strerror(errno);
}

}  // namespace

AofDirectory::AofDirectory(server::Server& server, base::Worker& worker)
    : server_(server), worker_(worker), manifest_(server.settings().appendfilename) {}

std::string AofDirectory::path_of(std::string_view name) const {
  return path_beside(server_.settings().appenddirname + "/" + std::string(name));
}

std::string AofDirectory::path_beside(std::string_view name) const {
  return server_.config().directory().path_of(std::string(name));
}

std::string AofDirectory::manifest_name() const {
  return server_.settings().appendfilename + ".manifest";
}

bool AofDirectory::exists() const {
  return is_directory(path_beside(server_.settings().appenddirname));
}

void AofDirectory::remove_all() {
  base::FileSystem& files = server_.files();
  std::vector<AofFile> named = manifest_.take_history();
  if (manifest_.base()) named.push_back(*manifest_.base());
  named.insert(named.end(), manifest_.increments().begin(), manifest_.increments().end());
  // The manifest first: without it the other files are not loaded as a dataset.
  files.remove(manifest_path());
  for (const AofFile& file : named) files.remove(path_of(file.name));
  rmdir(path_beside(server_.settings().appenddirname).c_str());
  manifest_ = AofManifest(server_.settings().appendfilename);
}

bool AofDirectory::create() {
  const std::string& name = server_.settings().appenddirname;
  const std::string path = path_beside(name);
  const bool created = server_.files().create_directory(path, kDirectoryMode);
  const int error = errno;
  if (created || (error == EEXIST && is_directory(path))) {
    // One that was there may have been created by a server that could not sync it.
    if (base::sync_directory_of(path, server_.files())) return true;
    server_.log().warning("Fail to fsync the directory of append-only dir " + name + ": " +
                          error_text() + ".");
    return false;
  }
  server_.log().warning("Can't open or create append-only dir " + name + ": " + strerror(error));
  server::log_write_advice(server_.log(), server_.config().directory().current(), error);
  return false;
}

bool AofDirectory::load() {
  base::Logger& log = server_.log();
  manifest_ = AofManifest(server_.settings().appendfilename);
  const std::string& directory = server_.settings().appenddirname;
  if (!is_directory(path_beside(directory))) {
    log.debug("The AOF directory " + directory + " doesn't exist");
    return true;
  }
  if (!is_there(path_of(manifest_name()))) {
    log.debug("The AOF manifest file " + manifest_name() + " doesn't exist");
    number_after_existing_files();
    return true;
  }
  const auto text =
      base::read_within(path_of(manifest_name()), {.pipe_patience_ms = 0}, server_.files());
  if (!text) {
    log.warning("Fatal error: can't open the AOF manifest file " + manifest_name() +
                " for reading: " + base::read_error_text(errno));
    return false;
  }
  const base::Result<void, AofManifestError> parsed = manifest_.parse(*text);
  if (parsed) return true;
  for (const std::string& line : parsed.error().log_lines()) log.warning(line);
  return false;
}

void AofDirectory::number_after_existing_files() {
  std::error_code error;
  size_t files = 0;
  bool any_writes = false;
  AofManifest next = manifest_;
  const std::filesystem::path directory = path_beside(server_.settings().appenddirname);
  // Without exceptions, also where the directory cannot be read to its end.
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!next.number_after(name)) continue;
    ++files;
    std::error_code unknown;
    any_writes |= name.ends_with(".incr.aof") && entry->file_size(unknown) > 0;
  }
  // Otherwise a server that was to begin with them has not come to its manifest.
  if (!any_writes) return;
  manifest_ = std::move(next);
  server_.log().warning("The AOF directory " + server_.settings().appenddirname + " has " +
                        std::to_string(files) +
                        " files of a dataset, but no manifest that says in which order they are "
                        "loaded. They are not loaded, and stay as they are.");
}

bool AofDirectory::replace(AofManifest next) {
  const Saved saved = save(next);
  if (saved == Saved::kNotSynced) restore_manifest();
  if (saved != Saved::kYes) return false;
  manifest_ = std::move(next);
  is_in_doubt_ = false;
  return true;
}

// Puts the manifest back that was there before one that could not be made durable.
void AofDirectory::restore_manifest() {
  if (manifest_.empty() && manifest_.history().empty()) {
    is_in_doubt_ = !server_.files().remove(manifest_path()) || !sync();
  } else {
    is_in_doubt_ = save(manifest_) != Saved::kYes;
  }
}

AofDirectory::Saved AofDirectory::save(const AofManifest& manifest) const {
  base::Logger& log = server_.log();
  base::FileSystem& files = server_.files();
  const std::string temporary = "temp-" + manifest_name();
  const int descriptor = files.open(path_of(temporary), O_WRONLY | O_CREAT | O_TRUNC, kFileMode);
  if (descriptor < 0) {
    log.warning("Can't open the AOF manifest file " + temporary + ": " + error_text());
    return Saved::kNo;
  }
  bool saved = base::write_all(descriptor, manifest.format(), files);
  if (!saved) {
    log.warning("Error trying to write the temporary AOF manifest file " + temporary + ": " +
                error_text());
  } else if (!files.sync(descriptor)) {
    log.warning("Fail to fsync the temp AOF file " + temporary + ": " + error_text() + ".");
    saved = false;
  }
  files.close(descriptor);
  if (!saved) return Saved::kNo;
  if (!files.rename(path_of(temporary), path_of(manifest_name()))) {
    log.warning("Error trying to rename the temporary AOF manifest file " + temporary + " into " +
                manifest_name() + ": " + error_text());
    return Saved::kNo;
  }
  if (!sync()) {
    log.warning("Fail to fsync AOF directory " + path_of(manifest_name()) + ": " + error_text() +
                ".");
    return Saved::kNotSynced;
  }
  return Saved::kYes;
}

bool AofDirectory::sync() const {
  return base::sync_directory(path_beside(server_.settings().appenddirname), server_.files());
}

bool AofDirectory::old_file_must_move() const {
  const std::string& name = server_.settings().appendfilename;
  if (!is_there(path_beside(name)) || is_directory(path_beside(name))) return false;
  const bool never_moved = !is_directory(path_beside(server_.settings().appenddirname)) ||
                           !is_there(path_of(manifest_name()));
  // A move was begun, but the file is not in the directory yet.
  const bool half_moved = manifest_.base() && manifest_.base()->name == name &&
                          manifest_.increments().empty() && !is_there(path_of(name));
  return never_moved || half_moved;
}

bool AofDirectory::migrate_old_file() {
  if (!old_file_must_move()) return true;
  const std::string& name = server_.settings().appendfilename;
  const std::string& directory = server_.settings().appenddirname;
  if (!create()) return false;
  // Write the manifest first: if the move fails, the next start completes it.
  AofManifest next = manifest_;
  if (!next.base()) next.add_base_named(name);
  if (!replace(std::move(next))) return false;
  if (!server_.files().rename(path_beside(name), path_of(name))) {
    server_.log().warning("Error trying to move the old AOF file " + name + " into dir " +
                          directory + ": " + error_text());
    return false;
  }
  // Before its former directory is synced, which would have it in neither.
  if (!sync()) {
    server_.log().warning("Fail to fsync AOF directory " + directory + ": " + error_text() + ".");
    return false;
  }
  server_.log().notice("Successfully migrated an old-style AOF file (" + name +
                       ") into the AOF directory (" + directory + ").");
  return true;
}

int AofDirectory::open_for_append(std::string_view name, bool truncate) const {
  return server_.files().open(path_of(name),
                              O_WRONLY | O_APPEND | O_CREAT | (truncate ? O_TRUNC : 0), kFileMode);
}

uint64_t AofDirectory::dataset_bytes() const {
  uint64_t bytes = 0;
  const auto add = [&](const AofFile& file) {
    struct stat status {};
    if (stat(path_of(file.name).c_str(), &status) == 0)
      bytes += static_cast<uint64_t>(status.st_size);
  };
  if (manifest_.base()) add(*manifest_.base());
  for (const AofFile& file : manifest_.increments()) add(file);
  return bytes;
}

int64_t AofDirectory::next_start_offset() const {
  return server_.edition().has({8, 0}) ? server_.replication_offset() : -1;
}

bool AofDirectory::collect_history() {
  if (server_.settings().aof_disable_auto_gc || manifest_.history().empty()) return true;
  AofManifest next = manifest_;
  std::vector<AofFile> history = next.take_history();
  // A manifest that was written by hand may name the same file twice, or itself.
  std::erase_if(history, [&](const AofFile& file) {
    return next.names(file.name) || file.name == manifest_name();
  });
  for (const AofFile& file : history) {
    server_.log().notice("Removing the history file " + file.name + " in the background");
  }
  // Replace the manifest on disk before removing the files it named.
  if (!replace(std::move(next))) return false;
  for (const AofFile& file : history) remove_in_background(file.name);
  return true;
}

bool AofDirectory::discard(std::string_view name) {
  if (is_in_doubt_) return false;
  remove_in_background(name);
  return true;
}

void AofDirectory::remove_in_background(std::string_view name) {
  // The name is removed at once, since it may be reused; closing the last descriptor frees the
  // blocks, which is slow for a large file.
  const std::string path = path_of(name);
  base::FileSystem& files = server_.files();
  const int descriptor = files.open(path, O_RDONLY | O_NONBLOCK, 0);
  files.remove(path);
  if (descriptor >= 0) worker_.run([descriptor, &files] { files.close(descriptor); });
}

}  // namespace latchkey::persist
