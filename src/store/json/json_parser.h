// Reads JSON text (RFC 8259) into a tree of nodes.
//
// Numbers without fraction and exponent that fit are integers (up to 2^64-1), all others doubles,
// rounded correctly. The text must be UTF-8. Of members with one key the last one's value counts.
// Errors are the reference's, with line and column.
//
// Cost: linear in the text. Levels are limited, so that the parser may call itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "store/json/json_node.h"
#include "store/json/json_precision.h"

namespace latchkey::store::json {

struct Parsed {
  Node root;
  // Node::depth() of the root.
  size_t depth = 0;
};

// The deepest that the reference reads.
inline constexpr size_t kMaxReadDepth = 127;

// `max_depth`: at most Node::kMaxDepth. `seed`: as Node::object() has it.
// REQUIRES: is_valid_utf8(text).
// `precision`: of the numbers in arrays that have only numbers, which become doubles; of others, as
// in the reference, those before the first element that is no number have it.
base::Result<Parsed> parse(std::string_view text, size_t max_depth, uint64_t seed,
                           std::optional<Precision> precision = std::nullopt);

// Whether all of it is well formed (RFC 3629).
bool is_valid_utf8(std::string_view text);

}  // namespace latchkey::store::json
