#include "replication/child_snapshots.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "persist/byte_stream.h"
#include "persist/persistence.h"
#include "persist/rdb_file.h"
#include "persist/snapshot_file.h"
#include "server/server.h"

namespace latchkey::replication {

namespace {

size_t count_keys(server::Server& server) {
  size_t keys = 0;
  for (int i = 0; i < server.database_count(); ++i) keys += server.database(i).size();
  return keys;
}

void add_place(const SnapshotPlace& place, persist::WriteOptions* options) {
  options->aux = {{"repl-stream-db", std::to_string(place.database)},
                  {"repl-id", place.replication_id},
                  {"repl-offset", std::to_string(place.offset)}};
  options->with_keys = !place.without_keys;
  options->with_functions = !place.without_functions;
}

// In the child: signals the end of the data, and waits until the server has read it.
void end_pipe(int pipe) {
  shutdown(pipe, SHUT_WR);
  char byte;
  while (read(pipe, &byte, 1) < 0 && errno == EINTR) {
  }
}

}  // namespace

bool ChildSnapshots::is_busy() const {
  return persistence_.child().running();
}

bool ChildSnapshots::begin_file(const SnapshotPlace&, Done done) {
  return persistence_.snapshots().start(std::move(done));
}

std::string ChildSnapshots::path() const {
  return server_.config().directory().path_of(server_.settings().dbfilename);
}

bool ChildSnapshots::begin_pipe(const SnapshotPlace& place, int pipe, Done done) {
  const auto write = [this, place, pipe](persist::ChildProgress& progress) {
    persist::WriteOptions options = persist::child_write_options(server_, &progress);
    add_place(place, &options);
    persist::DescriptorSink sink(base::disk(), pipe);
    if (persist::write_dataset(sink, server_, options)) {
      end_pipe(pipe);
      return true;
    }
    server_.log().warning("Write error sending DB to replicas: " +
                          std::string(strerror(sink.error())));
    return false;
  };
  const auto ended = [this, done = std::move(done)](const persist::ChildEnd& end) {
    if (end.done) {
      server_.log().notice("Background RDB transfer terminated with success");
    } else if (end.signal != 0) {
      server_.log().warning("Background transfer terminated by signal " +
                            std::to_string(end.signal));
    } else {
      server_.log().warning("Background transfer error");
    }
    done(end.done);
  };
  std::string error;
  if (!persistence_.child().start({.kind = persist::ChildKind::kRdbToSocket,
                                   .keys_total = count_keys(server_),
                                   .work = write,
                                   .ended = ended,
                                   .keep_open = {pipe}},
                                  &error)) {
    server_.log().warning("Can't save in background: " + error);
    return false;
  }
  server_.log().notice("Background RDB transfer started by pid " +
                       std::to_string(persistence_.child().pid()) + " to parent process pipe");
  return true;
}

void ChildSnapshots::abandon() {
  persistence_.snapshots().abandon();
}

}  // namespace latchkey::replication
