// The cluster bus: the links of this node to the others and from them, and counters of their
// messages. Transports messages, without interpreting them.
//
// A dropped link is freed later (collect()), so that it may be dropped while one of its functions
// runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string_view>
#include <vector>

#include "cluster/bus_message.h"
#include "cluster/link.h"
#include "cluster/node.h"
#include "net/listener.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::cluster {

class Bus final : private Link::Owner {
 public:
  class Receiver {
   public:
    virtual ~Receiver() = default;
    // A link that this node opened is connected.
    virtual void link_ready(Link& link) = 0;
    virtual void received(Link& link, const Message& message) = 0;
    // A link of this node could not be connected, or has failed.
    virtual void link_lost(Node& node) = 0;
  };
  struct Counts {
    std::array<uint64_t, kMessageTypes> sent{};
    std::array<uint64_t, kMessageTypes> received{};
    std::array<uint64_t, kMessageTypes> bytes_sent{};
    std::array<uint64_t, kMessageTypes> bytes_received{};
    uint64_t over_limit = 0;  // links that were dropped because they had too much to send
  };

  Bus(server::Server& server, Receiver& receiver) : server_(server), receiver_(receiver) {}

  // Listens for other nodes at the configured addresses. False, with the reasons logged.
  bool listen();
  // The port of the bus, also while it is not listening.
  int port() const;

  // Opens a link. REQUIRES: node.link == nullptr.
  void connect(Node& node);
  // An incoming link. `connection` is null in tests.
  Link& accept(net::Connection* connection);
  void drop(Link& link);
  // Drops the links from and to the node.
  void drop_links(Node& node);
  // `link` turned out to come from that node; an older one from it is dropped.
  void set_sender(Link& link, Node& node);
  // Drops incoming links whose TLS handshake is not over after ten seconds.
  void drop_stalled();
  // Drops links with more than `most` bytes to send.
  void drop_over_limit(uint64_t most);

  void send(Link& link, const Message& message);
  // Sends to those nodes whose id is known and that have a link.
  void send_to(const std::vector<Node*>& nodes, const Message& message);

  void flush();
  // Frees dropped links. REQUIRES: no function of a link is running.
  void collect() { dropped_.clear(); }

  const Counts& counts() const { return counts_; }
  void reset_counts() { counts_ = {}; }
  // Discards incoming messages of this type, or kNoType, or kAllTypes; and closes the links that
  // they came from if `closing`. For tests.
  static constexpr int kNoType = -1;
  static constexpr int kAllTypes = -2;
  void set_packet_filter(int type) { filtered_type_ = type; }
  void close_filtered_links(bool closing) { closes_filtered_links_ = closing; }
  size_t size() const { return links_.size(); }
  size_t memory() const;
  // For tests.
  const std::list<std::unique_ptr<Link>>& links() const { return links_; }

 private:
  // Link::Owner
  void link_connected(Link& link) override { receiver_.link_ready(link); }
  void link_received(Link& link, std::string_view bytes) override;
  void link_failed(Link& link) override;
  void count_sent(MessageType type, size_t bytes);
  FirstPort first_port() const;
  Dialect dialect() const;

  server::Server& server_;
  Receiver& receiver_;
  std::vector<std::unique_ptr<net::Listener>> listeners_;
  std::list<std::unique_ptr<Link>> links_;
  std::vector<std::unique_ptr<Link>> dropped_;
  Counts counts_;
  int listening_port_ = 0;
  int filtered_type_ = kNoType;
  bool closes_filtered_links_ = false;
};

}  // namespace latchkey::cluster
