#include "store/deadline_wheel.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "base/random.h"
#include "unit/catch.h"

namespace latchkey::store {

namespace {

constexpr int64_t kNow = 1'700'000'000'000;
constexpr int64_t kTickMs = 16;
constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

// The deadlines that first_due() tells, in their order.
std::vector<int64_t> first_due(DeadlineWheel& wheel, int64_t now_ms, int64_t until_ms) {
  std::vector<int64_t> told;
  const bool any = wheel.first_due(now_ms, until_ms, [&](DeadlineNode& node) {
    told.push_back(node.deadline_ms);
    return true;
  });
  CHECK(any == !told.empty());
  std::sort(told.begin(), told.end());
  return told;
}

// A wheel and its model: nodes by deadline.
class WheelAndModel {
 public:
  explicit WheelAndModel(uint64_t seed) : random_(seed), wheel_(kNow), now_ms_(kNow) {}

  void insert() {
    auto node = std::make_unique<DeadlineNode>();
    node->deadline_ms = any_deadline();
    wheel_.insert(*node);
    model_.emplace(node->deadline_ms, std::move(node));
  }
  void erase() {
    const auto it = any();
    wheel_.erase(*it->second);
    model_.erase(it);
  }
  void update() {
    auto entry = model_.extract(any());
    const int64_t deadline_ms = any_deadline();
    wheel_.update(*entry.mapped(), deadline_ms);
    entry.key() = deadline_ms;
    model_.insert(std::move(entry));
  }
  void relocate() {
    const auto it = any();
    auto moved = std::make_unique<DeadlineNode>(*it->second);
    wheel_.relocate(*moved);
    it->second = std::move(moved);
  }
  void advance(int64_t by_ms, size_t budget) {
    now_ms_ += by_ms;
    size_t reported = 0;
    const bool done = wheel_.advance(now_ms_, budget, [&](DeadlineNode& node) {
      REQUIRE(node.deadline_ms <= now_ms_);
      ++reported;
      wheel_.erase(node);
      forget(node);
    });
    REQUIRE(reported <= budget);
    if (!done) return;
    const int64_t oldest = model_.empty() ? now_ms_ : model_.begin()->first;
    REQUIRE(oldest > now_ms_ - 2 * kTickMs);
  }
  // What first_due() tells is the first deadlines of the model, up to the end of their tick.
  void look(int64_t until_ms) {
    const std::vector<int64_t> told = first_due(wheel_, now_ms_, until_ms);
    const bool any = !told.empty();
    REQUIRE(any == (!model_.empty() && model_.begin()->first <= until_ms));
    if (!any) return;
    REQUIRE(told.front() == model_.begin()->first);
    auto it = model_.begin();
    for (const int64_t deadline_ms : told) REQUIRE(deadline_ms == (it++)->first);
    // Whoever is left out is in a later tick.
    if (it != model_.end() && it->first <= until_ms)
      REQUIRE(it->first / kTickMs > told.front() / kTickMs);
  }
  void set_clock_back(int64_t by_ms) { now_ms_ -= by_ms; }
  int64_t now_ms() const { return now_ms_; }
  void check_figures() {
    REQUIRE(wheel_.size() == model_.size());
    __extension__ __int128 sum = 0;
    for (const auto& [deadline_ms, node] : model_) sum += deadline_ms;
    const int64_t mean =
        model_.empty() ? 0 : static_cast<int64_t>(sum / static_cast<int64_t>(model_.size()));
    REQUIRE(wheel_.mean_deadline_ms() == mean);
  }
  // Mostly small steps; now and then hours, months, decades.
  int64_t any_step() {
    const unsigned digits = static_cast<unsigned>(random_.below(random_.below(20) == 0 ? 41 : 12));
    return static_cast<int64_t>(random_.next() & ((uint64_t{1} << digits) - 1));
  }
  bool empty() const { return model_.empty(); }
  base::Random& random() { return random_; }

 private:
  using Model = std::multimap<int64_t, std::unique_ptr<DeadlineNode>>;

  int64_t any_deadline() {
    if (random_.below(10) == 0) return std::max<int64_t>(now_ms_ - any_step(), 0);
    if (random_.below(200) == 0) return std::numeric_limits<int64_t>::max() - any_step();
    return now_ms_ +
           static_cast<int64_t>(random_.next() & ((uint64_t{1} << random_.below(42)) - 1));
  }
  Model::iterator any() {
    auto it = model_.lower_bound(now_ms_ + any_step());
    return it == model_.end() ? model_.begin() : it;
  }
  void forget(const DeadlineNode& node) {
    auto [it, end] = model_.equal_range(node.deadline_ms);
    while (it != end && it->second.get() != &node) ++it;
    REQUIRE(it != end);
    model_.erase(it);
  }

