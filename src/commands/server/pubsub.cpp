// SUBSCRIBE, PSUBSCRIBE, SSUBSCRIBE and their opposites, PUBLISH, SPUBLISH, PUBSUB.
#include "server/client/pubsub.h"

#include <string>

#include "base/text/glob.h"
#include "commands/groups.h"
#include "server/client/client.h"
#include "server/command/command_context.h"
#include "server/command/help.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;

namespace {

// --- Subscribing --------------------------------------------------------------------------------

// Subscribing is confirmed by messages instead of a reply: one for each topic, sent even to a
// client that has switched replies off.
class Confirmations {
 public:
  Confirmations(CommandContext& ctx, std::string_view type, TopicKind kind)
      : client_(ctx.client), type_(type), kind_(kind), out_(way_to(ctx.client)) {
    out_.set_protocol(ctx.reply.protocol());
  }

  void add(std::string_view name) {
    begin();
    out_.bulk(name);
    out_.integer(remaining());
  }
  // Confirms an unsubscription that had no topic.
  void add_none() {
    begin();
    out_.null();
    out_.integer(remaining());
  }

 private:
  static resp::OutputBuffer& way_to(Client& client) {
    return client.has(kClientReplyOff | kClientReplySkip) ? client.push_out() : client.out();
  }
  void begin() {
    out_.push(3);
    out_.bulk(type_);
  }
  // Shard channels are counted separately.
  int64_t remaining() const {
    size_t count = PubSub::count(client_, TopicKind::kShardChannel);
    if (kind_ != TopicKind::kShardChannel) {
      count =
          PubSub::count(client_, TopicKind::kChannel) + PubSub::count(client_, TopicKind::kPattern);
    }
    return static_cast<int64_t>(count);
  }

