// Reading new entries of streams, and blocking for them: XREAD, and XREADGROUP for consumer groups.
//
// MAXCOUNT and MAXSIZE came with Redis 8.10 and follow its documentation, which does not say what
// of a reply counts for MAXSIZE: here the entries' ids, fields and values as they are sent.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "commands/groups.h"
#include "commands/keys/typed_key.h"
#include "commands/streams/stream_group_steps.h"
#include "commands/streams/stream_steps.h"
#include "server/client/blocking.h"
#include "server/client/output_limits.h"
#include "server/command/command_context.h"
#include "server/server.h"
#include "store/value/stream.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::PendingEntry;
using store::Stream;
using store::StreamConsumer;
using store::StreamEntry;
using store::StreamFinder;
using store::StreamGroup;
using store::StreamId;
using store::StreamRange;

namespace {

struct ReadRequest {
  bool for_group = false;
  std::string_view group;
  std::string_view consumer;
  bool no_ack = false;
  // Entries that have been pending for so long are read before new ones; negative: none are.
  int64_t claim_idle_ms = -1;
  size_t count = 0;      // of each stream; 0: all
  size_t max_count = 0;  // of all streams together; 0: all
  size_t max_size = 0;   // bytes, of all streams together; 0: all
  bool may_wait = false;
  int64_t deadline_ms = 0;
  size_t first_key = 0;  // word of the request
  Arguments keys;
  Arguments ids;
};

std::string_view unbalanced_streams(const server::Edition& edition, bool for_group) {
  if (!edition.has({7, 2})) {
    return "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be "
           "specified.";
  }
  if (for_group) {
    return "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be "
           "specified.";
  }
  return edition.has({7, 4}) ? "ERR Unbalanced 'xread' list of streams: for each stream key an ID, "
                               "'+', or '$' must be specified."
                             : "ERR Unbalanced 'xread' list of streams: for each stream key an ID "
                               "or '$' must be specified.";
}

// Reads the keys and ids at the end of the request.
bool read_streams(CommandContext& ctx, const ArgReader& words, ReadRequest* request) {
  const Arguments rest = words.rest();
  if (rest.size() % 2 != 0)
    return ctx.refuse(unbalanced_streams(ctx.server.edition(), request->for_group));
  request->first_key = words.position();
  request->keys = rest.first(rest.size() / 2);
  request->ids = rest.last(rest.size() / 2);
  return true;
}

bool read_block_time(CommandContext& ctx, std::string_view text, ReadRequest* request) {
  if (ctx.client.has(server::kClientScript) && !ctx.server.edition().has({7, 2}))
    return ctx.refuse("ERR " + std::string(ctx.args[0]) +
                      " command is not allowed with BLOCK option from scripts");
  if (!ctx.read_wait_ms(text, &request->deadline_ms)) return false;
  request->may_wait = true;
  return true;
}

bool read_count(CommandContext& ctx, std::string_view text, ReadRequest* request) {
  int64_t count = 0;
  if (!ctx.read_int64(text, &count)) return false;
  request->count = static_cast<size_t>(std::max<int64_t>(count, 0));
  return true;
}

bool read_maximum(CommandContext& ctx, std::string_view text, std::string_view name,
                  size_t* maximum) {
  int64_t value = 0;
  if (!ctx.read_int64(text, &value)) return false;
  if (value < 1) return ctx.refuse("ERR " + std::string(name) + " must be a positive integer");
  *maximum = static_cast<size_t>(value);
  return true;
}

bool read_claim_time(CommandContext& ctx, std::string_view text, ReadRequest* request) {
  if (!request->for_group)
    return ctx.refuse(
        "ERR The CLAIM option is only supported by XREADGROUP. You called XREAD instead.");
  if (!ctx.read_int64(text, &request->claim_idle_ms,
                      "ERR min-idle-time is not an integer or out of range"))
    return false;
  return request->claim_idle_ms >= 0 || ctx.refuse("ERR min-idle-time must be a positive integer");
}

bool read_request(CommandContext& ctx, ReadRequest* request) {
  for (ArgReader words(ctx.args, 1); words.more();) {
    std::string_view text;
    if (words.word("BLOCK", &text)) {
      if (!read_block_time(ctx, text, request)) return false;
    } else if (words.word("CLAIM", &text)) {
      if (!read_claim_time(ctx, text, request)) return false;
    } else if (words.word("COUNT", &text)) {
      if (!read_count(ctx, text, request)) return false;
    } else if (words.word("MAXCOUNT", &text)) {
      if (!read_maximum(ctx, text, "MAXCOUNT", &request->max_count)) return false;
    } else if (words.word("MAXSIZE", &text)) {
      if (!read_maximum(ctx, text, "MAXSIZE", &request->max_size)) return false;
    } else if (words.left() > 1 && words.word("STREAMS")) {
      if (!read_streams(ctx, words, request)) return false;
      break;
    } else if (words.left() > 2 && words.word("GROUP")) {
      if (!request->for_group)
        return ctx.refuse(
            "ERR The GROUP option is only supported by XREADGROUP. You called XREAD "
            "instead.");
      request->group = words.next();
      request->consumer = words.next();
    } else if (words.word("NOACK")) {
      if (!request->for_group)
        return ctx.refuse(
            "ERR The NOACK option is only supported by XREADGROUP. You called XREAD "
            "instead.");
      request->no_ack = true;
    } else {
      ctx.syntax_error();
      return false;
    }
  }
  if (request->keys.empty()) {
    ctx.syntax_error();
    return false;
  }
  if (request->for_group && request->group.data() == nullptr)
    return ctx.refuse("ERR Missing GROUP option for XREADGROUP");
  if (request->max_count != 0 && request->max_count < request->count)
    return ctx.refuse("ERR MAXCOUNT must be greater than or equal to COUNT");
  return true;
}

// One of the streams to read.
struct Source {
  std::string_view key;
  Stream* stream = nullptr;      // null: there is no stream
  StreamGroup* group = nullptr;  // null in XREAD
  bool is_new = false;           // ">": entries that the group has not read
  StreamId after;
};

bool meaningless_id(CommandContext& ctx, char symbol) {
  std::string error = "ERR The ";
  error += symbol;
  error.append(
      " ID is meaningless in the context of XREADGROUP: you want to read the history of this "
      "consumer by specifying a proper ID, or use the > ID to get new messages. The ");
  error += symbol;
  return ctx.refuse(error.append(" ID would just return an empty result set."));
}

// Whether the word stands for the last id, or the one before it, at the time of the request.
bool is_present_end(const CommandContext& ctx, std::string_view id) {
  return id == "$" || (id == "+" && ctx.server.edition().has({7, 4}, {8, 0}));
}

// Sets source->after from an id of the request, or from the symbol in place of one.
bool read_place(CommandContext& ctx, std::string_view id, Source* source) {
  const Stream* stream = source->stream;
  if (is_present_end(ctx, id)) {
    if (source->group != nullptr) return meaningless_id(ctx, id.front());
    if (stream == nullptr) return true;
    source->after =
        id == "+" && stream->size() > 0 ? stream->last_entry_id().previous() : stream->last_id();
    return true;
  }
  if (id == ">") {
    if (source->group == nullptr)
      return ctx.refuse(
          "ERR The > ID can be specified only when calling XREADGROUP using the GROUP "
          "<group> <consumer> option.");
    source->is_new = true;
  } else {
    if (!read_stream_id(ctx, id, 0, &source->after)) return false;
    source->is_new = source->group != nullptr && source->after == StreamId::max();
  }
  if (source->is_new) source->after = source->group->last_delivered;
  return true;
}

bool find_source(CommandContext& ctx, const ReadRequest& request, size_t index, Source* source) {
  source->key = request.keys[index];
  // Reading for a group changes the group.
  const KeyRef ref = request.for_group ? ctx.db.find_for_write(source->key, store::Keyspace::kTouch)
                                       : ctx.db.find(source->key);
  // Before Redis 7.2 one that has waited is told that what it waited for has gone.
  const bool tells_of_loss = request.for_group && !ctx.server.edition().has({7, 2}) &&
                             ctx.server.blocking().served() == &ctx.client;
  if (tells_of_loss && (!ref || ref->type() != Stream::kType))
    return ctx.refuse("UNBLOCKED the stream key no longer exists");
  if (!ctx.is_type(ref, Stream::kType)) return false;
  if (ref) source->stream = &value_of<Stream>(ref);
  if (request.for_group) {
    if (ref) source->group = source->stream->find_group(request.group);
    if (source->group == nullptr) {
      if (tells_of_loss)
        return ctx.refuse("NOGROUP the consumer group this client was blocked on no longer exists");
      no_such_group(ctx, source->key, request.group, " in XREADGROUP with GROUP option");
      return false;
    }
  }
  return read_place(ctx, request.ids[index], source);
}

// Calls fn(PendingEntry&, const StreamEntry&) for the entries that CLAIM takes over from other
// consumers, those first that were released, then the longest delivered, until fn returns false.
// Entries that were deleted stay pending.
template <typename Fn>
void for_each_claimable(const CommandContext& ctx, const ReadRequest& request, const Source& source,
                        Fn&& fn) {
  if (request.claim_idle_ms < 0 || !source.is_new) return;
  const int64_t latest_ms = ctx.now_ms() - request.claim_idle_ms;
  source.stream->for_each_pending(*source.group, [&](PendingEntry& pending,
                                                     const StreamEntry& entry) {
    const bool is_due = source.group->is_released(pending) || pending.delivered_ms() <= latest_ms;
    return is_due && fn(pending, entry);
  });
}

// The first of these; null when there is none. O(log n).
const PendingEntry* first_claimable(const CommandContext& ctx, const ReadRequest& request,
                                    const Source& source) {
  const PendingEntry* first = nullptr;
  for_each_claimable(ctx, request, source, [&](const PendingEntry& pending, const StreamEntry&) {
    first = &pending;
    return false;
  });
  return first;
}

// The first of these: as many as the request's count, or up to and with the one that the budget
// does not allow.
std::vector<PendingEntry*> claimable(const CommandContext& ctx, const ReadRequest& request,
                                     const Source& source, ReplyBudget budget) {
  std::vector<PendingEntry*> found;
  for_each_claimable(ctx, request, source, [&](PendingEntry& pending, const StreamEntry& entry) {
    found.push_back(&pending);
    return found.size() != request.count && budget.take(entry);
  });
  return found;
}

bool has_new_entries(const Source& source) {
  return source.stream != nullptr && source.stream->size() > 0 &&
         source.stream->last_entry_id() > source.after;
}

// Whether there is something to send: the history of a consumer is sent even if it is empty.
bool has_something(const CommandContext& ctx, const ReadRequest& request, const Source& source) {
  if (source.group != nullptr && !source.is_new) return true;
  return has_new_entries(source) || first_claimable(ctx, request, source) != nullptr;
}

// --- For groups ---------------------------------------------------------------------------------

// Assigns an entry that has been pending for long to the consumer, and sends it with the time since
// its last delivery and the number of deliveries before this one.
// False when the budget does not allow it.
bool send_claimed_entry(CommandContext& ctx, const ReadRequest& request, const Source& source,
                        StreamConsumer& consumer, PendingEntry& pending, ReplyBudget& budget) {
  StreamGroup& group = *source.group;
  bool may_send = false;
  source.stream->for_each({pending.id, pending.id}, false, [&](const StreamEntry& entry) {
    may_send = budget.take(entry);
    if (may_send) reply_stream_entry(ctx.reply, entry, /*more=*/2);
    return false;
  });
  if (!may_send) return false;
  ctx.reply.integer(idle_time_ms(ctx, group, pending));
  ctx.reply.integer(static_cast<int64_t>(pending.deliveries));
  group.assign_pending(pending, consumer, ctx.now_ms());
  pending.count_delivery();
  propagate_pending(ctx, source.key, group, request.group, pending);
  return true;
}

// Sends an entry that the group has not read; it becomes pending.
void send_new_entry(CommandContext& ctx, const ReadRequest& request, const Source& source,
                    StreamConsumer& consumer, const StreamEntry& entry) {
  StreamGroup& group = *source.group;
  if (request.claim_idle_ms >= 0) {
    reply_stream_entry(ctx.reply, entry, /*more=*/2);
    ctx.reply.integer(0);
    ctx.reply.integer(0);
  } else {
    reply_stream_entry(ctx.reply, entry);
  }
  source.stream->advance(group, entry.id());
  if (request.no_ack) return;
  // The entry may be pending already, if the group's last id was set back.
  if (PendingEntry* pending = group.pending().find(entry.id())) {
    group.assign_pending(*pending, consumer, ctx.now_ms());
    pending->deliveries = 1;
  } else {
    group.add_pending(entry.id(), consumer, ctx.now_ms(), 1);
  }
  // Redis 8.6 leaves it to propagate_place(), in the same transaction, how far the group has read.
  propagate_pending(ctx, source.key, group, request.group, *group.pending().find(entry.id()),
                    ctx.server.edition().has({8, 6}) ? source.after : group.last_delivered);
}

// Sends entries that CLAIM takes over, and entries that the group has not read; returns how many.
size_t send_new_entries(CommandContext& ctx, const ReadRequest& request, const Source& source,
                        StreamConsumer& consumer, ReplyBudget& budget) {
  StreamGroup& group = *source.group;
  const resp::ReplyBuilder::Later later = ctx.reply.later();
  size_t claimed = 0;
  for (PendingEntry* pending : claimable(ctx, request, source, budget)) {
    if (!send_claimed_entry(ctx, request, source, consumer, *pending, budget)) break;
    ++claimed;
  }
  size_t sent = claimed;
  if ((request.count == 0 || sent < request.count) && has_new_entries(source)) {
    source.stream->for_each({source.after.next()}, false, [&](const StreamEntry& entry) {
      if (!budget.take(entry)) return false;
      send_new_entry(ctx, request, source, consumer, entry);
      return ++sent != request.count;
    });
  }
  ctx.reply.array_later(later, sent);
  if (sent == 0) return 0;
  report_deliveries(ctx, source.key, group);
  const bool any_new = sent != claimed;
  if (claimed != 0 || !request.no_ack) consumer.active_ms = ctx.now_ms();
  // Before Redis 7.2 the entries alone said how far the group has read.
  if (any_new && (request.no_ack || ctx.server.edition().has({7, 2})))
    propagate_place(ctx, source.key, group, request.group);
  ctx.events.count(1);
  if (ctx.db.environment().use_lrm) {
    store::KeyRef ref = ctx.db.find(source.key, store::Keyspace::kPeek);
    ctx.db.set_access(ref, ctx.db.environment().access_clock);
  }
  return sent;
}

// Sends the consumer's pending entries again.
void send_history(CommandContext& ctx, const ReadRequest& request, const Source& source,
                  StreamConsumer& consumer, ReplyBudget& budget) {
  const resp::ReplyBuilder::Later later = ctx.reply.later();
  size_t sent = 0;
  StreamFinder entries(*source.stream);
  for (auto position = consumer.pending.not_before(source.after.next()); position;
       position.forward()) {
    PendingEntry& pending = **position;
    const std::optional<StreamEntry> entry = entries.find(pending.id);
    if (!(entry ? budget.take(*entry) : budget.take(pending.id))) break;
    if (entry) {
      reply_stream_entry(ctx.reply, *entry);
      source.group->assign_pending(pending, consumer, ctx.now_ms());
      pending.count_delivery();
    } else {
      ctx.reply.array(2);
      reply_stream_id(ctx.reply, pending.id);
      ctx.reply.null_array();
    }
    if (++sent == request.count) break;
  }
  ctx.reply.array_later(later, sent);
}

// --- The commands -------------------------------------------------------------------------------

// Whether the budget allows the first of the entries that a source has, so that the source is not
// sent without any. A history without entries is sent.
bool may_send_from(CommandContext& ctx, const ReadRequest& request, const Source& source,
                   ReplyBudget budget) {
  if (!budget.is_limited()) return true;
  StreamRange range{source.after.next()};
  if (source.group != nullptr && !source.is_new) {
    const auto first =
        source.group->find_consumer(request.consumer)->pending.not_before(range.first);
    if (!first) return true;
    if (!source.stream->contains((*first)->id)) return budget.take((*first)->id);
    range = {(*first)->id, (*first)->id};
  } else if (source.group != nullptr) {
    if (const PendingEntry* claimed = first_claimable(ctx, request, source))
      range = {claimed->id, claimed->id};
  }
  bool may_send = false;
  source.stream->for_each(range, false, [&](const StreamEntry& entry) {
    may_send = budget.take(entry);
    return false;
  });
  return may_send;
}

void send_source(CommandContext& ctx, const ReadRequest& request, const Source& source,
                 ReplyBudget& budget) {
  if (!ctx.reply.is_resp3()) ctx.reply.array(2);
  ctx.reply.bulk(source.key);
  if (source.group == nullptr)
    return reply_stream_entries(ctx.reply, *source.stream, {source.after.next()}, false,
                                request.count, &budget);
  StreamConsumer& consumer = *source.group->find_consumer(request.consumer);
  source.is_new ? static_cast<void>(send_new_entries(ctx, request, source, consumer, budget))
                : send_history(ctx, request, source, consumer, budget);
}

// When the longest delivered of the pending entries will have been pending for as long as CLAIM
// wants, which no change of a key tells. 0 when nothing is pending, or without CLAIM. The groups
// are to tell of entries that were delivered earlier. O(log n) for each source.
int64_t time_to_look_again(const CommandContext& ctx, const ReadRequest& request,
                           const std::vector<Source>& sources) {
  if (request.claim_idle_ms < 0) return 0;
  constexpr int64_t kLongestMs = int64_t{1} << 40;
  int64_t first_ms = StreamGroup::kNoDelivery;
  for (const Source& source : sources) {
    if (!source.is_new) continue;
    int64_t delivered_ms = StreamGroup::kNoDelivery;
    source.stream->for_each_pending(*source.group,
                                    [&](const PendingEntry& pending, const StreamEntry&) {
                                      delivered_ms = pending.delivered_ms();
                                      return false;
                                    });
    source.group->await_delivery_before(delivered_ms);
    first_ms = std::min(first_ms, delivered_ms);
  }
  if (first_ms == StreamGroup::kNoDelivery) return 0;
  return std::max(first_ms + std::min(request.claim_idle_ms, kLongestMs), ctx.now_ms() + 1);
}

// Blocks with ids in place of "$" and "+", which mean the streams' contents at the time of the
// request.
void wait_for_entries(CommandContext& ctx, const ReadRequest& request,
                      const std::vector<Source>& sources) {
  std::vector<std::string_view> words(ctx.args.begin(), ctx.args.end());
  std::vector<std::string> ids(sources.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    std::string_view& id = words[request.first_key + sources.size() + i];
    if (sources[i].group != nullptr || !is_present_end(ctx, id)) continue;
    ids[i] = stream_id_text(sources[i].after);
    id = ids[i];
  }
  const int64_t again_ms = time_to_look_again(ctx, request, sources);
  CommandContext resolved = ctx.with_args(words);
  ctx.server.blocking().wait(resolved,
                             {.keys = Arguments(words).subspan(request.first_key, sources.size()),
                              .type = Stream::kType,
                              .deadline_ms = request.deadline_ms,
                              .again_ms = again_ms,
                              .also_without_key = request.for_group});
}

void read_or_wait(CommandContext& ctx, bool for_group) {
  ReadRequest request;
  request.for_group = for_group;
  if (!read_request(ctx, &request)) return;
  std::vector<Source> sources(request.keys.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!find_source(ctx, request, i, &sources[i])) return;
  }
  const auto is_served = [&](const Source& source) { return has_something(ctx, request, source); };
  if (for_group) {
    // The pending entries are propagated, not the request.
    ctx.propagate_nothing();
    // Before Redis 7.2 the first entry that is delivered creates the consumer.
    const bool without_entries = ctx.server.edition().has({7, 2});
    for (Source& source : sources) {
      if (!without_entries && !is_served(source)) continue;
      const bool is_new = source.group->find_consumer(request.consumer) == nullptr;
      consumer_or_new(ctx, source.key, *source.group, request.consumer);
      // Propagated pending entries create their consumer; without them it must be created
      // explicitly.
      if (request.no_ack && is_new)
        ctx.propagate({"XGROUP", "CREATECONSUMER", source.key, request.group, request.consumer});
    }
  }
  if (std::none_of(sources.begin(), sources.end(), is_served))
    return request.may_wait ? wait_for_entries(ctx, request, sources) : ctx.reply.null_array();
  const resp::ReplyBuilder::Later later = ctx.reply.later();
  size_t sent = 0;
  ReplyBudget budget(request.max_count, request.max_size);
  for (Source& source : sources) {
    // If a stream is named twice, the second time starts behind the entries already sent.
    if (source.is_new) source.after = source.group->last_delivered;
    if (!is_served(source)) continue;
    if (!may_send_from(ctx, request, source, budget)) break;
    send_source(ctx, request, source, budget);
    ++sent;
    // A stream may be named thousands of times.
    if (!for_group && reply_is_lost(ctx.client)) break;
  }
  ctx.reply.is_resp3() ? ctx.reply.map_later(later, sent) : ctx.reply.array_later(later, sent);
}

