// XINFO: describes a stream, its groups and their consumers.
#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "commands/groups.h"
#include "commands/keys/typed_key.h"
#include "commands/streams/stream_group_steps.h"
#include "commands/streams/stream_steps.h"
#include "server/command/command_context.h"
#include "server/command/help.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::PendingEntry;
using store::Stream;
using store::StreamConsumer;
using store::StreamEntry;
using store::StreamGroup;
using store::StreamId;
using store::StreamNode;

namespace {

// The number of equal leading bytes of two ids in big-endian order.
size_t common_prefix(StreamId left, StreamId right) {
  const uint64_t ms = left.ms ^ right.ms;
  if (ms != 0) return static_cast<size_t>(std::countl_zero(ms)) / 8;
  return 8 + static_cast<size_t>(std::countl_zero(left.sequence ^ right.sequence)) / 8;
}

// Computes how many nodes the reference's radix tree of this stream's nodes would have, keyed by
// ids of sixteen bytes: one node for each place where ids diverge, one for each run of bytes
// between such places, and one for each id's end. The computation follows the tree's right edge,
// from id to id.
size_t radix_tree_nodes(const Stream& stream) {
  constexpr size_t kIdBytes = 16;
  size_t nodes = 1;
  std::vector<size_t> partings;  // depths on the path of the previous id
  std::optional<StreamId> before;
  // Counts the run from the place of divergence above to that depth.
  const auto close_run = [&](size_t from, size_t to) {
    if (to > from) ++nodes;
  };
  stream.for_each_node([&](const StreamNode& node) {
    if (before) {
      const size_t depth = common_prefix(*before, node.id);
      size_t below = kIdBytes;
      while (!partings.empty() && partings.back() > depth) {
        close_run(partings.back() + 1, below);
        below = partings.back();
        partings.pop_back();
      }
      close_run(depth + 1, below);
      if (partings.empty() || partings.back() != depth) {
        partings.push_back(depth);
        ++nodes;
      }
    }
    ++nodes;
    before = node.id;
  });
  if (!before) return nodes;
  size_t below = kIdBytes;
  while (!partings.empty()) {
    close_run(partings.back() + 1, below);
    below = partings.back();
    partings.pop_back();
  }
  close_run(0, below);
  // The first of these nodes is the root, which has already been counted.
  return nodes - 1;
}

void reply_or_null(CommandContext& ctx, std::optional<int64_t> value) {
  value ? ctx.reply.integer(*value) : ctx.reply.null();
}

// What tells of an older release by its fields: Redis 7.0 counts entries and reads, 7.2 knows when
// a consumer was last served, 8.6 knows producers.
bool has_counts(const CommandContext& ctx) {
  return ctx.server.edition().has({7, 0});
}

bool has_active_time(const CommandContext& ctx) {
  return ctx.server.edition().has({7, 2});
}

bool has_producers(const CommandContext& ctx) {
  return ctx.server.edition().has({8, 6});
}

// The number of fields that reply_figures() sends.
size_t figure_count(const CommandContext& ctx) {
  return 4 + (has_counts(ctx) ? 3 : 0) + (has_producers(ctx) ? 6 : 0);
}

void reply_reads_and_lag(CommandContext& ctx, const Stream& stream, const StreamGroup& group) {
  if (!has_counts(ctx)) return;
  ctx.reply.bulk("entries-read");
  reply_or_null(ctx, group.entries_read == StreamGroup::kUnknownReads
                         ? std::nullopt
                         : std::optional(group.entries_read));
  ctx.reply.bulk("lag");
  reply_or_null(ctx, stream.lag(group, ctx.server.edition().is_valkey()));
}

void reply_figures(CommandContext& ctx, const Stream& stream) {
  const auto figure = [&](std::string_view name, uint64_t value) {
    ctx.reply.bulk(name);
    ctx.reply.integer(static_cast<int64_t>(value));
  };
  const auto id = [&](std::string_view name, StreamId value) {
    ctx.reply.bulk(name);
    reply_stream_id(ctx.reply, value);
  };
  figure("length", stream.size());
  figure("radix-tree-keys", stream.nodes());
  figure("radix-tree-nodes", radix_tree_nodes(stream));
  id("last-generated-id", stream.last_id());
  if (has_counts(ctx)) {
    id("max-deleted-entry-id", stream.max_deleted_id());
    figure("entries-added", stream.entries_added());
    id("recorded-first-entry-id", stream.first_id());
  }
  if (!has_producers(ctx)) return;
  const store::StreamProducers none;
  const store::StreamProducers& producers =
      stream.producers() != nullptr ? *stream.producers() : none;
  const auto remembered = producers.remembered(ctx.now_ms());
  figure("idmp-duration", producers.duration_s());
  figure("idmp-maxsize", producers.most_each());
  figure("pids-tracked", remembered.producers);
  figure("iids-tracked", remembered.requests);
  figure("iids-added", producers.added());
  figure("iids-duplicates", producers.repeated());
}

// Replies with the oldest or the newest entry.
void reply_edge(CommandContext& ctx, const Stream& stream, bool newest) {
  if (stream.size() == 0) return ctx.reply.null();
  stream.for_each({}, newest, [&](const StreamEntry& entry) {
    reply_stream_entry(ctx.reply, entry);
    return false;
  });
}

void reply_summary(CommandContext& ctx, const Stream& stream) {
  ctx.reply.map(figure_count(ctx) + 3);
  reply_figures(ctx, stream);
  ctx.reply.bulk("groups");
  ctx.reply.integer(static_cast<int64_t>(stream.group_count()));
  ctx.reply.bulk("first-entry");
  reply_edge(ctx, stream, false);
  ctx.reply.bulk("last-entry");
  reply_edge(ctx, stream, true);
}

// Calls fn, which replies, for up to `count` pending entries (all when zero).
template <typename Fn>
void reply_pending(CommandContext& ctx, const store::StreamIndex<PendingEntry>& pending,
                   size_t count, Fn&& fn) {
  size_t left = count == 0 ? pending.size() : std::min(count, pending.size());
  ctx.reply.bulk("pel-count");
  ctx.reply.integer(static_cast<int64_t>(pending.size()));
  ctx.reply.bulk("pending");
  ctx.reply.array(left);
  for (auto position = pending.first(); left > 0; --left, position.forward()) fn(**position);
}

void reply_consumer(CommandContext& ctx, const StreamConsumer& consumer, size_t count) {
  ctx.reply.map(has_active_time(ctx) ? 5 : 4);
  ctx.reply.bulk("name");
  ctx.reply.bulk(consumer.name);
  ctx.reply.bulk("seen-time");
  ctx.reply.integer(consumer.seen_ms);
  if (has_active_time(ctx)) {
    ctx.reply.bulk("active-time");
    ctx.reply.integer(consumer.active_ms);
  }
  reply_pending(ctx, consumer.pending, count, [&](const PendingEntry& entry) {
    ctx.reply.array(3);
    reply_stream_id(ctx.reply, entry.id);
    ctx.reply.integer(entry.delivered_ms());
    ctx.reply.integer(static_cast<int64_t>(entry.deliveries));
  });
}

void reply_group(CommandContext& ctx, const Stream& stream, std::string_view name,
                 const StreamGroup& group, size_t count) {
  // Redis 8.6 does not know of released entries, so only groups with some tell of them.
  const size_t released = group.released();
  ctx.reply.map(5 + (has_counts(ctx) ? 2 : 0) + (released == 0 ? 0 : 1));
  ctx.reply.bulk("name");
  ctx.reply.bulk(name);
  ctx.reply.bulk("last-delivered-id");
  reply_stream_id(ctx.reply, group.last_delivered);
  reply_reads_and_lag(ctx, stream, group);
  reply_pending(ctx, group.pending(), count, [&](const PendingEntry& entry) {
    ctx.reply.array(4);
    reply_stream_id(ctx.reply, entry.id);
    ctx.reply.bulk(entry.consumer().name);
    ctx.reply.integer(entry.delivered_ms());
    ctx.reply.integer(static_cast<int64_t>(entry.deliveries));
  });
  ctx.reply.bulk("consumers");
  ctx.reply.array(group.consumers().size());
  for (const auto& [consumer_name, consumer] : group.consumers())
    reply_consumer(ctx, *consumer, count);
  if (released == 0) return;
  ctx.reply.bulk("nacked-count");
  ctx.reply.integer(static_cast<int64_t>(released));
}

void reply_in_full(CommandContext& ctx, const Stream& stream, size_t count) {
  ctx.reply.map(figure_count(ctx) + 2);
  reply_figures(ctx, stream);
  ctx.reply.bulk("entries");
  reply_stream_entries(ctx.reply, stream, {}, false, count);
  ctx.reply.bulk("groups");
  ctx.reply.array(stream.group_count());
  stream.for_each_group([&](std::string_view name, const StreamGroup& group) {
    reply_group(ctx, stream, name, group, count);
  });
}

// The stream of the request; null with the error sent when there is none.
const Stream* find_stream(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[2]);
  if (!ref) ctx.reply.error("ERR no such key");
  return value_at<Stream>(ctx, ref);
}