  Client& client_;
  std::string_view type_;
  TopicKind kind_;
  resp::ReplyBuilder out_;
};

void subscribe_to(CommandContext& ctx, TopicKind kind) {
  Confirmations confirmations(ctx, ctx.command.full_name, kind);
  for (const std::string_view name : ctx.args.subspan(1)) {
    ctx.server.pubsub().subscribe(ctx.client, kind, name);
    confirmations.add(name);
  }
}

void unsubscribe_from(CommandContext& ctx, TopicKind kind) {
  Confirmations confirmations(ctx, ctx.command.full_name, kind);
  const auto leave = [&](std::string_view name) {
    ctx.server.pubsub().unsubscribe(ctx.client, kind, name);
    confirmations.add(name);
  };
  if (ctx.args.size() > 1) {
    for (const std::string_view name : ctx.args.subspan(1)) leave(name);
    return;
  }
  const auto names = ctx.server.pubsub().subscriptions(ctx.client, kind);
  for (const std::string& name : names) leave(name);
  if (names.empty()) confirmations.add_none();
}

void subscribe(CommandContext& ctx) {
  subscribe_to(ctx, TopicKind::kChannel);
}

void psubscribe(CommandContext& ctx) {
  subscribe_to(ctx, TopicKind::kPattern);
}

void ssubscribe(CommandContext& ctx) {
  // Unlike SUBSCRIBE and PSUBSCRIBE, it is refused in a transaction.
  if (ctx.client.has(kClientDenyBlocking))
    return ctx.reply.error("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client");
  subscribe_to(ctx, TopicKind::kShardChannel);
}

void unsubscribe(CommandContext& ctx) {
  unsubscribe_from(ctx, TopicKind::kChannel);
}

void punsubscribe(CommandContext& ctx) {
  unsubscribe_from(ctx, TopicKind::kPattern);
}

void sunsubscribe(CommandContext& ctx) {
  unsubscribe_from(ctx, TopicKind::kShardChannel);
}

// --- Publishing ---------------------------------------------------------------------------------

// Sends the message to subscribers at other servers.
void send_on(CommandContext& ctx, TopicKind kind) {
  if (PubSubRelay* const relay = ctx.server.pubsub().relay(); relay != nullptr)
    return relay->relay(kind, ctx.args[1], ctx.args[2]);
  // Not written to the append-only file, because a message does not change the dataset.
  ctx.propagate({}, ctx.args, kPropagateToReplicas);
}

void publish(CommandContext& ctx) {
  const size_t receivers = ctx.server.pubsub().publish(ctx.args[1], ctx.args[2]);
  send_on(ctx, TopicKind::kChannel);
  ctx.reply.integer(static_cast<int64_t>(receivers));
}

void spublish(CommandContext& ctx) {
  const size_t receivers = ctx.server.pubsub().publish_to_shard(ctx.args[1], ctx.args[2]);
  send_on(ctx, TopicKind::kShardChannel);
  ctx.reply.integer(static_cast<int64_t>(receivers));
}

// --- Listing topics -----------------------------------------------------------------------------

void reply_topics(CommandContext& ctx, TopicKind kind) {
  if (ctx.args.size() > 3) return wrong_subcommand(ctx);
  std::optional<base::GlobPattern> pattern;
  if (ctx.args.size() == 3) pattern.emplace(ctx.args[2]);
  size_t count = 0;
  const auto size = ctx.reply.later();
  ctx.server.pubsub().for_each_topic(kind, [&](std::string_view name) {
    if (pattern && !pattern->matches(name)) return;
    ctx.reply.bulk(name);
    ++count;
  });
  ctx.reply.array_later(size, count);
}

void reply_listeners(CommandContext& ctx, TopicKind kind) {
  const Arguments names = ctx.args.subspan(2);
  ctx.reply.array(names.size() * 2);
  for (const std::string_view name : names) {
    ctx.reply.bulk(name);
    ctx.reply.integer(static_cast<int64_t>(ctx.server.pubsub().listeners(kind, name)));
  }
}

void pubsub_channels(CommandContext& ctx) {
  reply_topics(ctx, TopicKind::kChannel);
}

void pubsub_shardchannels(CommandContext& ctx) {
  reply_topics(ctx, TopicKind::kShardChannel);
}

void pubsub_numsub(CommandContext& ctx) {
  reply_listeners(ctx, TopicKind::kChannel);
}

void pubsub_shardnumsub(CommandContext& ctx) {
  reply_listeners(ctx, TopicKind::kShardChannel);
}

void pubsub_numpat(CommandContext& ctx) {
  ctx.reply.integer(static_cast<int64_t>(ctx.server.pubsub().topics(TopicKind::kPattern)));
}

void pubsub_help(CommandContext& ctx) {
  reply_help(ctx, {
                      "CHANNELS [<pattern>]",
                      "    List the channels that anybody listens to, or those that match.",
                      "NUMPAT",
                      "    Count the patterns that anybody listens to.",
                      "NUMSUB [<channel> ...]",
                      "    Tell how many listen to each of these channels by its name.",
                      "SHARDCHANNELS [<pattern>]",
                      "    As CHANNELS, of shard channels.",
                      "SHARDNUMSUB [<shardchannel> ...]",
                      "    As NUMSUB, of shard channels.",
                  });
}

constexpr CommandRow kPubsubSubcommands[] = {
    {"CHANNELS",
     pubsub_channels,
     "[pattern]",
     kPubSub | kLoading | kStale,
     {},
     0,
     Group::kPubSub,
     "2.8.0",
     "O(N) where N is the number of active channels, and assuming constant time pattern matching "
     "(relatively short channels and patterns)",
     "Returns the active channels."},
    help_row(pubsub_help, 0, Group::kPubSub, "6.2.0"),
    {"NUMPAT",
     pubsub_numpat,
     "",
     kPubSub | kLoading | kStale,
     {},
     0,
     Group::kPubSub,
     "2.8.0",
     "O(1)",
     "Returns a count of unique pattern subscriptions."},
    {"NUMSUB",
     pubsub_numsub,
     "[channel...]",
     kPubSub | kLoading | kStale,
     {},
     0,
     Group::kPubSub,
     "2.8.0",
     "O(N) for the NUMSUB subcommand, where N is the number of requested channels",
     "Returns a count of subscribers to channels."},
    {"SHARDCHANNELS",
     pubsub_shardchannels,
     "[pattern]",
     kPubSub | kLoading | kStale,
     {},
     0,
     Group::kPubSub,
     "7.0.0",
     "O(N) where N is the number of active shard channels, and assuming constant time pattern "
     "matching (relatively short shard channels).",
     "Returns the active shard channels."},
    {"SHARDNUMSUB",
     pubsub_shardnumsub,
     "[shardchannel...]",
     kPubSub | kLoading | kStale,
     {},
     0,
     Group::kPubSub,
     "7.0.0",
     "O(N) for the SHARDNUMSUB subcommand, where N is the number of requested shard channels",
     "Returns the count of subscribers of shard channels."},
};

constexpr CommandRow kPubSubRows[] = {
    {"PSUBSCRIBE",
     psubscribe,
     "pattern...",
     kDenyOom | kPubSub | kNoScript | kLoading | kStale | kWhileSubscribed,
     {},
     0,
     Group::kPubSub,
     "2.0.0",
     "O(N) where N is the number of patterns to subscribe to.",
     "Listens for messages published to channels that match one or more patterns.",
     {.channels = {.first = 1, .patterns = true}}},
    {"PUBLISH",
     publish,
     "channel message",
     kPubSub | kLoading | kStale | kFast | kMayReplicate,
     {},
     0,
     Group::kPubSub,
     "2.0.0",
     "O(N+M) where N is the number of clients subscribed to the receiving channel and M is the "
     "total number of subscribed patterns (by any client).",
     "Posts a message to a channel.",
     {.channels = {.first = 1, .only_one = true}}},
    {"PUBSUB",
     nullptr,
     "",
     0,
     {},
     0,
     Group::kPubSub,
     "2.8.0",
     "Depends on subcommand.",
     "A container for Pub/Sub commands.",
     {.subcommands = kPubsubSubcommands}},
    {"PUNSUBSCRIBE",
     punsubscribe,
     "[pattern...]",
     kPubSub | kNoScript | kLoading | kStale | kWhileSubscribed,
     {},
     0,
     Group::kPubSub,
     "2.0.0",
     "O(N) where N is the number of patterns to unsubscribe.",
     "Stops listening to messages published to channels that match one or more patterns."},
    {"SPUBLISH",
     spublish,
     "shardchannel message",
     kPubSub | kLoading | kStale | kFast | kMayReplicate,
     keys(1).not_key(),
     0,
     Group::kPubSub,
     "7.0.0",
     "O(N) where N is the number of clients subscribed to the receiving shard channel.",
     "Post a message to a shard channel",
     {.channels = {.first = 1, .only_one = true}}},
    {"SSUBSCRIBE",
     ssubscribe,
     "shardchannel...",
     kDenyOom | kPubSub | kNoScript | kLoading | kStale | kWhileSubscribed,
     keys(1, -1).not_key(),
     0,
     Group::kPubSub,
     "7.0.0",
     "O(N) where N is the number of shard channels to subscribe to.",
     "Listens for messages published to shard channels.",
     {.channels = {.first = 1}}},
    {"SUBSCRIBE",
     subscribe,
     "channel...",
     kDenyOom | kPubSub | kNoScript | kLoading | kStale | kWhileSubscribed,
     {},
     0,
     Group::kPubSub,
     "2.0.0",
     "O(N) where N is the number of channels to subscribe to.",
     "Listens for messages published to channels.",
     {.channels = {.first = 1}}},
    {"SUNSUBSCRIBE", sunsubscribe, "[shardchannel...]",
     kPubSub | kNoScript | kLoading | kStale | kWhileSubscribed, keys(1, -1).not_key(), 0,
     Group::kPubSub, "7.0.0", "O(N) where N is the number of shard channels to unsubscribe.",
     "Stops listening to messages posted to shard channels."},
    {"UNSUBSCRIBE",
     unsubscribe,
     "[channel...]",
     kPubSub | kNoScript | kLoading | kStale | kWhileSubscribed,
     {},
     0,
     Group::kPubSub,
     "2.0.0",
     "O(N) where N is the number of channels to unsubscribe.",
     "Stops listening to messages posted to channels."},
};

}  // namespace

std::span<const CommandRow> pubsub_rows() {
  return kPubSubRows;
}

}  // namespace latchkey::commands
