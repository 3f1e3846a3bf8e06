// Finds operands that a request names again: one may be named thousands of times, and each time
// would cost a look at every member. Nothing is done about a few operands, which are not worth it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace latchkey::commands {

constexpr size_t kFewOperands = 8;

// Keeps the first operand of each identity(operand), a pointer, in their order, where the others
// change nothing in the result. The first `kept` operands stay and are not compared. O(operands).
template <typename Operand, typename Identity = std::identity>
void drop_repeated(std::vector<Operand>& operands, size_t kept = 0, Identity identity = {}) {
  if (operands.size() <= kept + kFewOperands) return;
  std::unordered_set<const void*> seen;
  const auto is_repeated = [&](const Operand& operand) {
    return !seen.insert(std::invoke(identity, operand)).second;
  };
  const auto first = operands.begin() + static_cast<ptrdiff_t>(kept);
  operands.erase(std::remove_if(first, operands.end(), is_repeated), operands.end());
}

// For each operand the index of the first one of its identity(operand), a pointer: its own unless
// it is repeated. O(operands).
template <typename Operand, typename Identity = std::identity>
std::vector<size_t> first_mentions(const std::vector<Operand>& operands, Identity identity = {}) {
  std::vector<size_t> firsts(operands.size());
  std::iota(firsts.begin(), firsts.end(), size_t{0});
  if (operands.size() <= kFewOperands) return firsts;
  std::unordered_map<const void*, size_t> seen;
  for (size_t i = 0; i < operands.size(); ++i)
    firsts[i] = seen.try_emplace(std::invoke(identity, operands[i]), i).first->second;
  return firsts;
}

}  // namespace latchkey::commands
