// The FILTER language of VSIM: an expression that is true or false for the attributes of an
// element, which are a JSON object.
//
//     .year >= 1980 and .year < 1990 and .genre in ["action", "drama"]
//
//     .name             the field of that name at the top level; letters, digits, '_', '-'
//     1  -2.5  1e3      numbers: double precision
//     "a"  'a'          strings; a backslash keeps the quote behind it from ending the string, and
//                       stays in it
//     [1, "a"]          tuples of numbers and strings
//     null
//     !  not            in descending order of precedence, of the left side first but for **:
//     **                powers
//     *  /  %
//     +  -
//     <  <=  >  >=  ==  !=  in
//     and  &&
//     or  ||
//
// Values: true and false of JSON are 1 and 0. Where a number is wanted a string is the number that
// it spells, else 0, and so are null and tuples. Two strings are equal as strings, null equals null
// alone, all else is compared as numbers. `in` asks whether a tuple or an array has an equal
// element, or whether a string is part of another. False are 0, "" and null.
//
// When a field is missing, or an object, the whole expression is false, whatever else it says; so
// it is for elements without attributes.
//
// An expression is compiled to postfix by E. Dijkstra's shunting-yard algorithm without a check
// that operators and operands alternate, as the reference does: so "1 2 +" is an expression too,
// and "!!1" is none. Costs: parse() is linear in the text, matches() in the expression and the
// attributes for each field that it names.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::store {

enum class FilterOperator : uint8_t {
  kNot,
  kPower,
  kMultiply,
  kDivide,
  kRemainder,
  kAdd,
  kSubtract,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kEqual,
  kNotEqual,
  kIn,
  kAnd,
  kOr,
};

// A value, or a step of the compiled expression.
struct FilterToken {
  enum class Kind : uint8_t { kNull, kNumber, kString, kTuple, kArray, kField, kOperator };

  Kind kind = Kind::kNull;
  FilterOperator op = FilterOperator::kNot;  // of operators
  double number = 0;
  // Of strings, fields (the name) and arrays (JSON, between the brackets).
  std::string_view text;
  uint32_t tuple = 0;  // of tuples: which
};

class AttributeFilter {
 public:
  // Nothing when the text is no expression; then *error_at is where it is wrong, the end of what
  // cannot be understood, or 0 when it is wrong as a whole.
  static std::optional<AttributeFilter> parse(std::string_view text, size_t* error_at);

  // Not thread-safe: uses scratch space of the filter.
  bool matches(std::string_view attributes) const;

 private:
  friend class FilterParser;
  using Tuple = std::vector<FilterToken>;

  AttributeFilter() = default;
  // Reads the field; false when there is no value to compute with.
  bool load_field(std::string_view name, std::string_view attributes, FilterToken* value) const;
  void apply(FilterOperator op) const;
  FilterToken apply_binary(FilterOperator op, const FilterToken& a, const FilterToken& b) const;
  bool is_in(const FilterToken& what, const FilterToken& where) const;

  std::unique_ptr<std::string> text_;  // what tokens are views of
  std::vector<FilterToken> steps_;
  std::vector<Tuple> tuples_;
  mutable std::vector<FilterToken> stack_;
  // Unescaped strings that values are views of.
  mutable std::vector<std::unique_ptr<std::string>> unescaped_;
};

}  // namespace latchkey::store
