// Unions, intersections and differences of sorted sets: ZUNION, ZINTER, ZDIFF, their STORE forms,
// ZINTERCARD. Plain sets are accepted too; each of their members has the score 1.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/text/text.h"
#include "commands/groups.h"
#include "commands/keys/repeated_operands.h"
#include "commands/keys/store_result.h"
#include "commands/keys/typed_key.h"
#include "server/command/command_context.h"
#include "store/value/set.h"
#include "store/value/sorted_set.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::Set;
using store::SortedSet;
using store::View;

namespace {

enum class Operation : uint8_t { kUnion, kIntersection, kDifference };
// kCount (Redis 8.8) sums the weights of the sets that have a member, whatever its scores are.
enum class Aggregate : uint8_t { kSum, kMinimum, kMaximum, kCount };

// The value of a key: a sorted set, a plain set, or nothing.
struct Operand {
  View<SortedSet> sorted;
  View<Set> plain;
  double weight = 1;

  size_t size() const {
    if (sorted != nullptr) return sorted->size();
    return plain == nullptr ? 0 : plain->size();
  }

  // What tells the values of two keys apart. Mentions of a packed value have views of their own,
  // which share the entry's bytes.
  const void* identity() const {
    const store::Value* value = plain.get();
    if (sorted != nullptr) value = sorted.get();
    const store::Packed packed = value == nullptr ? store::Packed() : value->packed();
    return packed.bytes.empty() ? static_cast<const void*>(value) : packed.bytes.data();
  }

  std::optional<double> score(std::string_view member) const {
    if (sorted != nullptr) return sorted->score(member);
    if (plain != nullptr && plain->contains(member)) return kPlainScore;
    return std::nullopt;
  }

  // Calls fn(member, score) for every member.
  template <typename Fn>
  void for_each(Fn&& fn) const {
    if (sorted != nullptr) return sorted->for_each(fn);
    if (plain != nullptr)
      plain->for_each([&](std::string_view member) { fn(member, kPlainScore); });
  }
  // The same until fn returns false.
  template <typename Fn>
  void for_each_while(Fn&& fn) const {
    if (sorted != nullptr) return sorted->for_each_while(fn);
    if (plain != nullptr)
      plain->for_each_while([&](std::string_view member) { return fn(member, kPlainScore); });
  }

