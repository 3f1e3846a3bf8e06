// Deleting entries with regard to the groups that refer to them: XDELEX, XACKDEL.
//
// A group refers to an entry that is pending in it, or that it has not yet read. The reply has a
// number for each id, which says what happened to its entry.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "commands/groups.h"
#include "commands/keys/typed_key.h"
#include "commands/streams/stream_steps.h"
#include "server/command/command_context.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::Stream;
using store::StreamGroup;
using store::StreamId;
using store::StreamReferences;

namespace {

enum Outcome : int64_t { kNotThere = -1, kGone = 1, kReferred = 2 };

struct DeleteRequest {
  StreamReferences references = StreamReferences::kKeep;
  Arguments ids;
};

bool read_request(CommandContext& ctx, size_t first, DeleteRequest* request) {
  bool told = false;
  for (ArgReader words(ctx.args, first); words.more();) {
    const bool repeated = told;
    if (!read_stream_references(words, &request->references, &told)) {
      // The last list of ids counts.
      if (words.word("IDS")) {
        if (!read_counted_ids(ctx, words, &request->ids)) return false;
        continue;
      }
      ctx.syntax_error();
      return false;
    }
    if (repeated) {
      ctx.syntax_error();
      return false;
    }
  }
  if (request->ids.empty()) {
    ctx.syntax_error();
    return false;
  }
  return true;
}

// To be called before the first entry is deleted. False, with the error sent, when one of the ids
// is none.
bool are_ids(CommandContext& ctx, const DeleteRequest& request) {
  StreamId id;
  return std::all_of(request.ids.begin(), request.ids.end(),
                     [&](std::string_view text) { return read_stream_id(ctx, text, 0, &id); });
}

// What is not looked for is not looked at either: `ids` may be anything.
void reply_not_there(CommandContext& ctx, const DeleteRequest& request) {
  ctx.reply.array(request.ids.size());
  for (size_t i = 0; i < request.ids.size(); ++i) ctx.reply.integer(kNotThere);
}

// Replies with the number that fn(StreamId) returns for each id.
template <typename Fn>
void for_each_id(CommandContext& ctx, const DeleteRequest& request, Fn&& fn) {
  ctx.reply.array(request.ids.size());
  for (const std::string_view text : request.ids) {
    StreamId id;
    parse_stream_id(text, 0, &id);
    ctx.reply.integer(fn(id));
  }
}

void tell_deleted(CommandContext& ctx, std::string_view key, size_t deleted) {
  if (deleted == 0) return;
  ctx.changed(key, EventClass::kStream, "xdel");
  ctx.events.count(deleted - 1);
}

void xdelex(CommandContext& ctx) {
  const std::string_view key = ctx.args[1];
  const KeyRef ref = ctx.db.find_for_write(key);
  DeleteRequest request;
  if (!ctx.is_type(ref, Stream::kType) || !read_request(ctx, 2, &request)) return;
  if (!ref) return reply_not_there(ctx, request);
  if (!are_ids(ctx, request)) return;
  Stream& stream = value_of<Stream>(ref);
  size_t deleted = 0;
  for_each_id(ctx, request, [&](StreamId id) {
    if (request.references == StreamReferences::kDelete)
      ctx.events.count(stream.erase_references(id));
    // Groups may refer to entries that are not there any more, or not yet.
    if (request.references == StreamReferences::kAcknowledged && stream.is_referenced(id))
      return kReferred;
    if (!stream.contains(id)) return kNotThere;
    stream.erase(id);
    ++deleted;
    return kGone;
  });
  tell_deleted(ctx, key, deleted);
}

void xackdel(CommandContext& ctx) {
  const std::string_view key = ctx.args[1];
  // Unlike XDELEX it counts as a hit or a miss.
  const KeyRef ref = ctx.db.find_for_write(key, store::Keyspace::kTouch);
  DeleteRequest request;
  if (!ctx.is_type(ref, Stream::kType) || !read_request(ctx, 3, &request)) return;
  Stream* stream = ref ? &value_of<Stream>(ref) : nullptr;
  StreamGroup* group = stream == nullptr ? nullptr : stream->find_group(ctx.args[2]);
  if (group == nullptr) return reply_not_there(ctx, request);
  if (!are_ids(ctx, request)) return;
  size_t deleted = 0;
  for_each_id(ctx, request, [&](StreamId id) {
    const bool acknowledged = group->erase_pending(id);
    ctx.events.count(acknowledged ? 1 : 0);
    if (request.references == StreamReferences::kDelete)
      ctx.events.count(stream->erase_references(id));
    if (!acknowledged) return kNotThere;
    if (request.references == StreamReferences::kAcknowledged && stream->is_referenced(id))
      return kReferred;
    if (stream->erase(id)) ++deleted;
    return kGone;
  });
  tell_deleted(ctx, key, deleted);
}

constexpr CommandRow kStreamReferenceRows[] = {
    {"XACKDEL", xackdel,
     "key group [condition=KEEPREF|DELREF|ACKED] {IDS ids=numids:integer id...}", kWrite | kFast,
     keys(1).rw().update().remove(), kAclStream, Group::kStream, "8.2.0",
     "O(1) for each message ID processed.",
     "Acknowledges and deletes one or multiple messages for a stream consumer group."},
    {"XDELEX", xdelex, "key [condition=KEEPREF|DELREF|ACKED] {IDS ids=numids:integer id...}",
     kWrite | kFast, keys(1).rw().remove(), kAclStream, Group::kStream, "8.2.0",
     "O(1) for each single item to delete in the stream, regardless of the stream size.",
     "Deletes one or multiple entries from the stream."},
};

}  // namespace

std::span<const CommandRow> stream_reference_rows() {
  return kStreamReferenceRows;
}

}  // namespace latchkey::commands
