// Elements of arrays by their indexes: ARSET, ARMSET, ARGET, ARMGET, ARGETRANGE, ARDEL, ARDELRANGE,
// ARLEN, ARCOUNT, ARINFO.
#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "base/text/number.h"
#include "commands/arrays/array_steps.h"
#include "commands/groups.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;
using store::Array;
using store::ArrayCell;
using store::KeyRef;

bool read_index(CommandContext& ctx, std::string_view text, uint64_t* index, uint64_t last) {
  if (base::parse_uint64(text, index) && *index <= last) return true;
  return ctx.refuse("ERR invalid array index");
}

const Array* array_to_read(CommandContext& ctx, bool* refused) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  *refused = !ctx.is_type(ref, Array::kType);
  return ref && !*refused ? &value_of<Array>(ref) : nullptr;
}

void reply_unsigned(CommandContext& ctx, uint64_t value) {
  if (value <= INT64_MAX) return ctx.reply.integer(static_cast<int64_t>(value));
  ctx.reply.raw(":" + std::to_string(value) + "\r\n");
}

void reply_cell(CommandContext& ctx, ArrayCell value) {
  if (value == store::kNoCell) return ctx.reply.null();
  if (store::cell::is_blob(value)) return ctx.reply.bulk(store::cell::blob(value));
  char scratch[store::kCellScratch];
  ctx.reply.bulk(store::cell::text(value, scratch));
}

void array_changed(CommandContext& ctx, std::string_view event, uint64_t count) {
  ctx.changed(ctx.args[1], EventClass::kArray, event);
  ctx.events.count(count - 1);
}

namespace {

// Reads every word from `first` on that is an index, each `step`th; false, with the error sent,
// when one is none.
bool read_indexes(CommandContext& ctx, size_t first, size_t step, std::vector<uint64_t>* indexes) {
  for (size_t i = first; i < ctx.args.size(); i += step) {
    uint64_t index;
    if (!read_index(ctx, ctx.args[i], &index)) return false;
    indexes->push_back(index);
  }
  return true;
}

// --- Writing ------------------------------------------------------------------------------------

void arset(CommandContext& ctx) {
  uint64_t first;
  if (!read_index(ctx, ctx.args[2], &first)) return;
  const Arguments texts = ctx.args.subspan(3);
  if (texts.size() - 1 > Array::kLastIndex - first)
    return ctx.reply.error("ERR invalid array index");
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  Array* array = value_or_new<Array>(ctx, ref);
  if (array == nullptr) return;
  int64_t filled = 0;
  for (size_t i = 0; i < texts.size(); ++i) filled += array->set(first + i, texts[i]) ? 1 : 0;
  array_changed(ctx, "arset", texts.size());
  ctx.reply.integer(filled);
}

void armset(CommandContext& ctx) {
  if (ctx.args.size() % 2 != 0) return ctx.wrong_arity();
  std::vector<uint64_t> indexes;
  if (!read_indexes(ctx, 2, 2, &indexes)) return;
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  Array* array = value_or_new<Array>(ctx, ref);
  if (array == nullptr) return;
  int64_t filled = 0;
  for (size_t i = 0; i < indexes.size(); ++i)
    filled += array->set(indexes[i], ctx.args[3 + 2 * i]) ? 1 : 0;
  array_changed(ctx, "armset", indexes.size());
  ctx.reply.integer(filled);
}

// Replies with the number of elements that a command has erased, and removes the key if none is
// left.
void elements_erased(CommandContext& ctx, KeyRef& ref, std::string_view event, uint64_t erased) {
  reply_unsigned(ctx, erased);
  if (erased == 0) return;
  array_changed(ctx, event, erased);
  erase_if_empty<Array>(ctx, ref, ctx.args[1]);
}

void ardel(CommandContext& ctx) {
  std::vector<uint64_t> indexes;
  if (!read_indexes(ctx, 2, 1, &indexes)) return;
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!ref) return ctx.reply.integer(0);
  Array* array = value_at<Array>(ctx, ref);
  if (array == nullptr) return;
  uint64_t erased = 0;
  for (const uint64_t index : indexes) erased += array->erase(index) ? 1 : 0;
  elements_erased(ctx, ref, "ardel", erased);
}

