// Compares base::GlobPattern with a model that tries every length for every star.
// Input: a flag byte, the pattern's length, the pattern, and the text.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/text/glob.h"
#include "glob_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Too short for the limits of patterns, which the unit tests look at.
  constexpr size_t kLongestInput = 256;
  if (size < 2 || size > kLongestInput) return 0;
  const bool ignore_case = (data[0] & 1) != 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  const size_t pattern_size = data[1] % (rest.size() + 1);
  const std::string_view pattern = rest.substr(0, pattern_size);
  const std::string_view text = rest.substr(pattern_size);
  const bool expected = latchkey::glob_model::matches(pattern, text, ignore_case);
  if (latchkey::base::GlobPattern(pattern, ignore_case).matches(text) != expected) std::abort();
  return 0;
}
