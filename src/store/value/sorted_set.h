// A sorted set: unique members, ordered by score, then by bytes.
//
// Small sets are one listpack of alternating members and scores (encoding "listpack"). Large ones
// (encoding "skiplist", the name that clients of the reference know) are a RankedTree and a
// HashTable over the same ScoredMembers: about 58 bytes per element for members of 16 bytes.
// Environment::limits has the thresholds; a set that has outgrown them stays large until compact().
//
// Scores are never NaN. Ranks count from 0 in ascending order. Costs, in a large set of n members:
// score() O(1), changes and ranks O(log n), walking and erasing a range O(log n) and about O(1) per
// member. Returned views are valid until the next change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/random.h"
#include "store/encoding/listpack.h"
#include "store/encoding/ranked_tree.h"
#include "store/entry.h"
#include "store/hash_table.h"
#include "store/keyspace.h"
#include "store/random_sample.h"

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

// A bound of a range by bytes, or one of the two bounds beyond all members.
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

  explicit SortedSet(const Environment& environment) : environment_(&environment), listpack_() {}
  // A copy of packed members and scores; without an environment a view of them.
  SortedSet(const Environment* environment, const Packed& packed)
      : environment_(environment),
        listpack_(Listpack::open(packed.bytes, environment != nullptr)) {}
  SortedSet(const SortedSet&) = delete;
  SortedSet& operator=(const SortedSet&) = delete;
  // For about `members` members of up to `longest` bytes: large at once if that is too much for a
  // listpack.
  SortedSet(const Environment& environment, size_t members, size_t longest);
  ~SortedSet() override;

  size_t size() const;
  bool is_listpack() const { return !is_large_; }

  // Announces that `members` scores will be set, so that the set becomes large at once if needed.
  void expect(size_t members);

  std::optional<double> score(std::string_view member) const;
  // Adds a member or gives it another score. True when it is new. `member` must not lie within the
  // set.
  bool set(std::string_view member, double score);
  // Like set(), when score() has just said that the member is absent (add) or present (change).
  void add(std::string_view member, double score);
  void change(std::string_view member, double score);
  bool erase(std::string_view member);
  void erase(RankRange range);

  std::optional<size_t> rank(std::string_view member) const;
  RankRange range(const ScoreRange& range) const;
  // Meaningful only if all members have the same score; otherwise the result is some valid range of
  // ranks.
  RankRange range(const LexRange& range) const;

  // Calls fn(std::string_view member, double score) for the members of a range, from its last to
  // its first when `reverse`. fn must not change the set.
  template <typename Fn>
  void for_each(RankRange range, bool reverse, Fn&& fn) const;
  template <typename Fn>
  void for_each(Fn&& fn) const {
    for_each({0, size()}, false, fn);
  }
  // The same until fn returns false.
  template <typename Fn>
  void for_each_while(RankRange range, bool reverse, Fn&& fn) const;
  template <typename Fn>
  void for_each_while(Fn&& fn) const {
    for_each_while({0, size()}, false, fn);
  }
  // One step of a scan of a large set, as HashTable::scan; a small set is visited whole, and the
  // returned cursor is 0.
  template <typename Fn>
  uint64_t scan(uint64_t cursor, Fn&& fn) const;
  // Calls fn for a member chosen uniformly. REQUIRES: not empty.
  template <typename Fn>
  void random(base::Random& random, Fn&& fn) const;
  // Calls fn for `count` different members, all choices being equally likely. REQUIRES: count <=
  // size(). O(count) in a large set.
  template <typename Fn>
  void random_distinct(base::Random& random, size_t count, Fn&& fn) const;

  // Adopts members and scores from a file or a dump; the caller has checked that they are
  // valid. The set becomes large when they are too many. REQUIRES: empty.
  void adopt(Listpack members);

  // Converts a large set that is within the thresholds to a listpack.
  void compact();

  // The members and scores, for DEBUG and dumps. REQUIRES: is_listpack().
  const Listpack& listpack() const { return listpack_; }

  struct MemberTraits {
    using Item = ScoredMember;
    static std::string_view key(const ScoredMember* member) { return member->member(); }
  };
  using Table = HashTable<MemberTraits>;
  // REQUIRES: a large set.
  const Table& table() const { return large_->table; }

  std::string_view encoding_name() const override {
    return is_listpack() ? "listpack" : "skiplist";
  }
  size_t element_count() const override { return size(); }
  Packed packed() const override { return is_large_ ? Packed() : Packed{listpack_.bytes()}; }
  size_t free_effort() const override { return is_listpack() ? 1 : size(); }
  size_t memory_usage() const override;
  void prefetch(uint64_t hash, LookupStep step) const override;
  Value* clone() const override;

 private:
  // What a set has that has outgrown the listpack.
  struct Large {
    explicit Large(const base::HashSecret& secret) : table(secret) {}
    ~Large();
    Large(const Large&) = delete;
    Large& operator=(const Large&) = delete;
    // REQUIRES: the member is absent.
    void add(std::string_view member, double score);
    // Frees a member that has been removed from the table and the tree.
    void destroy(ScoredMember* member);

    Table table;
    RankedTree tree;
    size_t member_bytes = 0;  // of ScoredMembers
  };

  double score_at(Listpack::Position position) const;
  void grow_large();
  void add_to_listpack(std::string_view member, double score);
  // The number of members in order before the first for which `is_in(score, member)` is false.
  template <typename Predicate>
  size_t count_first(Predicate&& is_in) const;

  // In the padding of the base class, so that a set takes 32 bytes.
  bool is_large_ = false;
  const Environment* environment_;
  union {
    Listpack listpack_;
    Large* large_;  // owned
  };
};
static_assert(sizeof(SortedSet) == 32);

