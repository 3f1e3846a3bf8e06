#include "locks/lock_text.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "base/text/text.h"
#include "base/time_units.h"
#include "locks/lock_model.h"

namespace latchkey::locks {

namespace {

constexpr int64_t kMinuteMs = 60 * base::kMsPerSecond;
constexpr int64_t kHourMs = 60 * kMinuteMs;

std::string tenths(int64_t value, int64_t unit, const char* name) {
  const int64_t all = value / unit * 10 + (value % unit * 10 + unit / 2) / unit;
  std::string text = std::to_string(all / 10);
  if (all % 10 != 0) text += "." + std::to_string(all % 10);
  return text + " " + name;
}

}  // namespace

bool names_lock(std::string_view key) {
  constexpr std::array<std::string_view, 5> kWords = {"lock", "mutex", "semaphore", "lease",
                                                      "leader"};
  // Words of which one of those is the end.
  constexpr std::array<std::string_view, 3> kOthers = {"block", "clock", "release"};
  const auto has_at = [&](size_t at, std::string_view word) {
    return at <= key.size() && base::equal_ignoring_case(key.substr(at, word.size()), word);
  };
  for (size_t at = 0; at < key.size(); ++at) {
    const char first = base::lower_case(key[at]);
    if (first != 'l' && first != 'm' && first != 's') continue;
    const auto is_here = [&](std::string_view word) { return has_at(at, word); };
    const auto* const word = std::find_if(kWords.begin(), kWords.end(), is_here);
    if (word == kWords.end()) continue;
    const bool within_other =
        std::any_of(kOthers.begin(), kOthers.end(), [&](std::string_view other) {
          const size_t offset = other.size() - word->size();
          return other.ends_with(*word) && offset <= at && has_at(at - offset, other);
        });
    if (!within_other) return true;
  }
  return false;
}

bool is_random(std::string_view token) {
  constexpr size_t kShortest = 16;
  constexpr size_t kMin = 8;
  constexpr std::string_view kBetween = "-_+/=:.";
  if (token.size() < kShortest) return false;
  std::bitset<128> letters;
  bool any_digit = false;
  bool any_letter = false;
  for (const char c : token) {
    const bool digit = c >= '0' && c <= '9';
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!digit && !letter && kBetween.find(c) == std::string_view::npos) return false;
    any_digit |= digit;
    any_letter |= letter;
    letters.set(static_cast<size_t>(c));
  }
  return any_digit && any_letter && letters.count() >= kMin;
}

bool has_name(std::string_view name, std::string_view lock) {
  if (lock.empty()) return name.empty();
  const auto is_edge = [&](size_t at) {
    return at >= name.size() || std::isalnum(static_cast<unsigned char>(name[at])) == 0;
  };
  for (size_t at = name.find(lock); at != std::string_view::npos; at = name.find(lock, at + 1)) {
    if ((at == 0 || is_edge(at - 1)) && is_edge(at + lock.size())) return true;
  }
  return false;
}

bool names_client(std::string_view field) {
  constexpr size_t kUuid = 36;
  if (field.size() < kUuid + 2 || field[kUuid] != ':') return false;
  const auto is_hexadecimal = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  };
  for (size_t i = 0; i < kUuid; ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? field[i] != '-' : !is_hexadecimal(field[i])) return false;
  }
  return std::all_of(field.begin() + kUuid + 1, field.end(), base::is_digit);
}

std::optional<int64_t> time_stamp(std::string_view token, int64_t now_ms) {
  constexpr size_t kLongest = 24;
  constexpr double kFar = static_cast<double>(30 * base::kMsPerDay);
  if (token.size() > kLongest || token.empty()) return std::nullopt;
  if (token.find_first_not_of("0123456789.") != std::string_view::npos) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (error != std::errc() || end != token.data() + token.size()) return std::nullopt;
  for (const double unit : {static_cast<double>(base::kMsPerSecond), 1.0}) {
    const double ms = value * unit;
    if (std::abs(ms - static_cast<double>(now_ms)) < kFar) return static_cast<int64_t>(ms);
  }
  return std::nullopt;
}

std::string clock_time(int64_t unix_ms) {
  return date_and_time(unix_ms).substr(11);
}

std::string date_and_time(int64_t unix_ms) {
  const time_t seconds = static_cast<time_t>(unix_ms / base::kMsPerSecond);
  tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  const int size =
      std::snprintf(text.data(), text.size(), "%04d-%02d-%02d %02d:%02d:%02d.%03d",
                    parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour,
                    parts.tm_min, parts.tm_sec, static_cast<int>(unix_ms % base::kMsPerSecond));
  return {text.data(), static_cast<size_t>(size)};
}

std::string duration(int64_t ms) {
  if (ms < base::kMsPerSecond) return std::to_string(ms) + " ms";
  if (ms < kMinuteMs) return tenths(ms, base::kMsPerSecond, "s");
  if (ms < kHourMs) return tenths(ms, kMinuteMs, "min");
  return tenths(ms, kHourMs, "h");
}

std::string_view ordinal_suffix(uint64_t number) {
  const uint64_t tens = number % 100;
  if (tens >= 11 && tens <= 13) return "th";
  constexpr std::array<std::string_view, 4> kSuffixes = {"th", "st", "nd", "rd"};
  return number % 10 < kSuffixes.size() ? kSuffixes[number % 10] : "th";
}

std::string printable(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string shown;
  for (const char c : text) {
    if (c >= ' ' && c <= '~') {
      shown += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      shown += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return shown;
}

// --- Names --------------------------------------------------------------------------------------

std::string_view name_of(EventKind kind) {
  constexpr std::array<std::string_view, 23> kNames = {"taken",
                                                       "refused",
                                                       "deadline-set",
                                                       "prolonged",
                                                       "prolonged-by-loser",
                                                       "persisted",
                                                       "released-by-comparison",
                                                       "released-blind",
                                                       "released-by-stranger",
                                                       "released-late",
                                                       "expired",
                                                       "taken-over",
                                                       "takeover-lost",
                                                       "overwritten",
                                                       "evicted",
                                                       "flushed",
                                                       "holder-gone",
                                                       "came-back",
                                                       "reentered",
                                                       "left",
                                                       "tokens-made",
                                                       "token-taken",
                                                       "token-returned"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view name_of(Recipe recipe) {
  constexpr std::array<std::string_view, 11> kNames = {"SETNX",
                                                       "SETNX, then EXPIRE",
                                                       "SETNX and EXPIRE in MULTI",
                                                       "SETNX and EXPIRE in a script",
                                                       "SET NX",
                                                       "SET NX PX",
                                                       "SET IFEQ",
                                                       "GETSET",
                                                       "SET",
                                                       "HINCRBY and PEXPIRE in a script",
                                                       "EXISTS and SET PX in a script"};
  return kNames[static_cast<size_t>(recipe)];
}

std::string_view name_of(KnownBy known_by) {
  constexpr std::array<std::string_view, 5> kNames = {"nothing", "pattern", "name", "token", "use"};
  return kNames[static_cast<size_t>(known_by)];
}

}  // namespace latchkey::locks
