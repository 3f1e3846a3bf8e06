// XGROUP: creates, moves and removes consumer groups and their consumers.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "commands/groups.h"
#include "commands/keys/typed_key.h"
#include "commands/streams/stream_group_steps.h"
#include "commands/streams/stream_steps.h"
#include "server/client/tracking.h"
#include "server/command/command_context.h"
#include "server/command/help.h"
#include "server/command/watch.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::Stream;
using store::StreamGroup;
using store::StreamId;

namespace {

struct PlaceRequest {
  bool make_key = false;
  int64_t entries_read = StreamGroup::kUnknownReads;
};

bool read_place_options(CommandContext& ctx, bool may_make_key, PlaceRequest* request) {
  for (ArgReader options(ctx.args, 5); options.more();) {
    std::string_view text;
    if (may_make_key && options.word("MKSTREAM")) {
      request->make_key = true;
    } else if (options.word("ENTRIESREAD", &text)) {
      if (!ctx.read_int64(text, &request->entries_read)) return false;
      if (request->entries_read < 0 && request->entries_read != StreamGroup::kUnknownReads)
        return ctx.refuse("ERR value for ENTRIESREAD must be positive or -1");
    } else {
      wrong_subcommand(ctx);
      return false;
    }
  }
  return true;
}

// Whether there are no more words than if each option is given once. A repeated option is refused
// only by this check, after all other checks.
bool has_few_enough_words(CommandContext& ctx, bool may_make_key) {
  constexpr size_t kMaxWords = 7;
  if (ctx.args.size() <= kMaxWords + (may_make_key ? 1 : 0)) return true;
  wrong_subcommand(ctx);
  return false;
}

// Reads the id at which a group begins; "$" is the stream's last id.
bool read_place(CommandContext& ctx, std::string_view text, const Stream* stream, StreamId* id) {
  if (text != "$") return read_stream_id(ctx, text, 0, id);
  *id = stream == nullptr ? StreamId() : stream->last_id();
  return true;
}

// No more entries can have been read than were ever added.
int64_t capped_reads(const Stream& stream, const PlaceRequest& request) {
  return std::min(request.entries_read, static_cast<int64_t>(stream.entries_added()));
}

void key_is_required(CommandContext& ctx) {
  ctx.reply.error(
      "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to "
      "use the MKSTREAM option to create an empty stream automatically.");
}

// The group named by the request; empty, with the error sent, when there is none.
GroupAtKey find_named_group(CommandContext& ctx, const KeyRef& ref) {
  if (!ref) {
    key_is_required(ctx);
    return {};
  }
  Stream* stream = value_at<Stream>(ctx, ref);
  if (stream == nullptr) return {};
  StreamGroup* group = stream->find_group(ctx.args[3]);
  if (group == nullptr) no_such_group_of(ctx, ctx.args[2], ctx.args[3]);
  return {stream, group};
}

void xgroup_create(CommandContext& ctx) {
  PlaceRequest request;
  if (!read_place_options(ctx, true, &request)) return;
  const std::string_view key = ctx.args[2];
  const std::string_view name = ctx.args[3];
  KeyRef ref = ctx.db.find_for_write(key);
  if (!ref && !request.make_key) return key_is_required(ctx);
  Stream* stream = value_at<Stream>(ctx, ref);
  if (ref && stream == nullptr) return;
  if (!has_few_enough_words(ctx, true)) return;
  StreamId id;
  if (!read_place(ctx, ctx.args[4], stream, &id)) return;
  if (stream != nullptr && stream->find_group(name) != nullptr)
    return ctx.reply.error("BUSYGROUP Consumer Group name already exists");
  if (stream == nullptr) {
    stream = stream_or_new(ctx, ref);
    // Those who watch the key or have read it must see a new key; creating a group alone does not
    // notify them.
    ctx.server.watches().key_changed(ctx.db, key, EventClass::kNewKey, "new");
    ctx.server.tracking().key_changed(ctx.db, key, EventClass::kNewKey, "new");
  }
  stream->add_group(name, id, capped_reads(*stream, request));
  ctx.changed(key, EventClass::kStream, "xgroup-create");
  ctx.reply.ok();
}

void xgroup_setid(CommandContext& ctx) {
  PlaceRequest request;
  if (!read_place_options(ctx, false, &request)) return;
  const KeyRef ref = ctx.db.find_for_write(ctx.args[2]);
  const GroupAtKey found = find_named_group(ctx, ref);
  if (!found || !has_few_enough_words(ctx, false)) return;
  StreamId id;
  if (ctx.args[4] == "+") {
    id = StreamId::max();
  } else if (ctx.args[4] != "-" && !read_place(ctx, ctx.args[4], found.stream, &id)) {
    return;
  }
  found.group->last_delivered = id;
  found.group->entries_read = capped_reads(*found.stream, request);
  ctx.changed(ctx.args[2], EventClass::kStream, "xgroup-setid");
  ctx.reply.ok();
}

void xgroup_destroy(CommandContext& ctx) {
  const std::string_view key = ctx.args[2];
  const KeyRef ref = ctx.db.find_for_write(key);
  if (!ref) return key_is_required(ctx);
  Stream* stream = value_at<Stream>(ctx, ref);
  if (stream == nullptr) return;
  if (!stream->erase_group(ctx.args[3])) return ctx.reply.integer(0);
  ctx.changed(key, EventClass::kStream, "xgroup-destroy");
  ctx.reply.integer(1);
}

void xgroup_createconsumer(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find_for_write(ctx.args[2]);
  const GroupAtKey found = find_named_group(ctx, ref);
  if (!found) return;
  if (found.group->find_consumer(ctx.args[4]) != nullptr) return ctx.reply.integer(0);
  consumer_or_new(ctx, ctx.args[2], *found.group, ctx.args[4]);
  ctx.reply.integer(1);
}

void xgroup_delconsumer(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find_for_write(ctx.args[2]);
  const GroupAtKey found = find_named_group(ctx, ref);
  if (!found) return;
  const std::string_view name = ctx.args[4];
  if (found.group->find_consumer(name) == nullptr) return ctx.reply.integer(0);
  const size_t pending = found.group->erase_consumer(name);
  ctx.changed(ctx.args[2], EventClass::kStream, "xgroup-delconsumer");
  ctx.reply.integer(static_cast<int64_t>(pending));
}

void xgroup_help(CommandContext& ctx) {
  reply_help(ctx, {
                      "CREATE <key> <groupname> <id|$> [MKSTREAM] [ENTRIESREAD <count>]",
                      "    Make a group that reads what comes behind an id.",
                      "CREATECONSUMER <key> <groupname> <consumer>",
                      "    Make a consumer of a group.",
                      "DELCONSUMER <key> <groupname> <consumer>",
                      "    Remove a consumer, and what is pending for it.",
                      "DESTROY <key> <groupname>",
                      "    Remove a group.",
                      "SETID <key> <groupname> <id|$> [ENTRIESREAD <count>]",
                      "    Let a group go on behind another id.",
                  });
}

constexpr CommandRow kXgroupSubcommands[] = {
    {"CREATE",
     xgroup_create,
     "key group {id-selector=id|new-id=$} [MKSTREAM] [ENTRIESREAD "
     "entriesread(entries-read):integer]",
     kWrite | kDenyOom,
     keys(2).rw().insert(),
     kAclStream,
     Group::kStream,
     "5.0.0",
     "O(1)",
     "Creates a consumer group.",
     {.history = "7.0.0 Added the `entries_read` named argument."}},
    {"CREATECONSUMER", xgroup_createconsumer, "key group consumer", kWrite | kDenyOom,
     keys(2).rw().insert(), kAclStream, Group::kStream, "6.2.0", "O(1)",
     "Creates a consumer in a consumer group."},
    {"DELCONSUMER", xgroup_delconsumer, "key group consumer", kWrite, keys(2).rw().remove(),
     kAclStream, Group::kStream, "5.0.0", "O(1)", "Deletes a consumer from a consumer group."},
    {"DESTROY", xgroup_destroy, "key group", kWrite, keys(2).rw().remove(), kAclStream,
     Group::kStream, "5.0.0",
     "O(N) where N is the number of entries in the group's pending entries list (PEL).",
     "Destroys a consumer group."},
    help_row(xgroup_help, kAclStream, Group::kStream, "5.0.0"),
    {"SETID",
     xgroup_setid,
     "key group {id-selector=id|new-id=$} [ENTRIESREAD entriesread(entries-read):integer]",
     kWrite,
     keys(2).rw().update(),
     kAclStream,
     Group::kStream,
     "5.0.0",
     "O(1)",
     "Sets the last-delivered ID of a consumer group.",
     {.history = "7.0.0 Added the optional `entries_read` argument."}},
};

constexpr CommandRow kStreamGroupRows[] = {
    {"XGROUP",
     nullptr,
     "",
     0,
     {},
     0,
     Group::kStream,
     "5.0.0",
     "Depends on subcommand.",
     "A container for consumer groups commands.",
     {.subcommands = kXgroupSubcommands}},
};

}  // namespace

std::span<const CommandRow> stream_group_rows() {
  return kStreamGroupRows;
}

}  // namespace latchkey::commands
