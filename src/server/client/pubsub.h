// Publish and subscribe: who listens to which channel, to which pattern of channels and to which
// shard channel, and the way of a message to them.
//
// A message is encoded once for all who listen to the same channel or pattern, and a long one is
// sent by reference. It goes behind the reply of a client that is being served just now
// (Client::push_out), otherwise at once. A client that has been sent more than its output may hold
// gets no more, and is closed when it is its turn to be sent to.
//
// Costs: publishing, O(those who receive it + patterns that anybody listens to); subscribing and
// unsubscribing, O(1) expected; a client that leaves, O(its subscriptions).
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

#include "base/hash.h"
#include "resp/output_buffer.h"

namespace latchkey::server {

class Client;
class Server;

// What a subscription names.
enum class TopicKind : uint8_t { kChannel, kPattern, kShardChannel };
inline constexpr size_t kTopicKinds = 3;

// Takes messages to those who listen at other servers: the nodes of a cluster.
class PubSubRelay {
 public:
  virtual ~PubSubRelay() = default;
  virtual void relay(TopicKind kind, std::string_view channel, std::string_view message) = 0;
};

class PubSub {
 public:
  explicit PubSub(Server& server) : server_(server) {}

  // From now on the client hears of the topic. Of no effect when it does already.
  void subscribe(Client& client, TopicKind kind, std::string_view name);
  void unsubscribe(Client& client, TopicKind kind, std::string_view name);
  // Ends the subscriptions to shard channels that closes(name) says are no more, and tells their
  // listeners.
  void close_shard_channels(const std::function<bool(std::string_view)>& closes);
  // Ends all subscriptions of a client that leaves or starts anew.
  void unsubscribe_all(Client& client);

  // What the client listens to; how much of it.
  std::vector<std::string> subscriptions(const Client& client, TopicKind kind) const;
  static size_t count(const Client& client, TopicKind kind);
  // Bytes that its subscriptions take, about; a name counts for each who listens to it.
  static size_t memory_of(const Client& client);

  // Sends the message to those who listen to the channel, then for each pattern that matches it to
  // those who listen to that. Returns how many were sent: a client counts once for each of its
  // subscriptions.
  size_t publish(std::string_view channel, std::string_view message);
  size_t publish_to_shard(std::string_view channel, std::string_view message);

  // Null where messages go to replicas with the stream. What is set must live as long as this.
  PubSubRelay* relay() const { return relay_; }
  void set_relay(PubSubRelay& relay) { relay_ = &relay; }

  // Topics of a kind that anybody listens to, and how many listen to one.
  size_t topics(TopicKind kind) const { return topics_of(kind).size(); }
  size_t listeners(TopicKind kind, std::string_view name) const;
  // Calls fn(std::string_view name) for each of them.
  template <typename Fn>
  void for_each_topic(TopicKind kind, Fn&& fn) const {
    for (const auto& topic : topics_of(kind)) fn(std::string_view(topic.first));
  }

 private:
  friend struct Subscriptions;
  using Listeners = std::vector<Client*>;
  struct Hash {
    using is_transparent = void;
    const base::HashSecret* secret;
    size_t operator()(std::string_view name) const { return secret->hash(name); }
  };
  using Topics = std::unordered_map<std::string, Listeners, Hash, std::equal_to<>>;
  using Topic = Topics::value_type;
  class Message;

  const Topics& topics_of(TopicKind kind) const { return topics_[static_cast<size_t>(kind)]; }
  Topics& topics_of(TopicKind kind) { return topics_[static_cast<size_t>(kind)]; }
  Topics make_topics() const;
  void leave(Client& client, TopicKind kind, Topic& topic);
  void dismiss(Client& client, const std::string& channel);
  size_t publish_to(const Listeners& listeners, Message& message, std::string_view type,
                    const std::string* pattern, std::string_view channel);
  void send(Client& client, const resp::OutputBuffer& encoded);

  Server& server_;
  PubSubRelay* relay_ = nullptr;
  std::array<Topics, kTopicKinds> topics_{make_topics(), make_topics(), make_topics()};
};

// A client's subscriptions: the topics of each kind, with the client's place among those who listen
// to them.
struct Subscriptions {
  std::array<std::unordered_map<PubSub::Topic*, size_t>, kTopicKinds> places;
  size_t bytes = 0;
  bool empty() const;
};

}  // namespace latchkey::server
