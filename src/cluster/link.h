// A link of the cluster bus: a connection between two nodes that carries whole messages.
//
// Each node has a link to each other one, and one from it. Messages are queued, and sent at the end
// of the turn (flush()) in one write.
//
// A link without a connection is still being opened; messages sent meanwhile are dropped. Tests
// without sockets call connected(nullptr), and take the queued bytes with take_output().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "net/connection.h"
#include "net/dialer.h"

namespace latchkey::cluster {

struct Node;

class Link final : public net::ConnectionHandler {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // The link is connected.
    virtual void link_connected(Link& link) = 0;
    // A whole message, not yet decoded.
    virtual void link_received(Link& link, std::string_view bytes) = 0;
    // The link has failed, could not be opened, or received bytes that are not a message.
    virtual void link_failed(Link& link) = 0;
  };

  // An incoming link.
  Link(Owner& owner, int64_t now_ms) : created_ms(now_ms), incoming(true), owner_(owner) {}
  // A link to be opened to that node.
  Link(Owner& owner, int64_t now_ms, Node& to)
      : created_ms(now_ms), incoming(false), node(&to), owner_(owner) {}
  ~Link() override { close(); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  const int64_t created_ms;
  const bool incoming;
  // The node at the other end; null until it is known.
  Node* node = nullptr;

  void dial(net::Loop& loop, net::Dialer::Target target);
  // `connection` is null in tests.
  void connected(net::Connection* connection);
  bool is_connected() const { return connected_; }
  // An incoming link whose TLS handshake is not over.
  bool in_handshake() const { return connection_ != nullptr && connection_->in_handshake(); }

  // Queues a message.
  void send(std::string_view bytes);
  void flush();
  // No bytes are received or sent from here on.
  void close();

  // Bytes to send; memory of the link with its buffers.
  size_t queued() const;
  size_t memory() const;
  // The addresses of the other end and of this one; empty when unknown.
  std::string peer_ip() const;
  std::string own_ip() const;
  // For tests.
  std::string take_output() { return std::exchange(local_out_, {}); }

  // net::ConnectionHandler
  size_t on_input(std::span<char> bytes) override;
  size_t wanted_input() const override { return wanted_; }
  void on_end_of_input() override { fail(); }
  void on_disconnect() override { fail(); }
  void on_flushed() override {}

 private:
  void fail();

  Owner& owner_;
  std::unique_ptr<net::Dialer> dialer_;
  net::Connection* connection_ = nullptr;
  std::string local_out_;
  size_t wanted_ = 0;
  bool unsent_ = false;
  bool connected_ = false;
  bool closed_ = false;
};

}  // namespace latchkey::cluster
