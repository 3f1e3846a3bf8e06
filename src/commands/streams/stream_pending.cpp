// Entries delivered to consumers of a group and not acknowledged: XACK, XNACK, XPENDING, XCLAIM,
// XAUTOCLAIM.
//
// XNACK came with Redis 8.8 and follows its documentation; the errors of malformed requests are
// what Redis's own tests expect.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "commands/groups.h"
#include "commands/keys/typed_key.h"
#include "commands/streams/stream_group_steps.h"
#include "commands/streams/stream_steps.h"
#include "server/command/command_context.h"

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
using store::StreamIndex;
using store::StreamRange;

namespace {

void xack(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find_for_write(ctx.args[1], store::Keyspace::kTouch);
  Stream* stream = value_at<Stream>(ctx, ref);
  if (ref && stream == nullptr) return;
  StreamGroup* group = stream == nullptr ? nullptr : stream->find_group(ctx.args[2]);
  if (group == nullptr) return ctx.reply.integer(0);
  const Arguments ids = ctx.args.subspan(3);
  // All ids are validated before the first is acknowledged.
  StreamId id;
  for (const std::string_view text : ids) {
    if (!read_stream_id(ctx, text, 0, &id)) return;
  }
  size_t acknowledged = 0;
  for (const std::string_view text : ids) {
    if (parse_stream_id(text, 0, &id) && group->erase_pending(id)) ++acknowledged;
  }
  ctx.events.count(acknowledged);
  ctx.reply.integer(static_cast<int64_t>(acknowledged));
}

// --- XNACK --------------------------------------------------------------------------------------

struct ReleaseRequest {
  enum class Mode : uint8_t { kSilent, kFail, kFatal };
  Mode mode = Mode::kFail;
  Arguments ids;
  int64_t deliveries = -1;  // negative: as the mode says
  bool force = false;

