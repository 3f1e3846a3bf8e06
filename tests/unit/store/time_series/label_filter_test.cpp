#include "store/time_series/label_filter.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"
#include "store/time_series/series.h"
#include "unit/catch.h"

namespace latchkey::store {

namespace {

// What a condition means, by itself.
bool holds_for(const LabelCondition& condition, const TimeSeries& series) {
  bool has_label = false;
  bool has_value = false;
  for (const auto& [name, value] : series.settings().labels) {
    if (name != condition.label) continue;
    has_label = true;
    has_value = has_value || std::find(condition.values.begin(), condition.values.end(), value) !=
                                 condition.values.end();
  }
  if (condition.names_absence) return has_label == condition.is_excluded;
  return has_value != condition.is_excluded;
}

std::string letter(base::Random& random, uint64_t of) {
  return std::string(1, static_cast<char>('a' + random.below(of)));
}

LabelCondition random_condition(base::Random& random) {
  LabelCondition condition;
  condition.label = letter(random, 3);
  condition.is_excluded = random.below(3) == 0;
  condition.names_absence = random.below(6) == 0;
  const uint64_t values = condition.names_absence ? 0 : random.below(5);
  for (uint64_t i = 0; i < values; ++i) condition.values.push_back(letter(random, 4));
  std::sort(condition.values.begin(), condition.values.end());
  condition.values.erase(std::unique(condition.values.begin(), condition.values.end()),
                         condition.values.end());
  return condition;
}

TimeSeries with_labels(std::vector<SeriesLabel> labels) {
  SeriesSettings settings;
  settings.labels = std::move(labels);
  return TimeSeries(std::move(settings));
}

}  // namespace

TEST_CASE("A filter holds for the series for which each of its conditions does", "[time series]") {
  const base::HashSecret secret(1);
  base::Random random(5);
  std::vector<TimeSeries> all;
  all.reserve(100);
  for (int i = 0; i < 100; ++i) {
    // A series may have a label twice.
    std::vector<SeriesLabel> labels;
    for (uint64_t left = random.below(5); left > 0; --left)
      labels.emplace_back(letter(random, 4), letter(random, 4));
    all.push_back(with_labels(std::move(labels)));
  }
  size_t held = 0;
  for (int round = 0; round < 500; ++round) {
    std::vector<LabelCondition> conditions;
    for (uint64_t left = random.below(5); left > 0; --left)
      conditions.push_back(random_condition(random));
    LabelFilter filter(conditions, secret);
    for (const TimeSeries& series : all) {
      const bool expected = std::all_of(
          conditions.begin(), conditions.end(),
          [&](const LabelCondition& condition) { return holds_for(condition, series); });
      if (filter.holds_for(series) != expected) FAIL("conditions of round " << round);
      held += expected ? 1 : 0;
    }
  }
  CHECK(held > 1000);
}

TEST_CASE("A filter of many conditions looks at a series' labels alone", "[time series]") {
  constexpr int kConditions = 20'000;
  constexpr int kSeries = 20'000;
  const base::HashSecret secret(1);
  std::vector<LabelCondition> conditions;
  for (int i = 0; i < kConditions; ++i) {
    const std::string other = "x" + std::to_string(i);
    conditions.push_back({.label = "a", .values = {"v", other}});
    conditions.push_back({.label = "b", .values = {other}, .is_excluded = true});
    conditions.push_back({.label = other, .names_absence = true});
  }
  LabelFilter filter(conditions, secret);
  const TimeSeries fits = with_labels({{"a", "v"}, {"b", "w"}});
  const TimeSeries does_not = with_labels({{"a", "v"}, {"b", "x7"}});
  // One condition after the other would be 1,200,000,000 steps for each of the two.
  int held = 0;
  for (int i = 0; i < kSeries; ++i)
    held += (filter.holds_for(fits) ? 1 : 0) + (filter.holds_for(does_not) ? 1 : 0);
  CHECK(held == kSeries);
}

}  // namespace latchkey::store