  static constexpr double kPlainScore = 1;
};

struct AlgebraRequest {
  Operation operation;
  bool store = false;
  bool only_count = false;
  std::vector<Operand> operands = {};
  Aggregate aggregate = Aggregate::kSum;
  bool with_scores = false;
  size_t limit = 0;  // maximum count of ZINTERCARD; 0: no limit
};

// --- Reading the request ------------------------------------------------------------------------

// Looks up the operands; false, with an error sent, when one has another type.
bool read_operands(CommandContext& ctx, Arguments keys, AlgebraRequest* request) {
  for (const std::string_view key : keys) {
    const KeyRef ref = ctx.db.find(key);
    Operand& operand = request->operands.emplace_back();
    if (ref && ref->type() == Set::kType) {
      operand.plain = view_of<Set>(ref);
    } else if (!ctx.is_type(ref, SortedSet::kType)) {
      return false;
    } else if (ref) {
      operand.sorted = view_of<SortedSet>(ref);
    }
  }
  return true;
}

bool read_aggregate(CommandContext& ctx, std::string_view word, Aggregate* aggregate) {
  if (is_word(word, "SUM")) {
    *aggregate = Aggregate::kSum;
  } else if (is_word(word, "MIN")) {
    *aggregate = Aggregate::kMinimum;
  } else if (is_word(word, "MAX")) {
    *aggregate = Aggregate::kMaximum;
  } else if (is_word(word, "COUNT")) {
    *aggregate = Aggregate::kCount;
  } else {
    ctx.syntax_error();
    return false;
  }
  return true;
}

bool read_limit(CommandContext& ctx, std::string_view text, size_t* limit) {
  int64_t value;
  if (!ctx.read_int64_in(text, 0, INT64_MAX, &value, "ERR LIMIT can't be negative")) return false;
  *limit = static_cast<size_t>(value);
  return true;
}

bool read_algebra_options(CommandContext& ctx, ArgReader reader, AlgebraRequest* request) {
  const bool weighted = request->operation != Operation::kDifference && !request->only_count;
  std::string_view text;
  while (reader.more()) {
    if (weighted && reader.left() > request->operands.size() && reader.word("WEIGHTS")) {
      for (Operand& operand : request->operands) {
        if (!ctx.read_double(reader.next(), &operand.weight, "ERR weight value is not a float"))
          return false;
      }
    } else if (weighted && reader.word("AGGREGATE", &text)) {
      if (!read_aggregate(ctx, text, &request->aggregate)) return false;
    } else if (!request->store && !request->only_count && reader.word("WITHSCORES")) {
      request->with_scores = true;
    } else if (request->only_count && reader.word("LIMIT", &text)) {
      if (!read_limit(ctx, text, &request->limit)) return false;
    } else {
      ctx.syntax_error();
      return false;
    }
  }
  return true;
}

// `count`: the index of the argument with the number of keys.
bool read_algebra(CommandContext& ctx, size_t count, AlgebraRequest* request) {
  int64_t keys;
  if (!ctx.read_int64(ctx.args[count], &keys)) return false;
  if (keys < 1)
    return ctx.refuse("ERR at least 1 input key is needed for '" + base::lower_case(ctx.args[0]) +
                      "' command");
  if (static_cast<uint64_t>(keys) > ctx.args.size() - count - 1) {
    ctx.syntax_error();
    return false;
  }
  const auto key_count = static_cast<size_t>(keys);
  return read_operands(ctx, ctx.args.subspan(count + 1, key_count), request) &&
         read_algebra_options(ctx, ArgReader(ctx.args, count + 1 + key_count), request);
}

// --- Computing the result -----------------------------------------------------------------------

// What a member of `operand` with that score contributes: NaN for infinity times zero.
double product(double score, const Operand& operand, Aggregate aggregate) {
  return aggregate == Aggregate::kCount ? operand.weight : score * operand.weight;
}

double weighted(double score, const Operand& operand, Aggregate aggregate) {
  const double contribution = product(score, operand, aggregate);
  return std::isnan(contribution) ? 0 : contribution;
}

// A `right` that is NaN leaves a minimum or maximum as it is.
double joined(double left, double right, Aggregate aggregate) {
  switch (aggregate) {
    case Aggregate::kMinimum:
      return std::min(left, right);
    case Aggregate::kMaximum:
      return std::max(left, right);
    case Aggregate::kSum:
    case Aggregate::kCount:
      break;
  }
  // The sum of opposite infinities is 0, and so is one with NaN.
  const double sum = left + right;
  return std::isnan(sum) ? 0 : sum;
}

// Sums of doubles depend on their order: it is that of the reference, from the smallest operand to
// the largest.
void sort_by_size(AlgebraRequest& request) {
  std::stable_sort(request.operands.begin(), request.operands.end(),
                   [](const Operand& a, const Operand& b) { return a.size() < b.size(); });
}

void unite_few(const AlgebraRequest& request, SortedSet& result) {
  for (const Operand& operand : request.operands) {
    operand.for_each([&](std::string_view member, double score) {
      score = weighted(score, operand, request.aggregate);
      if (const auto present = result.score(member)) {
        result.change(member, joined(*present, score, request.aggregate));
      } else {
        result.add(member, score);
      }
    });
  }
}

// The same for many operands: a member gets its place in the order when its score is known, and not
// with each operand. `firsts`: their first_mentions(). Members of a value that is mentioned again
// are looked up once; what remains is a sum for each mention, since sums of doubles cannot be
// exchanged for products.
void unite_many(const AlgebraRequest& request, const std::vector<size_t>& firsts, SortedSet& places,
                SortedSet& result) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  struct Contribution {
    size_t place;
    double score;
  };
  std::vector<double> scores;  // of all members; `places` has the index of each one as its score
  std::vector<std::vector<Contribution>> contributions(firsts.size());
  std::vector<bool> is_repeated(firsts.size());
  for (size_t i = 0; i < firsts.size(); ++i) is_repeated[firsts[i]] = firsts[i] != i;
  const auto contribute = [&](const Contribution& made, const Operand& operand) {
    const double score = weighted(made.score, operand, request.aggregate);
    double& sum = scores[made.place];
    sum = std::isnan(sum) ? score : joined(sum, score, request.aggregate);
  };
  for (size_t i = 0; i < firsts.size(); ++i) {
    const Operand& operand = request.operands[i];
    for (const Contribution& made : contributions[firsts[i]]) contribute(made, operand);
    if (firsts[i] != i) continue;
    operand.for_each([&](std::string_view member, double score) {
      const auto known = places.score(member);
      const size_t place = known ? static_cast<size_t>(*known) : scores.size();
      if (!known) {
        places.add(member, static_cast<double>(place));
        scores.push_back(kNone);
      }
      const Contribution made = {place, score};
      contribute(made, operand);
      if (is_repeated[i]) contributions[i].push_back(made);
    });
  }
  places.for_each([&](std::string_view member, double place) {
    result.add(member, scores[static_cast<size_t>(place)]);
  });
}

