// Streams: adding, reading, deleting and trimming entries.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "commands/groups.h"
#include "commands/keys/typed_key.h"
#include "commands/streams/stream_requests.h"
#include "commands/streams/stream_steps.h"
#include "server/client/client.h"
#include "server/command/command_context.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::Stream;
using store::StreamId;
using store::StreamNode;
using store::StreamRange;
using store::StreamTrim;

namespace {

struct AddRequest {
  bool make_key = true;
  StreamTrimOptions trim;
  ProducerRequest producer;
  IdForm form = IdForm::kAutomatic;
  size_t id_word = 0;  // index of the word with the id
  StreamId id;
  Arguments fields;
};

// Reads the options and the id; leaves the reader behind the id.
bool read_add_options(CommandContext& ctx, ArgReader& words, AddRequest* request) {
  StreamTrimReader trim(ctx);
  while (words.more()) {
    request->id_word = words.position();
    if (words.word("*")) return trim.finish(&request->trim);
    const auto step = trim.take(words);
    if (step == StreamTrimReader::Step::kFailed) return false;
    if (step == StreamTrimReader::Step::kTaken) continue;
    const auto producer_step = request->producer.take(ctx, words);
    if (producer_step == ProducerRequest::Step::kFailed) return false;
    if (producer_step == ProducerRequest::Step::kTaken) continue;
    if (words.word("NOMKSTREAM")) {
      request->make_key = false;
      continue;
    }
    // What is propagated has the id that was chosen.
    if (request->producer.given() && !ctx.client.has(kClientInternal | kClientMaster) &&
        is_stream_id(words.peek()))
      return ctx.refuse("ERR syntax error, IDMP/IDMPAUTO can be used only with auto-generated IDs");
    return read_new_stream_id(ctx, words.next(), &request->id, &request->form) &&
           trim.finish(&request->trim);
  }
  return trim.finish(&request->trim);
}

bool read_add_request(CommandContext& ctx, AddRequest* request) {
  ArgReader words(ctx.args, 2);
  if (!read_add_options(ctx, words, request)) return false;
  request->fields = words.rest();
  if (request->fields.empty() || request->fields.size() % 2 != 0) {
    ctx.wrong_arity();
    return false;
  }
  if (request->form == IdForm::kWhole && request->id.is_zero())
    return ctx.refuse("ERR The ID specified in XADD must be greater than 0-0");
  return true;
}

// The new entry's id; nothing, with the error sent, when there is no valid one.
std::optional<StreamId> id_for(CommandContext& ctx, const Stream& stream,
                               const AddRequest& request) {
  if (stream.last_id() == StreamId::max())
    return ctx.refuse("ERR The stream has exhausted the last possible ID, unable to add more items",
                      std::nullopt);
  std::optional<StreamId> id;
  switch (request.form) {
    case IdForm::kAutomatic:
      return stream.new_id(ctx.now_ms());
    case IdForm::kMilliseconds:
      id = stream.new_id_of(request.id.ms);
      break;
    case IdForm::kWhole:
      if (request.id > stream.last_id()) id = request.id;
      break;
  }
  if (!id)
    ctx.reply.error(
        "ERR The ID specified in XADD is equal or smaller than the target stream top item");
  return id;
}

// Propagates XADD with the id of the entry and an exact trim threshold.
void propagate_add(CommandContext& ctx, const AddRequest& request, const Stream& stream,
                   StreamId id) {
  if (!ctx.propagation.wanted()) return;
  std::vector<std::string_view> words(ctx.args.begin(), ctx.args.end());
  const std::string id_text = stream_id_text(id);
  words[request.id_word] = id_text;
  std::string threshold;
  make_trim_exact(request.trim, stream, &words, &threshold);
  ctx.propagate({}, words);
}

void xadd(CommandContext& ctx) {
  AddRequest request;
  if (!read_add_request(ctx, &request)) return;
  const std::string_view key = ctx.args[1];
  KeyRef ref = ctx.db.find_for_write(key);
  if (!ref && !request.make_key) return ctx.reply.null();
  if (!ctx.is_type(ref, Stream::kType)) return;
  if (!StreamNode::can_hold(request.fields))
    return ctx.reply.error("ERR Elements are too large to be stored");
  Stream* stream = stream_or_new(ctx, ref);
  if (request.producer.given()) {
    request.producer.name_after(request.fields);
    if (const auto known = request.producer.repeats(ctx, *stream)) {
      reply_stream_id(ctx.reply, *known);
      ctx.events.count(1);
      return propagate_add(ctx, request, *stream, *known);
    }
  }
  const std::optional<StreamId> id = id_for(ctx, *stream, request);
  if (!id) return;
  if (request.producer.given()) request.producer.remember(ctx, *stream, *id);
  stream->append(*id, request.fields, ctx.db.environment().limits);
  reply_stream_id(ctx.reply, *id);
  ctx.changed(key, EventClass::kStream, "xadd");
  if (request.trim.given && stream->trim(request.trim.trim) != 0)
    ctx.events.happened(ctx.db, key, EventClass::kStream, "xtrim");
  propagate_add(ctx, request, *stream, *id);
}

void xtrim(CommandContext& ctx) {
  StreamTrimReader reader(ctx);
  for (ArgReader words(ctx.args, 2); words.more();) {
    const auto step = reader.take(words);
    if (step == StreamTrimReader::Step::kFailed) return;
    if (step == StreamTrimReader::Step::kNotMine) return ctx.syntax_error();
  }
  StreamTrimOptions options;
  if (!reader.finish(&options, true)) return;

  const std::string_view key = ctx.args[1];
  const KeyRef ref = ctx.db.find_for_write(key);
  Stream* stream = value_at<Stream>(ctx, ref);
  if (stream == nullptr) return ref ? void() : ctx.reply.integer(0);
  const size_t removed = stream->trim(options.trim);
  if (removed != 0) {
    ctx.changed(key, EventClass::kStream, "xtrim");
    ctx.events.count(removed - 1);
    std::vector<std::string_view> words(ctx.args.begin(), ctx.args.end());
    std::string threshold;
    make_trim_exact(options, *stream, &words, &threshold);
    ctx.propagate({}, words);
  }
  ctx.reply.integer(static_cast<int64_t>(removed));
}

void xlen(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const Stream* stream = value_at<Stream>(ctx, ref);
  if (stream != nullptr) return ctx.reply.integer(static_cast<int64_t>(stream->size()));
  if (!ref) ctx.reply.integer(0);
}

void send_range(CommandContext& ctx, bool reverse) {
  StreamRange range;
  if (!read_stream_range(ctx, ctx.args[reverse ? 3 : 2], ctx.args[reverse ? 2 : 3], &range)) return;
  int64_t count = -1;
  bool counted = false;
  for (ArgReader options(ctx.args, 4); options.more();) {
    std::string_view text;
    if (!options.word("COUNT", &text)) return ctx.syntax_error();
    if (!ctx.read_int64(text, &count)) return;
    counted = true;
  }
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const Stream* stream = value_at<Stream>(ctx, ref);
  if (stream == nullptr) return ref ? void() : ctx.reply.empty_array();
  if (counted && count <= 0) return ctx.reply.null_array();
  reply_stream_entries(ctx.reply, *stream, range, reverse,
                       counted ? static_cast<size_t>(count) : 0);
}

void xrange(CommandContext& ctx) {
  send_range(ctx, false);
}

void xrevrange(CommandContext& ctx) {
  send_range(ctx, true);
}

void xdel(CommandContext& ctx) {
  const std::string_view key = ctx.args[1];
  const KeyRef ref = ctx.db.find_for_write(key);
  Stream* stream = value_at<Stream>(ctx, ref);
  if (stream == nullptr) return ref ? void() : ctx.reply.integer(0);
  const Arguments ids = ctx.args.subspan(2);
  // All ids are validated before the first is deleted.
  StreamId id;
  for (const std::string_view text : ids) {
    if (!read_stream_id(ctx, text, 0, &id)) return;
  }
  size_t deleted = 0;
  for (const std::string_view text : ids) {
    if (parse_stream_id(text, 0, &id) && stream->erase(id)) ++deleted;
  }
  if (deleted != 0) {
    ctx.changed(key, EventClass::kStream, "xdel");
    ctx.events.count(deleted - 1);
  }
  ctx.reply.integer(static_cast<int64_t>(deleted));
}

struct SetIdRequest {
  StreamId id;
  std::optional<int64_t> entries_added;
  std::optional<StreamId> max_deleted;
};

bool read_set_id_request(CommandContext& ctx, SetIdRequest* request) {
  if (!read_stream_id(ctx, ctx.args[2], 0, &request->id)) return false;
  for (ArgReader options(ctx.args, 3); options.more();) {
    std::string_view text;
    if (options.word("ENTRIESADDED", &text)) {
      int64_t count = 0;
      if (!ctx.read_int64(text, &count)) return false;
      if (count < 0) return ctx.refuse("ERR entries_added must be positive");
      request->entries_added = count;
    } else if (options.word("MAXDELETEDID", &text)) {
      StreamId id;
      if (!read_stream_id(ctx, text, 0, &id)) return false;
      if (request->id < id)
        return ctx.refuse(
            "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id");
      request->max_deleted = id;
    } else {
      ctx.syntax_error();
      return false;
    }
  }
  return true;
}

void xsetid(CommandContext& ctx) {
  SetIdRequest request;
  if (!read_set_id_request(ctx, &request)) return;
  const std::string_view key = ctx.args[1];
  const KeyRef ref = ctx.db.find_for_write(key);
  Stream* stream = value_at<Stream>(ctx, ref);
  if (stream == nullptr) return ref ? void() : ctx.reply.error("ERR no such key");
  if (request.id < stream->max_deleted_id())
    return ctx.reply.error(
        "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id");
  if (stream->size() > 0) {
    if (request.id < stream->last_entry_id())
      return ctx.reply.error(
          "ERR The ID specified in XSETID is smaller than the target stream top item");
    if (request.entries_added && static_cast<uint64_t>(*request.entries_added) < stream->size())
      return ctx.reply.error(
          "ERR The entries_added specified in XSETID is smaller than the target stream length");
  }
  stream->set_last_id(request.id);
  if (request.entries_added)
    stream->set_entries_added(static_cast<uint64_t>(*request.entries_added));
  if (request.max_deleted && !request.max_deleted->is_zero())
    stream->set_max_deleted_id(*request.max_deleted);
  ctx.changed(key, EventClass::kStream, "xsetid");
  ctx.reply.ok();
}

constexpr CommandRow kStreamRows[] = {
    {"XADD",
     xadd,
     "key [NOMKSTREAM]@6.2.0 [condition=KEEPREF|DELREF|ACKED] "
     "[idmp={idmpauto-with-pid=idmpauto-token=IDMPAUTO pid}|"
     "{idmp-with-pid-iid=idmp-token=IDMP pid iid}] "
     "[trim={strategy=MAXLEN|MINID@6.2.0} "
     "[operator=equal==|approximately=~] threshold [LIMIT count]@6.2.0] {id-selector=auto-id=*|id} "
     "{data=field value}...",
     kWrite | kDenyOom | kFast,
     keys(1).rw().update().note(
         "UPDATE instead of INSERT because of the optional trimming feature"),
     kAclStream,
     Group::kStream,
     "5.0.0",
     "O(1) when adding a new entry, O(N) when trimming where N being the number of entries "
     "evicted.",
     "Appends a new message to a stream. Creates the key if it doesn't exist.",
     {.tips = "nondeterministic_output",
      .history = "6.2.0 Added the `NOMKSTREAM` option, `MINID` trimming strategy and the `LIMIT` "
                 "option.\n7.0.0 Added support for the `<ms>-*` explicit ID form.\n8.2.0 Added the "
                 "`KEEPREF`, `DELREF` and `ACKED` options."}},
    {"XDEL", xdel, "key id...", kWrite | kFast, keys(1).rw().remove(), kAclStream, Group::kStream,
     "5.0.0", "O(1) for each single item to delete in the stream, regardless of the stream size.",
     "Returns the number of messages after removing them from a stream."},
    {"XLEN", xlen, "key", kReadOnly | kFast, keys(1).ro(), kAclStream, Group::kStream, "5.0.0",
     "O(1)", "Return the number of messages in a stream."},
    {"XRANGE",
     xrange,
     "key start:string end:string [COUNT count]",
     kReadOnly,
     keys(1).ro().access(),
     kAclStream,
     Group::kStream,
     "5.0.0",
     "O(N) with N being the number of elements being returned. If N is constant (e.g. always "
     "asking for the first 10 elements with COUNT), you can consider it O(1).",
     "Returns the messages from a stream within a range of IDs.",
     {.history = "6.2.0 Added exclusive ranges."}},
    {"XREVRANGE",
     xrevrange,
     "key end:string start:string [COUNT count]",
     kReadOnly,
     keys(1).ro().access(),
     kAclStream,
     Group::kStream,
     "5.0.0",
     "O(N) with N being the number of elements returned. If N is constant (e.g. always asking for "
     "the first 10 elements with COUNT), you can consider it O(1).",
     "Returns the messages from a stream within a range of IDs in reverse order.",
     {.history = "6.2.0 Added exclusive ranges."}},
    {"XSETID",
     xsetid,
     "key last-id [ENTRIESADDED entries-added:integer]@7.0.0 [MAXDELETEDID max-deleted-id]@7.0.0",
     kWrite | kDenyOom | kFast,
     keys(1).rw().update(),
     kAclStream,
     Group::kStream,
     "5.0.0",
     "O(1)",
     "An internal command for replicating stream values.",
     {.history = "7.0.0 Added the `entries_added` and `max_deleted_entry_id` arguments."}},
    {"XTRIM",
     xtrim,
     "key {trim={strategy=MAXLEN|MINID@6.2.0} [operator=equal==|approximately=~] threshold [LIMIT "
     "count]@6.2.0 [condition=KEEPREF|DELREF|ACKED]}",
     kWrite,
     keys(1).rw().remove(),
     kAclStream,
     Group::kStream,
     "5.0.0",
     "O(N), with N being the number of evicted entries. Constant times are very small however, "
     "since entries are organized in macro nodes containing multiple entries that can be released "
     "with a single deallocation.",
     "Deletes messages from the beginning of a stream.",
     {.tips = "nondeterministic_output",
      .history = "6.2.0 Added the `MINID` trimming strategy and the `LIMIT` option.\n8.2.0 Added "
                 "the `KEEPREF`, `DELREF` and `ACKED` options."}},
};

}  // namespace

std::span<const CommandRow> stream_rows() {
  return kStreamRows;
}

}  // namespace latchkey::commands
