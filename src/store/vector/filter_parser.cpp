// Compiles FILTER expressions (store/vector/attribute_filter.h).
#include <algorithm>
#include <cstdlib>
#include <limits>

#include "store/vector/attribute_filter.h"

namespace latchkey::store {

namespace {

using Kind = FilterToken::Kind;

struct OperatorRow {
  std::string_view word;
  FilterOperator op;
  uint8_t precedence;
};

// A word comes before those that it begins with.
constexpr OperatorRow kOperators[] = {
    {"!=", FilterOperator::kNotEqual, 3}, {"!", FilterOperator::kNot, 7},
    {"not", FilterOperator::kNot, 7},     {"**", FilterOperator::kPower, 6},
    {"*", FilterOperator::kMultiply, 5},  {"/", FilterOperator::kDivide, 5},
    {"%", FilterOperator::kRemainder, 5}, {"+", FilterOperator::kAdd, 4},
    {"-", FilterOperator::kSubtract, 4},  {"<=", FilterOperator::kLessOrEqual, 3},
    {"<", FilterOperator::kLess, 3},      {">=", FilterOperator::kGreaterOrEqual, 3},
    {">", FilterOperator::kGreater, 3},   {"==", FilterOperator::kEqual, 3},
    {"in", FilterOperator::kIn, 3},       {"and", FilterOperator::kAnd, 2},
    {"&&", FilterOperator::kAnd, 2},      {"or", FilterOperator::kOr, 1},
    {"||", FilterOperator::kOr, 1},
};

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_of_name(char c) {
  return is_letter(c) || is_digit(c) || c == '_' || c == '-';
}
bool is_of_operator(char c) {
  constexpr std::string_view kSigns = "+-*%/!()<>=|&";
  return is_letter(c) || kSigns.find(c) != std::string_view::npos;
}

}  // namespace

class FilterParser {
 public:
  FilterParser(std::string_view text, FilterSyntax syntax) : syntax_(syntax) {
    filter_.text_ = std::make_unique<std::string>(text);
    text_ = *filter_.text_;
  }

  base::Result<AttributeFilter, size_t> parse() {
    if (read_all() && close_all() && !has_stray_parenthesis_ && is_balanced()) {
      number_fields();
      return std::move(filter_);
    }
    // What is wrong at the end is wrong as a whole.
    return base::fail_with(at_ < text_.size() && is_token_wrong_ ? at_ : size_t{0});
  }

 private:
  // An operator, or an opening parenthesis, that waits for what is behind it.
  struct Pending {
    bool is_parenthesis;
    FilterOperator op;
    uint8_t precedence;
  };

