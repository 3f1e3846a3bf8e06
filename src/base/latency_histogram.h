// LatencyHistogram: counts durations, with a resolution of two significant digits.
//
// Log-linear buckets, as in Gil Tene's HdrHistogram (https://hdrhistogram.github.io/HdrHistogram/):
// values up to 255 have a bucket each, and every further octave has 128 buckets. So a reported
// value is at most 0.8 % above the recorded one. Values are nanoseconds between 1 and 10^9; others
// are clamped to this range.
//
// Recording takes a few nanoseconds, and allocates a kilobyte for the first value in each octave.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace latchkey::base {

class LatencyHistogram {
 public:
  static constexpr uint64_t kLargest = 1'000'000'000;

  void record(uint64_t ns) {
    ns = std::clamp<uint64_t>(ns, 1, kLargest);
    // Values of an octave have only the upper half of the 256 steps.
    const unsigned shift = shift_of(ns);
    Steps*& steps = octaves_[shift + (ns >> shift >= kSteps ? 1 : 0)];
    if (steps == nullptr) [[unlikely]]
      steps = add_octave();
    ++(*steps)[(ns >> shift) % kSteps];
    ++count_;
  }

  uint64_t count() const { return count_; }
  // The upper bound of the bucket at or below which `percent` of the recorded values lie; for 0,
  // the lower bound of the smallest value's bucket. 0 when nothing was recorded. O(octaves with
  // values).
  uint64_t value_at(double percent) const;

  // The largest value in the same bucket as `ns`. REQUIRES: 1 <= ns <= kLargest.
  static uint64_t highest_like(uint64_t ns) { return ns | ((uint64_t{1} << shift_of(ns)) - 1); }

  // Calls fn(highest, count) for every bucket that is not empty, in order; `highest` is its largest
  // value.
  template <typename Fn>
  void for_each(Fn&& fn) const {
    for (size_t octave = 0; octave < kOctaves; ++octave) {
      if (octaves_[octave] == nullptr) continue;
      for (size_t step = 0; step < kSteps; ++step) {
        if (const uint64_t count = (*octaves_[octave])[step]; count != 0)
          fn(highest(octave, step), count);
      }
    }
  }

  LatencyHistogram() = default;
  ~LatencyHistogram();
  LatencyHistogram(const LatencyHistogram&) = delete;
  LatencyHistogram& operator=(const LatencyHistogram&) = delete;

 private:
  static constexpr size_t kSteps = 128;
  // 0 .. 127 and 128 .. 255 in steps of one, then octaves up to 2^30.
  static constexpr size_t kOctaves = 24;
  using Steps = std::array<uint64_t, kSteps>;

  static unsigned shift_of(uint64_t ns) {
    constexpr unsigned kStepBits = 8;
    const auto bits = static_cast<unsigned>(std::bit_width(ns));
    return bits > kStepBits ? bits - kStepBits : 0;
  }
  static uint64_t lowest(size_t octave, size_t step) {
    return octave == 0 ? step : (kSteps + step) << (octave - 1);
  }
  static uint64_t highest(size_t octave, size_t step) {
    return octave == 0 ? step : lowest(octave, step) + (uint64_t{1} << (octave - 1)) - 1;
  }
  static Steps* add_octave();

  uint64_t count_ = 0;
  std::array<Steps*, kOctaves> octaves_{};
};

}  // namespace latchkey::base
