// Settings that scripts can change in their JSON library: see the manual of lua-cjson
// (https://www.kyne.com.au/~mark/software/lua-cjson-manual.html), whose names and defaults these
// are.
#pragma once

#include <type_traits>

namespace latchkey::script {

struct JsonOptions {
  // How NaN and infinities are encoded.
  enum InvalidNumbers : int { kRefuse, kAccept, kNull };

  int encode_max_depth = 1000;
  int decode_max_depth = 1000;
  int encode_number_precision = 14;  // significant digits
  int encode_invalid_numbers = kRefuse;
  bool decode_invalid_numbers = true;
  // Whether tables that are made of arrays carry the mark by which they are encoded as arrays
  // again, also when they are empty.
  bool mark_arrays = false;
  // Stored and returned to scripts only: it has no effect here.
  bool encode_keep_buffer = true;
  // A table is sparse when its highest index is above `sparse_safe` and above `sparse_ratio` times
  // the number of its values. It is encoded as an object if `sparse_convert`, else it is an error.
  // Ratio 0: never.
  bool sparse_convert = false;
  int sparse_ratio = 2;
  int sparse_safe = 10;
};

// Lua frees their memory without calling a destructor.
static_assert(std::is_trivially_destructible_v<JsonOptions>);

}  // namespace latchkey::script