void xread(CommandContext& ctx) {
  read_or_wait(ctx, false);
}

void xreadgroup(CommandContext& ctx) {
  read_or_wait(ctx, true);
}

constexpr char kMaximumHistory[] = "8.10.0 Added the `MAXCOUNT` and `MAXSIZE` options.";
constexpr char kGroupHistory[] =
    "8.4.0 Added the `CLAIM` option.\n8.10.0 Added the `MAXCOUNT` and `MAXSIZE` options.";

constexpr CommandRow kStreamReadRows[] = {
    {"XREAD",
     xread,
     "[COUNT count] [MAXCOUNT maxcount:integer]@8.10.0 [MAXSIZE maxsize:integer]@8.10.0 [BLOCK "
     "milliseconds] {STREAMS streams=key... id...}",
     kReadOnly | kBlocking,
     keys_after("STREAMS", 1, -1).limit(2).ro().access(),
     kAclStream,
     Group::kStream,
     "5.0.0",
     nullptr,
     "Returns messages from multiple streams with IDs greater than the ones requested. Blocks "
     "until a message is available otherwise.",
     {.history = kMaximumHistory}},
    {"XREADGROUP",
     xreadgroup,
     "{GROUP group-block=group consumer} [COUNT count] [MAXCOUNT maxcount:integer]@8.10.0 [MAXSIZE "
     "maxsize:integer]@8.10.0 [BLOCK milliseconds] [CLAIM min-idle-time:integer] [NOACK] {STREAMS "
     "streams=key... id...}",
     kWrite | kBlocking,
     keys_after("STREAMS", 4, -1).limit(2).ro().access(),
     kAclStream,
     Group::kStream,
     "5.0.0",
     "For each stream mentioned: O(M) with M being the number of elements returned. If M is "
     "constant (e.g. always asking for the first 10 elements with COUNT), you can consider it "
     "O(1). On the other side when XREADGROUP blocks, XADD will pay the O(N) time in order to "
     "serve the N clients blocked on the stream getting new data.",
     "Returns new or historical messages from a stream for a consumer in a group. Blocks until a "
     "message is available otherwise.",
     {.history = kGroupHistory}},
};

}  // namespace

std::span<const CommandRow> stream_read_rows() {
  return kStreamReadRows;
}

}  // namespace latchkey::commands
