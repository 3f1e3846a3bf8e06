#include "replication/stream_replay.h"

#include <algorithm>
#include <string>
#include <utility>

#include "replication/pause_point.h"
#include "server/client/client.h"
#include "server/server.h"
#include "server/tasks.h"

namespace latchkey::replication {

namespace {

// Milliseconds until the next attempt, when the client waits for a pause or a script to end.
constexpr uint64_t kPatienceMs = 10;

}  // namespace

StreamReplay::StreamReplay(server::Server& server, server::Client& client,
                           std::function<void()> done)
    : server_(server),
      client_(client),
      done_(std::move(done)),
      timer_(*server.loop(), [this] { apply_piece(); }),
      total_(client.connection()->input_size()),
      piece_(static_cast<size_t>(server.settings().loading_process_events_interval_bytes)) {
  client_.connection()->pause_reading();
  client_.connection()->set_handler(*this);
  server_.log().notice(
      "MASTER <-> REPLICA sync: Starting to stream replication buffer into the db (" +
      std::to_string(total_) + " bytes).");
  timer_.start(0);
}

size_t StreamReplay::bytes_left() const {
  const net::Connection* connection = client_.connection();
  return connection != nullptr ? connection->input_size() : 0;
}

void StreamReplay::apply_piece() {
  server_.refresh_clock();
  if (client_.has(server::kClientClosing)) return;
  if (server_.tasks().any()) return timer_.start(kPatienceMs);
  if (!std::exchange(begun_, true)) {
    pause_if_asked(server_, server::ReplicationPause::kOnStreaming);
    // Serves other clients that have waited for this first.
    return timer_.start(0);
  }
  net::Connection* connection = client_.connection();
  const size_t before = connection->input_size();
  if (before == 0) return finish();
  connection->resume_input();
  if (client_.has(server::kClientClosing)) return;
  if (reached_end_) return finish();
  timer_.start(connection->input_size() == before &&
                       client_.has(server::kClientBlocked | server::kClientSuspended)
                   ? kPatienceMs
                   : 0);
}

size_t StreamReplay::on_input(std::span<char> bytes) {
  const size_t size = std::min(piece_, bytes.size());
  const size_t used = client_.on_input(bytes.first(size));
  if (client_.has(server::kClientBlocked | server::kClientSuspended)) return used;
  if (used == 0 && size < bytes.size()) piece_ *= 2;
  // The rest is the start of an incomplete request.
  reached_end_ = size == bytes.size();
  return used;
}

void StreamReplay::finish() {
  server_.log().notice(
      "MASTER <-> REPLICA sync: Successfully streamed replication buffer into the db (" +
      std::to_string(total_) + " bytes in total)");
  net::Connection* connection = client_.connection();
  connection->set_handler(client_);
  connection->use_io_thread(true);
  connection->resume_reading();
  done_();
}

void StreamReplay::on_end_of_input() {
  client_.on_end_of_input();
}

void StreamReplay::on_disconnect() {
  client_.on_disconnect();
}

}  // namespace latchkey::replication