void ardelrange(CommandContext& ctx) {
  if (ctx.args.size() % 2 != 0) return ctx.wrong_arity();
  std::vector<uint64_t> bounds;
  if (!read_indexes(ctx, 2, 1, &bounds)) return;
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!ref) return ctx.reply.integer(0);
  Array* array = value_at<Array>(ctx, ref);
  if (array == nullptr) return;
  uint64_t erased = 0;
  for (size_t i = 0; i < bounds.size(); i += 2) {
    const auto [first, last] = std::minmax(bounds[i], bounds[i + 1]);
    erased += array->erase_range(first, last);
  }
  elements_erased(ctx, ref, "ardelrange", erased);
}

// --- Reading ------------------------------------------------------------------------------------

void arget(CommandContext& ctx) {
  uint64_t index;
  if (!read_index(ctx, ctx.args[2], &index)) return;
  bool refused;
  const Array* array = array_to_read(ctx, &refused);
  if (refused) return;
  reply_cell(ctx, array == nullptr ? store::kNoCell : array->get(index));
}

void armget(CommandContext& ctx) {
  std::vector<uint64_t> indexes;
  if (!read_indexes(ctx, 2, 1, &indexes)) return;
  bool refused;
  const Array* array = array_to_read(ctx, &refused);
  if (refused) return;
  ctx.reply.array(indexes.size());
  for (const uint64_t index : indexes)
    reply_cell(ctx, array == nullptr ? store::kNoCell : array->get(index));
}

void argetrange(CommandContext& ctx) {
  constexpr uint64_t kMax = 1'000'000;
  uint64_t first;
  uint64_t last;
  if (!read_index(ctx, ctx.args[2], &first) || !read_index(ctx, ctx.args[3], &last)) return;
  const uint64_t width = first <= last ? last - first : first - last;
  if (width >= kMax) return ctx.reply.error("ERR range exceeds maximum of 1000000 items");
  bool refused;
  const Array* array = array_to_read(ctx, &refused);
  if (refused) return;
  ctx.reply.array(width + 1);
  uint64_t sent = 0;
  const auto send_nulls_up_to = [&](uint64_t position) {
    for (; sent < position; ++sent) ctx.reply.null();
  };
  if (array != nullptr) {
    array->for_each(first, last, [&](uint64_t index, ArrayCell value) {
      send_nulls_up_to(first <= last ? index - first : first - index);
      reply_cell(ctx, value);
      ++sent;
      return true;
    });
  }
  send_nulls_up_to(width + 1);
}

void arlen(CommandContext& ctx) {
  bool refused;
  const Array* array = array_to_read(ctx, &refused);
  if (!refused) reply_unsigned(ctx, array == nullptr ? 0 : array->length());
}

void arcount(CommandContext& ctx) {
  bool refused;
  const Array* array = array_to_read(ctx, &refused);
  if (!refused) reply_unsigned(ctx, array == nullptr ? 0 : array->size());
}

// --- ARINFO -------------------------------------------------------------------------------------

void reply_field(CommandContext& ctx, std::string_view name, uint64_t value) {
  ctx.reply.bulk(name);
  reply_unsigned(ctx, value);
}

void reply_average(CommandContext& ctx, std::string_view name, size_t sum, size_t count) {
  ctx.reply.bulk(name);
  ctx.reply.number(count == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(count));
}

