#include "store/time_series/label_index.h"

#include <algorithm>

namespace latchkey::store {

// --- Keeping in step ----------------------------------------------------------------------------

void SeriesIndex::add(Entry& entry, uint64_t& counter, const FindKey& find) {
  TimeSeries& series = series_of(entry);
  if (series.number_ == 0) series.number_ = ++counter;
  series.index_ = this;
  series.entry_ = &entry;
  by_number_[series.number_] = &series;
  add_labels(series);
  link(series, find);
}

void SeriesIndex::remove(const Entry& entry) {
  TimeSeries& series = series_of(entry);
  remove_labels(series);
  // A copy may have taken the number: an undo log puts back what there was before a key was
  // renamed.
  if (find(series.number_) == &series) by_number_.erase(series.number_);
  series.index_ = nullptr;
  series.entry_ = nullptr;
}

void SeriesIndex::move(const Entry& from, Entry& to) {
  series_of(from).entry_ = &to;
}

void SeriesIndex::add_labels(TimeSeries& series) {
  for (const auto& [name, value] : series.settings_.labels) {
    auto& by_value = by_label_.try_emplace(name, 0, by_label_.hash_function()).first->second;
    by_value[value].insert(&series);
  }
}

void SeriesIndex::remove_labels(TimeSeries& series) {
  for (const auto& [name, value] : series.settings_.labels) {
    const auto values = by_label_.find(name);
    if (values == by_label_.end()) continue;  // the series has the label twice
    const auto with_value = values->second.find(value);
    if (with_value == values->second.end()) continue;
    with_value->second.erase(&series);
    if (!with_value->second.empty()) continue;
    values->second.erase(with_value);
    if (values->second.empty()) by_label_.erase(values);
  }
}

// --- Links --------------------------------------------------------------------------------------

TimeSeries* SeriesIndex::find(uint64_t number) const {
  const auto found = by_number_.find(number);
  return found == by_number_.end() ? nullptr : found->second;
}

TimeSeries* SeriesIndex::destination(const TimeSeries& from, const CompactionRule& rule) const {
  TimeSeries* const to = find(rule.destination.number);
  return to != nullptr && to->source_.number == from.number_ ? to : nullptr;
}

const CompactionRule* SeriesIndex::rule_for(const TimeSeries& source,
                                            const TimeSeries& destination) {
  for (const CompactionRule& rule : source.rules_) {
    if (rule.destination.number == destination.number_) return &rule;
  }
  return nullptr;
}

TimeSeries* SeriesIndex::source(const TimeSeries& of) const {
  TimeSeries* const from = find(of.source_.number);
  return from != nullptr && rule_for(*from, of) != nullptr ? from : nullptr;
}

std::optional<Sample> SeriesIndex::latest(const TimeSeries& of) const {
  const TimeSeries* const from = source(of);
  if (from == nullptr) return std::nullopt;
  const CompactionRule& rule = *rule_for(*from, of);
  if (rule.open_bucket == CompactionRule::kNoBucket || !rule.aggregator.has_value())
    return std::nullopt;
  return Sample{rule.open_bucket, rule.aggregator.result(std::nullopt)};
}

void SeriesIndex::forget_lost_links(TimeSeries& series) const {
  std::erase_if(series.rules_,
                [&](const CompactionRule& rule) { return destination(series, rule) == nullptr; });
  if (source(series) == nullptr) series.source_ = {};
}

void SeriesIndex::link(TimeSeries& series, const FindKey& find_key) {
  const auto named = [&](const SeriesLink& link) -> TimeSeries* {
    if (link.number != 0 || link.name.empty() || link.name == series.key()) return nullptr;
    const Entry* const entry = find_key(link.name);
    const bool is_series = entry != nullptr && entry->type() == Type::kTimeSeries;
    return is_series ? &series_of(*entry) : nullptr;
  };
  const auto connect = [](TimeSeries& source, CompactionRule& rule, TimeSeries& destination) {
    rule.destination = {destination.number_, {}};
    destination.source_ = {source.number_, {}};
  };
  if (TimeSeries* const source = named(series.source_); source != nullptr) {
    for (CompactionRule& rule : source->rules_) {
      if (rule.destination.number == 0 && rule.destination.name == series.key())
        connect(*source, rule, series);
    }
  }
  for (CompactionRule& rule : series.rules_) {
    TimeSeries* const destination = named(rule.destination);
    if (destination != nullptr && destination->source_.number == 0 &&
        destination->source_.name == series.key())
      connect(series, rule, *destination);
  }
}

// --- Queries ------------------------------------------------------------------------------------

size_t SeriesIndex::size_of(const LabelCondition& condition) const {
  const auto by_value = by_label_.find(condition.label);
  if (by_value == by_label_.end()) return 0;
  size_t size = 0;
  for (const std::string& value : condition.values) {
    const auto with_value = by_value->second.find(value);
    if (with_value != by_value->second.end()) size += with_value->second.size();
  }
  return size;
}

std::vector<const TimeSeries*> SeriesIndex::named_by(const LabelCondition& condition) const {
  std::vector<const TimeSeries*> named;
  const auto by_value = by_label_.find(condition.label);
  if (by_value == by_label_.end()) return named;
  for (const std::string& value : condition.values) {
    const auto with_value = by_value->second.find(value);
    if (with_value != by_value->second.end())
      named.insert(named.end(), with_value->second.begin(), with_value->second.end());
  }
  // A series may have the label twice, with different values.
  if (condition.values.size() > 1) {
    std::sort(named.begin(), named.end());
    named.erase(std::unique(named.begin(), named.end()), named.end());
  }
  return named;
}

std::vector<const TimeSeries*> SeriesIndex::select(
    const std::vector<LabelCondition>& conditions) const {
  const LabelCondition* narrowest = nullptr;
  size_t least = 0;
  for (const LabelCondition& condition : conditions) {
    if (!condition.is_matcher()) continue;
    const size_t size = size_of(condition);
    if (narrowest != nullptr && size >= least) continue;
    narrowest = &condition;
    least = size;
  }
  if (least == 0) return {};
  std::vector<const TimeSeries*> selected = named_by(*narrowest);
  LabelFilter filter(conditions, *by_label_.hash_function().secret);
  std::erase_if(selected, [&](const TimeSeries* series) { return !filter.holds_for(*series); });
  std::sort(selected.begin(), selected.end(), [](const TimeSeries* left, const TimeSeries* right) {
    return left->key() < right->key();
  });
  return selected;
}

}  // namespace latchkey::store
