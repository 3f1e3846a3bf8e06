#include "store/time_series/label_filter.h"

#include <algorithm>

#include "store/time_series/series.h"

namespace latchkey::store {

LabelFilter::LabelFilter(const std::vector<LabelCondition>& conditions,
                         const base::HashSecret& secret)
    : hash_{&secret}, by_label_(0, hash_) {
  for (const LabelCondition& condition : conditions) {
    OfLabel& label = of(condition.label);
    if (condition.names_absence) {
      (condition.is_excluded ? label.must_be_there : label.must_be_missing) = true;
    } else if (condition.is_excluded) {
      label.excluded.insert(condition.values.begin(), condition.values.end());
    } else {
      for (const std::string& value : condition.values)
        label.matchers_of_value[value].push_back(label.matchers);
      ++label.matchers;
    }
  }
  for (const auto& [label, asked] : by_label_) required_ += asked.is_required() ? 1 : 0;
}

LabelFilter::OfLabel& LabelFilter::of(std::string_view label) {
  return by_label_.try_emplace(label, hash_).first->second;
}

bool LabelFilter::OfLabel::are_matchers_fulfilled() const {
  size_t most = 0;
  for (const Numbers* numbers : found) most = std::max(most, numbers->size());
  if (most == matchers || found.size() < 2) return most == matchers;
  std::vector<bool> is_fulfilled(matchers);
  size_t fulfilled = 0;
  for (const Numbers* numbers : found) {
    for (const size_t number : *numbers) {
      fulfilled += is_fulfilled[number] ? 0 : 1;
      is_fulfilled[number] = true;
    }
  }
  return fulfilled == matchers;
}

bool LabelFilter::fits(const TimeSeries& series, size_t* required) {
  for (const auto& [name, value] : series.settings().labels) {
    const auto asked = by_label_.find(name);
    if (asked == by_label_.end()) continue;
    OfLabel& label = asked->second;
    if (label.must_be_missing || label.excluded.contains(value)) return false;
    if (!label.is_there) {
      label.is_there = true;
      seen_.push_back(&label);
      *required += label.is_required() ? 1 : 0;
    }
    const auto matchers = label.matchers_of_value.find(value);
    if (matchers != label.matchers_of_value.end()) label.found.push_back(&matchers->second);
  }
  return std::all_of(seen_.begin(), seen_.end(),
                     [](const OfLabel* label) { return label->are_matchers_fulfilled(); });
}

bool LabelFilter::holds_for(const TimeSeries& series) {
  size_t required = 0;
  const bool fits_all = fits(series, &required);
  for (OfLabel* label : seen_) {
    label->is_there = false;
    label->found.clear();
  }
  seen_.clear();
  return fits_all && required == required_;
}

}  // namespace latchkey::store
