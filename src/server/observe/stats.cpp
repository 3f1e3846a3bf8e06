#include "server/observe/stats.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/time_units.h"

namespace latchkey::server {

void RateMeter::sample(int64_t now_us, uint64_t counter) {
  const int64_t elapsed = now_us - last_us_;
  if (last_us_ != 0 && elapsed > 0 && counter >= last_counter_) {
    rates_[next_] = (counter - last_counter_) * base::kUsPerSecond / static_cast<uint64_t>(elapsed);
    next_ = (next_ + 1) % kSamples;
  }
  last_us_ = now_us;
  last_counter_ = counter;
}

uint64_t RateMeter::rate() const {
  return std::accumulate(rates_.begin(), rates_.end(), uint64_t{0}) / kSamples;
}

void RateMeter::reset() {
  *this = RateMeter();
}

void MeanMeter::sample(uint64_t total, uint64_t events) {
  const bool grew = events > last_events_ && total >= last_total_;
  means_[next_] = grew ? (total - last_total_) / (events - last_events_) : 0;
  next_ = (next_ + 1) % kSamples;
  last_total_ = total;
  last_events_ = events;
}

uint64_t MeanMeter::mean() const {
  return std::accumulate(means_.begin(), means_.end(), uint64_t{0}) / kSamples;
}

void SlowCalls::add(int64_t duration_us) {
  ++calls;
  total_us += duration_us;
  longest_us = std::max(longest_us, duration_us);
}

void Stats::count_error(std::string_view text, bool by_script) {
  ++error_replies;
  if (errors_overflowed) return;
  const std::string_view code = text.substr(0, text.find_first_of(" \r"));
  if (const auto it = errors.find(code); it != errors.end()) {
    ++it->second;
  } else if (errors.size() < kMaxErrorCodes || (bounds_script_errors && !by_script)) {
    errors.emplace(code, 1);
  } else if (bounds_script_errors) {
    ++errors["ERRORSTATS_OVERFLOW"];
  } else {
    // Scripts can invent any number of error codes: stop counting them one by one.
    if (on_errors_overflow) on_errors_overflow(std::move(errors));
    errors.clear();
    errors.emplace("ERRORSTATS_DISABLED", 1);
    errors_overflowed = true;
  }
}

void Stats::note_memory(uint64_t used, int64_t now_s) {
  if (used <= peak_memory) return;
  peak_memory = used;
  peak_memory_time_s = now_s;
}

Stats::ErrorCounts Stats::reset() {
  Stats fresh;
  fresh.peak_memory = peak_memory;
  fresh.peak_memory_time_s = peak_memory_time_s;
  fresh.denied = denied;
  fresh.bounds_script_errors = bounds_script_errors;
  fresh.on_errors_overflow = std::move(on_errors_overflow);
  ErrorCounts gone = std::move(errors);
  *this = std::move(fresh);
  return gone;
}

}  // namespace latchkey::server
