#include "base/latency_histogram.h"

namespace latchkey::base {

LatencyHistogram::~LatencyHistogram() {
  for (Steps* steps : octaves_) delete steps;
}

LatencyHistogram::Steps* LatencyHistogram::add_octave() {
  return new Steps{};
}

uint64_t LatencyHistogram::value_at(double percent) const {
  const auto wanted = std::max<uint64_t>(
      static_cast<uint64_t>(percent / 100.0 * static_cast<double>(count_) + 0.5), 1);
  uint64_t seen = 0;
  for (size_t octave = 0; octave < kOctaves; ++octave) {
    if (octaves_[octave] == nullptr) continue;
    for (size_t step = 0; step < kSteps; ++step) {
      seen += (*octaves_[octave])[step];
      if (seen >= wanted) return percent == 0 ? lowest(octave, step) : highest(octave, step);
    }
  }
  return 0;
}

}  // namespace latchkey::base