template <typename Fn>
void SortedSet::for_each(RankRange range, bool reverse, Fn&& fn) const {
  for_each_while(range, reverse, [&](std::string_view member, double score) {
    fn(member, score);
    return true;
  });
}

template <typename Fn>
void SortedSet::for_each_while(RankRange range, bool reverse, Fn&& fn) const {
  if (range.count == 0) return;
  const size_t start = reverse ? range.first + range.count - 1 : range.first;
  if (!is_listpack()) {
    auto position = large_->tree.at(start);
    for (size_t left = range.count; left > 0; --left) {
      if (!fn((*position)->member(), (*position)->score)) return;
      reverse ? position.backward() : position.forward();
    }
    return;
  }
  char scratch[Listpack::kScratch];
  auto position = listpack_.at(static_cast<int64_t>(start) * 2);
  for (size_t left = range.count; left > 0; --left) {
    const auto score = listpack_.next(position);
    if (!fn(listpack_.get(position).text(scratch), score_at(score)) || left == 1) return;
    position = reverse ? listpack_.previous(listpack_.previous(position)) : listpack_.next(score);
  }
}

template <typename Fn>
uint64_t SortedSet::scan(uint64_t cursor, Fn&& fn) const {
  if (!is_listpack())
    return large_->table.scan(cursor, [&](const ScoredMember* m) { fn(m->member(), m->score); });
  for_each(fn);
  return 0;
}

template <typename Fn>
void SortedSet::random(base::Random& random, Fn&& fn) const {
  if (is_listpack()) return for_each({random.below(size()), 1}, false, fn);
  const ScoredMember* member = large_->table.random(random);
  fn(member->member(), member->score);
}

template <typename Fn>
void SortedSet::random_distinct(base::Random& random, size_t count, Fn&& fn) const {
  if (!is_listpack() && is_small_sample(count, size())) {
    return draw_distinct(large_->table, random, count,
                         [&](const ScoredMember* m) { fn(m->member(), m->score); });
  }
  SelectionSample sample(random, count, size());
  for_each([&](std::string_view member, double score) {
    if (sample.takes_next()) fn(member, score);
  });
}

}  // namespace latchkey::store
