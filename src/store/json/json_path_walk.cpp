#include "store/json/json_path_walk.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

namespace latchkey::store::json {

namespace {

using Operator = Condition::Operator;

bool visit_paths(const Path& path, const Node& start, const Node& root, WalkBudget& budget,
                 const Found& found);

// --- Conditions ----------------------------------------------------------------------------------

// What a term is for one element: a literal, or all that a path leads to.
class TermValues {
 public:
  TermValues(const Term& term, const Node& element, const Node& root, WalkBudget& budget) {
    if (term.kind == Term::Kind::kLiteral) {
      nodes_.push_back(&term.literal);
      return;
    }
    const Node& start = term.kind == Term::Kind::kRootPath ? root : element;
    visit_paths(term.path, start, root, budget, [&](const Node& node, Trail) {
      nodes_.push_back(&node);
      return true;
    });
  }
  auto begin() const { return nodes_.begin(); }
  auto end() const { return nodes_.end(); }

 private:
  std::vector<const Node*> nodes_;
};

enum class Order : uint8_t { kLess, kEqual, kGreater, kNone };

Order order_of(std::string_view a, std::string_view b) {
  const int order = a.compare(b);
  return order < 0 ? Order::kLess : order > 0 ? Order::kGreater : Order::kEqual;
}

template <typename T>
Order order_of(const T& a, const T& b) {
  if (a < b) return Order::kLess;
  if (b < a) return Order::kGreater;
  return a == b ? Order::kEqual : Order::kNone;
}

// kNone as well when the budget is spent.
Order compare(const Node& a, const Node& b, WalkBudget& budget) {
  if (a.is_numeric() && b.is_numeric()) {
    if (a.is_integer() && b.is_integer() && !a.is_huge() && !b.is_huge())
      return order_of(a.as_int64(), b.as_int64());
    return order_of(a.as_double(), b.as_double());
  }
  if (a.is_string() && b.is_string()) {
    const size_t most = std::min(a.text().size(), b.text().size());
    return budget.take(cost_of_bytes(most)) ? order_of(a.text(), b.text()) : Order::kNone;
  }
  if (a.is_boolean() && b.is_boolean()) return order_of(a.truth(), b.truth());
  // It is known only afterwards what this costs: at most what it costs to read the document once.
  size_t cost = 0;
  const bool is_equal = a.equals(b, &cost);
  return budget.take(cost) && is_equal ? Order::kEqual : Order::kNone;
}

class Evaluator {
 public:
  Evaluator(const Node& element, const Node& root, WalkBudget& budget)
      : element_(element), root_(root), budget_(budget) {}

  bool is_true(const Condition& condition) const {
    switch (condition.what) {
      case Operator::kAnd:
      case Operator::kOr:
        return joined(condition);
      case Operator::kExists:
        return leads_anywhere(condition.left);
      case Operator::kMatches:
        return matches(condition);
      default:
        return holds(condition);
    }
  }

 private:
  // Of kAnd and kOr. Each operand is counted, for one of literals visits nothing.
  bool joined(const Condition& condition) const {
    const bool decides = condition.what == Condition::Operator::kOr;
    for (const Condition& operand : condition.operands) {
      if (!budget_.take()) return false;
      if (is_true(operand) == decides) return decides;
    }
    return !decides;
  }

  TermValues values(const Term& term) const { return {term, element_, root_, budget_}; }

  bool leads_anywhere(const Term& term) const {
    if (term.kind == Term::Kind::kLiteral) return true;
    const Node& start = term.kind == Term::Kind::kRootPath ? root_ : element_;
    bool found = false;
    visit_paths(term.path, start, root_, budget_, [&](const Node&, Trail) {
      found = true;
      return false;
    });
    return found;
  }

  // Whether it holds for any value of one side with any of the other; kUnequal when no two are
  // equal.
  bool holds(const Condition& condition) const {
    const bool is_negated = condition.what == Operator::kUnequal;
    const TermValues right = values(condition.right);
    for (const Node* a : values(condition.left)) {
      for (const Node* b : right) {
        if (!budget_.take()) return false;
        if (holds(condition.what, compare(*a, *b, budget_))) return !is_negated;
      }
    }
    return is_negated;
  }

