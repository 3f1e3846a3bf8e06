// Leaves out operands that a request names again, where that changes nothing in its result: one may
// be named thousands of times, and each time would cost a look at every member.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <unordered_set>
#include <vector>

namespace latchkey::commands {

// Keeps the first operand of each identity(operand), a pointer, in their order. The first `kept`
// operands stay and are not compared. Does nothing to a few operands, which are not worth it.
// O(operands).
template <typename Operand, typename Identity = std::identity>
void drop_repeated(std::vector<Operand>& operands, size_t kept = 0, Identity identity = {}) {
  constexpr size_t kFew = 8;
  if (operands.size() <= kept + kFew) return;
  std::unordered_set<const void*> seen;
  const auto is_repeated = [&](const Operand& operand) {
    return !seen.insert(std::invoke(identity, operand)).second;
  };
  const auto first = operands.begin() + static_cast<ptrdiff_t>(kept);
  operands.erase(std::remove_if(first, operands.end(), is_repeated), operands.end());
}

}  // namespace latchkey::commands
