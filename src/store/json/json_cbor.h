// Reads a document in CBOR (RFC 8949), as the reference's dumps have it from 8.8 on: integers,
// floating-point numbers of three sizes, texts, arrays, maps, false, true and null, each with its
// length before it. Arrays of numbers may be typed arrays (RFC 8746): bytes behind a tag that says
// what they are. Their tags are those of RFC 8746, and one of the reference's own for the upper
// halves of floats.
//
// Untrusted bytes: lengths are compared with what there is, texts must be UTF-8, levels are
// limited. Cost: linear in the bytes.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "store/json/json_node.h"

namespace latchkey::store::json {

// `max_depth`, `seed`: as parse() has them.
base::Result<Node> parse_cbor(std::string_view bytes, size_t max_depth, uint64_t seed);

}  // namespace latchkey::store::json
