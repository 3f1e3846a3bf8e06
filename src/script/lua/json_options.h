// What scripts can set of their JSON library: see the manual of lua-cjson
// (https://www.kyne.com.au/~mark/software/lua-cjson-manual.html), whose names and defaults these
// are.
#pragma once

#include <type_traits>

namespace latchkey::script {

struct JsonOptions {
  // What becomes of NaN and infinities when they are written.
  enum InvalidNumbers : int { kRefuse, kAccept, kNull };

  int encode_max_depth = 1000;
  int decode_max_depth = 1000;
  int encode_number_precision = 14;  // significant digits
  int encode_invalid_numbers = kRefuse;
  bool decode_invalid_numbers = true;
  // Remembered for whoever asks; where texts are put together is not up to scripts.
  bool encode_keep_buffer = true;
  // A table with more than `sparse_ratio` times as many places as values, and a place beyond
  // `sparse_safe`, is no array: it is an object if `sparse_convert`, else an error. Ratio 0: never.
  bool sparse_convert = false;
  int sparse_ratio = 2;
  int sparse_safe = 10;
};

// They lie in memory that Lua frees without asking.
static_assert(std::is_trivially_destructible_v<JsonOptions>);

}  // namespace latchkey::script
