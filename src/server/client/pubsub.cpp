#include "server/client/pubsub.h"

#include <algorithm>
#include <span>

#include "base/blob.h"
#include "resp/reply_builder.h"
#include "server/client/client.h"
#include "server/client/output_limits.h"
#include "server/server.h"

namespace latchkey::server {

// A published message. It is turned into a blob only when it is long and somebody receives it.
class PubSub::Message {
 public:
  explicit Message(std::string_view bytes) : bytes_(bytes) {}

  void write(resp::ReplyBuilder& to) {
    if (bytes_.size() < resp::ReplyBuilder::kShareThreshold) return to.bulk(bytes_);
    if (!blob_) blob_ = base::BlobRef::adopt(base::Blob::create(bytes_));
    to.bulk(blob_.get());
  }

 private:
  std::string_view bytes_;
  base::BlobRef blob_;
};

bool Subscriptions::empty() const {
  return std::all_of(places.begin(), places.end(),
                     [](const auto& of_kind) { return of_kind.empty(); });
}

// The topic's name and pattern, the entry in Listeners and the one in `places`.
size_t PubSub::bytes_of_subscription(const Topic& topic) {
  constexpr size_t kNode = 4 * sizeof(void*);
  const auto& glob = topic.second.glob;
  return topic.first.size() + (glob ? glob->memory() : 0) + sizeof(Client*) + kNode;
}

PubSub::Topics PubSub::make_topics() const {
  return Topics(0, base::KeyedTextHash{&server_.environment().secret});
}

void PubSub::subscribe(Client& client, TopicKind kind, std::string_view name) {
  Topics& topics = topics_of(kind);
  auto it = topics.find(name);
  if (it == topics.end()) {
    it = topics.emplace(std::string(name), Audience()).first;
    if (kind == TopicKind::kPattern)
      it->second.glob = std::make_unique<const base::GlobPattern>(name);
  }
  if (client.subscriptions == nullptr) client.subscriptions = std::make_unique<Subscriptions>();
  auto& places = client.subscriptions->places[static_cast<size_t>(kind)];
  if (!places.emplace(&*it, it->second.listeners.size()).second) return;
  it->second.listeners.push_back(&client);
  client.subscriptions->bytes += bytes_of_subscription(*it);
  client.set(kClientSubscribed);
}

void PubSub::unsubscribe(Client& client, TopicKind kind, std::string_view name) {
  Topics& topics = topics_of(kind);
  const auto it = topics.find(name);
  if (it == topics.end() || client.subscriptions == nullptr) return;
  auto& places = client.subscriptions->places[static_cast<size_t>(kind)];
  if (!places.contains(&*it)) return;
  leave(client, kind, *it);
  if (!client.subscriptions->empty()) return;
  client.subscriptions.reset();
  client.set(kClientSubscribed, false);
}

void PubSub::close_shard_channels(const std::function<bool(std::string_view)>& closes) {
  std::vector<std::string> closing;
  for_each_topic(TopicKind::kShardChannel, [&](std::string_view name) {
    if (closes(name)) closing.emplace_back(name);
  });
  for (const std::string& name : closing) {
    const Listeners listeners = topics_of(TopicKind::kShardChannel).find(name)->second.listeners;
    for (Client* client : listeners) end_shard_subscription(*client, name);
  }
}

void PubSub::end_shard_subscription(Client& client, const std::string& channel) {
  unsubscribe(client, TopicKind::kShardChannel, channel);
  client.flush_soon();
  resp::ReplyBuilder message(client.push_out());
  message.set_protocol(client.reply.protocol());
  message.push(3);
  message.bulk("sunsubscribe");
  message.bulk(channel);
  message.integer(static_cast<int64_t>(count(client, TopicKind::kShardChannel)));
}

void PubSub::unsubscribe_all(Client& client) {
  if (client.subscriptions == nullptr) return;
  for (size_t kind = 0; kind < kTopicKinds; ++kind) {
    auto& places = client.subscriptions->places[kind];
    while (!places.empty()) leave(client, static_cast<TopicKind>(kind), *places.begin()->first);
  }
  client.subscriptions.reset();
  client.set(kClientSubscribed, false);
}

void PubSub::leave(Client& client, TopicKind kind, Topic& topic) {
  const auto of_kind = static_cast<size_t>(kind);
  auto& places = client.subscriptions->places[of_kind];
  const auto mine = places.find(&topic);
  Listeners& listeners = topic.second.listeners;
  // The last listener moves to the free index.
  listeners[mine->second] = listeners.back();
  listeners.back()->subscriptions->places[of_kind][&topic] = mine->second;
  listeners.pop_back();
  places.erase(mine);
  client.subscriptions->bytes -= bytes_of_subscription(topic);
  if (listeners.empty()) topics_[of_kind].erase(topics_[of_kind].find(topic.first));
}

std::vector<std::string> PubSub::subscriptions(const Client& client, TopicKind kind) const {
  std::vector<std::string> names;
  if (client.subscriptions == nullptr) return names;
  for (const auto& [topic, place] : client.subscriptions->places[static_cast<size_t>(kind)])
    names.push_back(topic->first);
  // By name: the order of the addresses would be another in every process.
  std::sort(names.begin(), names.end());
  return names;
}

size_t PubSub::count(const Client& client, TopicKind kind) {
  if (client.subscriptions == nullptr) return 0;
  return client.subscriptions->places[static_cast<size_t>(kind)].size();
}

size_t PubSub::memory_of(const Client& client) {
  return client.subscriptions == nullptr ? 0 : client.subscriptions->bytes;
}

size_t PubSub::listeners(TopicKind kind, std::string_view name) const {
  const auto it = topics_of(kind).find(name);
  return it == topics_of(kind).end() ? 0 : it->second.listeners.size();
}

size_t PubSub::publish(std::string_view channel, std::string_view bytes) {
  Message message(bytes);
  size_t receivers = 0;
  const Topics& channels = topics_of(TopicKind::kChannel);
  if (const auto it = channels.find(channel); it != channels.end())
    receivers += publish_to(it->second.listeners, message, "message", nullptr, channel);
  for (const auto& [pattern, audience] : topics_of(TopicKind::kPattern)) {
    if (audience.glob->matches(channel))
      receivers += publish_to(audience.listeners, message, "pmessage", &pattern, channel);
  }
  return receivers;
}

size_t PubSub::publish_to_shard(std::string_view channel, std::string_view bytes) {
  Message message(bytes);
  const Topics& channels = topics_of(TopicKind::kShardChannel);
  const auto it = channels.find(channel);
  if (it == channels.end()) return 0;
  return publish_to(it->second.listeners, message, "smessage", nullptr, channel);
}

size_t PubSub::publish_to(const Listeners& listeners, Message& message, std::string_view type,
                          const std::string* pattern, std::string_view channel) {
  resp::OutputBuffer encoded(server_.buffer_pool());
  resp::ReplyBuilder builder(encoded);
  builder.push(pattern != nullptr ? 4 : 3);
  builder.bulk(type);
  if (pattern != nullptr) builder.bulk(*pattern);
  builder.bulk(channel);
  message.write(builder);
  turns_.each(std::span(listeners), [&](Client* client) { send(*client, encoded); });
  return listeners.size();
}

void PubSub::send(Client& client, const resp::OutputBuffer& encoded) {
  client.flush_soon();
  if (!may_be_sent_more(client)) return;
  resp::OutputBuffer& out = client.push_out();
  // The protocols differ in the first byte.
  out.append(client.reply.is_resp3() ? ">" : "*");
  out.append(encoded, 1);
}

}  // namespace latchkey::server
