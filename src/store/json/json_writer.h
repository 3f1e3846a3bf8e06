// Writes trees of nodes as JSON text (RFC 8259).
//
// Only what must be escaped is: quotes, backslashes and control characters. Doubles have the
// fewest digits that read back as the same number, and always a fraction or an exponent: 1.0,
// 0.00001, 1e20, 1.5e-7.
//
// Cost: linear in the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "store/json/json_node.h"

namespace latchkey::store::json {

// What stands between the parts of arrays and objects; without any the text is as short as can be.
struct Layout {
  std::string_view indent;   // before each element and member, once for each level
  std::string_view newline;  // before each element and member, and before the end of what has some
  std::string_view space;    // between a colon and the value

  bool is_compact() const { return indent.empty() && newline.empty() && space.empty(); }
};

// `level`: of the node, in what it stands in. Ends early, with more than `most` bytes in `out`,
// when that is too little: a layout can make a text of any length. Returns how many nodes were
// written.
size_t write(const Node& node, const Layout& layout, std::string* out, size_t level = 0,
             size_t most = SIZE_MAX);
// Without layout.
std::string written(const Node& node);

void write_string(std::string_view text, std::string* out);
// The longest text of a double.
inline constexpr size_t kMaxDoubleText = 40;
// `out`: room for kMaxDoubleText; returns the length.
size_t format_real(double value, char* out);

}  // namespace latchkey::store::json
