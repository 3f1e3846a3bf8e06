#include "simulation/simulated_snapshots.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/file.h"
#include "persist/rdb/byte_stream.h"
#include "persist/rdb/rdb_file.h"
#include "simulation/steps.h"

namespace latchkey::simulation {

SimulatedSnapshots::SimulatedSnapshots(server::Server& server, Dice& dice, std::string path)
    : server_(server), dice_(dice), path_(std::move(path)) {}

SimulatedSnapshots::~SimulatedSnapshots() {
  if (pipe_ >= 0) close(pipe_);
}

void SimulatedSnapshots::begin(const replication::SnapshotPlace& place, Done done) {
  persist::WriteOptions options = persist::write_options(server_);
  options.aux = {{"repl-stream-db", std::to_string(place.database)},
                 {"repl-id", place.replication_id},
                 {"repl-offset", std::to_string(place.offset)}};
  options.with_keys = !place.without_keys;
  options.with_functions = !place.without_functions;
  dataset_.clear();
  file_.clear();
  shut_ = false;
  persist::StringSink sink(dataset_);
  if (!persist::write_dataset(sink, server_, options))
    throw CheckFailed("the dataset could not be written to memory");
  done_ = std::move(done);
}

bool SimulatedSnapshots::begin_file(const replication::SnapshotPlace& place, Done done) {
  if (dice_.percent(5)) return false;
  begin(place, std::move(done));
  return true;
}

bool SimulatedSnapshots::begin_pipe(const replication::SnapshotPlace& place, int pipe, Done done) {
  if (dice_.percent(5)) return false;
  pipe_ = fcntl(pipe, F_DUPFD_CLOEXEC, 0);
  begin(place, std::move(done));
  return true;
}

bool SimulatedSnapshots::begin_sockets(const replication::SnapshotPlace&, Receivers, Done) {
  throw CheckFailed("an RDB channel was opened although repl-rdb-channel is off");
}

void SimulatedSnapshots::abandon() {
  if (is_busy()) end(false);
}

void SimulatedSnapshots::work(bool may_fail) {
  if (!is_busy()) return;
  if (may_fail && dice_.percent(3)) return end(false);
  if (!dataset_.empty()) return write_piece();
  if (pipe_ < 0) {
    if (!base::write_file(path_, file_)) throw CheckFailed("no snapshot could be written");
    return end(true);
  }
  if (!std::exchange(shut_, true)) shutdown(pipe_, SHUT_WR);
  // Lives until the server has read all and closed its end.
  char byte;
  if (recv(pipe_, &byte, 1, MSG_DONTWAIT) == 0) end(true);
}

void SimulatedSnapshots::write_piece() {
  const size_t size = dice_.between(1, std::min(dataset_.size(), kMaxPiece));
  if (pipe_ < 0) {
    file_.append(dataset_, 0, size);
    dataset_.erase(0, size);
    return;
  }
  const ssize_t count = send(pipe_, dataset_.data(), size, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (count > 0) dataset_.erase(0, static_cast<size_t>(count));
  if (count < 0 && errno != EAGAIN) end(false);
}

void SimulatedSnapshots::end(bool ok) {
  if (pipe_ >= 0) close(std::exchange(pipe_, -1));
  dataset_.clear();
  std::exchange(done_, nullptr)(ok);
}

}  // namespace latchkey::simulation
