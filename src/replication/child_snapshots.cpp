#include "replication/child_snapshots.h"

#include <cstring>
#include <utility>

#include "persist/persistence.h"
#include "persist/rdb/byte_stream.h"
#include "persist/rdb/rdb_file.h"
#include "persist/snapshot_file.h"
#include "replication/child_pipe.h"
#include "replication/socket_sink.h"
#include "server/server.h"

namespace latchkey::replication {

namespace {

void add_place(const SnapshotPlace& place, persist::WriteOptions* options) {
  persist::add_stream_place({.id = place.replication_id,
                             .offset = static_cast<int64_t>(place.offset),
                             .database = place.database},
                            options);
  options->with_keys = !place.without_keys;
  options->with_functions = !place.without_functions;
}

}  // namespace

bool ChildSnapshots::is_busy() const {
  return persistence_.child().running();
}

bool ChildSnapshots::begin_file(const SnapshotPlace&, Done done) {
  const std::string directory = server_.config().directory().current();
  path_ = server_.settings().dbfilename;
  if (!directory.empty()) path_.insert(0, directory + "/");
  return persistence_.snapshots().start(std::move(done));
}

bool ChildSnapshots::write(persist::ByteSink& sink, const SnapshotPlace& place,
                           persist::ChildProgress& progress) {
  persist::WriteOptions options = persist::child_write_options(server_, &progress);
  add_place(place, &options);
  if (persist::write_dataset(sink, server_, options)) return true;
  server_.log().warning("Write error sending DB to replicas: " +
                        std::string(strerror(sink.error())));
  return false;
}

bool ChildSnapshots::begin_pipe(const SnapshotPlace& place, int pipe, Done done) {
  const auto work = [this, place, pipe](persist::ChildProgress& progress) {
    persist::DescriptorSink sink(base::disk(), pipe);
    if (!write(sink, place, progress)) return false;
    ChildPipe::end(pipe);
    return true;
  };
  return start(work, {pipe}, std::move(done), "parent process pipe");
}

bool ChildSnapshots::begin_sockets(const SnapshotPlace& place, Receivers receivers, Done done) {
  const auto work = [this, place, receivers](persist::ChildProgress& progress) {
    SharedSocketSink sink(receivers.sockets, receivers.timeout_ms);
    sink.write("$EOF:" + receivers.mark + "\r\n");
    // Not kept back while the first keys are written.
    sink.flush();
    if (!write(sink, place, progress)) return false;
    sink.write(receivers.mark);
    return sink.flush();
  };
  return start(work, receivers.sockets, std::move(done), "direct socket to replica");
}

bool ChildSnapshots::start(std::function<bool(persist::ChildProgress&)> work,
                           std::vector<int> keep_open, Done done, const char* where) {
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
  const base::Result<> started =
      persistence_.child().start({.kind = persist::ChildKind::kRdbToSocket,
                                  .keys_total = server_.key_count(),
                                  .work = std::move(work),
                                  .ended = ended,
                                  .keep_open = std::move(keep_open)});
  if (!started) {
    server_.log().warning("Can't save in background: " + started.error());
    return false;
  }
  server_.log().notice("Background RDB transfer started by pid " +
                       std::to_string(persistence_.child().pid()) + " to " + where);
  return true;
}

void ChildSnapshots::abandon() {
  persistence_.snapshots().abandon();
}

}  // namespace latchkey::replication
