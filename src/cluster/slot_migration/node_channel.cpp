#include "cluster/slot_migration/node_channel.h"

#include <utility>

#include "resp/request_encoder.h"
#include "server/process/secure_transport.h"
#include "server/server.h"

namespace latchkey::cluster {

NodeChannel::NodeChannel(server::Server& server, Owner& owner, const std::string& host, int port)
    : server_(server), owner_(owner), last_input_ms_(server.machine_ms()) {
  dialer_ = std::make_unique<net::Dialer>(
      *server.loop(),
      net::Dialer::Target{.host = host,
                          .port = port,
                          .source = server.settings().bind_source_addr,
                          .layer = server.secure_transport().for_cluster()},
      [this](net::Connection* made, const std::string& error) {
        server_.refresh_clock();
        last_input_ms_ = server_.machine_ms();
        if (made == nullptr) return lost(error);
        was_connected_ = true;
        connection_ = made;
        connection_->start(*this, server_.settings().tcp_keepalive);
        owner_.channel_connected(*this);
      });
}

void NodeChannel::send(std::span<const std::string_view> words) {
  if (connection_ == nullptr) return;
  connection_->out().append(resp::encode_request(words));
  connection_->flush();
}

void NodeChannel::close() {
  closed_ = true;
  if (dialer_ != nullptr && connection_ == nullptr) dialer_->give_up();
  if (connection_ != nullptr) std::exchange(connection_, nullptr)->close();
}

void NodeChannel::pause_reading() {
  if (connection_ != nullptr && !std::exchange(paused_, true)) connection_->pause_reading();
}

void NodeChannel::resume_reading() {
  if (connection_ != nullptr && std::exchange(paused_, false)) connection_->resume_reading();
}

void NodeChannel::offer() {
  if (connection_ != nullptr) connection_->resume_input();
}

size_t NodeChannel::on_input(std::span<char> bytes) {
  server_.refresh_clock();
  last_input_ms_ = server_.machine_ms();
  return owner_.channel_input(*this, bytes);
}

void NodeChannel::lost(const std::string& reason) {
  if (closed_) return;
  server_.refresh_clock();
  close();
  owner_.channel_lost(*this, reason);
}

}  // namespace latchkey::cluster