  base::Random random_;
  Model model_;
  DeadlineWheel wheel_;
  int64_t now_ms_;
};

// Advances and tells whether exactly `node` was reported.
bool reports(DeadlineWheel& wheel, int64_t now_ms, DeadlineNode& node) {
  size_t reported = 0;
  CHECK(wheel.advance(now_ms, kUnlimited, [&](DeadlineNode& due) {
    CHECK(&due == &node);
    ++reported;
    wheel.erase(due);
  }));
  return reported == 1;
}

}  // namespace

TEST_CASE("The deadlines that are due first are told in the order of their ticks",
          "[deadline_wheel]") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    WheelAndModel both(seed);
    for (int step = 0; step < 2000; ++step) {
      const uint64_t what = both.random().below(10);
      if (both.random().below(50) == 0) both.set_clock_back(both.any_step());
      if (what < 5 || both.empty()) {
        both.insert();
      } else if (what < 6) {
        both.erase();
      } else if (what < 7) {
        both.update();
      } else {
        // The clock is to be set to the first deadline, which is then reported: one tick late.
        const int64_t until_ms = both.now_ms() + both.any_step();
        both.look(until_ms);
        both.advance(until_ms - both.now_ms() + kTickMs, kUnlimited);
      }
      both.check_figures();
    }
  }
}

