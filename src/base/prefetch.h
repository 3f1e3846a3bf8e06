// Brings a cache line near, for a read that comes soon.
//
// Not __builtin_prefetch: GCC takes a function that does nothing else for one without effect, and
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
