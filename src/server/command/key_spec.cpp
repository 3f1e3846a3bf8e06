#include "server/command/key_spec.h"

#include "base/text/number.h"
#include "base/text/text.h"

namespace latchkey::server {

namespace {

// Positions first, first + step, ... up to last.
struct Run {
  int64_t first = 0;
  int64_t last = 0;
};

// The position after the keyword, or 0. The last word is never it: nothing would follow.
int64_t position_after_keyword(const KeySpec& spec, Arguments words) {
  const auto count = static_cast<int64_t>(words.size());
  if (spec.position > 0) {
    for (int64_t at = spec.position; at < count - 1; ++at) {
      if (base::equal_ignoring_case(words[static_cast<size_t>(at)], spec.keyword)) return at + 1;
    }
    return 0;
  }
  for (int64_t at = count + spec.position; at > 1; --at) {
    if (base::equal_ignoring_case(words[static_cast<size_t>(at)], spec.keyword)) return at + 1;
  }
  return 0;
}

bool find_counted_run(const KeySpec& spec, int64_t begin, Arguments words, Run* run) {
  const int64_t count_at = begin + spec.count_at;
  if (count_at >= static_cast<int64_t>(words.size())) return false;
  int64_t count;
  if (!base::parse_int64(words[static_cast<size_t>(count_at)], &count)) return false;
  if (count < 0 || count > static_cast<int64_t>(words.size())) return false;
  run->first = begin + spec.first_at;
  run->last = run->first + (count - 1) * spec.step;
  return true;
}

Run find_range(const KeySpec& spec, int64_t begin, Arguments words) {
  const auto count = static_cast<int64_t>(words.size());
  if (spec.last >= 0) return {begin, begin + spec.last};
  if (spec.range_limit <= 1) return {begin, count + spec.last};
  return {begin, begin + (count - begin) / spec.range_limit + spec.last};
}

}  // namespace

bool find_keys(const KeySpecs& specs, Arguments words, std::vector<KeyReference>* out) {
  const auto count = static_cast<int64_t>(words.size());
  for (const KeySpec& spec : specs) {
    if ((spec.flags & kKeyNotKey) != 0) continue;
    int64_t begin = spec.position;
    if (spec.begin == KeySpec::Begin::kUnknown) return false;
    if (spec.begin == KeySpec::Begin::kKeyword) {
      begin = position_after_keyword(spec, words);
      if (begin == 0) continue;
    }
    Run run;
    if (spec.find == KeySpec::Find::kRange) {
      run = find_range(spec, begin, words);
    } else if (spec.find != KeySpec::Find::kCounted ||
               !find_counted_run(spec, begin, words, &run)) {
      return false;
    }
    if (run.first >= count || run.last >= count || run.last < run.first) return false;
    for (int64_t at = run.first; at <= run.last; at += spec.step) {
      out->push_back({static_cast<uint32_t>(at), spec.flags});
    }
  }
  return true;
}

}  // namespace latchkey::server