  bool read_all();
  bool read_token();
  bool read_number(FilterToken* token);
  bool read_string(FilterToken* token);
  bool read_tuple();
  bool read_operator();
  void read_field();
  void push_operator(const OperatorRow& row);
  void close_parenthesis();
  bool close_all();
  bool is_balanced() const;
  void number_fields();

  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  bool is_at(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool is_digit_at(size_t at) const { return at < text_.size() && is_digit(text_[at]); }
  void push_value(const FilterToken& token) {
    filter_.steps_.push_back(token);
    follows_value_ = true;
  }
  void emit(FilterOperator op) {
    FilterToken token;
    token.kind = Kind::kOperator;
    token.op = op;
    filter_.steps_.push_back(token);
  }

  const FilterSyntax syntax_;
  AttributeFilter filter_;
  std::string_view text_;
  size_t at_ = 0;
  // The token before was a value or a closing parenthesis, so '-' is an operator.
  bool follows_value_ = false;
  bool is_token_wrong_ = false;
  // A closing parenthesis that none was opened for. Wrong tokens behind it are told first.
  bool has_stray_parenthesis_ = false;
  std::vector<Pending> pending_;
};

bool FilterParser::read_all() {
  for (skip_space(); at_ < text_.size(); skip_space()) {
    const size_t begin = at_;
    if (!read_token()) {
      is_token_wrong_ = true;
      return false;
    }
    if (filter_.steps_.size() + pending_.size() <= AttributeFilter::kMaxSteps) continue;
    at_ = begin;
    is_token_wrong_ = true;
    return false;
  }
  return true;
}

bool FilterParser::read_token() {
  const char first = text_[at_];
  FilterToken token;
  if (is_digit(first) || (first == '-' && !follows_value_ && is_digit_at(at_ + 1))) {
    if (!read_number(&token)) return false;
    push_value(token);
    return true;
  }
  if (first == '"' || first == '\'') {
    if (!read_string(&token)) return false;
    push_value(token);
    return true;
  }
  // A dot is the field without a name only at the very end, as in the reference.
  if (first == '.' && (at_ + 1 == text_.size() || is_of_name(text_[at_ + 1]))) {
    read_field();
    return true;
  }
  return first == '[' ? read_tuple() : read_operator();
}

bool FilterParser::read_number(FilterToken* token) {
  constexpr std::string_view kPartsOfNumbers = "0123456789.eE";
  const size_t begin = at_;
  if (is_at('-')) ++at_;
  at_ = std::min(text_.find_first_not_of(kPartsOfNumbers, at_), text_.size());
  const std::string digits(text_.substr(begin, at_ - begin));
  char* end = nullptr;
  token->kind = Kind::kNumber;
  token->number = std::strtod(digits.c_str(), &end);
  return end != digits.c_str() && end == digits.c_str() + digits.size();
}

bool FilterParser::read_string(FilterToken* token) {
  const char quote = text_[at_++];
  const size_t begin = at_;
  while (at_ < text_.size() && text_[at_] != quote) at_ += text_[at_] == '\\' ? 2 : 1;
  if (at_ >= text_.size()) {
    at_ = text_.size();
    return false;
  }
  std::string_view literal = text_.substr(begin, at_ - begin);
  if (syntax_ == FilterSyntax::kCurrent && literal.find('\\') != std::string_view::npos)
    literal = filter_.literals_.emplace_back(unescaped_json(literal));
  *token = FilterToken::of_text(literal);
  ++at_;
  return true;
}

void FilterParser::read_field() {
  const size_t begin = ++at_;
  while (at_ < text_.size() && is_of_name(text_[at_])) ++at_;
  FilterToken token;
  token.kind = Kind::kField;
  token.text = text_.substr(begin, at_ - begin);
  push_value(token);
}

bool FilterParser::read_tuple() {
  AttributeFilter::Tuple tuple;
  ++at_;
  for (skip_space(); !is_at(']'); skip_space()) {
    if (!tuple.empty()) {
      if (!is_at(',')) return false;
      ++at_;
      skip_space();
      if (is_at(']')) break;
    }
    if (at_ == text_.size()) return false;
    FilterToken element;
    const char first = text_[at_];
    if (first == '"' || first == '\'') {
      if (!read_string(&element)) return false;
    } else if (is_digit(first) || first == '-') {
      if (!read_number(&element)) return false;
    } else {
      return false;
    }
    tuple.push_back(element);
  }
  ++at_;
  FilterToken token;
  token.kind = Kind::kTuple;
  token.index = static_cast<uint32_t>(filter_.tuples_.size());
  filter_.tuples_.push_back(std::move(tuple));
  push_value(token);
  return true;
}

bool FilterParser::read_operator() {
  constexpr std::string_view kNull = "null";
  const std::string_view rest = text_.substr(at_);
  if (rest.starts_with(kNull) &&
      (rest.size() == kNull.size() || !is_of_operator(rest[kNull.size()]))) {
    at_ += kNull.size();
    push_value({});
    return true;
  }
  if (rest[0] == '(') {
    ++at_;
    pending_.push_back({true, FilterOperator::kNot, 0});
    follows_value_ = false;
    return true;
  }
  if (rest[0] == ')') {
    ++at_;
    follows_value_ = true;
    close_parenthesis();
    return true;
  }
  for (const OperatorRow& row : kOperators) {
    if (!rest.starts_with(row.word)) continue;
    at_ += row.word.size();
    follows_value_ = false;
    push_operator(row);
    return true;
  }
  // All that looks like one word is wrong together.
  while (at_ < text_.size() && is_of_operator(text_[at_])) ++at_;
  return false;
}

void FilterParser::push_operator(const OperatorRow& row) {
  const bool is_right_first = row.op == FilterOperator::kPower ||
                              (row.op == FilterOperator::kNot && syntax_ == FilterSyntax::kCurrent);
  while (!pending_.empty() && !pending_.back().is_parenthesis &&
         (pending_.back().precedence > row.precedence ||
          (pending_.back().precedence == row.precedence && !is_right_first))) {
    emit(pending_.back().op);
    pending_.pop_back();
  }
  pending_.push_back({false, row.op, row.precedence});
}

void FilterParser::close_parenthesis() {
  for (; !pending_.empty(); pending_.pop_back()) {
    if (pending_.back().is_parenthesis) {
      pending_.pop_back();
      return;
    }
    emit(pending_.back().op);
  }
  has_stray_parenthesis_ = true;
}

bool FilterParser::close_all() {
  for (; !pending_.empty(); pending_.pop_back()) {
    if (pending_.back().is_parenthesis) return false;
    emit(pending_.back().op);
  }
  return true;
}

// Whether each operator finds its operands, and one value remains.
bool FilterParser::is_balanced() const {
  size_t values = 0;
  for (const FilterToken& step : filter_.steps_) {
    if (step.kind != Kind::kOperator) {
      ++values;
      continue;
    }
    const size_t operands = step.op == FilterOperator::kNot ? 1 : 2;
    if (values < operands) return false;
    values -= operands - 1;
  }
  return values == 1;
}

// Gives each name a number, under which its value is kept.
void FilterParser::number_fields() {
  std::vector<std::string_view>& names = filter_.field_names_;
  for (const FilterToken& step : filter_.steps_) {
    if (step.kind == Kind::kField) names.push_back(step.text);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (FilterToken& step : filter_.steps_) {
    if (step.kind != Kind::kField) continue;
    const auto at = std::lower_bound(names.begin(), names.end(), step.text);
    step.index = static_cast<uint32_t>(at - names.begin());
  }
}

base::Result<AttributeFilter, size_t> AttributeFilter::parse(std::string_view text,
                                                             FilterSyntax syntax) {
  return FilterParser(text, syntax).parse();
}

}  // namespace latchkey::store
