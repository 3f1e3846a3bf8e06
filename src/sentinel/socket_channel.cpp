#include "sentinel/socket_channel.h"

#include <utility>

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
  std::string request = '*' + std::to_string(words.size()) + "\r\n";
  for (const std::string_view word : words) {
    request.append("$").append(std::to_string(word.size())).append("\r\n");
    request.append(word).append("\r\n");
  }
  if (connection_ == nullptr) {
    waiting_ += request;
    return;
  }
  connection_->out().append(request);
  connection_->flush();
}

std::string SocketChannel::local_ip() {
  if (connection_ == nullptr) return {};
  const std::string& address = connection_->local_address();
  std::string ip = address.substr(0, address.rfind(':'));
  if (ip.starts_with('[') && ip.ends_with(']')) ip = ip.substr(1, ip.size() - 2);
  return ip;
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