  static bool holds(Operator what, Order order) {
    switch (what) {
      case Operator::kLess:
        return order == Order::kLess;
      case Operator::kLessOrEqual:
        return order == Order::kLess || order == Order::kEqual;
      case Operator::kGreater:
        return order == Order::kGreater;
      case Operator::kGreaterOrEqual:
        return order == Order::kGreater || order == Order::kEqual;
      default:
        return order == Order::kEqual;
    }
  }

  // Literals on the left match nothing.
  bool matches(const Condition& condition) const {
    if (condition.left.kind == Term::Kind::kLiteral) return false;
    const TermValues left = values(condition.left);
    if (condition.right.kind == Term::Kind::kLiteral)
      return condition.right.pattern != nullptr && matches(left, *condition.right.pattern);
    for (const Node* text : values(condition.right)) {
      if (!budget_.take()) return false;
      if (!text->is_string()) continue;
      const auto regex = compiled(text->text());
      if (regex != nullptr && matches(left, *regex)) return true;
    }
    return false;
  }

  bool matches(const TermValues& texts, Pattern& pattern) const {
    if (!pattern.is_compiled) pattern.regex = compiled(pattern.text);
    pattern.is_compiled = true;
    return pattern.regex != nullptr && matches(texts, *pattern.regex);
  }

  // Null when it is malformed or the budget is spent. What it costs has been measured: about half a
  // microsecond for an instruction, and for a byte little, or up to 50 where there are classes of
  // Unicode, or repetitions that become too large.
  std::unique_ptr<base::Regex> compiled(std::string_view pattern) const {
    constexpr size_t kLeastVisits = 2048;
    constexpr size_t kVisitsForByte = 100;
    constexpr size_t kVisitsForMalformedByte = 400;
    constexpr size_t kVisitsForInstruction = 32;
    if (pattern.size() > base::Regex::kLongest) return nullptr;
    if (!budget_.take_for_regex(std::max(kLeastVisits, kVisitsForByte * pattern.size())))
      return nullptr;
    auto regex = std::make_unique<base::Regex>();
    if (!regex->compile(pattern, /*ignore_case=*/false)) {
      budget_.take_for_regex(kVisitsForMalformedByte * pattern.size());
      return nullptr;
    }
    const bool is_in_budget = budget_.take_for_regex(kVisitsForInstruction * regex->size());
    return is_in_budget ? std::move(regex) : nullptr;
  }

  bool matches(const TermValues& texts, const base::Regex& regex) const {
    return std::ranges::any_of(texts, [&](const Node* node) {
      return budget_.take() && node->is_string() && search(regex, node->text());
    });
  }

  bool search(const base::Regex& regex, std::string_view text) const {
    if (!budget_.take(cost_of_bytes(text.size()))) return false;
    budget_.regex().add_text(text.size());
    const base::Regex::Outcome outcome = regex.search(text, budget_.regex());
    if (outcome == base::Regex::Outcome::kTooSlow) budget_.spend();
    return outcome == base::Regex::Outcome::kFound;
  }

  const Node& element_;
  const Node& root_;
  WalkBudget& budget_;
};

// --- Steps ---------------------------------------------------------------------------------------

class Walker {
 public:
  Walker(const Path& path, const Node& root, WalkBudget& budget, const Found& found)
      : path_(path), root_(root), budget_(budget), found_(found) {}

  // False when the walk has ended early.
  bool walk(const Node& node, size_t step) {
    if (!budget_.take()) return false;
    if (step == path_.steps.size()) return found_(node, trail_);
    return path_.steps[step].descends ? descend(node, step) : apply(node, step);
  }

 private:
  // A level further down, while it exists.
  class Level {
   public:
    Level(Walker& walker, size_t position) : walker_(walker) {
      walker_.trail_.push_back(static_cast<uint32_t>(position));
      walker_.budget_.enter();
    }
    ~Level() {
      walker_.trail_.pop_back();
      walker_.budget_.leave();
    }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Walker& walker_;
  };

