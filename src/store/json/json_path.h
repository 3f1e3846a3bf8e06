// Paths into JSON documents, as the reference's commands take them: JSONPath, which begins with
// `$`, and the older form without it, of which `.` is the root. Both become the same steps:
//
//     $.name  $["name"]  $['a','b']      members by name
//     $[0]  $[-1]  $[0,2]                elements by position, from the end when negative
//                                        (the first, when there are not so many)
//     $[first:last:step]                 elements of a range
//     $.*  $[*]                          all members or elements
//     $..name  $..[0]  $..*              the same of a value and of all below it
//     $[?(condition)]                    elements and members of which a condition is true
//
// A condition compares literals and paths that begin with `@` (the element) or `$`. Its operators
// are == != < <= > >= and =~ (a regular expression); comparisons are combined by && and || and by
// parentheses. A path alone is true when it leads anywhere.
//
// Paths come from clients: reading one is linear in its text, nesting is limited, and what is
// walked is counted (json_path_walk.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/text/regex.h"
#include "store/json/json_node.h"

namespace latchkey::store::json {

struct Condition;

// Elements first, first + step, ... before last.
struct Slice {
  std::optional<int64_t> first;
  std::optional<int64_t> last;
  int64_t step = 1;
};

struct Step {
  enum class Kind : uint8_t { kNames, kPositions, kSlice, kAll, kCondition };

  Kind kind = Kind::kNames;
  // Of the value and of all below it.
  bool descends = false;
  bool follows_dot = false;
  std::vector<std::string> names;
  std::vector<int64_t> positions;
  Slice slice;
  std::unique_ptr<Condition> condition;
};

struct Path {
  std::vector<Step> steps;

  // Whether it leads to one place at most: names and positions only, one each.
  bool is_single() const;
};

// A regular expression in a path. It is compiled when it is needed, for that takes long enough to
// be counted.
struct Pattern {
  std::string text;
  bool is_compiled = false;
  // Null when it is malformed, and matches nothing.
  std::unique_ptr<base::Regex> regex;
};

// One side of a comparison.
struct Term {
  enum class Kind : uint8_t { kLiteral, kElementPath, kRootPath };

  Kind kind = Kind::kLiteral;
  Node literal;
  Path path;
  // Of a literal text behind =~, otherwise null.
  std::unique_ptr<Pattern> pattern;
};

struct Condition {
  enum class Operator : uint8_t {
    kAnd,
    kOr,
    kExists,
    kEqual,
    kUnequal,
    kLess,
    kLessOrEqual,
    kGreater,
    kGreaterOrEqual,
    kMatches,
  };

  Operator what = Operator::kExists;
  // Of kAnd and kOr, two or more: a chain is one condition, however long, for what walks down
  // conditions calls itself once for each within another.
  std::vector<Condition> operands;
  // Of the others; `right` not of kExists.
  Term left;
  Term right;
};

// Whether a path has the form without `$`: it means one place, and replies are about that one.
bool is_legacy_path(std::string_view text);
// Whether it is `$` or `.`.
bool is_root_path(std::string_view text);

// The error is the reference's, without a code.
base::Result<Path> parse_path(std::string_view text);

}  // namespace latchkey::store::json
