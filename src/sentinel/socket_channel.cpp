#include "sentinel/socket_channel.h"

#include <utility>

#include "net/address_text.h"
#include "resp/request_encoder.h"
#include "server/process/secure_transport.h"
#include "server/server.h"

namespace latchkey::sentinel {

SocketChannel::SocketChannel(server::Server& server, const Address& address, Listener& listener)
    : server_(server), listener_(listener) {
  net::Dialer::Target target{.host = address.ip,
                             .port = address.port,
                             .source = server.settings().bind_source_addr,
                             .layer = server.secure_transport().for_replication()};
  dialer_ = std::make_unique<net::Dialer>(*server.loop(), std::move(target),
                                          [this](net::Connection* connection, const std::string&) {
                                            server_.refresh_clock();
                                            if (connection == nullptr) return fail();
                                            connected(connection);
                                          });
}

SocketChannel::~SocketChannel() {
  if (gone_ != nullptr) *gone_ = true;
  dialer_->give_up();
  if (connection_ != nullptr) connection_->close();
}

void SocketChannel::connected(net::Connection* connection) {
  connection_ = connection;
  connection_->start(*this, server_.settings().tcp_keepalive);
  connection_->out().append(std::exchange(waiting_, {}));
  connection_->flush();
}

void SocketChannel::send(std::span<const std::string_view> words) {
  if (connection_ == nullptr) return resp::append_request(&waiting_, words);
  connection_->out().append(resp::encode_request(words));
  connection_->flush();
}

std::string SocketChannel::local_ip() {
  if (connection_ == nullptr) return {};
  return std::string(net::ip_of(connection_->local_address()));
}

size_t SocketChannel::on_input(std::span<char> bytes) {
  server_.refresh_clock();
  bool gone = false;
  gone_ = &gone;
  std::string_view rest(bytes.data(), bytes.size());
  while (!rest.empty()) {
    Reply reply;
    size_t used = 0;
    const Parse result = parse_reply(rest, &reply, &used, &wanted_);
    if (result == Parse::kIncomplete) break;
    if (result == Parse::kMalformed) {
      fail();
      if (!gone) gone_ = nullptr;
      return bytes.size();
    }
    rest.remove_prefix(used);
    listener_.channel_received(*this, reply);
    if (gone) return bytes.size();
  }
  gone_ = nullptr;
  return bytes.size() - rest.size();
}

void SocketChannel::fail() {
  if (connection_ != nullptr) std::exchange(connection_, nullptr)->close();
  // As a rule, the listener destroys the channel.
  listener_.channel_failed(*this);
}

std::unique_ptr<Channel> SocketNetwork::open(const Address& address, Channel::Listener& listener) {
  if (server_.loop() == nullptr || address.ip.empty() || address.port == 0) return nullptr;
  return std::make_unique<SocketChannel>(server_, address, listener);
}

}  // namespace latchkey::sentinel
