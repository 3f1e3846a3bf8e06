// What a time series is made of: samples, and the settings that say how they are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace latchkey::store {

struct Sample {
  int64_t timestamp = 0;  // milliseconds by convention; never negative
  double value = 0;       // may be NaN: a measurement that is missing
};

// The numbers are those of RDB.
enum class SeriesEncoding : uint8_t { kUncompressed = 1, kCompressed = 2 };

// What happens to a sample whose timestamp there is already. kNone: the directive
// ts-duplicate-policy decides. The numbers are those of RDB.
enum class DuplicatePolicy : uint8_t { kNone, kBlock, kLast, kFirst, kMin, kMax, kSum };

using SeriesLabel = std::pair<std::string, std::string>;

struct SeriesSettings {
  static constexpr size_t kMinChunkSize = 48;
  static constexpr size_t kMaxChunkSize = size_t{1} << 20;

  int64_t retention_ms = 0;  // samples older than this before the newest go; 0: none do
  // Of the data of a new chunk, in bytes: a multiple of 8, kMinChunkSize .. kMaxChunkSize.
  size_t chunk_size = 4096;
  SeriesEncoding encoding = SeriesEncoding::kCompressed;
  DuplicatePolicy duplicate_policy = DuplicatePolicy::kNone;
  // A newer sample so near to the newest is ignored, under the policy kLast.
  int64_t ignore_max_time_diff = 0;
  double ignore_max_val_diff = 0;
  std::vector<SeriesLabel> labels = {};
};

// "block", "last" and so on; empty for kNone.
std::string_view duplicate_policy_name(DuplicatePolicy policy);
// In any case. Nothing when there is no such policy.
std::optional<DuplicatePolicy> duplicate_policy_of(std::string_view name);

// The value of a timestamp for which there are two, or nothing when the policy refuses the second.
// A number wins over NaN, but kMin, kMax and kSum refuse one of each. REQUIRES: not kNone.
std::optional<double> merged_value(DuplicatePolicy policy, double present, double added);

}  // namespace latchkey::store
