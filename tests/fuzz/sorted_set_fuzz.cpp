// Operations on a sorted set, small and large, beside a map of scores and a set in order.
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "input.h"
#include "store/value/sorted_set.h"

namespace {

using namespace latchkey;
using fuzz::Input;
using fuzz::require;
using store::LexBound;
using store::RankRange;
using store::SortedSet;

using Ordered = std::set<std::pair<double, std::string>>;

class Session {
 public:
  explicit Session(Input input) : input_(input) {
    environment_.secret = base::HashSecret(1);
    choose_limits();
    set_ = std::make_unique<SortedSet>(environment_);
  }

  void run() {
    while (!input_.empty()) {
      step();
      require(set_->size() == scores_.size());
    }
    check();
  }

 private:
  void choose_limits() {
    environment_.limits.zset_max_listpack_entries = input_.byte();
    environment_.limits.zset_max_listpack_value = input_.byte();
  }
  double score() {
    const uint8_t choice = input_.byte();
    if (choice < 128) return static_cast<int8_t>(input_.byte() % 16) - 8;
    if (choice < 160) return static_cast<double>(static_cast<int64_t>(input_.word()));
    if (choice < 192) return static_cast<double>(input_.byte()) / 7;
    if (choice == 192) return std::numeric_limits<double>::infinity();
    if (choice == 193) return -std::numeric_limits<double>::infinity();
    if (choice == 194) return -0.0;
    return 0;
  }

  void set(const std::string& member, double score) {
    const auto there = scores_.find(member);
    if (there != scores_.end()) ordered_.erase({there->second, member});
    require(set_->set(member, score) == (there == scores_.end()));
    scores_[member] = score;
    ordered_.emplace(score, member);
  }

  void step() {
    constexpr size_t kMax = 2'000;
    const uint8_t choice = input_.byte() % 16;
    switch (choice) {
      case 0: {
        // Many at once, so that the tree grows several levels.
        const size_t count = input_.byte();
        const double base = score();
        const double step = static_cast<int8_t>(input_.byte()) / 4.0;
        const std::string prefix = input_.text().substr(0, 30);
        if (scores_.size() > kMax) break;
        for (size_t i = 0; i < count; ++i) {
          const double value = base + step * static_cast<double>(i);
          if (!std::isnan(value)) set(prefix + std::to_string(i), value);
        }
        break;
      }
      case 1:
      case 2:
      case 3:
      case 4: {
        const std::string member = input_.text();
        if (scores_.size() <= kMax) set(member, score());
        break;
      }
      case 5:
      case 6: {
        const std::string member = choose_member();
        const auto there = scores_.find(member);
        require(set_->erase(member) == (there != scores_.end()));
        if (there == scores_.end()) break;
        ordered_.erase({there->second, member});
        scores_.erase(there);
        break;
      }
      case 7: {
        const RankRange range = choose_range();
        set_->erase(range);
        auto from = std::next(ordered_.begin(), static_cast<std::ptrdiff_t>(range.first));
        for (size_t i = 0; i < range.count; ++i) {
          scores_.erase(from->second);
          from = ordered_.erase(from);
        }
        break;
      }
      case 8: {
        const std::string member = choose_member();
        const auto there = scores_.find(member);
        const auto rank = set_->rank(member);
        const auto found = set_->score(member);
        require(rank.has_value() == (there != scores_.end()));
        require(found.has_value() == rank.has_value());
        if (!rank) break;
        require(*found == there->second);
        const auto place = ordered_.find({there->second, member});
        require(static_cast<std::ptrdiff_t>(*rank) == std::distance(ordered_.begin(), place));
        break;
      }
      case 9:
        check_score_range();
        break;
      case 10:
        check_lex_range();
        break;
      case 11:
        check_walk(choose_range());
        break;
      case 12: {
        auto copied = set_->clone();
        set_.reset(static_cast<SortedSet*>(copied));
        break;
      }
      case 13:
        set_->compact();
        break;
      case 14:
        choose_limits();
        break;
      default:
        check();
    }
  }

