#include "store/encoding/ranked_tree.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "unit/catch.h"

namespace latchkey::store {

namespace {

struct Before {
  bool operator()(const ScoredMember* left, const ScoredMember* right) const {
    return left->is_before(*right);
  }
};
using Model = std::set<ScoredMember*, Before>;

void check_equal(const RankedTree& tree, const Model& model) {
  REQUIRE(tree.size() == model.size());
  RankedTree::Position position = tree.at(0);
  size_t rank = 0;
  for (ScoredMember* member : model) {
    REQUIRE(position);
    REQUIRE(*position == member);
    REQUIRE(tree.rank(member) == rank);
    REQUIRE(*tree.at(rank) == member);
    ++rank;
    position.forward();
  }
  CHECK(!position);
  CHECK(!tree.at(model.size()));
  if (model.empty()) return;
  position = tree.at(model.size() - 1);
  for (auto member = model.rbegin(); member != model.rend(); ++member, position.backward())
    REQUIRE(*position == *member);
  CHECK(!position);
}

void release(Model& model) {
  for (ScoredMember* member : model) ScoredMember::destroy(member);
}

}  // namespace

TEST_CASE("Ranges of every size leave a ranked tree at once", "[ranked_tree]") {
  base::Random random(GENERATE(1u, 2u, 3u));
  RankedTree tree;
  Model model;
  for (int i = 0; i < 20'000; ++i) {
    ScoredMember* member =
        ScoredMember::make(std::to_string(i), static_cast<double>(random.below(1000)));
    model.insert(member);
    tree.insert(member);
  }
  while (!model.empty()) {
    const size_t rank = random.below(model.size());
    const size_t count =
        std::min(random.below(random.below(2) == 0 ? 200 : 5000) + 1, model.size() - rank);
    auto expected = std::next(model.begin(), static_cast<std::ptrdiff_t>(rank));
    tree.erase_range(rank, count, [&](ScoredMember* member) {
      REQUIRE(member == *expected);
      expected = model.erase(expected);
      ScoredMember::destroy(member);
    });
    check_equal(tree, model);
  }
  CHECK(tree.memory_usage() == 0);
}

TEST_CASE("A ranked tree keeps what a sorted model keeps, through growth and decline",
          "[ranked_tree]") {
  base::Random random(GENERATE(1u, 2u, 3u));
  const auto scores = GENERATE(uint64_t{1}, uint64_t{40}, uint64_t{1'000'000});
  RankedTree tree;
  Model model;
  for (const int growing : {90, 50, 10}) {
    for (int step = 0; step < 6000; ++step) {
      const auto score = static_cast<double>(random.below(scores));
      if (static_cast<int>(random.below(100)) < growing || model.empty()) {
        ScoredMember* member = ScoredMember::make(std::to_string(random.below(100'000)), score);
        if (model.insert(member).second) {
          tree.insert(member);
        } else {
          ScoredMember::destroy(member);
        }
        continue;
      }
      ScoredMember* member = *tree.at(random.below(tree.size()));
      model.erase(member);
      ScoredMember* moved = ScoredMember::make(member->member(), score);
      if (random.below(2) == 0 && !model.contains(moved)) {
        tree.move(member, score);
        model.insert(member);
      } else {
        tree.erase(member);
        ScoredMember::destroy(member);
      }
      ScoredMember::destroy(moved);
    }
    check_equal(tree, model);
  }
  release(model);
}

TEST_CASE("Scores of every magnitude and both signs keep their order while they change",
          "[ranked_tree]") {
  base::Random random(GENERATE(1u, 2u, 3u));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto any_score = [&]() -> double {
    const double sign = random.below(2) == 0 ? 1 : -1;
    switch (random.below(5)) {
      case 0:
        return sign * 0.0;
      case 1:
        return sign * kInfinity;
      case 2:
        return sign * static_cast<double>(random.below(100));
      default:
        return sign * std::ldexp(1, static_cast<int>(random.below(2000)) - 1060);
    }
  };
  RankedTree tree;
  Model model;
  std::vector<ScoredMember*> members;
  for (int i = 0; i < 5000; ++i) {
    members.push_back(ScoredMember::make(std::to_string(i), any_score()));
    tree.insert(members.back());
    model.insert(members.back());
  }
  check_equal(tree, model);
  for (int i = 0; i < 20'000; ++i) {
    ScoredMember* member = members[random.below(members.size())];
    model.erase(member);
    tree.move(member, any_score());
    model.insert(member);
  }
  check_equal(tree, model);
  release(model);
}

TEST_CASE("Scores that drift away from those a leaf was made for are found", "[ranked_tree]") {
  RankedTree tree;
  Model model;
  std::vector<ScoredMember*> members;
  for (int i = 0; i < 50; ++i) {
    members.push_back(ScoredMember::make(std::to_string(i), i));
    tree.insert(members.back());
    model.insert(members.back());
  }
  for (int i = 0; i < 5000; ++i) {
    ScoredMember* member = members[static_cast<size_t>(i) % members.size()];
    model.erase(member);
    tree.move(member, member->score + i * 1e6);
    model.insert(member);
    REQUIRE(*tree.at(tree.size() - 1) == *model.rbegin());
  }
  check_equal(tree, model);
  release(model);
}

TEST_CASE("Members that come in order, either way, fill their leaves", "[ranked_tree]") {
  const bool ascending = GENERATE(true, false);
  RankedTree tree;
  Model model;
  for (int i = 0; i < 20'000; ++i) {
    ScoredMember* member = ScoredMember::make("member", ascending ? i : -i);
    tree.insert(member);
    model.insert(member);
  }
  check_equal(tree, model);
  CHECK(tree.memory_usage() < 20'000 * 10);
  while (!model.empty()) {
    ScoredMember* member = *tree.at(tree.size() / 2);
    tree.erase(member);
    model.erase(member);
    ScoredMember::destroy(member);
  }
  CHECK(tree.memory_usage() == 0);
  check_equal(tree, model);
}

TEST_CASE("A ranked tree counts the members up to a bound", "[ranked_tree]") {
  RankedTree tree;
  Model model;
  CHECK(tree.count_first([](double, std::string_view) { return true; }) == 0);
  for (int i = 0; i < 3000; ++i) {
    ScoredMember* member = ScoredMember::make(std::to_string(1000 + i % 10), i / 10);
    tree.insert(member);
    model.insert(member);
  }
  for (int bound = 0; bound <= 300; ++bound) {
    const auto lower = [&](double score, std::string_view) { return score < bound; };
    REQUIRE(tree.count_first(lower) == static_cast<size_t>(bound) * 10);
  }
  const auto member_lower = [](double score, std::string_view member) {
    return score < 7 || (score == 7 && member < "1005");
  };
  CHECK(tree.count_first(member_lower) == 75);
  release(model);
}

TEST_CASE("Members of every length keep their bytes", "[ranked_tree]") {
  for (const size_t length : {0, 1, 23, 254, 255, 256, 100'000}) {
    const std::string text(length, 'x');
    ScoredMember* member = ScoredMember::make(text, -1.5);
    CHECK(member->member() == text);
    CHECK(member->score == -1.5);
    CHECK(member->memory_usage() == length + (length < 255 ? 9 : 17));
    ScoredMember::destroy(member);
  }
}

}  // namespace latchkey::store
