// A connection to another server as Sentinel sees it: requests go out, replies come in, in order.
// The state machines know only these interfaces: a process has sockets behind them
// (socket_channel.h), tests a simulated network.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "sentinel/address.h"
#include "sentinel/reply.h"

namespace latchkey::sentinel {

class Channel {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    // A reply, or a message of a subscription.
    virtual void channel_received(Channel& channel, const Reply& reply) = 0;
    // The connection could not be made, was closed by the other side, or brought bytes that are no
    // reply. Nothing is called after this.
    virtual void channel_failed(Channel& channel) = 0;
  };

  // Closes the connection; the listener is not called any more. May be called by the listener.
  virtual ~Channel() = default;
  // Queues a request. It is sent when there is a connection.
  virtual void send(std::span<const std::string_view> words) = 0;
  // The address of this side; empty while it is not known.
  virtual std::string local_ip() = 0;
};

class Network {
 public:
  virtual ~Network() = default;
  // Begins to connect. The listener is not called before this returns, and must outlive the
  // channel. Null when that cannot even be tried.
  virtual std::unique_ptr<Channel> open(const Address& address, Channel::Listener& listener) = 0;
};

}  // namespace latchkey::sentinel
