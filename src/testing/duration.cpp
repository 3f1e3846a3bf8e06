#include "testing/duration.h"

#include <cmath>

#include "base/text/number.h"
#include "base/text/text.h"
#include "base/time_units.h"

namespace latchkey::testing {

namespace {

struct Unit {
  std::string_view name;
  int64_t us;
};

constexpr int64_t kDayUs = base::kSecondsPerDay * base::kUsPerSecond;
constexpr double kMaxUs = 100'000.0 * 365 * static_cast<double>(kDayUs);

// The first is meant when none is named.
constexpr Unit kUnits[] = {
    {"ms", base::kUsPerMs},           {"us", 1},
    {"s", base::kUsPerSecond},        {"m", 60 * base::kUsPerSecond},
    {"h", 3600 * base::kUsPerSecond}, {"d", kDayUs},
};

const Unit* unit_named(std::string_view name) {
  if (name.empty()) return &kUnits[0];
  for (const Unit& unit : kUnits) {
    if (base::equal_ignoring_case(name, unit.name)) return &unit;
  }
  return nullptr;
}

}  // namespace

std::optional<int64_t> parse_duration_us(std::string_view text) {
  const size_t digits = text.find_first_not_of("0123456789.");
  const std::string_view number = text.substr(0, digits);
  const Unit* unit = unit_named(digits == std::string_view::npos ? "" : text.substr(digits));
  double value = 0;
  if (unit == nullptr || number.empty() || !base::parse_double(number, &value)) return std::nullopt;
  const double us = value * static_cast<double>(unit->us);
  if (!(us <= kMaxUs)) return std::nullopt;
  return static_cast<int64_t>(std::llround(us));
}

}  // namespace latchkey::testing
