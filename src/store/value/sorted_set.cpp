#include "store/value/sorted_set.h"

#include <memory>
#include <new>
#include <utility>

#include "base/text/number.h"
#include "store/prefetched_walk.h"

namespace latchkey::store {

namespace {

// A score as text for a listpack (`text` has room for base::kMaxDoubleText). Integral scores become
// integers there, so negative zero becomes zero.
std::string_view score_text(double score, char* text) {
  return {text, base::format_double(score == 0 ? 0 : score, text)};
}

}  // namespace

SortedSet::SortedSet(const Environment& environment, size_t members, size_t longest)
    : SortedSet(environment) {
  if (longest > environment.limits.zset_max_listpack_value) grow_large();
  expect(members);
}

SortedSet::~SortedSet() {
  is_large_ ? delete large_ : listpack_.~Listpack();
}

SortedSet::Large::~Large() {
  for_each_prefetched(table, ScoredMember::destroy);
}

size_t SortedSet::size() const {
  return is_listpack() ? listpack_.size() / 2 : large_->tree.size();
}

size_t SortedSet::memory_usage() const {
  if (is_listpack()) return sizeof(*this) + listpack_.memory_usage();
  return sizeof(*this) + sizeof(Large) + large_->table.memory_usage() +
         large_->tree.memory_usage() + large_->member_bytes;
}

void SortedSet::prefetch(uint64_t hash, LookupStep step) const {
  if (!is_listpack()) return large_->table.prefetch(hash, step);
  if (step == LookupStep::kBucket) listpack_.prefetch();
}

Value* SortedSet::clone() const {
  auto copy = std::make_unique<SortedSet>(*environment_);
  if (is_listpack()) {
    copy->listpack_ = listpack_;
  } else {
    copy->grow_large();
    for_each([&](std::string_view member, double score) { copy->large_->add(member, score); });
  }
  return copy.release();
}

void SortedSet::expect(size_t members) {
  if (is_listpack() && members > environment_->limits.zset_max_listpack_entries) grow_large();
}

// --- The listpack -------------------------------------------------------------------------------

double SortedSet::score_at(Listpack::Position position) const {
  const Listpack::Element element = listpack_.get(position);
  if (element.is_integer) return static_cast<double>(element.integer);
  double score = 0;
  base::parse_double(element.bytes, &score);
  return score;
}

void SortedSet::add_to_listpack(std::string_view member, double score) {
  char scratch[Listpack::kScratch];
  auto place = listpack_.first();
  while (place != Listpack::kNone) {
    const auto behind = listpack_.next(place);
    const double other = score_at(behind);
    if (score < other || (score == other && member < listpack_.get(place).text(scratch))) break;
    place = listpack_.next(behind);
  }
  char text[base::kMaxDoubleText];
  const auto added = listpack_.insert_before(place, member);
  listpack_.insert_before(listpack_.next(added), score_text(score, text));
}

void SortedSet::grow_large() {
  auto large = std::make_unique<Large>(environment_->secret);
  char scratch[Listpack::kScratch];
  for (auto position = listpack_.first(); position != Listpack::kNone;) {
    const auto score = listpack_.next(position);
    large->add(listpack_.get(position).text(scratch), score_at(score));
    position = listpack_.next(score);
  }
  listpack_.~Listpack();
  large_ = large.release();
  is_large_ = true;
}

void SortedSet::adopt(Listpack members) {
  listpack_ = std::move(members);
  expect(size());
}

void SortedSet::compact() {
  const ValueLimits& limits = environment_->limits;
  if (is_listpack() || size() > limits.zset_max_listpack_entries) return;
  size_t bytes = 0;
  bool fits = true;
  for_each([&](std::string_view member, double) {
    fits = fits && member.size() <= limits.zset_max_listpack_value;
    bytes += Listpack::encoded_size(member) + base::kMaxDoubleText;
  });
  Listpack pack;
  if (!fits || !pack.room_for(bytes)) return;
  char text[base::kMaxDoubleText];
  for_each([&](std::string_view member, double score) {
    pack.append(member);
    pack.append(score_text(score, text));
  });
  delete large_;
  new (&listpack_) Listpack(std::move(pack));
  is_large_ = false;
}

// --- Members ------------------------------------------------------------------------------------

void SortedSet::Large::add(std::string_view member, double score) {
  ScoredMember* made = ScoredMember::make(member, score);
  member_bytes += made->memory_usage();
  table.insert(made, table.hash(member));
  tree.insert(made);
}

std::optional<double> SortedSet::score(std::string_view member) const {
  if (is_listpack()) {
    const auto position = listpack_.find(member, listpack_.first(), 1);
    if (position == Listpack::kNone) return std::nullopt;
    return score_at(listpack_.next(position));
  }
  const ScoredMember* found = large_->table.find_item(member);
  if (found == nullptr) return std::nullopt;
  return found->score;
}

void SortedSet::add(std::string_view member, double score) {
  if (is_listpack()) {
    const ValueLimits& limits = environment_->limits;
    if (size() < limits.zset_max_listpack_entries &&
        member.size() <= limits.zset_max_listpack_value &&
        listpack_.room_for(Listpack::encoded_size(member) + base::kMaxDoubleText))
      return add_to_listpack(member, score);
    grow_large();
  }
  large_->add(member, score);
}

void SortedSet::change(std::string_view member, double score) {
  if (!is_listpack()) {
    large_->tree.move(large_->table.find_item(member), score);
    return;
  }
  listpack_.erase(listpack_.find(member, listpack_.first(), 1), 2);
  add_to_listpack(member, score);
}

bool SortedSet::set(std::string_view member, double new_score) {
  const std::optional<double> old_score = score(member);
  if (!old_score) {
    add(member, new_score);
  } else if (*old_score != new_score) {
    change(member, new_score);
  }
  return !old_score;
}

bool SortedSet::erase(std::string_view member) {
  if (is_listpack()) {
    const auto position = listpack_.find(member, listpack_.first(), 1);
    if (position == Listpack::kNone) return false;
    listpack_.erase(position, 2);
    return true;
  }
  const uint64_t hash = large_->table.hash(member);
  ScoredMember** slot = large_->table.find(member, hash);
  if (slot == nullptr) return false;
  ScoredMember* found = large_->table.erase(slot, hash);
  large_->tree.erase(found);
  large_->destroy(found);
  return true;
}

void SortedSet::Large::destroy(ScoredMember* member) {
  member_bytes -= member->memory_usage();
  ScoredMember::destroy(member);
}

void SortedSet::erase(RankRange range) {
  if (range.count == 0) return;
  if (is_listpack()) {
    listpack_.erase(listpack_.at(static_cast<int64_t>(range.first) * 2), range.count * 2);
    return;
  }
  large_->tree.erase_range(range.first, range.count, [this](ScoredMember* member) {
    const uint64_t hash = large_->table.hash(member->member());
    large_->table.erase(large_->table.find(member->member(), hash), hash);
    large_->destroy(member);
  });
}

// --- Ranks and ranges ---------------------------------------------------------------------------

std::optional<size_t> SortedSet::rank(std::string_view member) const {
  if (!is_listpack()) {
    const ScoredMember* found = large_->table.find_item(member);
    if (found == nullptr) return std::nullopt;
    return large_->tree.rank(found);
  }
  const Listpack::Matcher wanted(member);
  size_t rank = 0;
  for (auto position = listpack_.first(); position != Listpack::kNone; ++rank) {
    if (wanted.matches(listpack_.get(position))) return rank;
    position = listpack_.next(listpack_.next(position));
  }
  return std::nullopt;
}

template <typename Predicate>
size_t SortedSet::count_first(Predicate&& is_in) const {
  if (!is_listpack()) return large_->tree.count_first(is_in);
  char scratch[Listpack::kScratch];
  size_t count = 0;
  for (auto position = listpack_.first(); position != Listpack::kNone; ++count) {
    const auto score = listpack_.next(position);
    if (!is_in(score_at(score), listpack_.get(position).text(scratch))) break;
    position = listpack_.next(score);
  }
  return count;
}

namespace {

// Whether a member comes before a bound; `equal_before` says whether members equal to the bound do.
bool stands_before(const ScoreBound& bound, double score, bool equal_before) {
  return equal_before ? score <= bound.score : score < bound.score;
}

bool stands_before(const LexBound& bound, std::string_view member, bool equal_before) {
  if (bound.kind != LexBound::Kind::kMember) return bound.kind == LexBound::Kind::kHighest;
  return equal_before ? member <= bound.member : member < bound.member;
}

RankRange between(size_t first, size_t end) {
  return {first, end > first ? end - first : 0};
}

}  // namespace

RankRange SortedSet::range(const ScoreRange& range) const {
  const size_t first = count_first([&](double score, std::string_view) {
    return stands_before(range.low, score, range.low.excluded);
  });
  const size_t end = count_first([&](double score, std::string_view) {
    return stands_before(range.high, score, !range.high.excluded);
  });
  return between(first, end);
}

RankRange SortedSet::range(const LexRange& range) const {
  const size_t first = count_first([&](double, std::string_view member) {
    return stands_before(range.low, member, range.low.excluded);
  });
  const size_t end = count_first([&](double, std::string_view member) {
    return stands_before(range.high, member, !range.high.excluded);
  });
  return between(first, end);
}

}  // namespace latchkey::store
