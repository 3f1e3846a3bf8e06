#include "base/cycle_clock.h"

#include <ctime>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#include "base/time_units.h"

namespace latchkey::base {

namespace {

uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * kNsPerSecond + static_cast<uint64_t>(now.tv_nsec);
}

#if defined(__x86_64__)
bool has_invariant_counter() {
  constexpr unsigned kAdvancedPowerManagement = 0x80000007;
  constexpr unsigned kInvariantTsc = 1U << 8;
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid(kAdvancedPowerManagement, &eax, &ebx, &ecx, &edx) == 0) return false;
  return (edx & kInvariantTsc) != 0;
}

// A property of the machine, determined before main().
const bool kUseCounter = has_invariant_counter();
#endif

// A tick count and the time at which it was read, from the attempt with the shortest interval
// between the two reads.
struct Sample {
  uint64_t ticks;
  uint64_t ns;
};

Sample take_sample() {
  Sample best{};
  uint64_t best_width = UINT64_MAX;
  for (int attempt = 0; attempt < 8; ++attempt) {
    const uint64_t before = CycleClock::ticks();
    const uint64_t ns = monotonic_ns();
    const uint64_t after = CycleClock::ticks();
    if (after - before < best_width) {
      best_width = after - before;
      best = {before + (after - before) / 2, ns};
    }
  }
  return best;
}

double measure_us_per_tick() {
  constexpr uint64_t kCalibrationNs = 200'000;
  const Sample start = take_sample();
  while (monotonic_ns() - start.ns < kCalibrationNs) {
  }
  const Sample end = take_sample();
  const double ticks = static_cast<double>(end.ticks - start.ticks);
  const double us = static_cast<double>(end.ns - start.ns) / kNsPerUs;
  return ticks > 0 ? us / ticks : 0.001;
}

}  // namespace

uint64_t CycleClock::ticks() {
#if defined(__x86_64__)
  if (__builtin_expect(kUseCounter, 1)) return __rdtsc();
  return monotonic_ns();
#elif defined(__aarch64__)
  uint64_t counter;
  asm volatile("mrs %0, cntvct_el0" : "=r"(counter));
  return counter;
#else
  return monotonic_ns();
#endif
}

CycleClock::CycleClock() {
  // The counter is the machine's: one calibration is good for every server of the process.
  static const double us_per_tick = measure_us_per_tick();
  us_per_tick_ = us_per_tick;
}

}  // namespace latchkey::base
