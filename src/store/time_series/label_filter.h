// The conditions of a query, by which time series are found by their labels (label_index.h).
//
// A request may name thousands of conditions, and each may hold for thousands of series. So they
// are put together by label: a series is tested by looking up its own labels, however many
// conditions there are.
//
// Costs: as much as the conditions name to make a filter; as much as a series has labels to test
// it. Only one that has a label twice takes more: as many steps as there are conditions that name
// one of the label's values.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/digest/hash.h"

namespace latchkey::store {

class TimeSeries;

// One condition. A series without the label has no value of it.
struct LabelCondition {
  std::string label = {};
  // The values that the label may have, or may not if `is_excluded`: in order, each once, as a
  // request may name many. None: it must have none (or, if excluded, any).
  std::vector<std::string> values = {};
  bool is_excluded = false;

  // Whether it names series, as "label=value" does; others only narrow down what it names.
  bool is_matcher() const { return !is_excluded && !names_absence; }
  // "label=" and "label!=", unlike "label=()", which no series fulfils.
  bool names_absence = false;
};

class LabelFilter {
 public:
  // Both must outlive the filter. `secret`: by which labels are hashed.
  LabelFilter(const std::vector<LabelCondition>& conditions, const base::HashSecret& secret);
  LabelFilter(const LabelFilter&) = delete;
  LabelFilter& operator=(const LabelFilter&) = delete;

  // Whether a series fulfils all conditions. Not const, because it notes what it finds.
  bool holds_for(const TimeSeries& series);

 private:
  template <typename T>
  using ByText = std::unordered_map<std::string_view, T, base::KeyedTextHash, std::equal_to<>>;
  using Texts = std::unordered_set<std::string_view, base::KeyedTextHash, std::equal_to<>>;
  // Numbers of matchers of a label, in order.
  using Numbers = std::vector<size_t>;

  // What the conditions ask of one label.
  struct OfLabel {
    explicit OfLabel(base::KeyedTextHash hash) : matchers_of_value(0, hash), excluded(0, hash) {}
    bool is_required() const { return must_be_there || matchers != 0; }
    // Whether the values that `found` stands for fulfil all matchers.
    bool are_matchers_fulfilled() const;

    size_t matchers = 0;
    ByText<Numbers> matchers_of_value;
    Texts excluded;
    bool must_be_there = false;
    bool must_be_missing = false;
    // Of the series that is being tested: whether it has the label, and for each of its values that
    // matchers name, which ones these are.
    bool is_there = false;
    std::vector<const Numbers*> found;
  };

  OfLabel& of(std::string_view label);
  bool fits(const TimeSeries& series, size_t* required);

  base::KeyedTextHash hash_;
  ByText<OfLabel> by_label_;
  size_t required_ = 0;         // labels that a series must have
  std::vector<OfLabel*> seen_;  // of the series that is being tested
};

}  // namespace latchkey::store
