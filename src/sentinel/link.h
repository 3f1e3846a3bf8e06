// The connections to one server: for requests, and, to a master or replica, for the messages of a
// subscription. The entries of one Sentinel under several masters share a link.
//
// Times are Unix time in milliseconds; 0 means never.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sentinel/channel.h"

namespace latchkey::sentinel {

class Link final : public Channel::Listener, public std::enable_shared_from_this<Link> {
 public:
  using OnReply = std::function<void(const Reply& reply)>;
  using OnMessage = std::function<void(std::string_view message)>;
  using Words = std::vector<std::string_view>;

  explicit Link(int64_t now_ms) { begin_anew(now_ms); }

  // False once a connection has failed, until there is a new one. A connection that is being made
  // counts.
  bool is_connected() const { return connected_; }
  bool has_requests() const { return requests_ != nullptr; }
  bool has_messages() const { return messages_ != nullptr; }
  // Requests without a reply.
  size_t pending() const { return replies_.size(); }
  // Grows with each new connection for requests.
  uint64_t generation() const { return generation_; }
  // The address of this machine in the connection for requests; empty when unknown.
  std::string local_ip() const { return requests_ != nullptr ? requests_->local_ip() : ""; }

  // Begin to connect. False when that cannot be tried.
  bool open_requests(Network& network, const Address& address, int64_t now_ms);
  bool open_messages(Network& network, const Address& address, int64_t now_ms,
                     OnMessage on_message);
  // Says that all connections which the link is to have are there or being made.
  void set_connected() { connected_ = true; }

  // Sends a request; `on_reply` is called with its reply, and not if the connection fails before.
  // REQUIRES: has_requests().
  void send(const Words& words, OnReply on_reply = {});
  // The same on the other connection, whose reply is not looked at. REQUIRES: has_messages(), and
  // subscribe() was not called.
  void send_to_messages(const Words& words);
  // Subscribes to a channel there; the connection is closed when that is refused.
  void subscribe(std::string_view channel);

  // Close one of the connections, or both.
  void close_requests();
  void close_messages();
  void close() {
    close_requests();
    close_messages();
  }
  // As a link that was just made, whose times count from now.
  void begin_anew(int64_t now_ms);

  int64_t requests_since_ms = 0;
  int64_t messages_since_ms = 0;
  int64_t last_message_ms = 0;
  int64_t last_reconnect_ms = 0;
  // The last PING; the first one that was not answered yet (0: all were); the last reply to a PING,
  // of any kind, and the last that says that the server is well.
  int64_t last_ping_ms = 0;
  int64_t unanswered_ping_ms = 0;
  int64_t last_pong_ms = 0;
  int64_t last_available_ms = 0;

  // Channel::Listener
  void channel_received(Channel& channel, const Reply& reply) override;
  void channel_failed(Channel& channel) override;

 private:
  void take_message(const Reply& reply);

  std::unique_ptr<Channel> requests_;
  std::unique_ptr<Channel> messages_;
  std::deque<OnReply> replies_;
  OnMessage on_message_;
  uint64_t generation_ = 0;
  bool connected_ = false;
  size_t replies_to_skip_ = 0;  // on the connection for messages, before that of SUBSCRIBE
};

}  // namespace latchkey::sentinel
