// Walking over ranges of arrays: ARSCAN, ARGREP, AROP.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/glob.h"
#include "base/number.h"
#include "base/regex.h"
#include "base/text.h"
#include "commands/arrays/array_steps.h"
#include "commands/groups.h"

namespace latchkey::commands {

using namespace server;
using store::Array;
using store::ArrayCell;

namespace {

struct IndexRange {
  uint64_t first = 0;
  uint64_t last = 0;
};

bool read_range(CommandContext& ctx, IndexRange* range) {
  return read_index(ctx, ctx.args[2], &range->first) && read_index(ctx, ctx.args[3], &range->last);
}

bool read_limit(CommandContext& ctx, std::string_view text, uint64_t* limit) {
  int64_t value;
  if (!ctx.read_int64_in(text, 1, INT64_MAX, &value, "ERR LIMIT must be a positive integer"))
    return false;
  *limit = static_cast<uint64_t>(value);
  return true;
}

void reply_pair(CommandContext& ctx, uint64_t index, ArrayCell value) {
  ctx.reply.array(2);
  reply_unsigned(ctx, index);
  reply_cell(ctx, value);
}

void arscan(CommandContext& ctx) {
  IndexRange range;
  if (!read_range(ctx, &range)) return;
  uint64_t limit = 0;  // 0: none
  std::string_view text;
  for (ArgReader options(ctx.args, 4); options.more();) {
    if (!options.word("LIMIT", &text)) return ctx.syntax_error();
    if (!read_limit(ctx, text, &limit)) return;
  }
  bool refused;
  const Array* array = array_to_read(ctx, &refused);
  if (refused) return;
  if (array == nullptr) return ctx.reply.empty_array();
  const auto later = ctx.reply.later();
  uint64_t found = 0;
  array->for_each(range.first, range.last, [&](uint64_t index, ArrayCell value) {
    reply_pair(ctx, index, value);
    return ++found != limit;
  });
  ctx.reply.array_later(later, found);
}

// --- ARGREP -------------------------------------------------------------------------------------

// memmem() takes linear time. std::search() and find() of strings may take the product of the
// lengths, which is minutes for texts of a megabyte.
bool contains(std::string_view text, std::string_view part) {
  return part.size() <= text.size() &&
         memmem(text.data(), text.size(), part.data(), part.size()) != nullptr;
}

struct Predicate {
  enum class Kind : uint8_t { kExact, kPart, kGlob, kRegex } kind;
  std::string_view pattern;
  base::Regex regex = {};
  std::string lower_pattern = {};

  bool holds(std::string_view text, bool ignore_case) {
    switch (kind) {
      case Kind::kExact:
        if (!ignore_case) return text == pattern;
        return base::equal_ignoring_case(text, pattern);
      case Kind::kPart:
        if (!ignore_case) return contains(text, pattern);
        return contains(base::lower_case(text), lower_pattern);
      case Kind::kGlob:
        return base::glob_match(pattern, text, ignore_case);
      case Kind::kRegex:
        return regex.search(text);
    }
    return false;
  }
};

struct GrepRequest {
  std::vector<Predicate> predicates;
  bool all_must_hold = false;
  bool ignore_case = false;
  bool with_values = false;
  uint64_t limit = 0;  // 0: none

