// Prefetches a cache line for a read that follows soon.
//
// Not __builtin_prefetch: GCC considers a function that does nothing else to have no effect, and
// drops calls to it.
#pragma once

namespace latchkey::base {

inline void prefetch(const void* address) {
#if defined(__x86_64__)
  asm volatile("prefetcht0 %0" : : "m"(*static_cast<const char*>(address)));
#elif defined(__aarch64__)
  asm volatile("prfm pldl1keep, %0" : : "Q"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address);
#endif
}

}  // namespace latchkey::base
