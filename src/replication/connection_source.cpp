#include "replication/connection_source.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "net/connection.h"
#include "replication/master_connection.h"
#include "server/server.h"

namespace latchkey::replication {

ConnectionSource::ConnectionSource(server::Server& server, MasterConnection& from,
                                   DatasetShape shape)
    : server_(server),
      from_(&from),
      shape_(std::move(shape)),
      buffer_(std::make_unique_for_overwrite<char[]>(kBuffer)) {}

void ConnectionSource::input_arrived() {
  if (from_ != nullptr && from_->connection()->input_size() >= kMaxKept)
    from_->connection()->pause_reading();
  if (waiting_ != nullptr) server_.tasks().wake(*waiting_);
}

void ConnectionSource::cut(int error) {
  from_ = nullptr;
  cut_by_ = error;
  input_arrived();
}

bool ConnectionSource::wait() {
  if (from_ == nullptr || from_->ended() || !server_.tasks().running()) return false;
  waiting_ = server_.tasks().current();
  waiting_since_ms_ = server_.machine_ms();
  server_.tasks().wait();
  waiting_ = nullptr;
  waiting_since_ms_ = 0;
  server_.refresh_clock();
  return !server_.stop_requested() && !server_.tasks().finishing();
}

std::optional<std::string_view> ConnectionSource::fetch(std::span<char>) {
  uint64_t most = step(kBuffer);
  if (!shape_.has_mark()) most = std::min(most, shape_.size - received_);
  if (most == 0) return std::string_view();
  while (from_ != nullptr) {
    net::Connection& connection = *from_->connection();
    const auto kept = connection.kept_input();
    if (!kept.empty()) {
      const size_t size = static_cast<size_t>(std::min<uint64_t>(most, kept.size()));
      std::copy_n(kept.begin(), size, buffer_.get());
      connection.drop_input(size);
      if (!from_->ended() && kept.size() - size < kMaxKept) connection.resume_reading();
      received_ += size;
      return std::string_view(buffer_.get(), size);
    }
    if (from_->ended()) return std::string_view();
    if (!wait()) break;
  }
  errno = cut_by_ != 0 ? cut_by_ : ECANCELED;
  return std::nullopt;
}

bool ConnectionSource::broke() const {
  return !ok() && (from_ == nullptr || from_->ended());
}

bool ConnectionSource::is_complete() {
  if (!shape_.has_mark()) {
    // Skips trailing bytes of the dataset: the stream begins after them.
    uint8_t byte;
    while (offset() < shape_.size && read_byte(&byte)) {
    }
    return ok() && offset() == shape_.size;
  }
  std::string mark(shape_.mark.size(), '\0');
  return read(mark.data(), mark.size()) && mark == shape_.mark && offset() == received_;
}

}  // namespace latchkey::replication
