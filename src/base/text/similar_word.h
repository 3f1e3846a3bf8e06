// Suggestions for mistyped words.
#pragma once

#include <span>
#include <string_view>

namespace latchkey::base {

// The number of insertions, deletions, changes of a character, and swaps of two neighbours that
// make `right` of `left`, without regard to case ("optimal string alignment": no part is edited
// twice). `limit` + 1 stands for all larger numbers. Costs left.size() * right.size() steps.
// Source: https://en.wikipedia.org/wiki/Damerau-Levenshtein_distance
size_t edit_distance(std::string_view left, std::string_view right, size_t limit);

// The candidate nearest to `word`, the first of equals; empty when none is as near as a third of
// the word's length (at least one edit). Words over 64 bytes resemble nothing.
std::string_view most_similar(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace latchkey::base
