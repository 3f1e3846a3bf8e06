// Channels over sockets: plain, or TLS where tls-replication asks for it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "net/connection.h"
#include "net/dialer.h"
#include "sentinel/channel.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::sentinel {

class SocketChannel final : public Channel, private net::ConnectionHandler {
 public:
  SocketChannel(server::Server& server, const Address& address, Listener& listener);
  ~SocketChannel() override;

  void send(std::span<const std::string_view> words) override;
  std::string local_ip() override;

 private:
  // net::ConnectionHandler
  size_t on_input(std::span<char> bytes) override;
  size_t wanted_input() const override { return wanted_; }
  void on_end_of_input() override { fail(); }
  void on_disconnect() override { fail(); }
  void on_flushed() override {}

  void connected(net::Connection* connection);
  void fail();

  server::Server& server_;
  Listener& listener_;
  std::unique_ptr<net::Dialer> dialer_;
  net::Connection* connection_ = nullptr;
  std::string waiting_;  // requests before there is a connection
  size_t wanted_ = 0;
  bool* gone_ = nullptr;  // set by the destructor while on_input() is at work
};

// Opens such channels.
class SocketNetwork final : public Network {
 public:
  explicit SocketNetwork(server::Server& server) : server_(server) {}
  // Null without a loop.
  std::unique_ptr<Channel> open(const Address& address, Channel::Listener& listener) override;

 private:
  server::Server& server_;
};

}  // namespace latchkey::sentinel
