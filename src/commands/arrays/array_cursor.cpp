// Appending to arrays at their cursor: ARINSERT, ARRING, ARNEXT, ARSEEK, ARLASTITEMS.
#include <algorithm>
#include <vector>

#include "base/text/number.h"
#include "commands/arrays/array_steps.h"
#include "commands/groups.h"

namespace latchkey::commands {

using namespace server;
using store::Array;
using store::ArrayCell;
using store::KeyRef;

namespace {

void arinsert(CommandContext& ctx) {
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!ctx.is_type(ref, Array::kType)) return;
  const Arguments texts = ctx.args.subspan(2);
  const uint64_t first = ref ? value_of<Array>(ref).cursor() : 0;
  if (first > Array::kLastIndex || texts.size() - 1 > Array::kLastIndex - first)
    return ctx.reply.error("ERR insert index overflow");
  Array* array = value_or_new<Array>(ctx, ref);
  for (size_t i = 0; i < texts.size(); ++i) array->set(first + i, texts[i]);
  array->set_cursor(first + texts.size());
  array_changed(ctx, "arinsert", texts.size());
  reply_unsigned(ctx, first + texts.size() - 1);
}

// Keeps the newest texts, those back from the cursor to the first gap, as many as fit into `size`,
// and lays them out from 0 on, the oldest first. O(texts kept).
void keep_newest(Array& array, uint64_t size) {
  const uint64_t length = array.length();
  const uint64_t most = std::min<uint64_t>(size, array.size());
  std::vector<ArrayCell> newest;
  for (uint64_t index = array.cursor(); newest.size() < most;) {
    // Behind the oldest of a ring that has turned comes its other end.
    index = (index == 0 ? length : index) - 1;
    const ArrayCell value = array.get(index);
    if (value == store::kNoCell) break;
    newest.push_back(value);
  }
  Array kept;
  for (size_t age = 0; age < newest.size(); ++age)
    kept.set_cell(newest.size() - 1 - age, store::cell::share(newest[age]));
  kept.set_cursor(newest.size());
  array.swap(kept);
}

// Makes the array a ring of that size. Without a cursor nothing was ever appended, so there is no
// order in which texts came, and those at higher indexes go.
void fit_ring(Array& array, uint64_t size) {
  const uint64_t length = array.length();
  if (array.cursor() == 0) {
    if (length > size) array.erase_range(size, Array::kLastIndex);
  } else if (length > size || (array.cursor() < length && size > length)) {
    keep_newest(array, size);
  }
}

void arring(CommandContext& ctx) {
  uint64_t size;
  if (!base::parse_uint64(ctx.args[2], &size) || size == 0 || size > Array::kLastIndex)
    return ctx.reply.error("ERR invalid size");
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  Array* array = value_or_new<Array>(ctx, ref);
  if (array == nullptr) return;
  fit_ring(*array, size);
  const Arguments texts = ctx.args.subspan(3);
  uint64_t index = 0;
  for (const std::string_view text : texts) {
    index = array->cursor() % size;
    array->set(index, text);
    array->set_cursor(index + 1);
  }
  array_changed(ctx, "arring", texts.size());
  reply_unsigned(ctx, index);
}

void arnext(CommandContext& ctx) {
  bool refused;
  const Array* array = array_to_read(ctx, &refused);
  if (refused) return;
  if (array != nullptr && array->cursor() == Array::kExhausted) return ctx.reply.null();
  reply_unsigned(ctx, array == nullptr ? 0 : array->cursor());
}

void arseek(CommandContext& ctx) {
  uint64_t index;
  if (!read_index(ctx, ctx.args[2], &index, Array::kExhausted)) return;
  const KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!ref) return ctx.reply.integer(0);
  Array* array = value_at<Array>(ctx, ref);
  if (array == nullptr) return;
  array->set_cursor(index);
  array_changed(ctx, "arseek", 1);
  ctx.reply.integer(1);
}

void arlastitems(CommandContext& ctx) {
  int64_t count;
  if (!ctx.read_int64_in(ctx.args[2], 0, INT64_MAX, &count)) return;
  const bool newest_first = ctx.args.size() > 3;
  if (ctx.args.size() > 4 || (newest_first && !is_word(ctx.args[3], "REV")))
    return ctx.syntax_error();
  bool refused;
  const Array* array = array_to_read(ctx, &refused);
  if (refused) return;
  if (array == nullptr) return ctx.reply.empty_array();
  std::vector<ArrayCell> found(std::min(static_cast<size_t>(count), array->size()));
  uint64_t index = array->cursor();
  for (ArrayCell& value : found) {
    // Behind the oldest of a ring that has turned comes its other end, and behind a cursor at 0 the
    // end of the array.
    index = (index == 0 ? array->length() : index) - 1;
    value = array->get(index);
  }
  if (!newest_first) std::reverse(found.begin(), found.end());
  ctx.reply.array(found.size());
  for (const ArrayCell value : found) reply_cell(ctx, value);
}

constexpr CommandRow kArrayCursorRows[] = {
    {"ARINSERT", arinsert, "key value...", kWrite | kDenyOom | kFast, keys(1).rw().update(),
     kAclArray, Group::kArray, "8.8.0", "O(N) where N is the number of values",
     "Inserts one or more values at consecutive indices."},
    {"ARLASTITEMS", arlastitems, "key count [REV]", kReadOnly, keys(1).ro().access(), kAclArray,
     Group::kArray, "8.8.0", "O(N) where N is the count",
     "Returns the most recently inserted elements."},
    {"ARNEXT", arnext, "key", kReadOnly | kFast, keys(1).ro().access(), kAclArray, Group::kArray,
     "8.8.0", "O(1)", "Returns the next index ARINSERT would use."},
    {"ARRING", arring, "key size:integer value...", kWrite | kDenyOom, keys(1).rw().update(),
     kAclArray, Group::kArray, "8.8.0",
     "O(M) normally, O(N+M) on ring resize, where N is the maximum of the old and new ring size "
     "and "
     "M is the number of inserted values",
     "Inserts values into a ring buffer of specified size, wrapping and truncating as needed."},
    {"ARSEEK", arseek, "key index:integer", kWrite | kFast, keys(1).rw().update(), kAclArray,
     Group::kArray, "8.8.0", "O(1)", "Sets the ARINSERT / ARRING cursor to a specific index."},
};

}  // namespace

std::span<const CommandRow> array_cursor_rows() {
  return kArrayCursorRows;
}

}  // namespace latchkey::commands
