// Intersections, unions and differences of sets, and their sizes. SUNIONCARD and SDIFFCARD came
// with Redis 8.10 and follow its documentation.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/text/number.h"
#include "commands/groups.h"
#include "commands/keys/repeated_operands.h"
#include "commands/keys/store_result.h"
#include "commands/keys/typed_key.h"
#include "store/value/set.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::Set;

namespace {

// The sets of some keys in order, null where there is none.
struct Operands {
  std::vector<const Set*> sets;
  std::deque<store::View<Set>> views;  // of those
};

// False, with an error sent, when a key holds another type.
bool find_sets(CommandContext& ctx, Arguments keys, Operands* operands) {
  for (const std::string_view key : keys) {
    const KeyRef ref = ctx.db.find(key);
    if (!ctx.is_type(ref, Set::kType)) return false;
    operands->sets.push_back(ref ? operands->views.emplace_back(view_of<Set>(ref)).get() : nullptr);
  }
  return true;
}

// What tells the sets of two keys apart. Mentions of a packed set have views of their own, which
// share the entry's bytes.
const void* identity(const Set* set) {
  const store::Packed packed = set == nullptr ? store::Packed() : set->packed();
  return packed.bytes.empty() ? static_cast<const void*>(set) : packed.bytes.data();
}

// Leaves out sets that the request names again.
void drop_repeated_sets(std::vector<const Set*>& sets) {
  drop_repeated(sets, 0, identity);
}

// Null means an empty set.
bool is_smaller(const Set* left, const Set* right) {
  const auto size = [](const Set* set) { return set != nullptr ? set->size() : 0; };
  return size(left) < size(right);
}

template <typename Fn>
void for_each_in_all_intsets(const std::vector<const Set*>& sets, Fn&& fn) {
  std::vector<const store::Intset*> intsets;
  for (const Set* set : sets) intsets.push_back(set->intset_or_null());
  char text[base::kMaxInt64Text];
  store::for_each_in_all(intsets, [&](int64_t value) {
    return fn(std::string_view(text, base::format_int64(value, text)));
  });
}

// Calls fn(member) for each member that is in all sets, until fn returns false, which it does only
// if it `may_stop`. Iterates over the smallest set: O(its size * sets), or less when all are
// intsets.
template <typename Fn>
void for_each_in_all(std::vector<const Set*> sets, bool may_stop, Fn&& fn) {
  if (std::find(sets.begin(), sets.end(), nullptr) != sets.end()) return;
  drop_repeated_sets(sets);
  std::sort(sets.begin(), sets.end(), is_smaller);
  if (std::all_of(sets.begin(), sets.end(), [](const Set* set) { return set->is_intset(); }))
    return for_each_in_all_intsets(sets, fn);
  const auto is_in_all = [&](std::string_view member) {
    const auto has_member = [&](const Set* set) {
      return set == sets.front() || set->contains(member);
    };
    return std::all_of(sets.begin() + 1, sets.end(), has_member);
  };
  const auto visit = [&](std::string_view member) { return !is_in_all(member) || fn(member); };
  if (may_stop) {
    sets.front()->for_each_while(visit);
  } else {
    sets.front()->for_each(visit);
  }
}

using Operation = std::unique_ptr<Set> (*)(CommandContext&, const std::vector<const Set*>&);

std::unique_ptr<Set> intersection(CommandContext& ctx, const std::vector<const Set*>& sets) {
  auto result = std::make_unique<Set>(ctx.db.environment());
  for_each_in_all(sets, false, [&](std::string_view member) {
    result->add(member);
    return true;
  });
  // As in the reference, only a result from an intset becomes a table because of too many integers.
  const auto smallest = std::min_element(sets.begin(), sets.end(), is_smaller);
  if (*smallest != nullptr && !(*smallest)->is_intset()) result->compact();
  return result;
}

std::unique_ptr<Set> union_of(CommandContext& ctx, const std::vector<const Set*>& operands) {
  auto result = std::make_unique<Set>(ctx.db.environment());
  std::vector<const Set*> sets = operands;
  drop_repeated_sets(sets);
  for (const Set* set : sets) {
    if (set != nullptr) set->for_each([&](std::string_view member) { result->add(member); });
  }
  return result;
}

// The members of the first set that are in no other. Either looks up each of them in the others, or
// removes the others' members from a copy, whichever is less work.
std::unique_ptr<Set> difference(CommandContext& ctx, const std::vector<const Set*>& sets) {
  auto result = std::make_unique<Set>(ctx.db.environment());
  const Set* first = sets.front();
  if (first == nullptr) return result;
  std::vector<const Set*> others(sets.begin() + 1, sets.end());
  std::erase(others, nullptr);
  drop_repeated_sets(others);
  size_t all_others = 0;
  for (const Set* set : others) {
    if (identity(set) == identity(first)) return result;
    all_others += set->size();
  }
  if (first->size() * others.size() <= 2 * (first->size() + all_others)) {
    first->for_each([&](std::string_view member) {
      const auto has_member = [&](const Set* set) { return set->contains(member); };
      if (std::none_of(others.begin(), others.end(), has_member)) result->add(member);
    });
    return result;
  }
  first->for_each([&](std::string_view member) { result->add(member); });
  for (const Set* set : others)
    set->for_each([&](std::string_view member) { result->erase(member); });
  return result;
}

void reply_members(CommandContext& ctx, Operation operation) {
  Operands operands;
  if (!find_sets(ctx, ctx.args.subspan(1), &operands)) return;
  const auto result = operation(ctx, operands.sets);
  ctx.reply.set(result->size());
  result->for_each([&](std::string_view member) { ctx.reply.bulk(member); });
}

void store_members(CommandContext& ctx, Operation operation, std::string_view event) {
  Operands operands;
  if (!find_sets(ctx, ctx.args.subspan(2), &operands)) return;
  store_result(ctx, ctx.args[1], operation(ctx, operands.sets), EventClass::kSet, event);
}

void sinter(CommandContext& ctx) {
  Operands operands;
  if (!find_sets(ctx, ctx.args.subspan(1), &operands)) return;
  const auto size = ctx.reply.later();
  size_t count = 0;
  for_each_in_all(operands.sets, false, [&](std::string_view member) {
    ctx.reply.bulk(member);
    ++count;
    return true;
  });
  ctx.reply.set_later(size, count);
}

void sinterstore(CommandContext& ctx) {
  store_members(ctx, intersection, "sinterstore");
}

void sunion(CommandContext& ctx) {
  reply_members(ctx, union_of);
}

void sunionstore(CommandContext& ctx) {
  store_members(ctx, union_of, "sunionstore");
}

void sdiff(CommandContext& ctx) {
  reply_members(ctx, difference);
}

void sdiffstore(CommandContext& ctx) {
  store_members(ctx, difference, "sdiffstore");
}

// The arguments of commands that only count.
struct CardRequest {
  Operands operands;
  size_t limit = 0;  // 0: no limit
};

// Reads `numkeys key [key ...] [LIMIT limit]`, with APPROX if `may_approximate`, and finds the
// sets; false, with the error sent, on anything else.
bool read_card_request(CommandContext& ctx, bool may_approximate, CardRequest* request) {
  int64_t key_count;
  if (!ctx.read_int64_in(ctx.args[1], 1, INT64_MAX, &key_count,
                         "ERR numkeys should be greater than 0")) {
    return false;
  }
  if (static_cast<uint64_t>(key_count) > ctx.args.size() - 2)
    return ctx.refuse("ERR Number of keys can't be greater than number of args");
  const auto keys = ctx.args.subspan(2, static_cast<size_t>(key_count));
  std::string_view text;
  for (ArgReader options(ctx.args, 2 + keys.size()); options.more();) {
    if (may_approximate && options.word("APPROX")) continue;
    if (!options.word("LIMIT", &text)) {
      ctx.syntax_error();
      return false;
    }
    int64_t limit;
    if (!ctx.read_int64_in(text, 0, INT64_MAX, &limit, "ERR LIMIT can't be negative")) return false;
    request->limit = static_cast<size_t>(limit);
  }
  return find_sets(ctx, keys, &request->operands);
}

void sintercard(CommandContext& ctx) {
  CardRequest request;
  if (!read_card_request(ctx, false, &request)) return;
  size_t count = 0;
  for_each_in_all(request.operands.sets, request.limit != 0,
                  [&](std::string_view) { return ++count != request.limit; });
  ctx.reply.integer(static_cast<int64_t>(count));
}

// Counts the members of `set` that none of `others` has, from `count` on until `limit` is reached.
size_t count_new(const Set& set, std::span<const Set* const> others, size_t count, size_t limit) {
  if (limit != 0 && count >= limit) return count;
  const auto visit = [&](std::string_view member) {
    const auto has_member = [&](const Set* other) { return other->contains(member); };
    return std::any_of(others.begin(), others.end(), has_member) || ++count != limit;
  };
  if (limit == 0) {
    set.for_each(visit);
  } else {
    set.for_each_while(visit);
  }
  return count;
}

// Few sets are counted by looking members up in those before, which takes no memory; many by
// uniting them. APPROX gets the exact number too: it costs no more than a set does to be united.
size_t union_size(CommandContext& ctx, CardRequest& request) {
  constexpr size_t kFew = 8;
  auto& sets = request.operands.sets;
  std::erase(sets, nullptr);
  drop_repeated_sets(sets);
  std::sort(sets.begin(), sets.end(),
            [](const Set* left, const Set* right) { return left->size() > right->size(); });
  if (sets.empty()) return 0;
  size_t count = sets.front()->size();
  if (request.limit != 0 && count >= request.limit) return request.limit;
  if (sets.size() <= kFew) {
    for (size_t i = 1; i < sets.size(); ++i)
      count = count_new(*sets[i], std::span(sets).first(i), count, request.limit);
    return count;
  }
  Set all(ctx.db.environment());
  for (const Set* set : sets) {
    set->for_each_while([&](std::string_view member) {
      all.add(member);
      return request.limit == 0 || all.size() < request.limit;
    });
    if (request.limit != 0 && all.size() >= request.limit) break;
  }
  return all.size();
}

void sunioncard(CommandContext& ctx) {
  CardRequest request;
  if (!read_card_request(ctx, true, &request)) return;
  ctx.reply.integer(static_cast<int64_t>(union_size(ctx, request)));
}

void sdiffcard(CommandContext& ctx) {
  CardRequest request;
  if (!read_card_request(ctx, false, &request)) return;
  const Set* first = request.operands.sets.front();
  if (first == nullptr) return ctx.reply.integer(0);
  auto& others = request.operands.sets;
  others.erase(others.begin());
  std::erase(others, nullptr);
  drop_repeated_sets(others);
  ctx.reply.integer(static_cast<int64_t>(count_new(*first, others, 0, request.limit)));
}

constexpr char kIntersectionCost[] =
    "O(N*M) worst case where N is the cardinality of the smallest set and M is the number of sets.";
constexpr char kAllMembersCost[] =
    "O(N) where N is the total number of elements in all given sets.";

constexpr CommandRow kSetAlgebraRows[] = {
    {"SDIFF",
     sdiff,
     "key...",
     kReadOnly,
     keys(1, -1).ro().access(),
     kAclSet,
     Group::kSet,
     "1.0.0",
     kAllMembersCost,
     "Returns the difference of multiple sets.",
     {.tips = "nondeterministic_output_order"}},
    {"SDIFFCARD", sdiffcard, "numkeys key... [LIMIT limit]", kReadOnly,
     counted_keys(1).ro().access(), kAclSet, Group::kSet, "8.10.0", kAllMembersCost,
     "Returns the number of members of the difference between the first set and all successive "
     "sets."},
    {"SDIFFSTORE", sdiffstore, "destination key...", kWrite | kDenyOom,
     keys(1).ow().update() + keys(2, -1).ro().access(), kAclSet, Group::kSet, "1.0.0",
     kAllMembersCost, "Stores the difference of multiple sets in a key."},
    {"SINTER",
     sinter,
     "key...",
     kReadOnly,
     keys(1, -1).ro().access(),
     kAclSet,
     Group::kSet,
     "1.0.0",
     kIntersectionCost,
     "Returns the intersect of multiple sets.",
     {.tips = "nondeterministic_output_order"}},
    {"SINTERCARD", sintercard, "numkeys key... [LIMIT limit]", kReadOnly,
     counted_keys(1).ro().access(), kAclSet, Group::kSet, "7.0.0", kIntersectionCost,
     "Returns the number of members of the intersect of multiple sets."},
    {"SINTERSTORE", sinterstore, "destination key...", kWrite | kDenyOom,
     keys(1).ow().update() + keys(2, -1).ro().access(), kAclSet, Group::kSet, "1.0.0",
     kIntersectionCost, "Stores the intersect of multiple sets in a key."},
    {"SUNION",
     sunion,
     "key...",
     kReadOnly,
     keys(1, -1).ro().access(),
     kAclSet,
     Group::kSet,
     "1.0.0",
     kAllMembersCost,
     "Returns the union of multiple sets.",
     {.tips = "nondeterministic_output_order"}},
    {"SUNIONCARD", sunioncard, "numkeys key... [APPROX] [LIMIT limit]", kReadOnly,
     counted_keys(1).ro().access(), kAclSet, Group::kSet, "8.10.0", kAllMembersCost,
     "Returns the number of members of the union of multiple sets."},
    {"SUNIONSTORE", sunionstore, "destination key...", kWrite | kDenyOom,
     keys(1).ow().update() + keys(2, -1).ro().access(), kAclSet, Group::kSet, "1.0.0",
     kAllMembersCost, "Stores the union of multiple sets in a key."},
};

}  // namespace

std::span<const CommandRow> set_algebra_rows() {
  return kSetAlgebraRows;
}

}  // namespace latchkey::commands
