// TakeTurns: round robin. Visits the same elements again and again, beginning with another one each
// time.
#pragma once

#include <cstddef>
#include <span>

namespace latchkey::base {

class TakeTurns {
 public:
  // Calls visit(element) for each element, in their order as on a ring, beginning one further than
  // the last time. Cost: that of a plain loop.
  template <typename T, typename Visit>
  void each(std::span<T> elements, Visit&& visit) {
    if (elements.empty()) return;
    const size_t first = turn_++ % elements.size();
    for (T& element : elements.subspan(first)) visit(element);
    for (T& element : elements.first(first)) visit(element);
  }

 private:
  size_t turn_ = 0;
};

}  // namespace latchkey::base
