#include "replication/replica.h"

#include <utility>

#include "base/time_units.h"
#include "net/address_text.h"
#include "replication/backlog.h"
#include "server/server.h"

namespace latchkey::replication {

Replica::Replica(server::Client& owner, OnClosing on_closing, OnError on_error)
    : client(owner),
      on_closing_(std::move(on_closing)),
      on_error_(std::move(on_error)),
      held_(owner.server.buffer_pool()) {}

resp::OutputBuffer& Replica::output_at(int64_t due_ms) {
  if (delayed_.empty() && due_ms == 0) return client.out();
  if (!delayed_.empty() && delayed_.back().due_ms >= due_ms) return delayed_.back().bytes;
  delayed_.push_back({due_ms, resp::OutputBuffer(client.server.buffer_pool())});
  return delayed_.back().bytes;
}

void Replica::add_to_stream(const Backlog& backlog, uint64_t first, int64_t due_ms) {
  // Appends after held bytes, also when these are about to be sent.
  backlog.share_from(first, gets_stream() && held_.empty() ? output_at(due_ms) : held_);
}

void Replica::release_held(int64_t due_ms) {
  output_at(due_ms).append(held_);
  held_.clear();
}

int64_t Replica::release_delayed(int64_t now_ms) {
  for (; !delayed_.empty(); delayed_.pop_front()) {
    if (delayed_.front().due_ms > now_ms) return delayed_.front().due_ms;
    client.out().append(delayed_.front().bytes);
    client.flush_soon();
  }
  return INT64_MAX;
}

size_t Replica::held_bytes() const {
  size_t bytes = held_.size();
  for (const Delayed& delayed : delayed_) bytes += delayed.bytes.size();
  return bytes;
}

void Replica::end_hold() {
  holds_stream = false;
  held_.clear();
}

bool Replica::survives_end_of_input() {
  const bool may_have_all = state == ReplicaState::kDelivered ||
                            (state == ReplicaState::kWaitsForEnd && written_by_child);
  if (!holds_stream || !may_have_all || client.pending_output() != 0) return false;
  if (client.connection() != nullptr) client.connection()->pause_reading();
  return true;
}

void Replica::is_alive() {
  acked_ms = client.server.machine_ms();
}

std::string Replica::ip() const {
  if (!announced_ip.empty()) return announced_ip;
  return std::string(net::ip_of(client.peer_address()));
}

std::string Replica::name() const {
  return ip() + ":" +
         (listening_port != 0 ? std::to_string(listening_port) : "<unknown-replica-port>");
}

std::string_view Replica::state_name() const {
  switch (state) {
    case ReplicaState::kWaitsForChannel:
    case ReplicaState::kWaitsForStart:
    case ReplicaState::kWaitsForEnd:
      return "wait_bgsave";
    case ReplicaState::kReceives:
    case ReplicaState::kDelivered:
      return "send_bulk";
    case ReplicaState::kStreams:
      return "send_bulk_and_stream";
    case ReplicaState::kOnline:
      return "online";
    case ReplicaState::kAnnounced:
      break;
  }
  return {};
}

int64_t Replica::stuck_seconds(int64_t now_ms) {
  const uint64_t sent = bytes_sent();
  if (sent_last_ms_ == 0 || sent != sent_last_ || client.pending_output() == 0)
    sent_last_ms_ = now_ms;
  sent_last_ = sent;
  return (now_ms - sent_last_ms_) / base::kMsPerSecond;
}

void Replica::drop_output() {
  held_.clear();
  delayed_.clear();
  client.out().clear();
}

size_t Replica::pending_memory() const {
  size_t delayed = 0;
  for (const Delayed& each : delayed_) delayed += each.bytes.own_memory();
  return held_.own_memory() + delayed + client.own_output_memory();
}

uint64_t Replica::bytes_sent() const {
  return client.connection() != nullptr ? client.connection()->bytes_sent() - sent_before_ : 0;
}

void Replica::count_bytes_from_now() {
  if (client.connection() != nullptr) sent_before_ = client.connection()->bytes_sent();
}

}  // namespace latchkey::replication
