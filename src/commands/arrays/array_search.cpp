// Walking over ranges of arrays: ARSCAN, ARGREP, AROP.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/text/glob.h"
#include "base/text/number.h"
#include "base/text/regex.h"
#include "base/text/text.h"
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

// A predicate whose cost grows with the text.
struct Search {
  enum class Kind : uint8_t { kPart, kGlob, kRegex } kind;
  std::string_view pattern;
  std::string part = {};  // in lower case when case is ignored
  std::optional<base::GlobPattern> glob = {};
  base::Regex regex = {};
};

// What the predicates of a request say of a text.
enum class Verdict : uint8_t { kHolds, kFails, kTooSlow };

struct GrepRequest {
  std::vector<std::string> exact;  // sorted; in lower case when case is ignored
  std::vector<Search> searches;
  base::RegexBudget regex_budget = {};
  bool all_must_hold = false;
  bool ignore_case = false;
  bool with_values = false;
  uint64_t limit = 0;  // 0: none

  Verdict test(std::string_view text);

 private:
  Verdict test(const Search& search, std::string_view text, std::string_view folded);
};

Verdict verdict_of(bool holds) {
  return holds ? Verdict::kHolds : Verdict::kFails;
}

Verdict verdict_of(base::Regex::Outcome outcome) {
  return outcome == base::Regex::Outcome::kTooSlow
             ? Verdict::kTooSlow
             : verdict_of(outcome == base::Regex::Outcome::kFound);
}

Verdict GrepRequest::test(const Search& search, std::string_view text, std::string_view folded) {
  switch (search.kind) {
    case Search::Kind::kPart:
      return verdict_of(contains(folded, search.part));
    case Search::Kind::kGlob:
      return verdict_of(search.glob->matches_folded(folded));
    case Search::Kind::kRegex:
      return verdict_of(search.regex.search(text, regex_budget));
  }
  return Verdict::kFails;
}

Verdict GrepRequest::test(std::string_view text) {
  const std::string lower = ignore_case ? base::lower_case(text) : std::string();
  const std::string_view folded = ignore_case ? std::string_view(lower) : text;
  // The first predicate that says so decides.
  const Verdict decisive = verdict_of(!all_must_hold);
  if (!exact.empty()) {
    const bool is_one = std::binary_search(exact.begin(), exact.end(), folded);
    const bool holds = all_must_hold ? is_one && exact.front() == exact.back() : is_one;
    if (verdict_of(holds) == decisive) return decisive;
  }
  for (const Search& search : searches) {
    const Verdict verdict = test(search, text, folded);
    if (verdict == decisive || verdict == Verdict::kTooSlow) return verdict;
  }
  return verdict_of(all_must_hold);
}

bool take_predicate(ArgReader& words, GrepRequest* request) {
  using Kind = Search::Kind;
  static constexpr std::pair<std::string_view, Kind> kKinds[] = {
      {"MATCH", Kind::kPart}, {"GLOB", Kind::kGlob}, {"RE", Kind::kRegex}};
  std::string_view text;
  if (words.word("EXACT", &text)) {
    request->exact.emplace_back(text);
    return true;
  }
  for (const auto& [name, kind] : kKinds) {
    if (!words.word(name, &text)) continue;
    request->searches.push_back({kind, text});
    return true;
  }
  return false;
}

// Limits of a request, so that it does not hold the server up: a search takes some milliseconds for
// a megabyte of text, and each 64 bytes of globs that are complex too.
constexpr size_t kMaxPredicates = 250;
constexpr size_t kMaxComplexGlobs = base::GlobPattern::kMaxSearchedBytes;
constexpr size_t kLongestRegex = 2048;
// Of all regular expressions together.
constexpr size_t kMaxInstructions = 1000;

// Whether a pattern has a reference such as \1 to one of its groups.
bool has_back_reference(std::string_view pattern) {
  for (size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] != '\\') continue;
    ++i;
    if (pattern[i] >= '1' && pattern[i] <= '9') return true;
  }
  return false;
}

// Whether a pattern stands for itself alone, so that it can be searched for as a part.
bool is_plain(std::string_view pattern) {
  return pattern.find_first_of("\\.[]{}()*+?^$|") == std::string_view::npos &&
         std::all_of(pattern.begin(), pattern.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// False, with the error sent, when the pattern is malformed, or too large with those before it.
bool compile_regex(CommandContext& ctx, bool ignore_case, Search& search, size_t* instructions) {
  const std::string_view pattern = search.pattern;
  if (pattern.empty()) return ctx.refuse("ERR regular expression is empty");
  if (pattern.size() > kLongestRegex)
    return ctx.refuse("ERR regular expression is too long, the maximum is " +
                      std::to_string(kLongestRegex) + " bytes");
  if (has_back_reference(pattern))
    return ctx.refuse("ERR regular expression backreferences are not supported");
  if (is_plain(pattern)) {
    search.kind = Search::Kind::kPart;
    search.part = ignore_case ? base::lower_case(pattern) : std::string(pattern);
    return true;
  }
  const base::Result<> compiled = search.regex.compile(pattern, ignore_case);
  if (!compiled) return ctx.refuse("ERR invalid regular expression: " + compiled.error());
  *instructions += search.regex.size();
  if (*instructions > kMaxInstructions)
    return ctx.refuse("ERR invalid regular expression: too large");
  return true;
}

// False, with the error sent, when a pattern is malformed, or all of them together are too large.
bool compile_patterns(CommandContext& ctx, GrepRequest* request) {
  const auto folded = [&](std::string_view text) {
    return request->ignore_case ? base::lower_case(text) : std::string(text);
  };
  if (request->exact.size() + request->searches.size() > kMaxPredicates)
    return ctx.refuse("ERR too many predicates, the maximum is " + std::to_string(kMaxPredicates));
  for (std::string& text : request->exact) text = folded(text);
  std::sort(request->exact.begin(), request->exact.end());
  size_t instructions = 0;
  size_t complex_bytes = 0;
  for (Search& search : request->searches) {
    if (search.kind == Search::Kind::kPart) {
      search.part = folded(search.pattern);
    } else if (search.kind == Search::Kind::kGlob) {
      search.glob.emplace(search.pattern, request->ignore_case);
      complex_bytes += search.glob->complex_bytes();
      if (complex_bytes > kMaxComplexGlobs) return ctx.refuse("ERR glob patterns are too large");
    } else if (!compile_regex(ctx, request->ignore_case, search, &instructions)) {
      return false;
    }
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
  if (request->exact.empty() && request->searches.empty()) {
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
  // The reply is made when it is known that there is one.
  std::vector<std::pair<uint64_t, ArrayCell>> found;
  Verdict verdict = Verdict::kFails;
  char scratch[store::kCellScratch];
  array->for_each(range.first, range.last, [&](uint64_t index, ArrayCell value) {
    verdict = request.test(store::cell::text(value, scratch));
    if (verdict == Verdict::kHolds) found.emplace_back(index, value);
    return verdict != Verdict::kTooSlow && (request.limit == 0 || found.size() < request.limit);
  });
  if (verdict == Verdict::kTooSlow)
    return ctx.reply.error("ERR regular expression takes too long for this text");
  ctx.reply.array(found.size());
  for (const auto& [index, value] : found)
    request.with_values ? reply_pair(ctx, index, value) : reply_unsigned(ctx, index);
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
