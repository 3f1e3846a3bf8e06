#include "store/time_series/compaction_policy.h"

#include <algorithm>
#include <span>

#include "base/text/number.h"
#include "base/text/split.h"

namespace latchkey::store {

namespace {

constexpr size_t kMostFields = 4;

struct Unit {
  char letter;
  int64_t milliseconds;
};
constexpr Unit kUnits[] = {
    {'d', 86'400'000}, {'h', 3'600'000}, {'M', 60'000}, {'s', 1'000}, {'m', 1}};

std::optional<int64_t> parse_duration(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const char letter = text.back();
  const auto* const unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                        [&](const Unit& known) { return known.letter == letter; });
  int64_t number;
  if (unit == std::end(kUnits) || !base::parse_int64(text.substr(0, text.size() - 1), &number))
    return std::nullopt;
  if (number < 0 || number > INT64_MAX / unit->milliseconds) return std::nullopt;
  return number * unit->milliseconds;
}

std::string duration_text(int64_t duration_ms) {
  for (const Unit& unit : kUnits) {
    if (duration_ms % unit.milliseconds == 0)
      return std::to_string(duration_ms / unit.milliseconds) + unit.letter;
  }
  return {};
}

std::optional<PolicyRule> parse_rule(std::string_view text) {
  const std::vector<std::string_view> fields = base::split_fields(text, ':');
  if (fields.size() < kMostFields - 1 || fields.size() > kMostFields) return std::nullopt;
  const auto aggregation = aggregation_of(fields[0]);
  const auto bucket_ms = parse_duration(fields[1]);
  const auto retention_ms = parse_duration(fields[2]);
  const auto align = fields.size() < kMostFields ? int64_t{0} : parse_duration(fields[3]);
  if (!aggregation || !bucket_ms || *bucket_ms == 0 || !retention_ms || !align) return std::nullopt;
  return PolicyRule{*aggregation, *bucket_ms, *retention_ms, *align};
}

}  // namespace

std::optional<std::vector<PolicyRule>> parse_compaction_policy(std::string_view text) {
  std::vector<PolicyRule> rules;
  for (const std::string_view part : base::split_words(text, ';')) {
    const auto rule = parse_rule(part);
    if (!rule) return std::nullopt;
    rules.push_back(*rule);
  }
  return rules;
}

std::string compaction_policy_text(const std::vector<PolicyRule>& rules) {
  std::string text;
  for (const PolicyRule& rule : rules) {
    if (!text.empty()) text += ';';
    text += aggregation_name(rule.aggregation);
    text += ':' + duration_text(rule.bucket_ms) + ':' + duration_text(rule.retention_ms);
    if (rule.align != 0) text += ':' + duration_text(rule.align);
  }
  return text;
}

}  // namespace latchkey::store
