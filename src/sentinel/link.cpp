#include "sentinel/link.h"

#include <utility>

namespace latchkey::sentinel {

void Link::begin_anew(int64_t now_ms) {
  // A PING counts as sent, so that a server which is never reached is found to be down.
  unanswered_ping_ms = now_ms;
  last_ping_ms = 0;
  last_available_ms = now_ms;
  last_pong_ms = now_ms;
}

bool Link::open_requests(Network& network, const Address& address, int64_t now_ms) {
  requests_ = network.open(address, *this);
  if (requests_ == nullptr) return false;
  ++generation_;
  requests_since_ms = now_ms;
  return true;
}

bool Link::open_messages(Network& network, const Address& address, int64_t now_ms,
                         OnMessage on_message) {
  messages_ = network.open(address, *this);
  if (messages_ == nullptr) return false;
  on_message_ = std::move(on_message);
  replies_to_skip_ = 0;
  messages_since_ms = now_ms;
  last_message_ms = now_ms;
  return true;
}

void Link::send(const Words& words, OnReply on_reply) {
  replies_.push_back(std::move(on_reply));
  requests_->send(words);
}

void Link::send_to_messages(const Words& words) {
  ++replies_to_skip_;
  messages_->send(words);
}

void Link::subscribe(std::string_view channel) {
  messages_->send(Words{"SUBSCRIBE", channel});
}

void Link::close_requests() {
  requests_.reset();
  replies_.clear();
  connected_ = false;
}

void Link::close_messages() {
  messages_.reset();
  connected_ = false;
}

void Link::channel_received(Channel& channel, const Reply& reply) {
  // What follows from the reply may drop the link.
  const auto alive = shared_from_this();
  if (&channel == messages_.get()) return take_message(reply);
  // More replies than requests: the other side is no server that can be understood.
  if (replies_.empty()) return close_requests();
  const OnReply on_reply = std::move(replies_.front());
  replies_.pop_front();
  if (on_reply) on_reply(reply);
}

void Link::take_message(const Reply& reply) {
  if (replies_to_skip_ > 0) {
    --replies_to_skip_;
    return;
  }
  // Without the subscription no messages arrive, so the link does not count as connected.
  if (reply.is(Reply::Type::kError)) return close_messages();
  if (!reply.is(Reply::Type::kArray) || reply.elements.size() != 3) return;
  if (reply.elements[0].text != "message" || !reply.elements[2].is_text()) return;
  if (on_message_) {
    const std::string message = reply.elements[2].text;
    const OnMessage on_message = on_message_;
    on_message(message);
  }
}

void Link::channel_failed(Channel& channel) {
  const auto alive = shared_from_this();
  if (&channel == messages_.get()) {
    close_messages();
  } else {
    close_requests();
  }
}

}  // namespace latchkey::sentinel