TEST_CASE("A deadline is reported within two ticks, and never early", "[deadline_wheel]") {
  for (const int64_t after_ms :
       {0LL, 1LL, 15LL, 16LL, 17LL, 1'000LL, 1'023LL, 1'024LL, 65'536LL, 3'600'000LL, 86'400'000LL,
        31'536'000'000LL, 3'153'600'000'000LL}) {
    DeadlineWheel wheel(kNow);
    DeadlineNode node;
    node.deadline_ms = kNow + after_ms;
    wheel.insert(node);
    CHECK_FALSE(reports(wheel, node.deadline_ms - 1, node));
    CHECK(reports(wheel, node.deadline_ms + 2 * kTickMs, node));
    CHECK(wheel.size() == 0);
  }
}

TEST_CASE("A deadline that has passed already is due at the next advance", "[deadline_wheel]") {
  DeadlineWheel wheel(kNow);
  DeadlineNode node;
  for (const int64_t deadline_ms : {int64_t{0}, int64_t{1}, kNow - 1'000'000, kNow - kTickMs}) {
    node.deadline_ms = deadline_ms;
    wheel.insert(node);
    CHECK(reports(wheel, kNow, node));
  }
}

TEST_CASE("Many small steps report as one large one does", "[deadline_wheel]") {
  DeadlineWheel wheel(kNow);
  DeadlineNode node;
  node.deadline_ms = kNow + 500'000;
  wheel.insert(node);
  int64_t now_ms = kNow;
  while (now_ms < node.deadline_ms) {
    REQUIRE_FALSE(reports(wheel, now_ms, node));
    now_ms += 7;
  }
  CHECK(reports(wheel, now_ms + 2 * kTickMs, node));
}

TEST_CASE("A postponed deadline is reported at its new time, a nearer one at once",
          "[deadline_wheel]") {
  DeadlineWheel wheel(kNow);
  DeadlineNode node;
  node.deadline_ms = kNow + 1'000;
  wheel.insert(node);
  wheel.update(node, kNow + 100'000);
  CHECK_FALSE(reports(wheel, kNow + 99'999, node));
  wheel.update(node, kNow + 50'000);
  CHECK(reports(wheel, kNow + 100'000, node));
}

TEST_CASE("The last deadlines that an int64 holds wait until then", "[deadline_wheel]") {
  constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
  DeadlineWheel wheel(kNow);
  DeadlineNode last;
  last.deadline_ms = kLast;
  DeadlineNode earlier;
  earlier.deadline_ms = kLast - 1'000'000;
  wheel.insert(last);
  wheel.insert(earlier);
  // The year 4199 is where seven levels of 64 slots would end.
  for (const int64_t now_ms : {int64_t{1} << 46, (int64_t{1} << 46) + 1'000, int64_t{1} << 60}) {
    CHECK(wheel.advance(now_ms, 1'000, [](DeadlineNode&) { FAIL("early"); }));
  }
  CHECK(reports(wheel, kLast - 500'000, earlier));
  CHECK_FALSE(reports(wheel, kLast - 1, last));
}

TEST_CASE("The budget bounds a step, and what is left comes with the next", "[deadline_wheel]") {
  DeadlineWheel wheel(kNow);
  std::vector<DeadlineNode> nodes(1'000);
  for (DeadlineNode& node : nodes) {
    node.deadline_ms = kNow + 5'000;
    wheel.insert(node);
  }
  size_t reported = 0;
  const auto count = [&](DeadlineNode& node) {
    ++reported;
    wheel.erase(node);
  };
  CHECK_FALSE(wheel.advance(kNow + 6'000, 0, count));
  size_t calls = 0;
  bool done = false;
  while (!done) {
    const size_t before = reported;
    done = wheel.advance(kNow + 6'000, 100, count);
    CHECK(reported - before <= 100);
    ++calls;
  }
  CHECK(reported == 1'000);
  CHECK(calls <= 40);
}

TEST_CASE("When the clock is set back, deadlines still come at their time", "[deadline_wheel]") {
  DeadlineWheel wheel(kNow);
  CHECK(wheel.advance(kNow + 1, kUnlimited, [](DeadlineNode&) {}));
  DeadlineNode before;
  before.deadline_ms = kNow + 7'200'000;
  wheel.insert(before);
  constexpr int64_t kEarlier = kNow - 3'600'000;
  CHECK(wheel.advance(kEarlier, kUnlimited, [](DeadlineNode&) { FAIL("early"); }));
  DeadlineNode after;
  after.deadline_ms = kEarlier + 10'000;
  wheel.insert(after);
  CHECK_FALSE(reports(wheel, kEarlier + 9'999, after));
  CHECK(reports(wheel, kEarlier + 10'000 + 2 * kTickMs, after));
  CHECK_FALSE(reports(wheel, before.deadline_ms - 1, before));
  CHECK(reports(wheel, before.deadline_ms + 2 * kTickMs, before));
}

TEST_CASE("Going back through time with many nodes and a small budget loses none",
          "[deadline_wheel]") {
  DeadlineWheel wheel(kNow);
  base::Random random(5);
  std::vector<DeadlineNode> nodes(2'000);
  for (DeadlineNode& node : nodes) {
    node.deadline_ms = kNow + static_cast<int64_t>(random.below(10'000'000));
    wheel.insert(node);
  }
  size_t reported = 0;
  int64_t now_ms = kNow;
  const auto count = [&](DeadlineNode& node) {
    REQUIRE(node.deadline_ms <= now_ms);
    ++reported;
    wheel.erase(node);
  };
  for (int step = 0; step < 2'000; ++step) {
    now_ms += random.below(10) == 0 ? -static_cast<int64_t>(random.below(50'000))
                                    : static_cast<int64_t>(random.below(10'000));
    wheel.advance(now_ms, 50, count);
  }
  now_ms = kNow + 20'000'000;
  CHECK(wheel.advance(now_ms, kUnlimited, count));
  CHECK(reported == nodes.size());
}

TEST_CASE("The wheel reports what a sorted map would, whatever is done to it", "[deadline_wheel]") {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    WheelAndModel both(seed);
    for (int step = 0; step < 6'000; ++step) {
      const uint64_t choice = both.random().below(10);
      if (choice < 4 || both.empty()) {
        both.insert();
      } else if (choice == 4) {
        both.erase();
      } else if (choice < 7) {
        both.update();
      } else if (choice == 7) {
        both.relocate();
      } else {
        both.advance(both.any_step(),
                     both.random().below(4) == 0 ? both.random().below(50) : kUnlimited);
      }
      if (step % 50 == 0) both.check_figures();
    }
    both.check_figures();
  }
}

TEST_CASE("What is due first is told tick by tick when the clock was set back",
          "[deadline_wheel]") {
  DeadlineWheel wheel(kNow);
  DeadlineNode far;
  far.deadline_ms = kNow + 7'200'000;
  wheel.insert(far);
  // Nothing is due within an hour, so the wheel goes there.
  CHECK(first_due(wheel, kNow, kNow + 3'600'000).empty());
  CHECK(wheel.advance(kNow + 3'600'000, kUnlimited, [](DeadlineNode&) { FAIL("early"); }));
  const int64_t now_ms = kNow + 3'600'000 - GENERATE(6'000, 3'600'000);
  std::vector<DeadlineNode> nodes(4);
  for (size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].deadline_ms = now_ms + 100 + 1000 * static_cast<int64_t>(i);
    wheel.insert(nodes[i]);
  }
  for (DeadlineNode& node : nodes) {
    CHECK(first_due(wheel, now_ms, now_ms + 10'000) == std::vector<int64_t>{node.deadline_ms});
    wheel.erase(node);
  }
  CHECK(first_due(wheel, now_ms, now_ms + 10'000).empty());
  CHECK(first_due(wheel, now_ms, far.deadline_ms) == std::vector<int64_t>{far.deadline_ms});
}

TEST_CASE("A node that is deferred while the first are told is told when it comes up again",
          "[deadline_wheel]") {
  DeadlineWheel wheel(kNow);
  DeadlineNode deferred;
  DeadlineNode due;
  deferred.deadline_ms = kNow + 100;
  due.deadline_ms = kNow + 5000;
  wheel.insert(deferred);
  wheel.insert(due);
  const auto defer_one = [&](DeadlineNode& node) {
    if (&node == &deferred) wheel.defer(node, kNow + 20'000);
    return &node != &deferred;
  };
  CHECK_FALSE(wheel.first_due(kNow, kNow + 1000, defer_one));
  CHECK(first_due(wheel, kNow, kNow + 10'000) == std::vector<int64_t>{kNow + 5000});
  wheel.erase(due);
  CHECK(first_due(wheel, kNow, kNow + 19'000).empty());
  CHECK(first_due(wheel, kNow, kNow + 21'000) == std::vector<int64_t>{kNow + 100});
}

}  // namespace latchkey::store
