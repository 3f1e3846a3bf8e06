#include "persist/snapshot_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/file.h"
#include "persist/background_child.h"
#include "persist/key_delay.h"
#include "persist/rdb/rdb_file.h"
#include "server/process/write_advice.h"
#include "server/replication_history.h"
#include "server/server.h"

namespace latchkey::persist {

namespace {

std::string root_directory(server::Server& server) {
  const std::string current = server.config().directory().current();
  return current.empty() ? "unknown" : current;
}

}  // namespace

WriteOptions child_write_options(server::Server& server, ChildProgress* progress) {
  WriteOptions options = write_options(server);
  const int delay_us = server.settings().rdb_key_save_delay;
  if (progress != nullptr && delay_us > 0) progress->expect_slow_keys();
  if (progress == nullptr && delay_us == 0) return options;
  options.after_key = [progress, delay_us](uint64_t keys) {
    if (progress != nullptr) progress->key_written();
    delay_key(delay_us, keys);
    return true;
  };
  return options;
}

void add_stream_place(const server::StreamPlace& place, WriteOptions* options) {
  options->aux = {{"repl-stream-db", std::to_string(place.database)},
                  {"repl-id", place.id},
                  {"repl-offset", std::to_string(place.offset)}};
}

namespace {

// Returns the name of the failed step, or null; errno has the reason.
const char* write_file(server::Server& server, int descriptor, ChildProgress* progress,
                       int injected) {
  if (injected != 0) {
    errno = injected;
    return injected == ENOSPC ? "rdbSaveRio" : "fsync";
  }
  const bool sync_on_the_way = server.settings().rdb_save_incremental_fsync;
  DescriptorSink sink(server.files(), descriptor, sync_on_the_way ? DescriptorSink::kSyncEvery : 0);
  WriteOptions options = child_write_options(server, progress);
  if (const auto place = server.figures().stream_place()) add_stream_place(*place, &options);
  WriteOptions::Tally tally;
  options.tally = &tally;
  if (!write_dataset(sink, server, options)) {
    errno = sink.error();
    return "rdbSaveRio";
  }
  server.log().notice("BGSAVE done, " + std::to_string(tally.saved) + " keys saved, " +
                      std::to_string(tally.skipped) + " keys skipped, " +
                      std::to_string(sink.bytes_written()) + " bytes written.");
  return server.files().sync(descriptor) ? nullptr : "fsync";
}

}  // namespace

std::string temporary_snapshot(server::Server& server, pid_t pid) {
  return server.config().directory().path_of("temp-" + std::to_string(pid) + ".rdb");
}

void remove_temporary_snapshot(server::Server& server, pid_t pid) {
  server.files().remove(temporary_snapshot(server, pid));
}

bool write_snapshot(server::Server& server, const std::string& name, ChildProgress* progress,
                    int injected) {
  base::Logger& log = server.log();
  const std::string place = server.config().directory().path_of(name);
  const std::string temporary = temporary_snapshot(server, getpid());
  if (progress != nullptr) progress->remove_if_orphaned(temporary);
  const char* shown = temporary.c_str() + (temporary.rfind('/') + 1);
  base::FileSystem& files = server.files();
  const int descriptor = files.open(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (descriptor < 0) {
    const int error = errno;
    log.logf(base::LogLevel::kWarning,
             "Failed opening the temp RDB file %s (in server root dir %s) for saving: %s", shown,
             root_directory(server).c_str(), strerror(error));
    server::log_write_advice(log, temporary, error);
    return false;
  }
  const char* failed = write_file(server, descriptor, progress, injected);
  int error = errno;
  if (!files.close(descriptor) && failed == nullptr) {
    failed = "fclose";
    error = errno;
  }
  if (failed != nullptr) {
    log.logf(base::LogLevel::kWarning, "Write error while saving DB to the disk(%s): %s", failed,
             strerror(error));
    files.remove(temporary);
    server::log_write_advice(log, temporary, error);
    return false;
  }
  if (!files.rename(temporary, place)) {
    log.logf(base::LogLevel::kWarning,
             "Error moving temp DB file %s on the final destination %s (in server root dir %s): %s",
             shown, name.c_str(), root_directory(server).c_str(), strerror(errno));
    files.remove(temporary);
    return false;
  }
  if (!base::sync_directory_of(place, files)) {
    log.logf(base::LogLevel::kWarning, "Write error while saving DB to the disk(%s): %s",
             "fsyncFileDir", strerror(errno));
    return false;
  }
  log.notice("DB saved on disk");
  return true;
}

}  // namespace latchkey::persist