void xinfo_stream(CommandContext& ctx) {
  constexpr int64_t kDefaultCount = 10;
  int64_t count = kDefaultCount;
  const Stream* stream = find_stream(ctx);
  if (stream == nullptr) return;
  ArgReader options(ctx.args, 3);
  if (!options.more()) return reply_summary(ctx, *stream);
  if (!options.word("FULL")) return wrong_subcommand(ctx);
  if (options.more()) {
    std::string_view text;
    if (!options.word("COUNT", &text) || options.more()) return wrong_subcommand(ctx);
    if (!ctx.read_int64(text, &count)) return;
    if (count < 0) count = kDefaultCount;
  }
  reply_in_full(ctx, *stream, static_cast<size_t>(count));
}

void xinfo_groups(CommandContext& ctx) {
  const Stream* stream = find_stream(ctx);
  if (stream == nullptr) return;
  ctx.reply.array(stream->group_count());
  stream->for_each_group([&](std::string_view name, const StreamGroup& group) {
    ctx.reply.map(has_counts(ctx) ? 6 : 4);
    ctx.reply.bulk("name");
    ctx.reply.bulk(name);
    ctx.reply.bulk("consumers");
    ctx.reply.integer(static_cast<int64_t>(group.consumers().size()));
    ctx.reply.bulk("pending");
    ctx.reply.integer(static_cast<int64_t>(group.pending().size()));
    ctx.reply.bulk("last-delivered-id");
    reply_stream_id(ctx.reply, group.last_delivered);
    reply_reads_and_lag(ctx, *stream, group);
  });
}

