// A link of the cluster's bus: a connection between two nodes, by which messages come and go whole.
//
// Each node keeps a link to each other one, and has one from it. What is to be sent is queued, and
// leaves at the end of the turn (flush), so that one write takes it all.
//
// A link without a connection is one that is being made; what is sent meanwhile is dropped. In
// tests that run without sockets, connected() makes it one whose bytes are taken by hand.
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
    // It has been made.
    virtual void link_connected(Link& link) = 0;
    // Bytes that announce to be a message, whole.
    virtual void link_received(Link& link, std::string_view bytes) = 0;
    // It has failed, or could not be made, or what came by it was no message.
    virtual void link_failed(Link& link) = 0;
  };

  // Who came to this node.
  Link(Owner& owner, int64_t now_ms) : created_ms(now_ms), incoming(true), owner_(owner) {}
  // One to be made to that node.
  Link(Owner& owner, int64_t now_ms, Node& to)
      : created_ms(now_ms), incoming(false), node(&to), owner_(owner) {}
  ~Link() override { close(); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  const int64_t created_ms;
  const bool incoming;
  // At the other end; null until that is known.
  Node* node = nullptr;

  void dial(net::Loop& loop, net::Dialer::Target target);
  // `connection` is null in tests.
  void connected(net::Connection* connection);
  bool is_connected() const { return connected_; }
  bool is_closed() const { return closed_; }

  // Queues a message.
  void send(std::string_view bytes);
  void flush();
  // Nothing comes or goes from here on.
  void close();

  // Bytes that wait to leave, and what is held for them, with the link itself.
  size_t queued() const;
  size_t memory() const;
  // The address at the other end, and the one of this end; empty when they are not known.
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
