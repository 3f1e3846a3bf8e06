#include "store/vector/attribute_filter.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/assert.h"

namespace latchkey::store {

namespace {

using Kind = FilterToken::Kind;

FilterToken number_token(double number) {
  FilterToken token;
  token.kind = Kind::kNumber;
  token.number = number;
  return token;
}

// The number that a text is, else 0.
double spelled_number(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  constexpr std::string_view kFirstOfNumbers = "+-.0123456789iInN";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos ||
      kFirstOfNumbers.find(text[first]) == std::string_view::npos)
    return 0;
  const std::string terminated(text);
  char* end = nullptr;
  const double number = std::strtod(terminated.c_str(), &end);
  return end == terminated.c_str() + terminated.size() ? number : 0;
}

double number_of(const FilterToken& value) {
  return value.kind == Kind::kNumber || value.kind == Kind::kString ? value.number : 0;
}

bool is_true(const FilterToken& value) {
  switch (value.kind) {
    case Kind::kNull:
      return false;
    case Kind::kNumber:
      return value.number != 0;
    case Kind::kString:
      return !value.text.empty();
    default:
      return true;
  }
}

// memmem() takes linear time, find() may take the product of the lengths.
bool contains(std::string_view text, std::string_view part) {
  return memmem(text.data(), text.size(), part.data(), part.size()) != nullptr;
}

bool are_equal(const FilterToken& a, const FilterToken& b) {
  if (a.kind == Kind::kString && b.kind == Kind::kString) return a.text == b.text;
  if (a.kind == Kind::kNull || b.kind == Kind::kNull) return a.kind == b.kind;
  return number_of(a) == number_of(b);
}

}  // namespace

FilterToken FilterToken::of_text(std::string_view text) {
  FilterToken token;
  token.kind = Kind::kString;
  token.text = text;
  token.number = spelled_number(text);
  return token;
}

bool AttributeFilter::load_fields(std::string_view attributes) const {
  fields_.assign(field_names_.size(), {});
  field_values_.assign(field_names_.size(), {});
  arrays_.assign(field_names_.size(), {});
  if (!find_json_fields(attributes, field_names_, fields_)) return false;
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (!make_value(fields_[i], &field_values_[i])) return false;
    field_values_[i].index = static_cast<uint32_t>(i);
  }
  return true;
}

bool AttributeFilter::make_value(const JsonValue& field, FilterToken* value) const {
  value->text = field.text;
  switch (field.kind) {
    case JsonValue::Kind::kNull:
      value->kind = Kind::kNull;
      return true;
    case JsonValue::Kind::kNumber:
      *value = number_token(field.number);
      return true;
    case JsonValue::Kind::kString:
      if (field.has_escapes) unescaped_.push_back(unescaped_json(field.text));
      *value = FilterToken::of_text(field.has_escapes ? std::string_view(unescaped_.back())
                                                      : field.text);
      return true;
    case JsonValue::Kind::kArray:
      value->kind = Kind::kArray;
      return is_plain_json_array(field.text);
    case JsonValue::Kind::kObject:
      return false;
  }
  return false;
}

const AttributeFilter::Tuple& AttributeFilter::elements_of(const FilterToken& array) const {
  Elements& elements = arrays_[array.index];
  if (elements.are_read) return elements.values;
  elements.are_read = true;
  std::string_view rest = array.text;
  while (const std::optional<JsonValue> element = next_json_element(&rest)) {
    FilterToken value;
    if (make_value(*element, &value)) elements.values.push_back(value);
  }
  return elements.values;
}

bool AttributeFilter::is_in(const FilterToken& what, const FilterToken& where) const {
  if (where.kind == Kind::kString)
    return what.kind == Kind::kString && contains(where.text, what.text);
  if (where.kind != Kind::kTuple && where.kind != Kind::kArray) return false;
  const Tuple& values = where.kind == Kind::kTuple ? tuples_[where.index] : elements_of(where);
  return std::any_of(values.begin(), values.end(),
                     [&](const FilterToken& value) { return are_equal(what, value); });
}

FilterToken AttributeFilter::apply_binary(FilterOperator op, const FilterToken& a,
                                          const FilterToken& b) const {
  switch (op) {
    case FilterOperator::kPower:
      return number_token(std::pow(number_of(a), number_of(b)));
    case FilterOperator::kMultiply:
      return number_token(number_of(a) * number_of(b));
    case FilterOperator::kDivide:
      return number_token(number_of(a) / number_of(b));
    case FilterOperator::kRemainder:
      return number_token(std::fmod(number_of(a), number_of(b)));
    case FilterOperator::kAdd:
      return number_token(number_of(a) + number_of(b));
    case FilterOperator::kSubtract:
      return number_token(number_of(a) - number_of(b));
    case FilterOperator::kLess:
      return number_token(number_of(a) < number_of(b));
    case FilterOperator::kLessOrEqual:
      return number_token(number_of(a) <= number_of(b));
    case FilterOperator::kGreater:
      return number_token(number_of(a) > number_of(b));
    case FilterOperator::kGreaterOrEqual:
      return number_token(number_of(a) >= number_of(b));
    case FilterOperator::kEqual:
      return number_token(are_equal(a, b));
    case FilterOperator::kNotEqual:
      return number_token(!are_equal(a, b));
    case FilterOperator::kIn:
      return number_token(is_in(a, b));
    case FilterOperator::kAnd:
      return number_token(is_true(a) && is_true(b));
    case FilterOperator::kOr:
      return number_token(is_true(a) || is_true(b));
    case FilterOperator::kNot:
      break;
  }
  LK_ASSERT(false);
  return {};
}

void AttributeFilter::apply(FilterOperator op) const {
  FilterToken last = stack_.back();
  if (op == FilterOperator::kNot) {
    stack_.back() = number_token(!is_true(last));
    return;
  }
  stack_.pop_back();
  stack_.back() = apply_binary(op, stack_.back(), last);
}

bool AttributeFilter::matches(std::string_view attributes) const {
  stack_.clear();
  unescaped_.clear();
  if (!load_fields(attributes)) return false;
  for (const FilterToken& step : steps_) {
    if (step.kind == Kind::kOperator) {
      apply(step.op);
    } else if (step.kind == Kind::kField) {
      stack_.push_back(field_values_[step.index]);
    } else {
      stack_.push_back(step);
    }
  }
  return is_true(stack_.back());
}

}  // namespace latchkey::store
