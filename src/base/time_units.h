// Factors between units of time, as in `timeout_s * kMsPerSecond`. Signed 64 bits, as times and
// durations are.
#pragma once

#include <cstdint>

namespace latchkey::base {

inline constexpr int64_t kNsPerUs = 1'000;
inline constexpr int64_t kNsPerMs = 1'000'000;
inline constexpr int64_t kNsPerSecond = 1'000'000'000;
inline constexpr int64_t kUsPerMs = 1'000;
inline constexpr int64_t kUsPerSecond = 1'000'000;
inline constexpr int64_t kMsPerSecond = 1'000;
inline constexpr int64_t kSecondsPerDay = 86'400;
inline constexpr int64_t kMsPerDay = kSecondsPerDay * kMsPerSecond;

}  // namespace latchkey::base