void unite(CommandContext& ctx, AlgebraRequest& request, SortedSet& result) {
  constexpr size_t kFew = 3;
  sort_by_size(request);
  if (request.operands.size() <= kFew) return unite_few(request, result);
  SortedSet places(ctx.db.environment(), SIZE_MAX, 0);
  unite_many(request, first_mentions(request.operands, &Operand::identity), places, result);
}

// Calls fn(member, score) for the members that all operands have, until fn returns false, which it
// does only if the request has a limit. Members are looked up once for each value.
template <typename Fn>
void intersect(AlgebraRequest& request, Fn&& fn) {
  sort_by_size(request);
  const std::vector<Operand>& operands = request.operands;
  const std::vector<size_t> firsts = first_mentions(operands, &Operand::identity);
  std::vector<double> scores(operands.size());  // of the member, where a value is first mentioned
  const auto visit = [&](std::string_view member, double score) {
    scores[0] = score;
    score = weighted(score, operands[0], request.aggregate);
    for (size_t i = 1; i < operands.size(); ++i) {
      if (firsts[i] == i) {
        const auto other = operands[i].score(member);
        if (!other) return true;
        scores[i] = *other;
      }
      const double other = product(scores[firsts[i]], operands[i], request.aggregate);
      score = joined(score, other, request.aggregate);
    }
    return static_cast<bool>(fn(member, score));
  };
  if (request.limit != 0) {
    operands[0].for_each_while(visit);
  } else {
    operands[0].for_each(visit);
  }
}

void subtract(AlgebraRequest& request, SortedSet& result) {
  drop_repeated(request.operands, 1, &Operand::identity);
  const Operand& first = request.operands[0];
  first.for_each([&](std::string_view member, double score) {
    for (size_t i = 1; i < request.operands.size(); ++i) {
      if (request.operands[i].score(member)) return;
    }
    result.add(member, score);
  });
}

std::unique_ptr<SortedSet> work_out(CommandContext& ctx, AlgebraRequest& request) {
  // Large, since members are looked up; compact() makes a small result a listpack before it is
  // stored.
  auto result = std::make_unique<SortedSet>(ctx.db.environment(), SIZE_MAX, 0);
  switch (request.operation) {
    case Operation::kUnion:
      unite(ctx, request, *result);
      break;
    case Operation::kIntersection:
      intersect(request, [&](std::string_view member, double score) {
        result->add(member, score);
        return true;
      });
      break;
    case Operation::kDifference:
      subtract(request, *result);
      break;
  }
  return result;
}

// --- Answering ----------------------------------------------------------------------------------

void answer(CommandContext& ctx, Operation operation) {
  AlgebraRequest request{.operation = operation};
  if (!read_algebra(ctx, 1, &request)) return;
  const auto result = work_out(ctx, request);
  const bool pairs = request.with_scores && ctx.reply.is_resp3();
  ctx.reply.array(request.with_scores && !pairs ? result->size() * 2 : result->size());
  result->for_each([&](std::string_view member, double score) {
    if (pairs) ctx.reply.array(2);
    ctx.reply.bulk(member);
    if (request.with_scores) ctx.reply.number(score);
  });
}

void store(CommandContext& ctx, Operation operation, std::string_view event) {
  AlgebraRequest request{.operation = operation, .store = true};
  if (!read_algebra(ctx, 2, &request)) return;
  auto result = work_out(ctx, request);
  result->compact();
  store_result(ctx, ctx.args[1], std::move(result), EventClass::kSortedSet, event);
}

void zunion(CommandContext& ctx) {
  answer(ctx, Operation::kUnion);
}

void zinter(CommandContext& ctx) {
  answer(ctx, Operation::kIntersection);
}

void zdiff(CommandContext& ctx) {
  answer(ctx, Operation::kDifference);
}

void zunionstore(CommandContext& ctx) {
  store(ctx, Operation::kUnion, "zunionstore");
}

void zinterstore(CommandContext& ctx) {
  store(ctx, Operation::kIntersection, "zinterstore");
}

void zdiffstore(CommandContext& ctx) {
  store(ctx, Operation::kDifference, "zdiffstore");
}

