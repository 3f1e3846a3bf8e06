#include "testing/instant.h"

#include <chrono>

#include "base/settable_clock.h"
#include "base/text/number.h"
#include "base/text/text.h"
#include "base/time_units.h"

namespace latchkey::testing {

namespace {

std::optional<int64_t> within_range(int64_t us) {
  if (us < 0 || us > base::SettableClock::kMaxUs) return std::nullopt;
  return us;
}

// A part of a date or a time: decimal digits, all of them.
std::optional<int> number_of(std::string_view digits) {
  int number = 0;
  for (const char each : digits) {
    if (each < '0' || each > '9') return std::nullopt;
    number = number * 10 + (each - '0');
  }
  return number;
}

// "YYYY-MM-DD"
std::optional<int64_t> parse_date_us(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
  const auto year = number_of(text.substr(0, 4));
  const auto month = number_of(text.substr(5, 2));
  const auto day = number_of(text.substr(8, 2));
  if (!year || !month || !day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  const auto since_epoch = std::chrono::sys_days(date).time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(since_epoch).count();
}

// "HH:MM:SS", with a fraction of a second or without.
std::optional<int64_t> parse_time_of_day_us(std::string_view text) {
  if (text.size() < 8 || text[2] != ':' || text[5] != ':') return std::nullopt;
  const auto hour = number_of(text.substr(0, 2));
  const auto minute = number_of(text.substr(3, 2));
  const auto second = number_of(text.substr(6, 2));
  if (!hour || !minute || !second || *hour > 23 || *minute > 59 || *second > 59)
    return std::nullopt;
  int64_t us = ((*hour * 60 + *minute) * int64_t{60} + *second) * base::kUsPerSecond;
  if (text.size() == 8) return us;
  const std::string_view fraction = text.substr(9);
  if (text[8] != '.' || fraction.empty() || fraction.size() > 6) return std::nullopt;
  const auto digits = number_of(fraction);
  if (!digits) return std::nullopt;
  int64_t scaled_us = *digits;
  for (size_t i = fraction.size(); i < 6; ++i) scaled_us *= 10;
  return us + scaled_us;
}

// What a time of day ends with, "Z" or "+HH:MM": how far it is ahead of UTC. Takes it off the text.
std::optional<int64_t> take_offset_us(std::string_view* text) {
  constexpr size_t kSize = 6;
  if (text->ends_with('Z') || text->ends_with('z')) {
    text->remove_suffix(1);
    return 0;
  }
  if (text->size() < kSize) return std::nullopt;
  const std::string_view offset = text->substr(text->size() - kSize);
  const bool ahead = offset[0] == '+';
  const auto hours = number_of(offset.substr(1, 2));
  const auto minutes = number_of(offset.substr(4));
  if ((!ahead && offset[0] != '-') || offset[3] != ':' || !hours || !minutes || *hours > 23 ||
      *minutes > 59)
    return std::nullopt;
  text->remove_suffix(kSize);
  const int64_t us = (*hours * 60 + *minutes) * int64_t{60} * base::kUsPerSecond;
  return ahead ? us : -us;
}

std::optional<int64_t> parse_iso_us(std::string_view text) {
  const auto date_us = parse_date_us(text.substr(0, 10));
  if (!date_us || text.size() == 10) return date_us;
  if (text[10] != 'T' && text[10] != 't') return std::nullopt;
  std::string_view time = text.substr(11);
  const auto offset_us = take_offset_us(&time);
  if (!offset_us) return std::nullopt;
  const auto time_us = parse_time_of_day_us(time);
  if (!time_us) return std::nullopt;
  return *date_us + *time_us - *offset_us;
}

}  // namespace

std::optional<int64_t> parse_instant_us(std::string_view text) {
  if (text.size() >= 10 && text[4] == '-') {
    const auto us = parse_iso_us(text);
    return us ? within_range(*us) : std::nullopt;
  }
  const bool is_ms =
      text.size() > 2 && base::equal_ignoring_case(text.substr(text.size() - 2), "ms");
  double value = 0;
  const std::string_view number = is_ms ? text.substr(0, text.size() - 2) : text;
  if (number.find_first_not_of("0123456789.") != std::string_view::npos) return std::nullopt;
  int64_t whole = 0;
  const int64_t unit_us = is_ms ? base::kUsPerMs : base::kUsPerSecond;
  if (base::parse_int64(number, &whole)) {
    if (whole > base::SettableClock::kMaxUs / unit_us) return std::nullopt;
    return within_range(whole * unit_us);
  }
  if (!base::parse_double(number, &value)) return std::nullopt;
  const double us = value * static_cast<double>(unit_us);
  if (!(us >= 0 && us <= static_cast<double>(base::SettableClock::kMaxUs))) return std::nullopt;
  return within_range(static_cast<int64_t>(us + 0.5));
}

}  // namespace latchkey::testing