  // `deliveries_so_far`: 0 for an entry that was not pending.
  uint64_t deliveries_after(uint64_t deliveries_so_far) const {
    if (deliveries >= 0) return static_cast<uint64_t>(deliveries);
    if (mode == Mode::kFatal) return PendingEntry::kMaxDeliveries;
    return deliveries_so_far - (mode == Mode::kSilent && deliveries_so_far > 0 ? 1 : 0);
  }
};

bool read_release_mode(CommandContext& ctx, std::string_view word, ReleaseRequest* request) {
  if (is_word(word, "SILENT")) {
    request->mode = ReleaseRequest::Mode::kSilent;
  } else if (is_word(word, "FAIL")) {
    request->mode = ReleaseRequest::Mode::kFail;
  } else if (is_word(word, "FATAL")) {
    request->mode = ReleaseRequest::Mode::kFatal;
  } else {
    return ctx.refuse("ERR mode must be SILENT, FAIL, or FATAL");
  }
  return true;
}

// The number of ids, and the ids.
bool read_released_ids(CommandContext& ctx, std::string_view number, ArgReader& words,
                       Arguments* ids) {
  int64_t count;
  if (!ctx.read_int64_in(number, 1, INT64_MAX, &count, "ERR numids must be a positive integer"))
    return false;
  if (static_cast<uint64_t>(count) > words.left())
    return ctx.refuse("ERR number of IDs doesn't match numids");
  *ids = words.rest().first(static_cast<size_t>(count));
  for (const std::string_view text : *ids) {
    StreamId id;
    if (!read_stream_id(ctx, text, 0, &id)) return false;
    words.next();
  }
  return true;
}

// Options stand before or behind the ids, which are all validated before the first is released.
bool read_release_request(CommandContext& ctx, ReleaseRequest* request) {
  if (!read_release_mode(ctx, ctx.args[3], request)) return false;
  ArgReader words(ctx.args, 4);
  for (std::string_view text; words.more();) {
    if (words.word("FORCE")) {
      request->force = true;
    } else if (words.word("RETRYCOUNT", &text)) {
      if (!ctx.read_int64(text, &request->deliveries)) return false;
      if (request->deliveries < 0) return ctx.refuse("ERR Invalid RETRYCOUNT value, must be >= 0");
    } else if (request->ids.empty() && words.word("IDS", &text)) {
      if (!read_released_ids(ctx, text, words, &request->ids)) return false;
    } else {
      std::string error = "ERR Unrecognized XNACK option '";
      return ctx.refuse(error.append(words.peek()).append("'"));
    }
  }
  return !request->ids.empty() || ctx.refuse("ERR syntax error, expected IDS keyword");
}

void xnack(CommandContext& ctx) {
  ReleaseRequest request;
  if (!read_release_request(ctx, &request)) return;
  const std::string_view key = ctx.args[1];
  const KeyRef ref = ctx.db.find_for_write(key, store::Keyspace::kTouch);
  const GroupAtKey found = group_at(ctx, ref, key, ctx.args[2]);
  if (!found) return;
  size_t released = 0;
  for (const std::string_view text : request.ids) {
    StreamId id;
    parse_stream_id(text, 0, &id);
    if (PendingEntry* entry = found.group->pending().find(id)) {
      found.group->release_pending(*entry, request.deliveries_after(entry->deliveries));
    } else if (request.force && found.stream->contains(id)) {
      found.group->add_released(id, request.deliveries_after(0));
    } else {
      continue;
    }
    ++released;
  }
  if (released > 0) {
    // Without a name: nobody is notified, but consumers that wait with CLAIM look again.
    ctx.changed(key, EventClass::kStream, "");
    ctx.events.count(released - 1);
  }
  ctx.reply.integer(static_cast<int64_t>(released));
}

// --- XPENDING -----------------------------------------------------------------------------------

void summarize_pending(CommandContext& ctx, const StreamGroup& group) {
  const StreamIndex<PendingEntry>& pending = group.pending();
  ctx.reply.array(4);
  ctx.reply.integer(static_cast<int64_t>(pending.size()));
  if (pending.empty()) {
    ctx.reply.null();
    ctx.reply.null();
    return ctx.reply.null_array();
  }
  reply_stream_id(ctx.reply, (*pending.first())->id);
  reply_stream_id(ctx.reply, (*pending.last())->id);
  const resp::ReplyBuilder::Later later = ctx.reply.later();
  size_t owners = 0;
  for (const auto& [name, consumer] : group.consumers()) {
    if (consumer->pending.empty()) continue;
    ++owners;
    ctx.reply.array(2);
    ctx.reply.bulk(name);
    ctx.reply.bulk(static_cast<int64_t>(consumer->pending.size()));
  }
  ctx.reply.array_later(later, owners);
}

struct PendingRequest {
  bool summary = false;
  int64_t least_idle_ms = 0;
  StreamRange range;
  size_t count = 0;
  bool of_one = false;
  std::string_view consumer;
};

bool read_pending_request(CommandContext& ctx, PendingRequest* request) {
  constexpr size_t kMaxWords = 9;
  constexpr size_t kRangeWords = 3;
  ArgReader words(ctx.args, 3);
  request->summary = !words.more();
  if (request->summary) return true;
  if (words.left() < kRangeWords || ctx.args.size() > kMaxWords) {
    ctx.syntax_error();
    return false;
  }
  std::string_view text;
  if (words.word("IDLE", &text)) {
    if (!ctx.read_int64(text, &request->least_idle_ms)) return false;
    if (words.left() < kRangeWords) {
      ctx.syntax_error();
      return false;
    }
  }
  const std::string_view first = words.next();
  const std::string_view last = words.next();
  int64_t count = 0;
  if (!ctx.read_int64(words.next(), &count)) return false;
  request->count = static_cast<size_t>(std::max<int64_t>(count, 0));
  if (!read_stream_range(ctx, first, last, &request->range)) return false;
  request->of_one = words.more();
  if (request->of_one) request->consumer = words.next();
  return true;
}

void list_pending(CommandContext& ctx, const PendingRequest& request, const StreamGroup& group,
                  const StreamIndex<PendingEntry>& pending) {
  const resp::ReplyBuilder::Later later = ctx.reply.later();
  size_t sent = 0;
  for (auto position = pending.not_before(request.range.first);
       position && sent < request.count && (*position)->id <= request.range.last;
       position.forward()) {
    const PendingEntry& entry = **position;
    const int64_t idle_ms = ctx.now_ms() - entry.delivered_ms();
    if (request.least_idle_ms != 0 && idle_ms < request.least_idle_ms) continue;
    ctx.reply.array(4);
    reply_stream_id(ctx.reply, entry.id);
    ctx.reply.bulk(entry.consumer().name);
    ctx.reply.integer(group.is_released(entry) ? -1 : std::max<int64_t>(idle_ms, 0));
    ctx.reply.integer(static_cast<int64_t>(entry.deliveries));
    ++sent;
  }
  ctx.reply.array_later(later, sent);
}

void xpending(CommandContext& ctx) {
  PendingRequest request;
  if (!read_pending_request(ctx, &request)) return;
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const GroupAtKey found = group_at(ctx, ref, ctx.args[1], ctx.args[2]);
  if (!found) return;
  if (request.summary) return summarize_pending(ctx, *found.group);
  if (!request.of_one) return list_pending(ctx, request, *found.group, found.group->pending());
  const StreamConsumer* consumer = found.group->find_consumer(request.consumer);
  if (consumer == nullptr) return ctx.reply.empty_array();
  list_pending(ctx, request, *found.group, consumer->pending);
}

// --- Claiming -----------------------------------------------------------------------------------

// Released entries always are; they were delivered at 0.
bool is_idle_enough(const CommandContext& ctx, const PendingEntry& entry, int64_t least_idle_ms) {
  return least_idle_ms == 0 || entry.delivered_ms() == 0 ||
         ctx.now_ms() - entry.delivered_ms() >= least_idle_ms;
}

bool read_least_idle(CommandContext& ctx, std::string_view text, std::string_view command,
                     int64_t* idle_ms) {
  std::string error = "ERR Invalid min-idle-time argument for ";
  if (!ctx.read_int64(text, idle_ms, error.append(command))) return false;
  *idle_ms = std::max<int64_t>(*idle_ms, 0);
  return true;
}

struct ClaimRequest {
  int64_t least_idle_ms = 0;
  Arguments ids;
  int64_t delivered_ms = 0;
  int64_t deliveries = -1;  // negative: increment the present number
  bool force = false;
  bool just_ids = false;
  StreamId last_delivered;
};

bool read_claim_option(CommandContext& ctx, ArgReader& words, ClaimRequest* request) {
  std::string_view text;
  if (words.word("FORCE")) {
    request->force = true;
  } else if (words.word("JUSTID")) {
    request->just_ids = true;
  } else if (words.word("IDLE", &text)) {
    int64_t idle_ms = 0;
    if (!ctx.read_int64(text, &idle_ms, "ERR Invalid IDLE option argument for XCLAIM"))
      return false;
    // Wraps around on overflow, as the reference does.
    request->delivered_ms =
        static_cast<int64_t>(static_cast<uint64_t>(ctx.now_ms()) - static_cast<uint64_t>(idle_ms));
  } else if (words.word("TIME", &text)) {
    return ctx.read_int64(text, &request->delivered_ms,
                          "ERR Invalid TIME option argument for XCLAIM");
  } else if (words.word("RETRYCOUNT", &text)) {
    return ctx.read_int64(text, &request->deliveries,
                          "ERR Invalid RETRYCOUNT option argument for XCLAIM");
  } else if (words.word("LASTID", &text)) {
    return read_stream_id(ctx, text, 0, &request->last_delivered);
  } else {
    std::string error = "ERR Unrecognized XCLAIM option '";
    return ctx.refuse(error.append(words.peek()).append("'"));
  }
  return true;
}

bool read_claim_request(CommandContext& ctx, ClaimRequest* request) {
  if (!read_least_idle(ctx, ctx.args[4], "XCLAIM", &request->least_idle_ms)) return false;
  ArgReader words(ctx.args, 5);
  StreamId id;
  while (words.more() && parse_stream_id(words.peek(), 0, &id)) words.next();
  request->ids = ctx.args.subspan(5, words.position() - 5);
  request->delivered_ms = ctx.now_ms();
  while (words.more()) {
    if (!read_claim_option(ctx, words, request)) return false;
  }
  if (request->delivered_ms < 0 || request->delivered_ms > ctx.now_ms())
    request->delivered_ms = ctx.now_ms();
  return true;
}

// Replies with a claimed entry or only with its id.
void reply_claimed(CommandContext& ctx, const StreamEntry& entry, bool just_ids) {
  just_ids ? reply_stream_id(ctx.reply, entry.id()) : reply_stream_entry(ctx.reply, entry);
}

// Assigns one entry to the consumer and replies with it. False when there is nothing to claim, or
// it is too early.
bool claim(CommandContext& ctx, const ClaimRequest& request, StreamGroup& group,
           StreamFinder& entries, StreamConsumer& consumer, StreamId id) {
  PendingEntry* entry = group.pending().find(id);
  const std::optional<StreamEntry> contents = entries.find(id);
  if (!contents) {
    if (entry == nullptr) return false;
    // A deleted entry cannot be claimed: propagating the claim makes replicas remove its record
    // too.
    propagate_pending(ctx, ctx.args[1], group, ctx.args[2], *entry);
    group.erase_pending(id);
    ctx.events.count(1);
    return false;
  }
  if (entry == nullptr) {
    if (!request.force) return false;
    entry = &group.add_pending(id, consumer, request.delivered_ms, 1);
  } else {
    if (!is_idle_enough(ctx, *entry, request.least_idle_ms)) return false;
    group.assign_pending(*entry, consumer, request.delivered_ms);
  }
  if (request.deliveries >= 0) {
    entry->deliveries = static_cast<uint64_t>(request.deliveries);
  } else if (!request.just_ids) {
    entry->count_delivery();
  }
  reply_claimed(ctx, *contents, request.just_ids);
  propagate_pending(ctx, ctx.args[1], group, ctx.args[2], *entry);
  consumer.active_ms = ctx.now_ms();
  ctx.events.count(1);
  return true;
}

void xclaim(CommandContext& ctx) {
  const std::string_view key = ctx.args[1];
  const KeyRef ref = ctx.db.find_for_write(key, store::Keyspace::kTouch);
  const GroupAtKey found = group_at(ctx, ref, key, ctx.args[2]);
  if (!found) return;
  ClaimRequest request;
  if (!read_claim_request(ctx, &request)) return;
  // Propagates each claimed entry, and the group's last id if only that changes.
  ctx.propagate_nothing();
  const bool place_moves = request.last_delivered > found.group->last_delivered;
  if (place_moves) {
    found.group->last_delivered = request.last_delivered;
    ctx.events.count(1);
  }

  StreamConsumer& consumer = consumer_or_new(ctx, key, *found.group, ctx.args[3]);
  const resp::ReplyBuilder::Later later = ctx.reply.later();
  size_t claimed = 0;
  StreamFinder entries(*found.stream);
  const uint64_t changes = ctx.events.total();
  for (const std::string_view text : request.ids) {
    StreamId id;
    if (parse_stream_id(text, 0, &id) && claim(ctx, request, *found.group, entries, consumer, id))
      ++claimed;
  }
  if (place_moves && ctx.events.total() == changes)
    propagate_place(ctx, key, *found.group, ctx.args[2]);
  report_deliveries(ctx, key, *found.group);
  ctx.reply.array_later(later, claimed);
}

struct AutoClaimRequest {
  int64_t least_idle_ms = 0;
  StreamRange range;
  int64_t count = 100;
  bool just_ids = false;
};

// Entries examined for each one that may be claimed.
constexpr int64_t kAttemptsPerEntry = 10;

bool read_auto_claim_request(CommandContext& ctx, AutoClaimRequest* request) {
  if (!read_least_idle(ctx, ctx.args[4], "XAUTOCLAIM", &request->least_idle_ms)) return false;
  if (!read_stream_range(ctx, ctx.args[5], "+", &request->range)) return false;
  for (ArgReader options(ctx.args, 6); options.more();) {
    constexpr int64_t kMax =
        std::numeric_limits<int64_t>::max() / static_cast<int64_t>(sizeof(StreamId));
    std::string_view text;
    if (options.word("COUNT", &text)) {
      if (!ctx.read_int64_in(text, 1, kMax, &request->count, "ERR COUNT must be > 0")) return false;
    } else if (options.word("JUSTID")) {
      request->just_ids = true;
    } else {
      ctx.syntax_error();
      return false;
    }
  }
  return true;
}

void xautoclaim(CommandContext& ctx) {
  AutoClaimRequest request;
  if (!read_auto_claim_request(ctx, &request)) return;
  const std::string_view key = ctx.args[1];
  const KeyRef ref = ctx.db.find_for_write(key, store::Keyspace::kTouch);
  const GroupAtKey found = group_at(ctx, ref, key, ctx.args[2]);
  if (!found) return;
  StreamGroup& group = *found.group;
  ctx.propagate_nothing();
  StreamConsumer& consumer = consumer_or_new(ctx, key, group, ctx.args[3]);

  std::vector<StreamId> claimed;
  std::vector<StreamId> gone;
  int64_t left = request.count;
  int64_t attempts = request.count > std::numeric_limits<int64_t>::max() / kAttemptsPerEntry
                         ? request.count
                         : request.count * kAttemptsPerEntry;
  auto position = group.pending().not_before(request.range.first);
  StreamFinder existing(*found.stream);
  for (; position && left > 0 && attempts > 0; --attempts) {
    PendingEntry& entry = **position;
    const StreamId id = entry.id;
    if (!existing.find(id)) {
      propagate_pending(ctx, key, group, ctx.args[2], entry);
      group.erase_pending(id);
      gone.push_back(id);
      position = group.pending().not_before(id);
      --left;
      continue;
    }
    position.forward();
    if (!is_idle_enough(ctx, entry, request.least_idle_ms)) continue;
    group.assign_pending(entry, consumer, ctx.now_ms());
    if (!request.just_ids) entry.count_delivery();
    propagate_pending(ctx, key, group, ctx.args[2], entry);
    claimed.push_back(id);
    --left;
  }
  if (!claimed.empty()) consumer.active_ms = ctx.now_ms();
  ctx.events.count(claimed.size() + gone.size());

  ctx.reply.array(3);
  reply_stream_id(ctx.reply, position ? (*position)->id : StreamId());
  ctx.reply.array(claimed.size());
  StreamFinder entries(*found.stream);
  for (const StreamId id : claimed) reply_claimed(ctx, *entries.find(id), request.just_ids);
  ctx.reply.array(gone.size());
  for (const StreamId id : gone) reply_stream_id(ctx.reply, id);
}

constexpr CommandRow kStreamPendingRows[] = {
    {"XACK", xack, "key group id...", kWrite | kFast, keys(1).rw().update(), kAclStream,
     Group::kStream, "5.0.0", "O(1) for each message ID processed.",
     "Returns the number of messages that were successfully acknowledged by the consumer group "
     "member of a stream."},
    {"XAUTOCLAIM",
     xautoclaim,
     "key group consumer min-idle-time start:string [COUNT count] [JUSTID]",
     kWrite | kFast,
     keys(1).rw().remove(),
     kAclStream,
     Group::kStream,
     "6.2.0",
     "O(1) if COUNT is small.",
     "Changes, or acquires, ownership of messages in a consumer group, as if the messages were "
     "delivered to as consumer group member.",
     {.tips = "nondeterministic_output",
      .history = "7.0.0 Added an element to the reply array, containing deleted entries the "
                 "command cleared from the PEL"}},
    {"XCLAIM",
     xclaim,
     "key group consumer min-idle-time id... [IDLE ms:integer] [TIME unix-time-milliseconds] "
     "[RETRYCOUNT count] [FORCE] [JUSTID] [LASTID lastid]",
     kWrite | kFast,
     keys(1).rw().update(),
     kAclStream,
     Group::kStream,
     "5.0.0",
     "O(log N) with N being the number of messages in the PEL of the consumer group.",
     "Changes, or acquires, ownership of a message in a consumer group, as if the message was "
     "delivered a consumer group member.",
     {.tips = "nondeterministic_output"}},
    {"XNACK", xnack,
     "key group {mode=SILENT|FAIL|FATAL} {IDS ids=numids:integer id...} [count=RETRYCOUNT "
     "count:integer] [FORCE]",
     kWrite | kFast, keys(1).rw().update(), kAclStream, Group::kStream, "8.8.0",
     "O(1) for each message ID processed.",
     "Releases pending messages back to the group's PEL without acknowledging them, making them "
     "available for re-delivery."},
    {"XPENDING",
     xpending,
     "key group [filters=[IDLE min-idle-time:integer]@6.2.0 start:string end:string count "
     "[consumer]]",
     kReadOnly,
     keys(1).ro().access(),
     kAclStream,
     Group::kStream,
     "5.0.0",
     "O(N) with N being the number of elements returned, so asking for a small fixed number of "
     "entries per call is O(1). O(M), where M is the total number of entries scanned when used "
     "with the IDLE filter. When the command returns just the summary and the list of consumers is "
     "small, it runs in O(1) time; otherwise, an additional O(N) time for iterating every "
     "consumer.",
     "Returns the information and entries from a stream consumer group's pending entries list.",
     {.tips = "nondeterministic_output",
      .history = "6.2.0 Added the `IDLE` option and exclusive range intervals."}},
};

}  // namespace

std::span<const CommandRow> stream_pending_rows() {
  return kStreamPendingRows;
}

}  // namespace latchkey::commands
