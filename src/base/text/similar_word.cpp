#include "base/text/similar_word.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text/text.h"

namespace latchkey::base {

size_t edit_distance(std::string_view left, std::string_view right, size_t limit) {
  const size_t difference =
      left.size() > right.size() ? left.size() - right.size() : right.size() - left.size();
  if (difference > limit) return limit + 1;
  // Rows of the table of distances between beginnings of both words: the one before the last, the
  // last, and the current one.
  std::vector<size_t> earlier(right.size() + 1);
  std::vector<size_t> last(right.size() + 1);
  std::vector<size_t> row(right.size() + 1);
  for (size_t j = 0; j <= right.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= left.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= right.size(); ++j) {
      const char a = lower_case(left[i - 1]);
      const char b = lower_case(right[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a == b ? 0 : 1)});
      const bool swapped =
          i > 1 && j > 1 && a == lower_case(right[j - 2]) && b == lower_case(left[i - 2]);
      if (swapped) row[j] = std::min(row[j], earlier[j - 2] + 1);
    }
    std::swap(earlier, last);
    std::swap(last, row);
  }
  return std::min(last[right.size()], limit + 1);
}

std::string_view most_similar(std::string_view word, std::span<const std::string_view> candidates) {
  constexpr size_t kLongest = 64;
  if (word.size() > kLongest) return {};
  size_t nearest = std::max<size_t>(word.size() / 3, 1) + 1;
  std::string_view found;
  for (const std::string_view candidate : candidates) {
    const size_t distance = edit_distance(word, candidate, nearest - 1);
    if (distance >= nearest) continue;
    nearest = distance;
    found = candidate;
  }
  return found;
}

}  // namespace latchkey::base
