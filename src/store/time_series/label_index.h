// The time series of one database: by their labels, for queries, and by their numbers, for the
// rules between them.
//
// Keyspace keeps it in step: every entry with a series passes add() when it comes into the table
// and remove() when it leaves, whatever the reason, as it does in SlotIndex. A series that is in an
// index tells it of its labels' changes itself.
//
// Costs: add and remove O(labels); a query as much as its conditions name, plus the labels of the
// smallest set of series that one of them names, plus the sorting of what is found. Pointers to
// series are valid until the database changes. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/digest/hash.h"
#include "store/time_series/label_filter.h"
#include "store/time_series/series.h"

namespace latchkey::store {

class SeriesIndex {
 public:
  using FindKey = std::function<const Entry*(std::string_view key)>;

  // The secret, by which labels are hashed, must outlive the index.
  explicit SeriesIndex(const base::HashSecret& secret)
      : by_label_(0, base::KeyedTextHash{&secret}) {}
  SeriesIndex(const SeriesIndex&) = delete;
  SeriesIndex& operator=(const SeriesIndex&) = delete;
  // All series leave at once, with the table, and keep a pointer to the index that is gone: nobody
  // may ask them for it again before add().
  ~SeriesIndex() = default;

  // The entry has come into the table. Gives the series its number, the next of `counter`, unless
  // it has one; links it with the series that it names, and that name it, if they are there.
  void add(Entry& entry, uint64_t& counter, const FindKey& find);
  // The entry is about to leave the table.
  void remove(const Entry& entry);
  // The series of an entry is now that of another one with the same key.
  void move(const Entry& from, Entry& to);

  // The series at the other end of a link; null when it is not there, or does not link back. O(1).
  TimeSeries* destination(const TimeSeries& from, const CompactionRule& rule) const;
  TimeSeries* source(const TimeSeries& of) const;
  // The source's rule for it. REQUIRES: it is the source.
  static const CompactionRule* rule_for(const TimeSeries& source, const TimeSeries& destination);
  // What the newest bucket of a compaction has so far, which is not among its samples yet; nothing
  // for other series, and when there is nothing.
  std::optional<Sample> latest(const TimeSeries& of) const;
  // Removes the rules of a series whose destinations are gone, and its link to a source that is.
  void forget_lost_links(TimeSeries& series) const;

  // The series that fulfil all conditions, by the order of their keys. REQUIRES: a matcher is among
  // them.
  std::vector<const TimeSeries*> select(const std::vector<LabelCondition>& conditions) const;
  template <typename Fn>
  void for_each(Fn&& fn) const {
    for (const auto& [number, series] : by_number_) fn(static_cast<const TimeSeries&>(*series));
  }

 private:
  friend class TimeSeries;
  template <typename T>
  using ByText = std::unordered_map<std::string, T, base::KeyedTextHash, std::equal_to<>>;
  using SeriesSet = std::unordered_set<TimeSeries*>;

  static TimeSeries& series_of(const Entry& entry) {
    return static_cast<TimeSeries&>(*entry.value());
  }
  void add_labels(TimeSeries& series);
  void remove_labels(TimeSeries& series);
  TimeSeries* find(uint64_t number) const;
  void link(TimeSeries& series, const FindKey& find);
  // How many series have one of the values.
  size_t size_of(const LabelCondition& condition) const;
  // Those series, each once, in no particular order.
  std::vector<const TimeSeries*> named_by(const LabelCondition& condition) const;

  std::unordered_map<uint64_t, TimeSeries*> by_number_;
  ByText<ByText<SeriesSet>> by_label_;
};

}  // namespace latchkey::store
