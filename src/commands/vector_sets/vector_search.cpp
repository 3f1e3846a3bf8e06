// VSIM: elements of a vector set whose vectors are near to a given one.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "commands/groups.h"
#include "commands/keys/typed_key.h"
#include "commands/vector_sets/vector_argument.h"
#include "server/server.h"
#include "store/value/vector_set.h"
#include "store/vector/attribute_filter.h"

namespace latchkey::commands {

using namespace server;
using store::AttributeFilter;
using store::KeyRef;
using store::VectorElement;
using store::VectorGraph;
using store::VectorSet;

namespace {

struct Question {
  std::vector<float> components;
  size_t count = 10;
  size_t effort = 0;  // 0: as the count asks
  // The greatest distance, on the scale of the similarity, 1 - epsilon.
  double epsilon = 2;
  std::optional<AttributeFilter> filter;
  size_t filter_effort = 0;
  bool with_scores = false;
  bool with_attributes = false;
  bool is_exact = false;
};

constexpr size_t kMinEffort = 100;
// With a filter: so many nodes are visited for each element that is wanted.
constexpr size_t kVisitedForEach = 100;

// Reads what the request compares with. False with an error sent.
bool read_query(CommandContext& ctx, const VectorSet& set, ArgReader& args, Question* question) {
  std::string_view name;
  if (args.word("ELE", &name)) {
    const VectorElement* element = set.find(name);
    if (element == nullptr) return ctx.refuse("ERR element not found in set");
    question->components = set.components(*element);
    return true;
  }
  std::optional<std::vector<float>> components = read_vector(args);
  if (!components.has_value()) {
    invalid_vector(ctx);
    return false;
  }
  const size_t given = components->size();
  if (set.has_projection() && given == set.input_dimensions()) {
    question->components = set.project(*components);
    return true;
  }
  if (given != set.dimensions() && set.has_projection()) {
    projection_mismatch(ctx, given, set.input_dimensions());
    return false;
  }
  if (given != set.dimensions()) {
    dimension_mismatch(ctx, given, set.dimensions());
    return false;
  }
  question->components = std::move(*components);
  return true;
}

bool read_filter(CommandContext& ctx, std::string_view text, Question* question) {
  const bool is_current = ctx.server.edition().has({8, 12});
  base::Result<AttributeFilter, size_t> filter = AttributeFilter::parse(
      text, is_current ? store::FilterSyntax::kCurrent : store::FilterSyntax::kBeforeRedis812);
  if (!filter)
    return ctx.refuse("ERR syntax error in FILTER expression near: " +
                      std::string(text.substr(filter.error())));
  question->filter = *std::move(filter);
  return true;
}

// Reads an option with a count. False with an error sent.
bool read_count(CommandContext& ctx, std::string_view text, int64_t most, std::string_view error,
                size_t* count) {
  int64_t number;
  if (!ctx.read_int64_in(text, 1, most, &number, error)) return false;
  *count = static_cast<size_t>(number);
  return true;
}

// False with an error sent.
bool read_options(CommandContext& ctx, ArgReader& args, Question* question) {
  constexpr int64_t kMaxEffort = 1'000'000;
  std::string_view text;
  bool is_read = true;
  while (is_read && args.more()) {
    if (args.word("WITHSCORES")) {
      question->with_scores = true;
    } else if (args.word("WITHATTRIBS")) {
      question->with_attributes = true;
    } else if (args.word("TRUTH")) {
      question->is_exact = true;
    } else if (args.word("NOTHREAD")) {
      // All searches run on the thread of the loop.
    } else if (args.word("COUNT", &text)) {
      is_read = read_count(ctx, text, INT64_MAX, "ERR invalid COUNT", &question->count);
    } else if (args.word("EF", &text)) {
      is_read = read_count(ctx, text, kMaxEffort, "ERR invalid EF", &question->effort);
    } else if (args.word("FILTER-EF", &text)) {
      is_read = read_count(ctx, text, INT64_MAX, "ERR invalid FILTER-EF", &question->filter_effort);
    } else if (args.word("FILTER", &text)) {
      is_read = read_filter(ctx, text, question);
    } else if (args.word("EPSILON", &text)) {
      is_read = ctx.read_double(text, &question->epsilon, "ERR invalid EPSILON");
      if (is_read && question->epsilon <= 0) return ctx.refuse("ERR invalid EPSILON");
    } else {
      return ctx.refuse("ERR syntax error in VSIM command");
    }
  }
  return is_read;
}

std::vector<VectorSet::Match> answer(const VectorSet& set, const Question& question) {
  const std::function<bool(VectorGraph::Slot)> accepts = [&](VectorGraph::Slot slot) {
    const VectorElement& element = set.element(slot);
    return element.has_attributes() && question.filter->matches(element.attributes());
  };
  VectorGraph::Search how;
  // No search finds more than there is.
  const size_t count = std::min(question.count, set.size());
  how.effort = std::max(question.effort == 0 ? kMinEffort : question.effort, count);
  if (question.filter.has_value()) {
    how.accepts = &accepts;
    how.most_visited =
        question.filter_effort != 0 ? question.filter_effort : count * kVisitedForEach;
  }
  std::vector<VectorSet::Match> matches = question.is_exact
                                              ? set.search_all(question.components, count, how)
                                              : set.search(question.components, how);
  const auto too_far = std::find_if(matches.begin(), matches.end(), [&](const auto& match) {
    return match.distance / 2 > question.epsilon;
  });
  matches.erase(too_far, matches.end());
  matches.resize(std::min(count, matches.size()), {});
  return matches;
}

void reply_attributes(CommandContext& ctx, const VectorElement& element) {
  element.has_attributes() ? ctx.reply.bulk(element.attributes()) : ctx.reply.null();
}

void reply_matches(CommandContext& ctx, const Question& question,
                   const std::vector<VectorSet::Match>& matches) {
  const size_t extras = size_t{question.with_scores} + size_t{question.with_attributes};
  if (ctx.reply.is_resp3() && extras > 0) {
    ctx.reply.map(matches.size());
  } else {
    ctx.reply.array(matches.size() * (1 + extras));
  }
  for (const auto& [distance, element] : matches) {
    ctx.reply.bulk(element->name());
    if (ctx.reply.is_resp3() && extras == 2) ctx.reply.array(2);
    if (question.with_scores) ctx.reply.number(similarity(distance));
    if (question.with_attributes) reply_attributes(ctx, *element);
  }
}

void vsim(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ref) return ctx.reply.empty_array();
  const VectorSet* set = value_at<VectorSet>(ctx, ref);
  if (set == nullptr) return;
  ArgReader args(ctx.args, 2);
  Question question;
  if (!read_query(ctx, *set, args, &question) || !read_options(ctx, args, &question)) return;
  reply_matches(ctx, question, answer(*set, question));
}

constexpr CommandRow kVectorSearchRows[] = {
    {"VSIM", vsim,
     "key {format=ELE|FP32|VALUES} vector_or_element [WITHSCORES] [WITHATTRIBS] [COUNT count] "
     "[EPSILON max_distance:double] [EF search-exploration-factor:integer] [FILTER expression] "
     "[FILTER-EF max-filtering-effort:integer] [TRUTH] [NOTHREAD] [_...]",
     kReadOnly | kModule, keys(1).rw().access().update(), 0, Group::kModule, "8.0.0", nullptr,
     "Returns the elements of a vector set that are most similar to a vector or an element."},
};

}  // namespace

std::span<const CommandRow> vector_search_rows() {
  return kVectorSearchRows;
}

}  // namespace latchkey::commands
