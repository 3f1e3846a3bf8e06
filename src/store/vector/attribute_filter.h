// The FILTER language of VSIM: an expression that is true or false for the attributes of an
// element, which are a JSON object.
//
//     .year >= 1980 and .year < 1990 and .genre in ["action", "drama"]
//
//     .name             the field of that name at the top level; letters, digits, '_', '-'; a dot
//                       alone at the end is the field without a name
//     1  -2.5  1e3      numbers: double precision
//     "a"  'a'          strings, with the escapes of JSON; a backslash stands before any other
//                       character, such as a quote, for that character
//     [1, "a"]          tuples of numbers and strings
//     null              not beside letters or signs of operators: "(null)" is no expression
//     !  not            in descending order of precedence, of the left side first but for ! and **:
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
// When a field is missing, or an object, the whole expression is false, whatever else it says. So
// it is for elements without attributes, which matches() is not asked about.
//
// An expression is compiled to postfix by E. Dijkstra's shunting-yard algorithm without a check
// that operators and operands alternate, as the reference does: so "1 2 +" is an expression too.
// Redis before 8.12 took ! like the others, so that "!!1" was no expression, and left backslashes
// in strings; FilterSyntax says which is meant. Costs: parse() is linear in the text but for
// sorting the names of fields, and matches() in the attributes, which are read once, and the steps
// of the expression, of which there are kMaxSteps at most: each may look at the whole of a text, a
// tuple or an array.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/vector/json_fields.h"

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
  double number = 0;                         // of numbers, and of strings what they spell
  // Of strings, fields (the name) and arrays (JSON, between the brackets).
  std::string_view text;
  uint32_t index = 0;  // of tuples, fields and arrays, which are fields: which

  static FilterToken of_text(std::string_view text);
};

enum class FilterSyntax : uint8_t { kBeforeRedis812, kCurrent };

class AttributeFilter {
 public:
  static constexpr size_t kMaxSteps = 1000;  // operands and operators

  // Fails when the text is no expression. The error is where it is wrong, the end of what cannot be
  // understood or what is too much, or 0 when it is wrong as a whole.
  static base::Result<AttributeFilter, size_t> parse(std::string_view text,
                                                     FilterSyntax syntax = FilterSyntax::kCurrent);

  // Not thread-safe: uses scratch space of the filter.
  bool matches(std::string_view attributes) const;

 private:
  friend class FilterParser;
  using Tuple = std::vector<FilterToken>;
  struct Elements {
    bool are_read = false;
    Tuple values;
  };

  AttributeFilter() = default;
  // Reads the fields that the expression names; false when one has no value to compute with.
  bool load_fields(std::string_view attributes) const;
  // Of the array in a field, which is read when it is first asked for.
  const Tuple& elements_of(const FilterToken& array) const;
  // False when there is no value to compute with.
  bool make_value(const JsonValue& field, FilterToken* value) const;
  void apply(FilterOperator op) const;
  FilterToken apply_binary(FilterOperator op, const FilterToken& a, const FilterToken& b) const;
  bool is_in(const FilterToken& what, const FilterToken& where) const;

  std::unique_ptr<std::string> text_;  // what tokens are views of
  std::deque<std::string> literals_;   // or these: strings of the text without their escapes
  std::vector<FilterToken> steps_;
  std::vector<Tuple> tuples_;
  std::vector<std::string_view> field_names_;  // sorted
  mutable std::vector<JsonValue> fields_;
  mutable std::vector<FilterToken> field_values_;
  mutable std::vector<Elements> arrays_;
  mutable std::vector<FilterToken> stack_;
  // Unescaped strings that values are views of.
  mutable std::deque<std::string> unescaped_;
};

}  // namespace latchkey::store
