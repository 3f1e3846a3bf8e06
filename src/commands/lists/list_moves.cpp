// Moving elements between lists, and popping from the first of several lists: LMOVE, LMOVEM,
// RPOPLPUSH, LMPOP. LMOVEM came with Redis 8.10 and follows its documentation.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "commands/groups.h"
#include "commands/lists/list_steps.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::List;

namespace {

std::string text_of(const List::Element& element) {
  return element.is_integer ? std::to_string(element.integer) : std::string(element.bytes);
}

}  // namespace

bool read_end(CommandContext& ctx, std::string_view text, End* end) {
  if (is_word(text, "LEFT")) {
    *end = End::kLeft;
  } else if (is_word(text, "RIGHT")) {
    *end = End::kRight;
  } else {
    ctx.syntax_error();
    return false;
  }
  return true;
}

Moved move_element(CommandContext& ctx, std::string_view source_key, std::string_view target_key,
                   End from, End to) {
  KeyRef source = ctx.db.find_for_write(source_key);
  if (!source) return Moved::kNoSource;
  List* list = value_at<List>(ctx, source);
  if (list == nullptr) return Moved::kRefused;
  KeyRef target = ctx.db.find_for_write(target_key);
  List* target_list = value_or_new<List>(ctx, target);
  if (target_list == nullptr) return Moved::kRefused;

  const List::Cursor cursor = end_of(*list, from);
  const std::string element = text_of(list->get(cursor));
  list->erase(cursor);
  target_list->will_grow(element.size(), 1, limits(ctx));
  to == End::kLeft ? target_list->push_front(element, limits(ctx))
                   : target_list->push_back(element, limits(ctx));
  target_list->recompress();
  ctx.reply.bulk(element);
  // A move is one change, which removed_elements() counts.
  ctx.events.happened(ctx.db, target_key, EventClass::kList, to == End::kLeft ? "lpush" : "rpush");
  // Inserting a new target may have moved entries, so source may be invalid.
  source = ctx.db.find(source_key, store::Keyspace::kPeek);
  removed_elements(ctx, source, source_key, from == End::kLeft ? "lpop" : "rpop", 1);
  return Moved::kDone;
}

bool read_move_request(CommandContext& ctx, size_t block, MoveRequest* request) {
  if (!read_end(ctx, ctx.args[3], &request->from) || !read_end(ctx, ctx.args[4], &request->to))
    return false;
  ArgReader reader(ctx.args, block);
  if (!reader.more()) return true;
  std::string_view text;
  request->exactly = reader.word("EXACTLY", &text);
  if (!request->exactly && !reader.word("COUNT", &text)) {
    ctx.syntax_error();
    return false;
  }
  request->one_by_one = reader.word("OBO");
  if ((!request->one_by_one && !reader.word("BULK")) || reader.more()) {
    ctx.syntax_error();
    return false;
  }
  int64_t count;
  if (!ctx.read_int64_in(text, 1, INT64_MAX, &count, "ERR count should be greater than 0"))
    return false;
  request->count = static_cast<size_t>(count);
  return true;
}

namespace {

// The elements at that end, from the left to the right.
std::vector<std::string> elements_at(const List& list, End end, size_t count) {
  std::vector<std::string> elements;
  elements.reserve(count);
  List::Cursor cursor = list.at(end == End::kLeft ? 0 : -static_cast<int64_t>(count));
  for (size_t i = 0; i < count; ++i) {
    elements.push_back(text_of(list.get(cursor)));
    if (i + 1 < count) cursor = list.next(cursor);
  }
  return elements;
}

void push_elements(CommandContext& ctx, List& list, End end, std::vector<std::string>& elements) {
  size_t bytes = 0;
  for (const std::string& element : elements) bytes += element.size();
  list.will_grow(bytes, elements.size(), limits(ctx));
  if (end == End::kRight) {
    for (const std::string& element : elements) list.push_back(element, limits(ctx));
  } else {
    for (size_t i = elements.size(); i-- > 0;) list.push_front(elements[i], limits(ctx));
  }
  list.recompress();
}

}  // namespace

Moved move_elements(CommandContext& ctx, std::string_view source_key, std::string_view target_key,
                    const MoveRequest& request) {
  KeyRef source = ctx.db.find_for_write(source_key);
  if (!source) return Moved::kNoSource;
  List* list = value_at<List>(ctx, source);
  if (list == nullptr) return Moved::kRefused;
  if (request.exactly && list->size() < request.count) return Moved::kNoSource;
  KeyRef target = ctx.db.find_for_write(target_key);
  List* target_list = value_or_new<List>(ctx, target);
  if (target_list == nullptr) return Moved::kRefused;

  const size_t count = std::min(request.count, list->size());
  std::vector<std::string> elements = elements_at(*list, request.from, count);
  // Popped and pushed at the same side one by one, they come in the opposite order.
  if (request.one_by_one && request.from == request.to)
    std::reverse(elements.begin(), elements.end());
  list->erase_range(request.from == End::kLeft ? 0 : list->size() - count, count);
  push_elements(ctx, *target_list, request.to, elements);
  ctx.reply.array(count);
  for (const std::string& element : elements) ctx.reply.bulk(element);
  ctx.events.happened(ctx.db, target_key, EventClass::kList,
                      request.to == End::kLeft ? "lpush" : "rpush");
  // Inserting a new target may have moved entries, so source may be invalid.
  source = ctx.db.find(source_key, store::Keyspace::kPeek);
  removed_elements(ctx, source, source_key, request.from == End::kLeft ? "lpop" : "rpop", count);
  return Moved::kDone;
}

