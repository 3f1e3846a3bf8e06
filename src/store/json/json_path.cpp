#include "store/json/json_path.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/text/number.h"
#include "base/text/text.h"

namespace latchkey::store::json {

namespace {

using Operator = Condition::Operator;

// What the reference's errors say was expected.
constexpr std::string_view kExpectedName = "<string>, '*'";
constexpr std::string_view kExpectedEnd = "EOI, '..'";
constexpr std::string_view kExpectedEndOrRoot = "EOI, root";
constexpr std::string_view kExpectedOperatorOrRoot = "ge, gt, le, lt, eq, ne, re, and, or, root";
constexpr std::string_view kExpectedInBrackets =
    "'<string>[,<string>,...]', '<number>', ['start:end:steps'], '*'";
constexpr std::string_view kExpectedBehindNames = "'<number>', ['start:end:steps']";
constexpr std::string_view kExpectedBehindStar =
    "'<string>[,<string>,...]', '<number>', ['start:end:steps']";
constexpr std::string_view kExpectedBehindNumber = "['start:end:steps']";
constexpr std::string_view kExpectedNumber = "'<number>'";
constexpr std::string_view kExpectedStep = "pos_number";
constexpr std::string_view kExpectedCondition = "single_filter";
constexpr std::string_view kExpectedTerm =
    "decimal, from_current, from_root, boolean_true, boolean_false, null";
constexpr std::string_view kExpectedOperator = "ge, gt, le, lt, eq, ne, re, and, or";
constexpr std::string_view kExpectedOperatorBehindPath =
    "ge, gt, le, lt, eq, ne, re, and, or, '..'";
constexpr std::string_view kExpectedJunction = "and, or";
constexpr std::string_view kExpectedJunctionBehindPath = "and, or, '..'";

// Conditions within conditions.
constexpr size_t kMaxNesting = 256;

bool is_name_character(char c) {
  constexpr std::string_view kSigns = "#$%+-/:^_`~";
  const char lower = static_cast<char>(c | 0x20);
  return base::is_digit(c) || (lower >= 'a' && lower <= 'z') ||
         kSigns.find(c) != std::string_view::npos;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  base::Result<Path> parse() {
    Path path;
    ++at_;  // $
    if (steps(&path)) {
      if (at_ == text_.size()) return path;
      fail(kExpectedEnd);
    }
    const std::string place = std::to_string(problem_at_);
    return base::fail("Error occurred at position " + place + ", Error at position " + place +
                      ": expected one of the following: " + std::string(expected_));
  }

 private:
  // Always false.
  bool fail(std::string_view expected) { return fail_at(expected, at_); }
  bool fail_at(std::string_view expected, size_t at) {
    expected_ = expected;
    problem_at_ = at;
    return false;
  }

  bool is_next(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool take(char c) {
    if (!is_next(c)) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void skip_space() {
    while (is_next(' ')) ++at_;
  }

  // --- Steps ------------------------------------------------------------------------------------

  // As many as there are. False after an error.
  bool steps(Path* path) {
    for (;;) {
      skip_space();
      Step step;
      const bool is_first = path->steps.empty();
      if (take('.')) {
        step.follows_dot = true;
        step.descends = take('.');
        skip_space();
        if (is_next('[') ? !brackets(is_first, &step) : !name_or_star(&step)) return false;
      } else if (is_next('[')) {
        if (!brackets(is_first, &step)) return false;
      } else if (!is_first || !name(&step)) {
        return true;
      }
      path->steps.push_back(std::move(step));
    }
  }

  bool name(Step* step) {
    const size_t first = at_;
    while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
    if (at_ == first) return false;
    step->names.emplace_back(text_.substr(first, at_ - first));
    return true;
  }

  bool name_or_star(Step* step) {
    if (take('*')) {
      step->kind = Step::Kind::kAll;
      return true;
    }
    return name(step) || fail(kExpectedName);
  }

  bool brackets(bool is_first, Step* step) {
    const size_t bracket = at_++;
    skip_space();
    const size_t first = at_;
    if (is_next('"') || is_next('\'')) return names(step);
    if (take('?')) return filter(step);
    if (take('*')) {
      step->kind = Step::Kind::kAll;
      return closed() || fail_at(kExpectedBehindStar, first);
    }
    int64_t position;
    const bool has_number = number(&position);
    skip_space();
    if (take(':')) {
      const auto start = has_number ? std::optional(position) : std::nullopt;
      return slice(start, bracket, is_first, step);
    }
    if (!has_number) return fail_at(kExpectedInBrackets, first);
    return positions(position, first, step);
  }

  bool closed() {
    skip_space();
    return take(']');
  }

  bool names(Step* step) {
    const size_t first = at_;
    do {
      skip_space();
      std::string text;
      if (!quoted(&text))
        return fail_at(step->names.empty() ? kExpectedInBrackets : kExpectedBehindNames, first);
      step->names.push_back(std::move(text));
      skip_space();
    } while (take(','));
    return closed() || fail_at(kExpectedBehindNames, first);
  }

  bool quoted(std::string* text) {
    if (!is_next('"') && !is_next('\'')) return false;
    const char quote = text_[at_++];
    for (; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\\') {
        ++at_;
        if (!is_next('"') && !is_next('\'') && !is_next('\\')) return false;
      }
      text->push_back(text_[at_]);
    }
    return take(quote);
  }

  bool positions(int64_t position, size_t first, Step* step) {
    step->kind = Step::Kind::kPositions;
    step->positions.push_back(position);
    while (take(',')) {
      skip_space();
      if (!number(&position)) return fail(kExpectedNumber);
      step->positions.push_back(position);
      skip_space();
    }
    return closed() || fail_at(kExpectedBehindNumber, first);
  }

  // Behind the first colon. `bracket`: its place; `is_first`: of the path's steps.
  bool slice(std::optional<int64_t> first, size_t bracket, bool is_first, Step* step) {
    step->kind = Step::Kind::kSlice;
    step->slice.first = first;
    skip_space();
    const size_t last_place = at_;
    int64_t bound;
    if (number(&bound)) step->slice.last = bound;
    skip_space();
    if (at_ == last_place && !is_next(':') && !is_next(']')) return fail(kExpectedNumber);
    if (take(':')) {
      skip_space();
      const size_t step_place = at_;
      const bool has_step = number(&bound);
      if (has_step && bound <= 0) return fail_at(kExpectedStep, step_place);
      if (has_step) step->slice.step = bound;
      if (closed()) return true;
      if (!has_step) return fail_at(kExpectedStep, step_place);
    }
    if (closed()) return true;
    // A slice that does not end is taken for none.
    return first ? fail_at(expected_before(*step, is_first), bracket)
                 : fail_at(kExpectedNumber, last_place);
  }

  // What is expected instead of a step.
  std::string_view expected_before(const Step& step, bool is_first) const {
    if (step.follows_dot) return kExpectedName;
    if (nesting_ != 0) return is_first ? kExpectedOperatorOrRoot : kExpectedOperatorBehindPath;
    return is_first ? kExpectedEndOrRoot : kExpectedEnd;
  }

  // A position; one that is too large to be any becomes the largest. Steps over nothing when there
  // is none.
  bool number(int64_t* value) {
    const size_t first = at_;
    const bool is_negative = take('-');
    const size_t digits = at_;
    if (!take('0')) {
      while (at_ < text_.size() && base::is_digit(text_[at_])) ++at_;
    }
    if (at_ == digits) {
      at_ = first;
      return false;
    }
    if (!base::parse_int64(text_.substr(digits, at_ - digits), value)) *value = INT64_MAX;
    if (is_negative) *value = -*value;
    return true;
  }

  // --- Conditions -------------------------------------------------------------------------------

  bool filter(Step* step) {
    step->kind = Step::Kind::kCondition;
    step->condition = std::make_unique<Condition>();
    if (!disjunction(step->condition.get())) return false;
    skip_space();
    return take(']') || fail(behind_condition_);
  }

  bool disjunction(Condition* condition) {
    if (!conjunction(condition)) return false;
    for (skip_space(); take("||"); skip_space()) {
      Condition second;
      if (!conjunction(&second)) return false;
      join(Operator::kOr, condition, std::move(second));
    }
    return true;
  }

  bool conjunction(Condition* condition) {
    if (!primary(condition)) return false;
    for (skip_space(); take("&&"); skip_space()) {
      Condition second;
      if (!primary(&second)) return false;
      join(Operator::kAnd, condition, std::move(second));
    }
    return true;
  }

  // One more operand. (a||b)||c is the same as a||b||c.
  static void join(Operator what, Condition* condition, Condition operand) {
    if (condition->what != what) {
      Condition joined;
      joined.what = what;
      joined.operands.push_back(std::move(*condition));
      *condition = std::move(joined);
    }
    condition->operands.push_back(std::move(operand));
  }

  bool primary(Condition* condition) {
    skip_space();
    if (nesting_ == kMaxNesting) return fail(kExpectedCondition);
    ++nesting_;
    const bool is_valid = take('(') ? parenthesized(condition) : comparison(condition);
    --nesting_;
    return is_valid;
  }

  bool parenthesized(Condition* condition) {
    if (!disjunction(condition)) return false;
    skip_space();
    if (!take(')')) return fail(behind_condition_);
    behind_condition_ = kExpectedJunction;
    return true;
  }

  bool comparison(Condition* condition) {
    if (!term(&condition->left, kExpectedCondition)) return false;
    const bool begins_with_path = condition->left.kind != Term::Kind::kLiteral;
    skip_space();
    if (!comparison_operator(&condition->what)) {
      behind_condition_ = begins_with_path ? kExpectedOperatorBehindPath : kExpectedOperator;
      return true;
    }
    skip_space();
    const size_t right = at_;
    if (!term(&condition->right, kExpectedTerm)) return false;
    const std::string_view pattern = text_.substr(right, at_ - right);
    const bool ends_with_path = condition->right.kind != Term::Kind::kLiteral;
    behind_condition_ = ends_with_path ? kExpectedJunctionBehindPath : kExpectedJunction;
    if (condition->what == Operator::kMatches) set_pattern(pattern, &condition->right);
    return true;
  }

  bool comparison_operator(Operator* what) {
    constexpr std::pair<std::string_view, Operator> kOperators[] = {
        {">=", Operator::kGreaterOrEqual}, {">", Operator::kGreater},
        {"<=", Operator::kLessOrEqual},    {"<", Operator::kLess},
        {"==", Operator::kEqual},          {"!=", Operator::kUnequal},
        {"=~", Operator::kMatches}};
    for (const auto& [text, known] : kOperators) {
      if (!take(text)) continue;
      *what = known;
      return true;
    }
    return false;
  }

  // A regular expression keeps its backslashes. `quoted`: with its quotes.
  static void set_pattern(std::string_view quoted, Term* term) {
    if (term->kind != Term::Kind::kLiteral || !term->literal.is_string()) return;
    term->pattern = std::make_unique<Pattern>();
    term->pattern->text = quoted.substr(1, quoted.size() - 2);
  }

  bool term(Term* term, std::string_view expected) {
    const size_t first = at_;
    if (take('@')) {
      term->kind = Term::Kind::kElementPath;
      return steps(&term->path);
    }
    if (take('$')) {
      term->kind = Term::Kind::kRootPath;
      return steps(&term->path);
    }
    if (is_next('"') || is_next('\'')) {
      std::string text;
      if (!quoted(&text)) return fail_at(expected, first);
      term->literal = Node::string(text);
      return true;
    }
    if (take("true")) {
      term->literal = Node::boolean(true);
      return true;
    }
    if (take("false")) {
      term->literal = Node::boolean(false);
      return true;
    }
    return take("null") || decimal(&term->literal) || fail_at(expected, first);
  }

  bool decimal(Node* node) {
    const size_t first = at_;
    int64_t ignored;
    if (!number(&ignored)) return false;
    bool is_integer = true;
    if (at_ + 1 < text_.size() && text_[at_] == '.' && base::is_digit(text_[at_ + 1])) {
      is_integer = false;
      for (++at_; at_ < text_.size() && base::is_digit(text_[at_]); ++at_) {
      }
    }
    const std::string_view text = text_.substr(first, at_ - first);
    int64_t integer;
    uint64_t huge;
    double real;
    if (is_integer && base::parse_int64(text, &integer)) {
      *node = Node::integer(integer);
    } else if (is_integer && base::parse_uint64(text, &huge)) {
      *node = Node::unsigned_integer(huge);
    } else {
      constexpr double kMost = std::numeric_limits<double>::max();
      if (!base::parse_rounded_double(text, &real)) real = 0;
      *node = Node::number(std::clamp(real, -kMost, kMost));
    }
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t nesting_ = 0;
  // What may stand behind the condition that was read last.
  std::string_view behind_condition_;
  std::string_view expected_;
  size_t problem_at_ = 0;
};

}  // namespace

bool Path::is_single() const {
  return std::ranges::all_of(steps, [](const Step& step) {
    return !step.descends && step.names.size() + step.positions.size() == 1;
  });
}

bool is_legacy_path(std::string_view text) {
  return text != "$" && !text.starts_with("$.") && !text.starts_with("$[");
}

bool is_root_path(std::string_view text) {
  return text == "$" || text == ".";
}

base::Result<Path> parse_path(std::string_view text) {
  if (!is_legacy_path(text)) return Parser(text).parse();
  if (text == ".") return Path();
  return Parser((text.starts_with('.') ? "$" : "$.") + std::string(text)).parse();
}

}  // namespace latchkey::store::json