void zintercard(CommandContext& ctx) {
  AlgebraRequest request{.operation = Operation::kIntersection, .only_count = true};
  if (!read_algebra(ctx, 1, &request)) return;
  drop_repeated(request.operands, 0, &Operand::identity);
  size_t count = 0;
  intersect(request, [&](std::string_view, double) { return ++count != request.limit; });
  ctx.reply.integer(static_cast<int64_t>(count));
}

constexpr char kCountHistory[] = "8.8.0 Added `COUNT` aggregate option.";

constexpr CommandRow kSortedSetAlgebraRows[] = {
    {"ZDIFF", zdiff, "numkeys key... [WITHSCORES]", kReadOnly, counted_keys(1).ro().access(),
     kAclSortedSet, Group::kSortedSet, "6.2.0",
     "O(L + (N-K)log(N)) worst case where L is the total number of elements in all the sets, N is "
     "the size of the first set, and K is the size of the result set.",
     "Returns the difference between multiple sorted sets."},
    {"ZDIFFSTORE", zdiffstore, "destination numkeys key...", kWrite | kDenyOom,
     keys(1).ow().update() + counted_keys(2).ro().access(), kAclSortedSet, Group::kSortedSet,
     "6.2.0",
     "O(L + (N-K)log(N)) worst case where L is the total number of elements in all the sets, N is "
     "the size of the first set, and K is the size of the result set.",
     "Stores the difference of multiple sorted sets in a key."},
    {"ZINTER",
     zinter,
     "numkeys key... [WEIGHTS weight...] [AGGREGATE aggregate=SUM|MIN|MAX|COUNT] [WITHSCORES]",
     kReadOnly,
     counted_keys(1).ro().access(),
     kAclSortedSet,
     Group::kSortedSet,
     "6.2.0",
     "O(N*K)+O(M*log(M)) worst case with N being the smallest input sorted set, K being the number "
     "of input sorted sets and M being the number of elements in the resulting sorted set.",
     "Returns the intersect of multiple sorted sets.",
     {.history = kCountHistory}},
    {"ZINTERCARD", zintercard, "numkeys key... [LIMIT limit]", kReadOnly,
     counted_keys(1).ro().access(), kAclSortedSet, Group::kSortedSet, "7.0.0",
     "O(N*K) worst case with N being the smallest input sorted set, K being the number of input "
     "sorted sets.",
     "Returns the number of members of the intersect of multiple sorted sets."},
    {"ZINTERSTORE",
     zinterstore,
     "destination numkeys key... [WEIGHTS weight...] [AGGREGATE aggregate=SUM|MIN|MAX|COUNT]",
     kWrite | kDenyOom,
     keys(1).ow().update() + counted_keys(2).ro().access(),
     kAclSortedSet,
     Group::kSortedSet,
     "2.0.0",
     "O(N*K)+O(M*log(M)) worst case with N being the smallest input sorted set, K being the number "
     "of input sorted sets and M being the number of elements in the resulting sorted set.",
     "Stores the intersect of multiple sorted sets in a key.",
     {.history = kCountHistory}},
    {"ZUNION",
     zunion,
     "numkeys key... [WEIGHTS weight...] [AGGREGATE aggregate=SUM|MIN|MAX|COUNT] [WITHSCORES]",
     kReadOnly,
     counted_keys(1).ro().access(),
     kAclSortedSet,
     Group::kSortedSet,
     "6.2.0",
     "O(N)+O(M*log(M)) with N being the sum of the sizes of the input sorted sets, and M being the "
     "number of elements in the resulting sorted set.",
     "Returns the union of multiple sorted sets.",
     {.history = kCountHistory}},
    {"ZUNIONSTORE",
     zunionstore,
     "destination numkeys key... [WEIGHTS weight...] [AGGREGATE aggregate=SUM|MIN|MAX|COUNT]",
     kWrite | kDenyOom,
     keys(1).ow().update() + counted_keys(2).ro().access(),
     kAclSortedSet,
     Group::kSortedSet,
     "2.0.0",
     "O(N)+O(M log(M)) with N being the sum of the sizes of the input sorted sets, and M being the "
     "number of elements in the resulting sorted set.",
     "Stores the union of multiple sorted sets in a key.",
     {.history = kCountHistory}},
};

}  // namespace

std::span<const CommandRow> sorted_set_algebra_rows() {
  return kSortedSetAlgebraRows;
}

}  // namespace latchkey::commands
