// Parts of strings: APPEND, STRLEN, GETRANGE, SUBSTR, SETRANGE.
#include <algorithm>
#include <cstring>

#include "base/text/number.h"
#include "commands/groups.h"
#include "commands/index_range.h"
#include "server/command/command_context.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;

namespace {

// False, with the error sent, when a string of `size` + `more` bytes would exceed
// proto-max-bulk-len.
bool may_grow(CommandContext& ctx, size_t size, size_t more) {
  size_t total;
  const auto limit = static_cast<size_t>(ctx.server.settings().proto_max_bulk_len);
  if (!__builtin_add_overflow(size, more, &total) && total <= limit) return true;
  return ctx.refuse("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
}

void append(CommandContext& ctx) {
  const std::string_view added = ctx.args[2];
  KeyRef ref = ctx.db.find_to_replace(ctx.args[1]);
  size_t size = 0;
  if (!ref) {
    ctx.db.set_string(ref, added);
  } else {
    if (!ctx.is_string(ref)) return;
    size = ref->string_size();
    if (!may_grow(ctx, size, added.size())) return;
    const std::span<char> bytes = ctx.db.extend_string(ref, size + added.size());
    std::memcpy(bytes.data() + size, added.data(), added.size());
  }
  ctx.changed(ctx.args[1], EventClass::kString, "append");
  ctx.reply.integer(static_cast<int64_t>(size + added.size()));
}

void strlen(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ref) return ctx.reply.integer(0);
  if (!ctx.is_string(ref)) return;
  ctx.reply.integer(static_cast<int64_t>(ref->string_size()));
}

void getrange(CommandContext& ctx) {
  IndexRange range;
  if (!read_range(ctx, ctx.args[2], ctx.args[3], &range)) return;
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ref) return ctx.reply.bulk(std::string_view());
  if (!ctx.is_string(ref)) return;
  if (range.is_reversed_from_end()) return ctx.reply.bulk(std::string_view());
  char scratch[base::kMaxInt64Text];
  const std::string_view text = ref->string(scratch);
  const IndexRange::Part part = range.clamped_within(text.size());
  ctx.reply.bulk(text.substr(part.first, part.count));
}

void setrange(CommandContext& ctx) {
  int64_t offset;
  if (!ctx.read_int64(ctx.args[2], &offset)) return;
  if (offset < 0) return ctx.reply.error("ERR offset is out of range");
  KeyRef ref = ctx.db.find_to_replace(ctx.args[1]);
  if (!ctx.is_string(ref)) return;

  const std::string_view patch = ctx.args[3];
  const size_t size = ref ? ref->string_size() : 0;
  if (patch.empty()) return ctx.reply.integer(static_cast<int64_t>(size));
  const auto start = static_cast<size_t>(offset);
  if (!may_grow(ctx, start, patch.size())) return;
  const std::span<char> bytes = ctx.db.extend_string(ref, std::max(size, start + patch.size()));
  std::memcpy(bytes.data() + start, patch.data(), patch.size());
  ctx.changed(ctx.args[1], EventClass::kString, "setrange");
  ctx.reply.integer(static_cast<int64_t>(bytes.size()));
}

constexpr CommandRow kStringRangeRows[] = {
    {"APPEND", append, "key value", kWrite | kDenyOom | kFast, keys(1).rw().insert(), kAclString,
     Group::kString, "2.0.0",
     "O(1). The amortized time complexity is O(1) assuming the appended value is small and the "
     "already present value is of any size, since the dynamic string library used by Redis will "
     "double the free space available on every reallocation.",
     "Appends a string to the value of a key. Creates the key if it doesn't exist."},
    {"GETRANGE", getrange, "key start end", kReadOnly, keys(1).ro().access(), kAclString,
     Group::kString, "2.4.0",
     "O(N) where N is the length of the returned string. The complexity is ultimately determined "
     "by the returned length, but because creating a substring from an existing string is very "
     "cheap, it can be considered O(1) for small strings.",
     "Returns a substring of the string stored at a key."},
    {"SETRANGE", setrange, "key offset value", kWrite | kDenyOom, keys(1).rw().update(), kAclString,
     Group::kString, "2.2.0",
     "O(1), not counting the time taken to copy the new string in place. Usually, this string is "
     "very small so the amortized complexity is O(1). Otherwise, complexity is O(M) with M being "
     "the length of the value argument.",
     "Overwrites a part of a string value with another by an offset. Creates the key if it doesn't "
     "exist."},
    {"STRLEN", strlen, "key", kReadOnly | kFast, keys(1).ro(), kAclString, Group::kString, "2.2.0",
     "O(1)", "Returns the length of a string value."},
    {"SUBSTR",
     getrange,
     "key start end",
     kReadOnly,
     keys(1).ro().access(),
     kAclString,
     Group::kString,
     "1.0.0",
     "O(N) where N is the length of the returned string. The complexity is ultimately determined "
     "by the returned length, but because creating a substring from an existing string is very "
     "cheap, it can be considered O(1) for small strings.",
     "Returns a substring from a string value.",
     {.deprecated_since = "2.0.0", .replaced_by = "`GETRANGE`"}},
};

}  // namespace

std::span<const CommandRow> string_range_rows() {
  return kStringRangeRows;
}

}  // namespace latchkey::commands
