// Commands that iterate over all keys: KEYS, SCAN.
#include <cctype>
#include <cstdint>
#include <string>

#include "base/text/number.h"
#include "base/text/up_to_nul.h"
#include "commands/groups.h"
#include "commands/keys/scan_cursor.h"
#include "commands/keys/scan_request.h"
#include "server/client/output_limits.h"
#include "server/command/command_context.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;
using store::Entry;

// A cursor is read as the C library's strtoull() reads a number: white space and a sign may precede
// it, a minus counts back from 2^64, the text ends at a zero byte. Only a plain negative number is
// refused. Before Redis 7.4 and Valkey 8 white space was, and no text meant 0.
bool parse_cursor(std::string_view text, uint64_t* cursor, const Edition& edition) {
  text = base::up_to_nul(text);
  const bool is_old = !edition.has({7, 4}, {8, 0});
  if (is_old && text.empty()) {
    *cursor = 0;
    return true;
  }
  if (is_old && std::isspace(static_cast<unsigned char>(text[0])) != 0) return false;
  if (int64_t value; !is_old && base::parse_int64(text, &value) && value < 0) return false;
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text[0])) != 0)
    text.remove_prefix(1);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty()) return false;
  uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    if (__builtin_mul_overflow(value, 10, &value)) return false;
    if (__builtin_add_overflow(value, static_cast<uint64_t>(c - '0'), &value)) return false;
  }
  *cursor = negative ? 0 - value : value;
  return true;
}

bool read_cursor(CommandContext& ctx, std::string_view text, uint64_t* cursor) {
  return parse_cursor(text, cursor, ctx.server.edition()) || ctx.refuse("ERR invalid cursor");
}

namespace {

void keys_matching(CommandContext& ctx) {
  const KeyPattern pattern(ctx.args[1]);
  if (pattern.is_literal()) {
    const Entry* entry = ctx.db.table().find_item(ctx.args[1]);
    if (entry == nullptr || ctx.db.is_expired(*entry) || ctx.db.is_hidden(*entry))
      return ctx.reply.empty_array();
    ctx.reply.array(1);
    return ctx.reply.bulk(entry->key());
  }
  const auto size = ctx.reply.later();
  size_t count = 0;
  bool lost = false;
  ctx.db.for_each([&](const Entry& entry) {
    if (lost || !pattern.matches(entry.key())) return;
    ctx.reply.bulk(entry.key());
    ++count;
    lost = reply_is_lost(ctx.client);
  });
  ctx.reply.array_later(size, count);
}

void scan(CommandContext& ctx) {
  uint64_t cursor;
  ScanRequest request;
  if (!read_cursor(ctx, ctx.args[1], &cursor)) return;
  if (!request.read(ctx, 2, [](ArgReader&) { return false; })) return;
  // Nothing but keys of slots that are coming or going, which nobody sees.
  if (ctx.db.visible_size() == 0) return request.reply(ctx, "0");
  uint64_t steps = 0;
  do {
    const uint64_t hidden = request.hidden();
    cursor = ctx.db.scan(cursor, [&](const Entry& entry) { request.visit(ctx.db, entry); });
    // The keys of a hidden slot, however many, do not keep a call from finding others.
    if (request.hidden() == hidden) ++steps;
  } while (cursor != 0 && !request.is_enough(steps));
  request.reply(ctx, std::to_string(cursor));
}

constexpr CommandRow kScanRows[] = {
    {"KEYS",
     keys_matching,
     "pattern",
     kReadOnly,
     {},
     kAclKeyspace | kAclDangerous,
     Group::kGeneric,
     "1.0.0",
     "O(N) with N being the number of keys in the database, under the assumption that the key "
     "names in the database and the given pattern have limited length.",
     "Returns all key names that match a pattern.",
     {.tips = "request_policy:all_shards nondeterministic_output_order"}},
    {"SCAN",
     scan,
     "cursor [MATCH pattern] [COUNT count] [TYPE type]@6.0.0",
     kReadOnly,
     {},
     kAclKeyspace,
     Group::kGeneric,
     "2.8.0",
     "O(1) for every call. O(N) for a complete iteration, including enough command calls for the "
     "cursor to return back to 0. N is the number of elements inside the collection.",
     "Iterates over the key names in the database.",
     {.tips = "nondeterministic_output request_policy:special response_policy:special",
      .history = "6.0.0 Added the `TYPE` subcommand."}},
};

}  // namespace

std::span<const CommandRow> scan_rows() {
  return kScanRows;
}

}  // namespace latchkey::commands
