#include "store/vector/attribute_filter.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/assert.h"
#include "store/vector/json_fields.h"

namespace latchkey::store {

namespace {

using Kind = FilterToken::Kind;

FilterToken number_token(double number) {
  FilterToken token;
  token.kind = Kind::kNumber;
  token.number = number;
  return token;
}

double spelled_number(std::string_view text) {
  const std::string terminated(text);
  char* end = nullptr;
  const double number = std::strtod(terminated.c_str(), &end);
  return end == terminated.c_str() + terminated.size() ? number : 0;
}

double number_of(const FilterToken& value) {
  switch (value.kind) {
    case Kind::kNumber:
      return value.number;
    case Kind::kString:
      return spelled_number(value.text);
    default:
      return 0;
  }
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

bool are_equal(const FilterToken& a, const FilterToken& b) {
  if (a.kind == Kind::kString && b.kind == Kind::kString) return a.text == b.text;
  if (a.kind == Kind::kNull || b.kind == Kind::kNull) return a.kind == b.kind;
  return number_of(a) == number_of(b);
}

}  // namespace

bool AttributeFilter::load_field(std::string_view name, std::string_view attributes,
                                 FilterToken* value) const {
  const std::optional<JsonValue> field = find_json_field(attributes, name);
  if (!field.has_value()) return false;
  value->text = field->text;
  switch (field->kind) {
    case JsonValue::Kind::kNull:
      value->kind = Kind::kNull;
      return true;
    case JsonValue::Kind::kNumber:
      *value = number_token(field->number);
      return true;
    case JsonValue::Kind::kString:
      value->kind = Kind::kString;
      if (field->has_escapes) {
        unescaped_.push_back(std::make_unique<std::string>(unescaped_json(field->text)));
        value->text = *unescaped_.back();
      }
      return true;
    case JsonValue::Kind::kArray:
      value->kind = Kind::kArray;
      return true;
    case JsonValue::Kind::kObject:
      return false;
  }
  return false;
}

bool AttributeFilter::is_in(const FilterToken& what, const FilterToken& where) const {
  if (where.kind == Kind::kTuple) {
    const Tuple& tuple = tuples_[where.tuple];
    return std::any_of(tuple.begin(), tuple.end(),
                       [&](const FilterToken& element) { return are_equal(what, element); });
  }
  if (where.kind == Kind::kString)
    return what.kind == Kind::kString && where.text.find(what.text) != std::string_view::npos;
  if (where.kind != Kind::kArray) return false;
  std::string_view rest = where.text;
  while (const std::optional<JsonValue> element = next_json_element(&rest)) {
    if (element->kind == JsonValue::Kind::kNull && what.kind == Kind::kNull) return true;
    if (element->kind == JsonValue::Kind::kNumber && are_equal(what, number_token(element->number)))
      return true;
    if (element->kind != JsonValue::Kind::kString) continue;
    FilterToken text;
    text.kind = Kind::kString;
    const std::string plain = element->has_escapes ? unescaped_json(element->text) : std::string();
    text.text = element->has_escapes ? std::string_view(plain) : element->text;
    if (are_equal(what, text)) return true;
  }
  return false;
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
  if (attributes.empty()) return false;
  stack_.clear();
  unescaped_.clear();
  for (const FilterToken& step : steps_) {
    if (step.kind == Kind::kOperator) {
      apply(step.op);
    } else if (step.kind == Kind::kField) {
      FilterToken value;
      if (!load_field(step.text, attributes, &value)) return false;
      stack_.push_back(value);
    } else {
      stack_.push_back(step);
    }
  }
  return is_true(stack_.back());
}

}  // namespace latchkey::store
