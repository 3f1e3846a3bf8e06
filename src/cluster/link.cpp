#include "cluster/link.h"

#include <algorithm>

#include "cluster/bus_message.h"
#include "net/address_text.h"

namespace latchkey::cluster {

void Link::dial(net::Loop& loop, net::Dialer::Target target) {
  dialer_ = std::make_unique<net::Dialer>(loop, std::move(target),
                                          [this](net::Connection* connection, const std::string&) {
                                            if (connection == nullptr) return fail();
                                            connected(connection);
                                          });
}

void Link::connected(net::Connection* connection) {
  connected_ = true;
  connection_ = connection;
  if (connection_ != nullptr) connection_->start(*this, /*keepalive_seconds=*/0);
  if (!incoming) owner_.link_connected(*this);
}

void Link::send(std::string_view bytes) {
  if (!connected_ || closed_) return;
  unsent_ = true;
  if (connection_ != nullptr) {
    connection_->out().append(bytes);
  } else {
    local_out_ += bytes;
  }
}

void Link::flush() {
  if (std::exchange(unsent_, false) && connection_ != nullptr) connection_->flush();
}

void Link::close() {
  closed_ = true;
  if (dialer_ != nullptr) dialer_->give_up();
  if (connection_ != nullptr) std::exchange(connection_, nullptr)->close();
}

void Link::fail() {
  if (!closed_) owner_.link_failed(*this);
}

size_t Link::queued() const {
  return connection_ != nullptr ? connection_->pending_output() : local_out_.size();
}

size_t Link::memory() const {
  const size_t buffers = connection_ != nullptr ? connection_->output_memory() : local_out_.size();
  return sizeof(Link) + std::max(buffers, queued());
}

std::string Link::peer_ip() const {
  return std::string(connection_ != nullptr ? net::ip_of(connection_->peer_address()) : "");
}

std::string Link::own_ip() const {
  return std::string(connection_ != nullptr ? net::ip_of(connection_->local_address()) : "");
}

size_t Link::on_input(std::span<char> bytes) {
  size_t used = 0;
  wanted_ = 0;
  while (!closed_ && bytes.size() - used >= kLengthPrefix) {
    const std::string_view rest(bytes.data() + used, bytes.size() - used);
    const auto length = announced_length(rest);
    if (!length) {
      fail();
      break;
    }
    if (rest.size() < *length) {
      wanted_ = *length;
      break;
    }
    used += *length;
    owner_.link_received(*this, rest.substr(0, *length));
  }
  return used;
}

}  // namespace latchkey::cluster
