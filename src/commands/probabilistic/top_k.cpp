// TOPK: lists of the items that were counted most often.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/text/number.h"
#include "commands/groups.h"
#include "commands/keys/typed_key.h"
#include "commands/probabilistic/value_changed.h"
#include "store/probabilistic/top_k.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::TopK;

namespace {

// The list of a key; null, with an error sent, when there is none.
TopK* list_at(CommandContext& ctx, const KeyRef& ref) {
  if (!ref) ctx.reply.error("TopK: key does not exist");
  return value_at<TopK>(ctx, ref);
}

// --- TOPK.RESERVE --------------------------------------------------------------------------------

// False with an error sent.
bool read_number(CommandContext& ctx, std::string_view text, uint64_t* number,
                 std::string_view error) {
  int64_t read;
  if (!ctx.read_int64_in(text, 1, UINT32_MAX, &read, error)) return false;
  *number = static_cast<uint64_t>(read);
  return true;
}

// False with an error sent.
bool read_shape(CommandContext& ctx, TopK::Shape* shape) {
  constexpr std::string_view kBadDecay = "TopK: invalid decay value. must be '<= 1' & '> 0'";
  if (!read_number(ctx, ctx.args[2], &shape->k, "TopK: invalid k")) return false;
  if (ctx.args.size() == 3) return true;
  if (!read_number(ctx, ctx.args[3], &shape->width, "TopK: invalid width") ||
      !read_number(ctx, ctx.args[4], &shape->depth, "TopK: invalid depth") ||
      !ctx.read_double(ctx.args[5], &shape->decay, kBadDecay))
    return false;
  if (shape->decay > 0 && shape->decay <= 1) return true;
  return ctx.refuse(kBadDecay);
}

void topk_reserve(CommandContext& ctx) {
  if (ctx.args.size() != 3 && ctx.args.size() != 6) return ctx.wrong_arity();
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (ref) return ctx.reply.error("TopK: key already exists");
  TopK::Shape shape;
  if (!read_shape(ctx, &shape)) return;
  std::unique_ptr<TopK> list;
  if (TopK::is_sound(shape)) list = TopK::make(ctx.db.environment(), shape);
  if (list == nullptr)
    return ctx.reply.error("ERR Insufficient memory to create topk data structure");
  ctx.db.set_value(ref, TopK::kType, std::move(list));
  value_changed(ctx);
  ctx.reply.ok();
}

// --- Counting ------------------------------------------------------------------------------------

void count_item(CommandContext& ctx, TopK& list, std::string_view item, uint32_t increment) {
  // Only a very large proto-max-bulk-len lets such texts come.
  if (item.size() > TopK::kLongestText)
    return ctx.reply.error("ERR string exceeds maximum allowed size");
  const std::optional<std::string> expelled =
      list.add(item, increment, ctx.db.environment().random);
  expelled.has_value() ? ctx.reply.bulk(*expelled) : ctx.reply.null();
}

void topk_add(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  TopK* list = list_at(ctx, ref);
  if (list == nullptr) return;
  const Arguments items = ctx.args.subspan(2);
  ctx.reply.array(items.size());
  for (const std::string_view item : items) count_item(ctx, *list, item, 1);
  value_changed(ctx);
}

// At an increment that is none counting ends, with an error in the item's place. The reference
// leaves its reply incomplete then; here it ends there.
void topk_incrby(CommandContext& ctx) {
  if (ctx.args.size() % 2 != 0) return ctx.wrong_arity();
  const KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  TopK* list = list_at(ctx, ref);
  if (list == nullptr) return;
  const resp::ReplyBuilder::Later reply = ctx.reply.later();
  size_t sent = 0;
  for (size_t i = 2; i < ctx.args.size(); i += 2) {
    ++sent;
    int64_t increment;
    if (!base::parse_int64(ctx.args[i + 1], &increment) || increment < 0 ||
        increment > TopK::kMaxIncrement) {
      ctx.reply.error(
          "TopK: increment must be an integer greater or equal to 0                            "
          "and smaller or equal to 100,000");
      break;
    }
    count_item(ctx, *list, ctx.args[i], static_cast<uint32_t>(increment));
  }
  ctx.reply.array_later(reply, sent);
  value_changed(ctx);
}

// --- Questions -----------------------------------------------------------------------------------

void topk_query(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const TopK* list = list_at(ctx, ref);
  if (list == nullptr) return;
  const Arguments items = ctx.args.subspan(2);
  ctx.reply.array(items.size());
  for (const std::string_view item : items) ctx.reply.boolean(list->contains(item));
}

void topk_count(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const TopK* list = list_at(ctx, ref);
  if (list == nullptr) return;
  const Arguments items = ctx.args.subspan(2);
  ctx.reply.array(items.size());
  for (const std::string_view item : items) ctx.reply.integer(list->count(item));
}

void topk_list(CommandContext& ctx) {
  if (ctx.args.size() > 3) return ctx.wrong_arity();
  const bool with_counts = ctx.args.size() == 3;
  if (with_counts && !is_word(ctx.args[2], "WITHCOUNT"))
    return ctx.reply.error("WITHCOUNT keyword expected");
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const TopK* list = list_at(ctx, ref);
  if (list == nullptr) return;
  const std::vector<const TopK::Slot*> listed = list->list();
  ctx.reply.array(with_counts ? 2 * listed.size() : listed.size());
  for (const TopK::Slot* slot : listed) {
    ctx.reply.bulk(slot->item->text());
    if (with_counts) ctx.reply.integer(slot->count);
  }
}

void topk_info(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const TopK* list = list_at(ctx, ref);
  if (list == nullptr) return;
  const auto field = [&](std::string_view name, uint64_t value) {
    ctx.reply.status(name);
    ctx.reply.integer(static_cast<int64_t>(value));
  };
  ctx.reply.map(4);
  field("k", list->shape().k);
  field("width", list->shape().width);
  field("depth", list->shape().depth);
  ctx.reply.status("decay");
  ctx.reply.number(list->shape().decay);
}

constexpr CommandRow kTopKRows[] = {
    {"TOPK.ADD", topk_add, "key item...", kWrite | kDenyOom | kModule, keys(1).rw(), kAclTopK,
     Group::kModule, "8.0.0", "O(N*(D + log(K))), N being the number of items and D the depth",
     "Counts items once in a top-k list, and returns those that left the list for them.",
     kOfFilters},
    {"TOPK.COUNT",
     topk_count,
     "key item...",
     kReadOnly | kModule,
     keys(1).ro(),
     kAclTopK,
     Group::kModule,
     "8.0.0",
     "O(N*D), N being the number of items and D the depth",
     "Returns the counts of items, which are less than how often they were counted.",
     {.module = "bf"}},
    {"TOPK.INCRBY", topk_incrby, "key {item_increment=item increment:integer}...",
     kWrite | kDenyOom | kModule, keys(1).rw(), kAclTopK, Group::kModule, "8.0.0",
     "O(N*(D*I + log(K))), N being the number of items, D the depth and I the greatest increment",
     "Counts items in a top-k list, each by its increment, and returns those that left the list "
     "for them.",
     kOfFilters},
    {"TOPK.INFO", topk_info, "key", kReadOnly | kModule | kFast, keys(1).ro(), kAclTopK,
     Group::kModule, "8.0.0", "O(1)", "Returns the dimensions and the decay of a top-k list.",
     kOfFilters},
    {"TOPK.LIST", topk_list, "key [WITHCOUNT] [_...]", kReadOnly | kModule, keys(1).ro(), kAclTopK,
     Group::kModule, "8.0.0", "O(K*log(K))",
     "Returns the items of a top-k list, those with the greatest counts first.", kOfFilters},
    {"TOPK.QUERY", topk_query, "key item...", kReadOnly | kModule, keys(1).ro(), kAclTopK,
     Group::kModule, "8.0.0", "O(N), N being the number of items",
     "Determines whether items are in a top-k list.", kOfFilters},
    {"TOPK.RESERVE", topk_reserve,
     "key topk:integer [params=width:integer depth:integer decay:double] [_...]",
     kWrite | kDenyOom | kModule | kFast, keys(1).rw(), kAclTopK, Group::kModule, "8.0.0", "O(1)",
     "Creates an empty top-k list.", kOfFilters},
};

}  // namespace

std::span<const CommandRow> top_k_rows() {
  return kTopKRows;
}

}  // namespace latchkey::commands
