#include "replication/stream.h"

#include <algorithm>

#include "base/free_if_large.h"
#include "server/client/client.h"
#include "server/command/dispatcher.h"
#include "server/config/config_parse.h"
#include "server/server.h"

namespace latchkey::replication {

namespace {

// A buffer larger than this is freed after a large turn.
constexpr size_t kMaxKept = 64 * 1024;

}  // namespace

Stream::Stream(server::Server& server, bool relays)
    : server_(server), encoder_(server::kPropagateToReplicas), relays_(relays) {
  encoder_.select_before_multi(!server.edition().has({7, 2}));
}

Stream::~Stream() {
  if (is_open() && !relays_) server_.propagation().remove_sink(*this);
}

uint64_t Stream::offset() const {
  return static_cast<uint64_t>(server_.replication_offset());
}

void Stream::count(size_t bytes) {
  server_.set_replication_offset(server_.replication_offset() + static_cast<int64_t>(bytes));
}

void Stream::on_propagated(std::span<const server::PropagatedCommand> unit) {
  const size_t before = turn_.size();
  encoder_.append(unit, &turn_);
  count(turn_.size() - before);
  if (server::Client* client = server_.dispatcher().serving(); client != nullptr)
    client->written_offset = offset();
}

void Stream::relay(std::string_view bytes) {
  turn_.append(bytes);
  count(bytes.size());
}

void Stream::flush(const std::function<void(uint64_t first)>& give) {
  if (turn_.empty()) return;
  const uint64_t first = backlog_->last() + 1;
  backlog_->append(turn_);
  give(first);
  base::free_if_large(&turn_, kMaxKept);
  turn_.clear();
  trim();
}

size_t Stream::backlog_size() const {
  return static_cast<size_t>(server_.settings().repl_backlog_size);
}

void Stream::trim() {
  // The backlog must keep all bytes that flush() has not given to the replicas yet.
  if (!is_open() || !turn_.empty()) return;
  backlog_->set_capacity(backlog_size());
  backlog_->trim();
}

void Stream::open() {
  backlog_ = std::make_unique<Backlog>(backlog_size(), offset());
  encoder_.forget_database();
  if (counting_) counting_(true);
  if (!relays_) server_.propagation().add_sink(*this);
}

void Stream::begin() {
  server_.history().begin();
  open();
  server_.log().notice("Replication backlog created, my new replication IDs are '" +
                       server_.history().id() + "' and '" + server_.history().second_id() + "'");
}

void Stream::close() {
  if (!is_open()) return;
  if (!relays_) server_.propagation().remove_sink(*this);
  if (counting_) counting_(false);
  backlog_.reset();
}

void Stream::resume(const server::StreamPlace& place,
                    const std::vector<std::pair<int, std::string>>& dropped) {
  server_.set_replication_offset(place.offset);
  server_.history().remember(place.id, place.offset);
  open();
  for (const auto& [database, key] : dropped)
    server_.propagation().add(database, {"DEL", key}, server::kPropagateToReplicas);
}

void Stream::begin_relaying() {
  if (is_open()) server_.propagation().remove_sink(*this);
  relays_ = true;
  if (!is_open()) open();
}

void Stream::end_relaying() {
  server_.history().branch(server_.replication_offset());
  const server::ReplicationHistory& history = server_.history();
  server_.log().notice("Setting secondary replication ID to " + history.second_id() +
                       ", valid up to offset: " + std::to_string(history.second_end()) +
                       ". New replication ID is " + history.id());
  relays_ = false;
  encoder_.forget_database();
  if (is_open()) server_.propagation().add_sink(*this);
}

void Stream::begin_at(std::string_view id, int64_t offset) {
  close();
  if (id.empty()) {
    server_.history().begin();
  } else {
    server_.history().adopt(id);
  }
  server_.set_replication_offset(offset);
  open();
}

void Stream::log_latest() const {
  constexpr size_t kMaxShown = 256;
  if (!is_open()) return;
  std::string latest = backlog_->latest(kMaxShown);
  latest.append(turn_, turn_.size() - std::min(turn_.size(), kMaxShown));
  latest.erase(0, latest.size() - std::min(latest.size(), kMaxShown));
  server_.log().notice("Latest backlog is: '" + server::quote_argument(latest) + "'");
}

}  // namespace latchkey::replication
