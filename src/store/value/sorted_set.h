// A sorted set: members, each once, in order of their scores, and of their bytes where scores are
// equal.
//
// Small ones are one listpack of members and scores in turn (encoding "listpack"). Large ones
// ("skiplist", by the name that clients of the reference know) are a RankedTree and a HashTable
// over the same ScoredMembers: about 58 bytes per element for members of 16 bytes. What is small,
// the thresholds of the environment say; a set that has outgrown them stays large until compact().
//
// Scores are never NaN. Ranks count from 0 in ascending order. Costs, of a large set of n members:
// score() O(1), changes and ranks O(log n), walking and erasing a range O(log n) and about O(1) for
// each member. What is said of text views: they are valid until the next change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/number.h"
#include "base/random.h"
#include "store/encoding/listpack.h"
#include "store/encoding/ranked_tree.h"
#include "store/entry.h"
#include "store/hash_table.h"
#include "store/keyspace.h"

namespace latchkey::store {

// A bound of a range by score.
struct ScoreBound {
  double score;
  bool excluded = false;
};
struct ScoreRange {
  ScoreBound low;
  ScoreBound high;
};

// A bound of a range by bytes, or one of the two beyond all members.
struct LexBound {
  enum class Kind : uint8_t { kLowest, kMember, kHighest } kind;
  std::string_view member;
  bool excluded = false;
};
struct LexRange {
  LexBound low;
  LexBound high;
};

// Members `first` to `first + count - 1` in ascending order.
struct RankRange {
  size_t first = 0;
  size_t count = 0;
};

class SortedSet final : public Value {
 public:
  static constexpr Type kType = Type::kSortedSet;

  explicit SortedSet(const Environment& environment) : environment_(environment) {}
  // As above for about `members` members of up to `longest` bytes: large at once if that is too
  // much for a listpack.
  SortedSet(const Environment& environment, size_t members, size_t longest);
  ~SortedSet() override;

  size_t size() const;
  bool is_listpack() const { return table_ == nullptr; }

  // Says that `members` scores are about to be set, so that many make it large at once.
  void expect(size_t members);

  std::optional<double> score(std::string_view member) const;
  // Adds a member or gives it another score. True when it is new. `member` must not lie within the
  // set.
  bool set(std::string_view member, double score);
  // As set() where score() has just said whether the member is there.
  void add(std::string_view member, double score);
  void change(std::string_view member, double score);
  bool erase(std::string_view member);
  void erase(RankRange range);

  std::optional<size_t> rank(std::string_view member) const;
  RankRange range(const ScoreRange& range) const;
  // Of members that have one score; of others the result is one of ranks, but meaningless.
  RankRange range(const LexRange& range) const;

  // Calls fn(std::string_view member, double score) for the members of a range, from its last to
  // its first when `reverse`. fn must not change the set.
  template <typename Fn>
  void for_each(RankRange range, bool reverse, Fn&& fn) const;
  template <typename Fn>
  void for_each(Fn&& fn) const {
    for_each({0, size()}, false, fn);
  }
  // A step of a scan of a large set, as HashTable::scan; a small one is given whole, and the cursor
  // 0.
  template <typename Fn>
  uint64_t scan(uint64_t cursor, Fn&& fn) const;
  // Calls fn for a member chosen uniformly. REQUIRES: not empty.
  template <typename Fn>
  void with_random(base::Random& random, Fn&& fn) const;

  // Takes over members and scores that have been checked to be a sorted set's, as a file or a dump
  // holds them; it becomes large when they are too many. REQUIRES: empty.
  void adopt(Listpack members);

  // Makes a listpack of a large set that is within the thresholds, as far as these members'
  // longest length is known.
  void compact();

  // Of a small set, to be shown or dumped.
  const Listpack& listpack() const { return listpack_; }

  struct MemberTraits {
    using Item = ScoredMember;
    static std::string_view key(const ScoredMember* member) { return member->member(); }
  };
  using Table = HashTable<MemberTraits>;
  // Of a large set.
  const Table& table() const { return *table_; }

  std::string_view encoding_name() const override {
    return is_listpack() ? "listpack" : "skiplist";
  }
  size_t element_count() const override { return size(); }
  size_t free_effort() const override { return is_listpack() ? 1 : size(); }
  size_t memory_usage() const override;
  void prefetch(uint64_t hash, LookupStep step) const override;
  Value* clone() const override;

 private:
  double score_at(Listpack::Position position) const;
  void grow_large();
  void add_large(std::string_view member, double score);
  // Frees a member that is neither in the table nor in the tree any more.
  void destroy(ScoredMember* member);
  void add_to_listpack(std::string_view member, double score);
  // How many members of the order stand before the place where `is_in(score, member)` ends to hold.
  template <typename Predicate>
  size_t count_first(Predicate&& is_in) const;

  const Environment& environment_;
  Listpack listpack_;
  std::unique_ptr<Table> table_;  // null: the members are in the listpack
  RankedTree tree_;
  size_t member_bytes_ = 0;  // of ScoredMembers
};

template <typename Fn>
void SortedSet::for_each(RankRange range, bool reverse, Fn&& fn) const {
  if (range.count == 0) return;
  const size_t start = reverse ? range.first + range.count - 1 : range.first;
  if (!is_listpack()) {
    auto position = tree_.at(start);
    for (size_t left = range.count; left > 0; --left) {
      fn((*position)->member(), (*position)->score);
      reverse ? position.backward() : position.forward();
    }
    return;
  }
  char scratch[Listpack::kScratch];
  auto position = listpack_.at(static_cast<int64_t>(start) * 2);
  for (size_t left = range.count; left > 0; --left) {
    const auto score = listpack_.next(position);
    fn(listpack_.get(position).text(scratch), score_at(score));
    if (left == 1) break;
    position = reverse ? listpack_.previous(listpack_.previous(position)) : listpack_.next(score);
  }
}

template <typename Fn>
uint64_t SortedSet::scan(uint64_t cursor, Fn&& fn) const {
  if (!is_listpack())
    return table_->scan(cursor, [&](const ScoredMember* m) { fn(m->member(), m->score); });
  for_each(fn);
  return 0;
}

template <typename Fn>
void SortedSet::with_random(base::Random& random, Fn&& fn) const {
  if (is_listpack()) return for_each({random.below(size()), 1}, false, fn);
  const ScoredMember* member = table_->random(random);
  fn(member->member(), member->score);
}

}  // namespace latchkey::store
