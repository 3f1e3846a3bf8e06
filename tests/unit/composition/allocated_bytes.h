// What the process has allocated, to see what something costs.
#pragma once

#include <malloc.h>

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
// AddressSanitizer's own, whose header not every compiler brings along.
extern "C" size_t __sanitizer_get_current_allocated_bytes();
#endif

namespace latchkey::tests {

inline size_t allocated_bytes() {
#if defined(__SANITIZE_ADDRESS__)
  return __sanitizer_get_current_allocated_bytes();
#else
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
#endif
}

}  // namespace latchkey::tests
