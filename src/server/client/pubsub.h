// Publish and subscribe: the subscribers of channels, patterns and shard channels, and the delivery
// of messages to them.
//
// A message is encoded once for all subscribers of the same channel or pattern, and a long one is
// sent by reference. A client that is being served receives it after its reply (Client::push_out),
// others at once. Each message is sent to another of the subscribers first. A client whose output
// exceeds its limit receives no more, and is closed at its next flush.
//
// Costs: publishing, O(receivers + patterns with a subscriber); subscribing and unsubscribing, O(1)
// expected; a client that leaves, O(its subscriptions).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/digest/hash.h"
#include "base/take_turns.h"
#include "base/text/glob.h"
#include "resp/output_buffer.h"

namespace latchkey::server {

class Client;
class Server;

// The kinds of subscriptions.
enum class TopicKind : uint8_t { kChannel, kPattern, kShardChannel };
inline constexpr size_t kTopicKinds = 3;

// Takes messages to the subscribers at other nodes of a cluster.
class PubSubRelay {
 public:
  virtual ~PubSubRelay() = default;
  virtual void relay(TopicKind kind, std::string_view channel, std::string_view message) = 0;
};

class PubSub {
 public:
  explicit PubSub(Server& server) : server_(server) {}

  // No effect when the client has that subscription already.
  void subscribe(Client& client, TopicKind kind, std::string_view name);
  void unsubscribe(Client& client, TopicKind kind, std::string_view name);
  // Ends the subscriptions to the shard channels for which closes(name) is true, and sends their
  // subscribers `sunsubscribe`.
  void close_shard_channels(const std::function<bool(std::string_view)>& closes);
  // Ends all subscriptions of a client that closes or calls RESET.
  void unsubscribe_all(Client& client);

  // The names of the client's subscriptions, and their number.
  std::vector<std::string> subscriptions(const Client& client, TopicKind kind) const;
  static size_t count(const Client& client, TopicKind kind);
  // Bytes that its subscriptions take, approximately; a name counts for each of its subscribers.
  static size_t memory_of(const Client& client);

  // Sends the message to the subscribers of the channel, then for each pattern that matches it to
  // the subscribers of that. Returns how many messages were sent: a client counts once for each of
  // its subscriptions.
  size_t publish(std::string_view channel, std::string_view message);
  size_t publish_to_shard(std::string_view channel, std::string_view message);

  // Null without a cluster, where messages reach replicas by the replication stream. The relay must
  // outlive this object.
  PubSubRelay* relay() const { return relay_; }
  void set_relay(PubSubRelay& relay) { relay_ = &relay; }

  // Number of topics with subscribers, and of the subscribers of one topic.
  size_t topics(TopicKind kind) const { return topics_of(kind).size(); }
  size_t listeners(TopicKind kind, std::string_view name) const;
  // Calls fn(std::string_view name) for each topic of the kind.
  template <typename Fn>
  void for_each_topic(TopicKind kind, Fn&& fn) const {
    for (const auto& topic : topics_of(kind)) fn(std::string_view(topic.first));
  }
  // Calls fn(std::string_view name, const Client&) for each subscriber of each of these.
  template <typename Fn>
  void for_each_subscriber(TopicKind kind, Fn&& fn) const {
    for (const auto& [name, audience] : topics_of(kind)) {
      for (const Client* client : audience.listeners) fn(std::string_view(name), *client);
    }
  }

 private:
  friend struct Subscriptions;
  using Listeners = std::vector<Client*>;
  struct Audience {
    Listeners listeners;
    std::unique_ptr<const base::GlobPattern> glob;  // of patterns alone
  };
  using Topics = std::unordered_map<std::string, Audience, base::KeyedTextHash, std::equal_to<>>;
  using Topic = Topics::value_type;
  class Message;

  const Topics& topics_of(TopicKind kind) const { return topics_[static_cast<size_t>(kind)]; }
  Topics& topics_of(TopicKind kind) { return topics_[static_cast<size_t>(kind)]; }
  Topics make_topics() const;
  static size_t bytes_of_subscription(const Topic& topic);
  void leave(Client& client, TopicKind kind, Topic& topic);
  void end_shard_subscription(Client& client, const std::string& channel);
  size_t publish_to(const Listeners& listeners, Message& message, std::string_view type,
                    const std::string* pattern, std::string_view channel);
  void send(Client& client, const resp::OutputBuffer& encoded);

  Server& server_;
  PubSubRelay* relay_ = nullptr;
  // Clients that wait for a lock by subscription race for it when they receive the message of its
  // release: one that always received it last would starve.
  base::TakeTurns turns_;
  std::array<Topics, kTopicKinds> topics_{make_topics(), make_topics(), make_topics()};
};

// A client's subscriptions: the topics of each kind, with the client's index in the topic's
// Listeners.
struct Subscriptions {
  std::array<std::unordered_map<PubSub::Topic*, size_t>, kTopicKinds> places;
  size_t bytes = 0;
  bool empty() const;
};

}  // namespace latchkey::server