  bool holds(std::string_view text) {
    const auto test = [&](Predicate& each) { return each.holds(text, ignore_case); };
    return all_must_hold ? std::all_of(predicates.begin(), predicates.end(), test)
                         : std::any_of(predicates.begin(), predicates.end(), test);
  }
};

bool take_predicate(ArgReader& words, GrepRequest* request) {
  using Kind = Predicate::Kind;
  static constexpr std::pair<std::string_view, Kind> kKinds[] = {
      {"EXACT", Kind::kExact}, {"MATCH", Kind::kPart}, {"GLOB", Kind::kGlob}, {"RE", Kind::kRegex}};
  std::string_view text;
  for (const auto& [name, kind] : kKinds) {
    if (!words.word(name, &text)) continue;
    request->predicates.push_back({kind, text});
    return true;
  }
  return false;
}

// False, with the error sent, when a regular expression is malformed, or all of them together are
// so large that they would hold the server up.
bool compile_patterns(CommandContext& ctx, GrepRequest* request) {
  constexpr size_t kMostInstructions = 1000;
  size_t instructions = 0;
  for (Predicate& predicate : request->predicates) {
    std::string why;
    predicate.lower_pattern = base::lower_case(predicate.pattern);
    if (predicate.kind != Predicate::Kind::kRegex) continue;
    if (predicate.regex.compile(predicate.pattern, request->ignore_case, &why)) {
      instructions += predicate.regex.size();
      if (instructions <= kMostInstructions) continue;
      why = "too large";
    }
    ctx.reply.error("ERR invalid regular expression: " + why);
    return false;
  }
  return true;
}

// Words come in any order: AND and OR may stand between the predicates too. The last of them
// counts.
bool read_grep_request(CommandContext& ctx, GrepRequest* request) {
  for (ArgReader words(ctx.args, 4); words.more();) {
    std::string_view text;
    if (take_predicate(words, request)) continue;
    if (words.word("AND")) {
      request->all_must_hold = true;
    } else if (words.word("OR")) {
      request->all_must_hold = false;
    } else if (words.word("NOCASE")) {
      request->ignore_case = true;
    } else if (words.word("WITHVALUES")) {
      request->with_values = true;
    } else if (words.word("LIMIT", &text)) {
      if (!read_limit(ctx, text, &request->limit)) return false;
    } else {
      ctx.syntax_error();
      return false;
    }
  }
  if (request->predicates.empty()) {
    ctx.syntax_error();
    return false;
  }
  return compile_patterns(ctx, request);
}

// "-" is the first index of the array and "+" its last one, whichever bound they are.
bool read_grep_bound(CommandContext& ctx, std::string_view text, uint64_t* index) {
  if (text == "-" || text == "+") {
    *index = text == "-" ? 0 : Array::kLastIndex;
    return true;
  }
  return read_index(ctx, text, index);
}

void argrep(CommandContext& ctx) {
  IndexRange range;
  GrepRequest request;
  if (!read_grep_bound(ctx, ctx.args[2], &range.first) ||
      !read_grep_bound(ctx, ctx.args[3], &range.last) || !read_grep_request(ctx, &request))
    return;
  bool refused;
  const Array* array = array_to_read(ctx, &refused);
  if (refused) return;
  if (array == nullptr) return ctx.reply.empty_array();
  const auto later = ctx.reply.later();
  uint64_t found = 0;
  char scratch[store::kCellScratch];
  array->for_each(range.first, range.last, [&](uint64_t index, ArrayCell value) {
    if (!request.holds(store::cell::text(value, scratch))) return true;
    request.with_values ? reply_pair(ctx, index, value) : reply_unsigned(ctx, index);
    return ++found != request.limit;
  });
  ctx.reply.array_later(later, found);
}

// --- AROP ---------------------------------------------------------------------------------------

enum class Aggregation : uint8_t { kSum, kMin, kMax, kAnd, kOr, kXor, kMatch, kUsed };

bool read_aggregation(CommandContext& ctx, Aggregation* aggregation) {
  static constexpr std::pair<std::string_view, Aggregation> kNames[] = {
      {"SUM", Aggregation::kSum},     {"MIN", Aggregation::kMin},  {"MAX", Aggregation::kMax},
      {"AND", Aggregation::kAnd},     {"OR", Aggregation::kOr},    {"XOR", Aggregation::kXor},
      {"MATCH", Aggregation::kMatch}, {"USED", Aggregation::kUsed}};
  for (const auto& [name, value] : kNames) {
    if (!is_word(ctx.args[4], name)) continue;
    *aggregation = value;
    if (ctx.args.size() == (value == Aggregation::kMatch ? 6 : 5)) return true;
    break;
  }
  ctx.syntax_error();
  return false;
}

// Towards zero; what is beyond 64 bits becomes their end.
int64_t truncated(double number) {
  constexpr double kEnd = 9223372036854775808.0;
  if (number >= kEnd) return INT64_MAX;
  return number <= -kEnd ? INT64_MIN : static_cast<int64_t>(number);
}

void reply_real_aggregate(CommandContext& ctx, Aggregation aggregation, const Array* array,
                          IndexRange range) {
  std::optional<double> result;
  char scratch[store::kCellScratch];
  if (array != nullptr) {
    array->for_each(range.first, range.last, [&](uint64_t, ArrayCell value) {
      double number;
      if (!base::parse_double(store::cell::text(value, scratch), &number)) return true;
      if (!result) {
        result = number;
      } else if (aggregation == Aggregation::kSum) {
        *result += number;
      } else {
        result = aggregation == Aggregation::kMin ? std::min(*result, number)
                                                  : std::max(*result, number);
      }
      return true;
    });
  }
  if (!result) return ctx.reply.null();
  char text[base::kMaxDoubleText];
  ctx.reply.bulk(std::string_view(text, base::format_double(*result, text)));
}

void reply_bits(CommandContext& ctx, Aggregation aggregation, const Array* array,
                IndexRange range) {
  std::optional<int64_t> result;
  char scratch[store::kCellScratch];
  if (array != nullptr) {
    array->for_each(range.first, range.last, [&](uint64_t, ArrayCell value) {
      const std::string_view text = store::cell::text(value, scratch);
      int64_t integer;
      double number;
      if (!base::parse_int64(text, &integer)) {
        if (!base::parse_double(text, &number)) return true;
        integer = truncated(number);
      }
      if (!result) {
        result = integer;
      } else if (aggregation == Aggregation::kAnd) {
        *result &= integer;
      } else {
        result = aggregation == Aggregation::kOr ? *result | integer : *result ^ integer;
      }
      return true;
    });
  }
  result ? ctx.reply.integer(*result) : ctx.reply.null();
}

void arop(CommandContext& ctx) {
  IndexRange range;
  Aggregation aggregation;
  if (!read_range(ctx, &range) || !read_aggregation(ctx, &aggregation)) return;
  // The order of the bounds makes no difference.
  if (range.first > range.last) std::swap(range.first, range.last);
  bool refused;
  const Array* array = array_to_read(ctx, &refused);
  if (refused) return;
  if (aggregation <= Aggregation::kMax) return reply_real_aggregate(ctx, aggregation, array, range);
  if (aggregation <= Aggregation::kXor) return reply_bits(ctx, aggregation, array, range);
  uint64_t found = 0;
  char scratch[store::kCellScratch];
  if (array != nullptr) {
    array->for_each(range.first, range.last, [&](uint64_t, ArrayCell value) {
      found += aggregation == Aggregation::kUsed || store::cell::text(value, scratch) == ctx.args[5]
                   ? 1
                   : 0;
      return true;
    });
  }
  reply_unsigned(ctx, found);
}

constexpr char kWalkCost[] =
    "O(P) where P is visited positions in touched slices (dense scanned slots + sparse entries), "
    "with worst-case O(|end-start|+1) and typical case close to O(N), where N is the number of "
    "existing elements in range.";

constexpr CommandRow kArraySearchRows[] = {
    {"ARGREP", argrep,
     "key start end {predicate={exact=EXACT string}|{match=MATCH string}|{glob=GLOB "
     "pattern:string}|{re=RE pattern:string}}... [options=AND|OR|LIMIT limit|WITHVALUES|NOCASE]...",
     kReadOnly, keys(1).ro().access(), kAclArray, Group::kArray, "8.8.0",
     "O(P * C) where P is the number of visited positions in touched slices and C is the cost of "
     "evaluating the predicates on one existing element.",
     "Searches array elements in a range using textual predicates."},
    {"AROP", arop,
     "key start:integer end:integer {operation=SUM|MIN|MAX|AND|OR|XOR|MATCH value|USED}", kReadOnly,
     keys(1).ro().access(), kAclArray, Group::kArray, "8.8.0", kWalkCost,
     "Performs aggregate operations on array elements in a range."},
    {"ARSCAN", arscan, "key start:integer end:integer [LIMIT limit]", kReadOnly,
     keys(1).ro().access(), kAclArray, Group::kArray, "8.8.0", kWalkCost,
     "Iterates existing elements in a range, returning index-value pairs."},
};

}  // namespace

std::span<const CommandRow> array_search_rows() {
  return kArraySearchRows;
}

}  // namespace latchkey::commands