void xinfo_consumers(CommandContext& ctx) {
  const Stream* stream = find_stream(ctx);
  if (stream == nullptr) return;
  const StreamGroup* group = stream->find_group(ctx.args[3]);
  if (group == nullptr) return no_such_group_of(ctx, ctx.args[2], ctx.args[3]);
  const auto since = [&](int64_t time_ms) { return std::max<int64_t>(ctx.now_ms() - time_ms, 0); };
  ctx.reply.array(group->consumers().size());
  for (const auto& [name, consumer] : group->consumers()) {
    ctx.reply.map(has_active_time(ctx) ? 4 : 3);
    ctx.reply.bulk("name");
    ctx.reply.bulk(name);
    ctx.reply.bulk("pending");
    ctx.reply.integer(static_cast<int64_t>(consumer->pending.size()));
    ctx.reply.bulk("idle");
    ctx.reply.integer(since(consumer->seen_ms));
    if (!has_active_time(ctx)) continue;
    ctx.reply.bulk("inactive");
    ctx.reply.integer(consumer->active_ms == StreamConsumer::kNever ? StreamConsumer::kNever
                                                                    : since(consumer->active_ms));
  }
}

void xinfo_help(CommandContext& ctx) {
  reply_help(ctx, {
                      "CONSUMERS <key> <groupname>",
                      "    List the consumers of a group.",
                      "GROUPS <key>",
                      "    List the consumer groups of a stream.",
                      "STREAM <key> [FULL [COUNT <count>]]",
                      "    Describe a stream; in full, with its entries and groups.",
                  });
}

constexpr CommandRow kXinfoSubcommands[] = {
    {"CONSUMERS",
     xinfo_consumers,
     "key group",
     kReadOnly,
     keys(2).ro().access(),
     kAclStream,
     Group::kStream,
     "5.0.0",
     "O(1)",
     "Returns a list of the consumers in a consumer group.",
     {.tips = "nondeterministic_output",
      .history = "7.2.0 Added the `inactive` field, and changed the meaning of `idle`."}},
    {"GROUPS",
     xinfo_groups,
     "key",
     kReadOnly,
     keys(2).ro().access(),
     kAclStream,
     Group::kStream,
     "5.0.0",
     "O(1)",
     "Returns a list of the consumer groups of a stream.",
     {.history = "7.0.0 Added the `entries-read` and `lag` fields"}},
    help_row(xinfo_help, kAclStream, Group::kStream, "5.0.0"),
    {"STREAM",
     xinfo_stream,
     "key [full-block=FULL [COUNT count]]",
     kReadOnly,
     keys(2).ro().access(),
     kAclStream,
     Group::kStream,
     "5.0.0",
     "O(1)",
     "Returns information about a stream.",
     {.history =
          "6.0.0 Added the `FULL` modifier.\n7.0.0 Added the `max-deleted-entry-id`, "
          "`entries-added`, `recorded-first-entry-id`, `entries-read` and `lag` fields\n7.2.0 "
          "Added the `active-time` field, and changed the meaning of `seen-time`.\n8.6.0 Added the "
          "`idmp-duration`, `idmp-maxsize`, `pids-tracked`, `iids-tracked`, `iids-added` and "
          "`iids-duplicates` fields for IDMP tracking."}},
};

constexpr CommandRow kStreamInfoRows[] = {
    {"XINFO",
     nullptr,
     "",
     0,
     {},
     0,
     Group::kStream,
     "5.0.0",
     "Depends on subcommand.",
     "A container for stream introspection commands.",
     {.subcommands = kXinfoSubcommands}},
};

}  // namespace

std::span<const CommandRow> stream_info_rows() {
  return kStreamInfoRows;
}

}  // namespace latchkey::commands