  bool child(const Node& node, size_t position, size_t step) {
    const Level level(*this, position);
    return walk(node.child(position), step);
  }

  bool descend(const Node& node, size_t step) {
    if (!budget_.take()) return false;
    if (!node.is_container()) return true;
    if (!apply(node, step)) return false;
    for (size_t i = 0; i < node.size(); ++i) {
      const Node& below = node.child(i);
      // Most are scalars, which are no further level.
      if (!below.is_container()) {
        if (!budget_.take()) return false;
        continue;
      }
      const Level level(*this, i);
      if (!descend(below, step)) return false;
    }
    return true;
  }

  bool apply(const Node& node, size_t at) {
    const Step& step = path_.steps[at];
    switch (step.kind) {
      case Step::Kind::kNames:
        return !node.is_object() || names(node, step, at + 1);
      case Step::Kind::kPositions:
        return !node.is_array() || positions(node, step, at + 1);
      case Step::Kind::kSlice:
        return !node.is_array() || slice(node, step.slice, at + 1);
      case Step::Kind::kAll:
        if (!node.is_container()) return true;
        for (size_t i = 0; i < node.size(); ++i) {
          if (!child(node, i, at + 1)) return false;
        }
        return true;
      case Step::Kind::kCondition:
        return condition(node, *step.condition, at + 1);
    }
    return true;
  }

  bool names(const Node& node, const Step& step, size_t next) {
    for (const std::string& name : step.names) {
      // Looked for in each object, and found in none, a name would cost nothing otherwise.
      if (!budget_.take(1 + cost_of_bytes(name.size()))) return false;
      const size_t position = node.find(name);
      if (position != Node::npos && !child(node, position, next)) return false;
    }
    return true;
  }

  bool positions(const Node& node, const Step& step, size_t next) {
    const auto size = static_cast<int64_t>(node.size());
    for (const int64_t given : step.positions) {
      if (!budget_.take()) return false;
      const int64_t position = given < 0 ? std::max<int64_t>(given + size, 0) : given;
      if (position >= size) continue;
      if (!child(node, static_cast<size_t>(position), next)) return false;
    }
    return true;
  }

  bool slice(const Node& node, const Slice& slice, size_t next) {
    const auto size = static_cast<int64_t>(node.size());
    const auto bound = [&](int64_t given) {
      return std::clamp<int64_t>(given < 0 ? given + size : given, 0, size);
    };
    const int64_t last = bound(slice.last.value_or(size));
    for (int64_t i = bound(slice.first.value_or(0)); i < last;) {
      if (!child(node, static_cast<size_t>(i), next)) return false;
      if (slice.step >= last - i) break;
      i += slice.step;
    }
    return true;
  }

  bool condition(const Node& node, const Condition& condition, size_t next) {
    if (!node.is_container()) return true;
    for (size_t i = 0; i < node.size(); ++i) {
      if (!budget_.take()) return false;
      const bool is_true = Evaluator(node.child(i), root_, budget_).is_true(condition);
      if (budget_.is_spent()) return false;
      if (is_true && !child(node, i, next)) return false;
    }
    return true;
  }

  const Path& path_;
  const Node& root_;
  WalkBudget& budget_;
  const Found& found_;
  std::vector<uint32_t> trail_;
};

bool visit_paths(const Path& path, const Node& start, const Node& root, WalkBudget& budget,
                 const Found& found) {
  Walker(path, root, budget, found).walk(start, 0);
  return !budget.is_spent();
}

}  // namespace

bool WalkBudget::extend() {
  constexpr size_t kVisitsForNode = 4;
  if (is_extended_) {
    left_ = 0;
    return false;
  }
  left_ += kVisitsForNode * root_->read_cost();
  is_extended_ = true;
  return true;
}

bool walk(const Path& path, const Node& root, WalkBudget& budget, const Found& found) {
  return visit_paths(path, root, root, budget, found);
}

Node* node_at(Node& root, Trail trail) {
  Node* node = &root;
  for (const uint32_t position : trail) {
    if (!node->is_container() || position >= node->size()) return nullptr;
    node = &node->child(position);
  }
  return node;
}

}  // namespace latchkey::store::json
