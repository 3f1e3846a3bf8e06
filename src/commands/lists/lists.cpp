// Lists: pushing, popping, reading and changing elements.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "commands/groups.h"
#include "commands/index_range.h"
#include "commands/keys/typed_key.h"
#include "commands/lists/list_steps.h"
#include "server/command/command_context.h"
#include "server/command/lock_claims.h"
#include "server/server.h"
#include "store/value/list.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::List;

namespace {

void push(CommandContext& ctx, End end, bool only_existing) {
  const std::string_view key = ctx.args[1];
  KeyRef ref = ctx.db.find_for_write(key);
  if (!ref && only_existing) return ctx.reply.integer(0);
  const bool is_new = !ref;
  List* list = value_or_new<List>(ctx, ref);
  if (list == nullptr) return;
  const Arguments elements = ctx.args.subspan(2);
  size_t bytes = 0;
  for (const std::string_view element : elements) bytes += element.size();
  list->will_grow(bytes, elements.size(), limits(ctx));
  for (const std::string_view element : elements) {
    end == End::kLeft ? list->push_front(element, limits(ctx))
                      : list->push_back(element, limits(ctx));
  }
  list->recompress();
  if (is_new && ctx.server.lock_claims() != nullptr)
    ctx.server.lock_claims()->list_made(ctx, key, elements.size());
  ctx.changed(key, EventClass::kList, end == End::kLeft ? "lpush" : "rpush");
  ctx.events.count(elements.size() - 1);
  ctx.reply.integer(static_cast<int64_t>(list->size()));
}

void lpush(CommandContext& ctx) {
  push(ctx, End::kLeft, false);
}

void rpush(CommandContext& ctx) {
  push(ctx, End::kRight, false);
}

void lpushx(CommandContext& ctx) {
  push(ctx, End::kLeft, true);
}

void rpushx(CommandContext& ctx) {
  push(ctx, End::kRight, true);
}

void pop(CommandContext& ctx, End end) {
  if (ctx.args.size() > 3) return ctx.wrong_arity();
  const bool counted = ctx.args.size() == 3;
  int64_t wanted = 1;
  if (counted && !ctx.read_int64_in(ctx.args[2], 0, INT64_MAX, &wanted,
                                    "ERR value is out of range, must be positive"))
    return;
  const std::string_view key = ctx.args[1];
  KeyRef ref = ctx.db.find_for_write(key);
  List* list = value_at<List>(ctx, ref);
  if (list == nullptr) {
    if (ref) return;
    return counted ? ctx.reply.null_array() : ctx.reply.null();
  }
  const size_t count = std::min(static_cast<size_t>(wanted), list->size());
  if (counted) ctx.reply.array(count);
  if (count != 0) pop_elements(ctx, ref, key, end, count);
}

void lpop(CommandContext& ctx) {
  pop(ctx, End::kLeft);
}

void rpop(CommandContext& ctx) {
  pop(ctx, End::kRight);
}

void llen(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const auto list = view_at<List>(ctx, ref);
  if (list != nullptr) return ctx.reply.integer(static_cast<int64_t>(list->size()));
  if (!ref) ctx.reply.integer(0);
}

void lindex(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const auto list = view_at<List>(ctx, ref);
  if (list == nullptr) return ref ? void() : ctx.reply.null();
  int64_t index = 0;
  if (!ctx.read_int64(ctx.args[2], &index)) return;
  const List::Cursor cursor = list->at(index);
  cursor ? reply_element(ctx, list->get(cursor)) : ctx.reply.null();
  list->recompress();
}

void lset(CommandContext& ctx) {
  const std::string_view key = ctx.args[1];
  KeyRef ref = ctx.db.find_for_write(key);
  List* list = value_at<List>(ctx, ref);
  if (list == nullptr) return ref ? void() : ctx.reply.error("ERR no such key");
  int64_t index = 0;
  if (!ctx.read_int64(ctx.args[2], &index)) return;
  list->will_grow(ctx.args[3].size(), 1, limits(ctx));
  const List::Cursor cursor = list->at(index);
  if (!cursor) return ctx.reply.error("ERR index out of range");
  list->replace(cursor, ctx.args[3], limits(ctx));
  list->has_shrunk(limits(ctx));
  ctx.changed(key, EventClass::kList, "lset");
  ctx.reply.ok();
}

void linsert(CommandContext& ctx) {
  const bool before = is_word(ctx.args[2], "BEFORE");
  if (!before && !is_word(ctx.args[2], "AFTER")) return ctx.syntax_error();
  const std::string_view key = ctx.args[1];
  KeyRef ref = ctx.db.find_for_write(key);
  List* list = value_at<List>(ctx, ref);
  if (list == nullptr) return ref ? void() : ctx.reply.integer(0);
  list->will_grow(ctx.args[4].size(), 1, limits(ctx));
  const List::Cursor cursor = list->find(store::Listpack::Matcher(ctx.args[3]), list->at(0));
  if (!cursor) {
    list->recompress();
    return ctx.reply.integer(-1);
  }
  before ? list->insert_before(cursor, ctx.args[4], limits(ctx))
         : list->insert_after(cursor, ctx.args[4], limits(ctx));
  list->recompress();
  ctx.changed(key, EventClass::kList, "linsert");
  ctx.reply.integer(static_cast<int64_t>(list->size()));
}

void lrange(CommandContext& ctx) {
  IndexRange range;
  if (!read_range(ctx, ctx.args[2], ctx.args[3], &range)) return;
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const auto list = view_at<List>(ctx, ref);
  if (list == nullptr) return ref ? void() : ctx.reply.empty_array();
  const IndexRange::Part wanted = range.within(list->size());
  ctx.reply.array(wanted.count);
  List::Cursor cursor = list->at(static_cast<int64_t>(wanted.first));
  for (size_t i = 0; i < wanted.count; ++i, cursor = list->next(cursor))
    reply_element(ctx, list->get(cursor));
  list->recompress();
}

void ltrim(CommandContext& ctx) {
  IndexRange range;
  if (!read_range(ctx, ctx.args[2], ctx.args[3], &range)) return;
  const std::string_view key = ctx.args[1];
  KeyRef ref = ctx.db.find_for_write(key);
  List* list = value_at<List>(ctx, ref);
  if (list == nullptr) return ref ? void() : ctx.reply.ok();
  const IndexRange::Part kept = range.within(list->size());
  const size_t trimmed = list->size() - kept.count;
  list->erase_range(kept.first + kept.count, list->size() - kept.first - kept.count);
  list->erase_range(0, kept.first);
  removed_elements(ctx, ref, key, "ltrim", trimmed);
  ctx.reply.ok();
}

void lrem(CommandContext& ctx) {
  int64_t wanted = 0;
  if (!ctx.read_int64_in(ctx.args[2], -INT64_MAX, INT64_MAX, &wanted)) return;
  const std::string_view key = ctx.args[1];
  KeyRef ref = ctx.db.find_for_write(key);
  List* list = value_at<List>(ctx, ref);
  if (list == nullptr) return ref ? void() : ctx.reply.integer(0);
  const store::Listpack::Matcher removed(ctx.args[3]);
  const auto most = static_cast<uint64_t>(std::abs(wanted));
  const auto match_from = [&](List::Cursor cursor) {
    if (wanted >= 0) return list->find(removed, cursor);
    while (cursor && !removed.matches(list->get(cursor))) cursor = list->previous(cursor);
    return cursor;
  };
  uint64_t gone = 0;
  // Backwards, erase() returns an element that was already compared.
  for (List::Cursor cursor = list->at(wanted < 0 ? -1 : 0); most == 0 || gone < most; ++gone) {
    cursor = match_from(cursor);
    if (!cursor) break;
    cursor = list->erase(cursor);
    if (wanted < 0) cursor = cursor ? list->previous(cursor) : list->at(-1);
  }
  gone != 0 ? removed_elements(ctx, ref, key, "lrem", gone) : list->recompress();
  ctx.reply.integer(static_cast<int64_t>(gone));
}

constexpr const char* kPushCost =
    "O(1) for each element added, so O(N) to add N elements when the command is called with "
    "multiple arguments.";

constexpr CommandRow kListRows[] = {
    {"LINDEX", lindex, "key index", kReadOnly, keys(1).ro().access(), kAclList, Group::kList,
     "1.0.0",
     "O(N) where N is the number of elements to traverse to get to the element at index. This "
     "makes asking for the first or the last element of the list O(1).",
     "Returns an element from a list by its index."},
    {"LINSERT", linsert, "key {where=BEFORE|AFTER} pivot element", kWrite | kDenyOom,
     keys(1).rw().insert(), kAclList, Group::kList, "2.2.0",
     "O(N) where N is the number of elements to traverse before seeing the value pivot. This means "
     "that inserting somewhere on the left end on the list (head) can be considered O(1) and "
     "inserting somewhere on the right end (tail) is O(N).",
     "Inserts an element before or after another element in a list."},
    {"LLEN", llen, "key", kReadOnly | kFast, keys(1).ro(), kAclList, Group::kList, "1.0.0", "O(1)",
     "Returns the length of a list."},
    {"LPOP",
     lpop,
     "key [count]@6.2.0",
     kWrite | kFast,
     keys(1).rw().access().remove(),
     kAclList,
     Group::kList,
     "1.0.0",
     "O(N) where N is the number of elements returned",
     "Returns the first elements in a list after removing it. Deletes the list if the last element "
     "was popped.",
     {.history = "6.2.0 Added the `count` argument."}},
    {"LPUSH",
     lpush,
     "key element...",
     kWrite | kDenyOom | kFast,
     keys(1).rw().insert(),
     kAclList,
     Group::kList,
     "1.0.0",
     kPushCost,
     "Prepends one or more elements to a list. Creates the key if it doesn't exist.",
     {.history = "2.4.0 Accepts multiple `element` arguments."}},
    {"LPUSHX",
     lpushx,
     "key element...",
     kWrite | kDenyOom | kFast,
     keys(1).rw().insert(),
     kAclList,
     Group::kList,
     "2.2.0",
     kPushCost,
     "Prepends one or more elements to a list only when the list exists.",
     {.history = "4.0.0 Accepts multiple `element` arguments."}},
    {"LRANGE", lrange, "key start stop", kReadOnly, keys(1).ro().access(), kAclList, Group::kList,
     "1.0.0",
     "O(S+N) where S is the distance of start offset from HEAD for small lists, from nearest end "
     "(HEAD or TAIL) for large lists; and N is the number of elements in the specified range.",
     "Returns a range of elements from a list."},
    {"LREM", lrem, "key count element", kWrite, keys(1).rw().remove(), kAclList, Group::kList,
     "1.0.0", "O(N+M) where N is the length of the list and M is the number of elements removed.",
     "Removes elements from a list. Deletes the list if the last element was removed."},
    {"LSET", lset, "key index element", kWrite | kDenyOom, keys(1).rw().update(), kAclList,
     Group::kList, "1.0.0",
     "O(N) where N is the length of the list. Setting either the first or the last element of the "
     "list is O(1).",
     "Sets the value of an element in a list by its index."},
    {"LTRIM", ltrim, "key start stop", kWrite, keys(1).rw().remove(), kAclList, Group::kList,
     "1.0.0", "O(N) where N is the number of elements to be removed by the operation.",
     "Removes elements from both ends a list. Deletes the list if all elements were trimmed."},
    {"RPOP",
     rpop,
     "key [count]@6.2.0",
     kWrite | kFast,
     keys(1).rw().access().remove(),
     kAclList,
     Group::kList,
     "1.0.0",
     "O(N) where N is the number of elements returned",
     "Returns and removes the last elements of a list. Deletes the list if the last element was "
     "popped.",
     {.history = "6.2.0 Added the `count` argument."}},
    {"RPUSH",
     rpush,
     "key element...",
     kWrite | kDenyOom | kFast,
     keys(1).rw().insert(),
     kAclList,
     Group::kList,
     "1.0.0",
     kPushCost,
     "Appends one or more elements to a list. Creates the key if it doesn't exist.",
     {.history = "2.4.0 Accepts multiple `element` arguments."}},
    {"RPUSHX",
     rpushx,
     "key element...",
     kWrite | kDenyOom | kFast,
     keys(1).rw().insert(),
     kAclList,
     Group::kList,
     "2.2.0",
     kPushCost,
     "Appends an element to a list only when the list exists.",
     {.history = "4.0.0 Accepts multiple `element` arguments."}},
};

}  // namespace

std::span<const CommandRow> list_rows() {
  return kListRows;
}

}  // namespace latchkey::commands