  std::string choose_member() {
    if (scores_.empty() || (input_.byte() & 3) == 0) return input_.text();
    const auto near = ordered_.lower_bound({score(), {}});
    return near == ordered_.end() ? ordered_.rbegin()->second : near->second;
  }
  RankRange choose_range() {
    const size_t first = (input_.byte() << 8 | input_.byte()) % (ordered_.size() + 1);
    return {first, (input_.byte() << 4 | input_.byte()) % (ordered_.size() - first + 1)};
  }

  // Members from the first for which `is_in` holds to the last.
  template <typename IsIn>
  void check_range(RankRange range, IsIn&& is_in) const {
    size_t rank = 0;
    size_t count = 0;
    for (const auto& [score, member] : ordered_) {
      if (is_in(score, member)) {
        if (count == 0) require(range.count > 0 && range.first == rank);
        ++count;
      }
      ++rank;
    }
    require(range.count == count);
  }
  void check_score_range() {
    const store::ScoreRange range{{score(), (input_.byte() & 1) != 0},
                                  {score(), (input_.byte() & 1) != 0}};
    const store::ScoreBound& low = range.low;
    const store::ScoreBound& high = range.high;
    check_range(set_->range(range), [&](double score, const std::string&) {
      return (low.excluded ? score > low.score : score >= low.score) &&
             (high.excluded ? score < high.score : score <= high.score);
    });
  }
  // Ranges by bytes mean something among members of one score: the others are taken out first.
  void check_lex_range() {
    if (ordered_.empty() || ordered_.begin()->first != ordered_.rbegin()->first) return;
    const std::string texts[] = {input_.text(), input_.text()};
    LexBound bounds[2];
    for (int i : {0, 1}) {
      const uint8_t kind = input_.byte() % 8;
      bounds[i] = {kind == 0   ? LexBound::Kind::kLowest
                   : kind == 1 ? LexBound::Kind::kHighest
                               : LexBound::Kind::kMember,
                   texts[i], (kind & 1) != 0};
    }
    const auto above = [](const LexBound& bound, const std::string& member) {
      if (bound.kind != LexBound::Kind::kMember) return bound.kind == LexBound::Kind::kLowest;
      return bound.excluded ? member > bound.member : member >= bound.member;
    };
    const auto below = [](const LexBound& bound, const std::string& member) {
      if (bound.kind != LexBound::Kind::kMember) return bound.kind == LexBound::Kind::kHighest;
      return bound.excluded ? member < bound.member : member <= bound.member;
    };
    check_range(set_->range(store::LexRange{bounds[0], bounds[1]}),
                [&](double, const std::string& member) {
                  return above(bounds[0], member) && below(bounds[1], member);
                });
  }

  void check_walk(RankRange range) const {
    auto expected = std::next(ordered_.begin(), static_cast<std::ptrdiff_t>(range.first));
    set_->for_each(range, false, [&](std::string_view member, double score) {
      require(member == expected->second && score == expected->first);
      ++expected;
    });
    set_->for_each(range, true, [&](std::string_view member, double score) {
      --expected;
      require(member == expected->second && score == expected->first);
    });
    require(std::distance(ordered_.begin(), expected) == static_cast<std::ptrdiff_t>(range.first));
  }
  void check() const {
    check_walk({0, ordered_.size()});
    std::map<std::string, double> seen;
    uint64_t cursor = 0;
    do {
      cursor = set_->scan(cursor, [&](std::string_view member, double score) {
        seen.insert_or_assign(std::string(member), score);
      });
    } while (cursor != 0);
    require(seen == scores_);
  }

  Input input_;
  store::Environment environment_;
  std::unique_ptr<SortedSet> set_;
  std::map<std::string, double> scores_;
  Ordered ordered_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongestInput = 4'096;
  if (size > kLongestInput) return 0;
  Session(Input(data, size)).run();
  return 0;
}