bool read_pop_request(CommandContext& ctx, size_t first, PopRequest* request) {
  int64_t key_count = 0;
  if (!ctx.read_int64_in(ctx.args[first], 1, INT64_MAX, &key_count,
                         "ERR numkeys should be greater than 0"))
    return false;
  const size_t keys_at = first + 1;
  if (static_cast<uint64_t>(key_count) >= ctx.args.size() - keys_at) {
    ctx.syntax_error();
    return false;
  }
  request->keys = ctx.args.subspan(keys_at, static_cast<size_t>(key_count));
  ArgReader reader(ctx.args, keys_at + request->keys.size());
  if (!read_end(ctx, reader.next(), &request->end)) return false;
  int64_t count = 1;
  if (std::string_view text;
      reader.word("COUNT", &text) &&
      !ctx.read_int64_in(text, 1, INT64_MAX, &count, "ERR count should be greater than 0"))
    return false;
  request->count = static_cast<size_t>(count);
  if (!reader.more()) return true;
  ctx.syntax_error();
  return false;
}

bool pop_from_first(CommandContext& ctx, const PopRequest& request) {
  for (const std::string_view key : request.keys) {
    KeyRef ref = ctx.db.find_for_write(key);
    if (!ref) continue;
    if (!ctx.is_type(ref, List::kType)) return true;
    const size_t count = std::min(request.count, value_of<List>(ref).size());
    ctx.reply.array(2);
    ctx.reply.bulk(key);
    ctx.reply.array(count);
    pop_elements(ctx, ref, key, request.end, count);
    ctx.propagate({request.end == End::kLeft ? "LPOP" : "RPOP", key, count});
    return true;
  }
  return false;
}

namespace {

void lmove(CommandContext& ctx) {
  End from;
  End to;
  if (!read_end(ctx, ctx.args[3], &from) || !read_end(ctx, ctx.args[4], &to)) return;
  if (move_element(ctx, ctx.args[1], ctx.args[2], from, to) == Moved::kNoSource) ctx.reply.null();
}

void lmovem(CommandContext& ctx) {
  MoveRequest request;
  if (!read_move_request(ctx, 5, &request)) return;
  if (move_elements(ctx, ctx.args[1], ctx.args[2], request) == Moved::kNoSource) ctx.reply.null();
}

void rpoplpush(CommandContext& ctx) {
  if (move_element(ctx, ctx.args[1], ctx.args[2], End::kRight, End::kLeft) == Moved::kNoSource)
    ctx.reply.null();
}

void lmpop(CommandContext& ctx) {
  PopRequest request;
  if (!read_pop_request(ctx, 1, &request)) return;
  if (!pop_from_first(ctx, request)) ctx.reply.null_array();
}

constexpr CommandRow kListMoveRows[] = {
    {"LMOVE", lmove, "source destination {wherefrom=LEFT|RIGHT} {whereto=LEFT|RIGHT}",
     kWrite | kDenyOom, keys(1).rw().access().remove() + keys(2).rw().insert(), kAclList,
     Group::kList, "6.2.0", "O(1)",
     "Returns an element after popping it from one list and pushing it to another. Deletes the "
     "list if the last element was moved."},
    {"LMOVEM", lmovem,
     "source destination {wherefrom=LEFT|RIGHT} {whereto=LEFT|RIGHT} [how-many={selector=COUNT "
     "count|EXACTLY exactly:integer} {ordering=OBO|BULK}]",
     kWrite | kDenyOom, keys(1).rw().access().remove() + keys(2).rw().insert(), kAclList,
     Group::kList, "8.10.0", "O(N) where N is the number of elements moved.",
     "Moves up to (or exactly) a number of elements from one list to another and returns them. "
     "Deletes the source list if it becomes empty."},
    {"LMPOP", lmpop, "numkeys key... {where=LEFT|RIGHT} [COUNT count]", kWrite,
     counted_keys(1).rw().access().remove(), kAclList, Group::kList, "7.0.0",
     "O(N+M) where N is the number of provided keys and M is the number of elements returned.",
     "Returns multiple elements from a list after removing them. Deletes the list if the last "
     "element was popped."},
    {"RPOPLPUSH",
     rpoplpush,
     "source destination",
     kWrite | kDenyOom,
     keys(1).rw().access().remove() + keys(2).rw().insert(),
     kAclList,
     Group::kList,
     "1.2.0",
     "O(1)",
     "Returns the last element of a list after removing and pushing it to another list. Deletes "
     "the list if the last element was popped.",
     {.deprecated_since = "6.2.0", .replaced_by = "`LMOVE` with the `RIGHT` and `LEFT` arguments"}},
};

}  // namespace

std::span<const CommandRow> list_move_rows() {
  return kListMoveRows;
}

}  // namespace latchkey::commands
