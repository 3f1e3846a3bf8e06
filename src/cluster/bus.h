// The cluster's bus: this node's links to the others and theirs to it, and the counts of what went
// by them. Knows how messages travel, not what they say.
//
// A link that is dropped is freed later (collect), so that whoever stands in one may drop it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "cluster/bus_message.h"
#include "cluster/link.h"
#include "cluster/node_table.h"
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
    // A link that this node has made stands.
    virtual void link_ready(Link& link) = 0;
    virtual void received(Link& link, const Message& message) = 0;
    // A link of this node could not be made, or is lost.
    virtual void link_lost(Node& node) = 0;
  };
  struct Counts {
    std::array<uint64_t, kMessageTypes> sent{};
    std::array<uint64_t, kMessageTypes> received{};
    uint64_t over_limit = 0;  // links that were dropped because too much waited to leave
  };

  Bus(server::Server& server, Receiver& receiver) : server_(server), receiver_(receiver) {}

  // Waits for other nodes at the configuration's addresses. False, with the reasons logged.
  bool listen();
  // Where it does or would.
  int port() const;

  // Begins to make a link. REQUIRES: node.link == nullptr.
  void connect(Node& node);
  // In tests, who comes without a socket.
  Link& accept(net::Connection* connection);
  void drop(Link& link);
  // All links from and to it.
  void drop_links(Node& node);
  // The link came from that node; one that it had before goes.
  void came_from(Link& link, Node& node);
  // Drops links with more to send than `most` bytes.
  void drop_over_limit(uint64_t most);

  void send(Link& link, const Message& message);
  // To those who have told their ids and have a link.
  void send_to(const std::vector<Node*>& nodes, const Message& message);

  void flush();
  // Frees what was dropped. REQUIRES: nobody is in a link.
  void collect() { dropped_.clear(); }

  const Counts& counts() const { return counts_; }
  // Messages of this type are thrown away; -1: none.
  void throw_away(int type) { thrown_away_ = type; }
  size_t size() const { return links_.size(); }
  size_t memory() const;
  // For tests.
  const std::list<std::unique_ptr<Link>>& links() const { return links_; }

 private:
  // Link::Owner
  void link_connected(Link& link) override { receiver_.link_ready(link); }
  void link_received(Link& link, std::string_view bytes) override;
  void link_failed(Link& link) override;

  server::Server& server_;
  Receiver& receiver_;
  std::vector<std::unique_ptr<net::Listener>> listeners_;
  std::list<std::unique_ptr<Link>> links_;
  std::vector<std::unique_ptr<Link>> dropped_;
  Counts counts_;
  int listening_port_ = 0;
  int thrown_away_ = -1;
};

}  // namespace latchkey::cluster