// The slices are those that Redis would store, but for those between array-sparse-kmin and
// array-sparse-kmax, which are dense there if they had more texts before. The directory is the
// inner nodes of the tree.
void arinfo(CommandContext& ctx) {
  constexpr size_t kFields = 7;
  constexpr size_t kFieldsInFull = 12;
  const bool in_full = ctx.args.size() > 2;
  if (ctx.args.size() > 3 || (in_full && !is_word(ctx.args[2], "FULL"))) return ctx.syntax_error();
  bool refused;
  const Array* array = array_to_read(ctx, &refused);
  if (refused) return;
  if (array == nullptr) return ctx.reply.error("ERR no such key");
  const ConfigValues& settings = ctx.server.settings();
  const Array::Shape shape =
      array->shape({.bits = static_cast<unsigned>(
                        std::countr_zero(static_cast<unsigned>(settings.array_slice_size))),
                    .least_dense = static_cast<size_t>(settings.array_sparse_kmax)});
  ctx.reply.map(in_full ? kFieldsInFull : kFields);
  reply_field(ctx, "count", array->size());
  reply_field(ctx, "len", array->length());
  reply_field(ctx, "next-insert-index", array->cursor() == Array::kExhausted ? 0 : array->cursor());
  reply_field(ctx, "slices", shape.dense_slices + shape.sparse_slices);
  reply_field(ctx, "directory-size", shape.inner_nodes);
  reply_field(ctx, "super-dir-entries", 0);
  reply_field(ctx, "slice-size", static_cast<uint64_t>(settings.array_slice_size));
  if (!in_full) return;
  reply_field(ctx, "dense-slices", shape.dense_slices);
  reply_field(ctx, "sparse-slices", shape.sparse_slices);
  reply_average(ctx, "avg-dense-size", shape.dense_slots, shape.dense_slices);
  reply_average(ctx, "avg-dense-fill", shape.dense_elements, shape.dense_slots);
  reply_average(ctx, "avg-sparse-size", shape.sparse_elements, shape.sparse_slices);
}

// --- Rows ---------------------------------------------------------------------------------------

constexpr CommandRow kArrayRows[] = {
    {"ARCOUNT", arcount, "key", kReadOnly | kFast, keys(1).ro().access(), kAclArray, Group::kArray,
     "8.8.0", "O(1)", "Returns the number of non-empty elements in an array."},
    {"ARDEL", ardel, "key {index:integer}...", kWrite | kFast, keys(1).rw().remove(), kAclArray,
     Group::kArray, "8.8.0", "O(N) where N is the number of indices to delete",
     "Deletes elements at the specified indices in an array."},
    {"ARDELRANGE", ardelrange, "key {range=start:integer end:integer}...", kWrite,
     keys(1).rw().remove(), kAclArray, Group::kArray, "8.8.0",
     "Proportional to the number of existing elements / slices touched, not to the numeric span of "
     "the requested ranges",
     "Deletes elements in one or more ranges."},
    {"ARGET", arget, "key index:integer", kReadOnly | kFast, keys(1).ro().access(), kAclArray,
     Group::kArray, "8.8.0", "O(1)", "Gets the value at an index in an array."},
    {"ARGETRANGE", argetrange, "key start:integer end:integer", kReadOnly, keys(1).ro().access(),
     kAclArray, Group::kArray, "8.8.0", "O(N) where N is the range length",
     "Gets values in a range of indices."},
    {"ARINFO", arinfo, "key [FULL]", kReadOnly, keys(1).ro().access(), kAclArray, Group::kArray,
     "8.8.0", "O(1), or O(N) with FULL option where N is the number of slices.",
     "Returns metadata about an array."},
    {"ARLEN", arlen, "key", kReadOnly | kFast, keys(1).ro().access(), kAclArray, Group::kArray,
     "8.8.0", "O(1)", "Returns the length of an array (max index + 1)."},
    {"ARMGET", armget, "key {index:integer}...", kReadOnly | kFast, keys(1).ro().access(),
     kAclArray, Group::kArray, "8.8.0", "O(N) where N is the number of indices",
     "Gets values at multiple indices in an array."},
    {"ARMSET", armset, "key {data=index:integer value}...", kWrite | kDenyOom | kFast,
     keys(1).rw().update(), kAclArray, Group::kArray, "8.8.0",
     "O(N) where N is the number of pairs", "Sets multiple index-value pairs in an array."},
    {"ARSET", arset, "key index:integer value...", kWrite | kDenyOom | kFast, keys(1).rw().update(),
     kAclArray, Group::kArray, "8.8.0", "O(N) where N is the number of values",
     "Sets one or more contiguous values starting at an index in an array."},
};

}  // namespace

std::span<const CommandRow> array_rows() {
  return kArrayRows;
}

}  // namespace latchkey::commands
