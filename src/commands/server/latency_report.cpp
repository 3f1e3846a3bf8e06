#include "commands/server/latency_report.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/time_units.h"

namespace latchkey::commands {

using server::LatencyEvent;
using server::LatencySample;

namespace {

constexpr size_t kColumns = 80;
constexpr size_t kRows = 4;
constexpr std::string_view kTips = "_o#";  // the top of a column within its row, by height

struct Range {
  int64_t low = 0;
  int64_t high = 0;
};

Range range_of(const LatencyEvent& event) {
  const auto [low, high] = std::minmax_element(
      event.samples.begin(), event.samples.end(),
      [](const LatencySample& a, const LatencySample& b) { return a.latency_ms < b.latency_ms; });
  return {low->latency_ms, high->latency_ms};
}

std::string age(int64_t seconds) {
  constexpr int64_t kMinute = 60;
  constexpr int64_t kHour = 60 * kMinute;
  constexpr int64_t kDay = 24 * kHour;
  if (seconds < kMinute) return std::to_string(seconds) + "s";
  if (seconds < kHour) return std::to_string(seconds / kMinute) + "m";
  if (seconds < kDay) return std::to_string(seconds / kHour) + "h";
  return std::to_string(seconds / kDay) + "d";
}

// The character of a column in a row; rows are counted from the bottom.
char cell(int64_t latency_ms, Range range, size_t row) {
  const int64_t span = range.high - range.low;
  constexpr auto kSteps = static_cast<int64_t>(kRows * kTips.size());
  // Equal samples are low columns.
  const auto height = static_cast<size_t>(
      span == 0 ? 0 : std::min((latency_ms - range.low) * kSteps / span, kSteps - 1));
  const size_t top = height / kTips.size();
  if (row > top) return ' ';
  return row < top ? '|' : kTips[height % kTips.size()];
}

// Draws up to kColumns samples from `first` on.
std::string columns(const LatencyEvent& event, size_t first, Range range, int64_t now_s) {
  const size_t count = std::min(event.samples.size() - first, kColumns);
  std::string text;
  for (size_t row = kRows; row-- > 0;) {
    for (size_t i = 0; i < count; ++i)
      text += cell(event.samples[first + i].latency_ms, range, row);
    text += '\n';
  }
  std::vector<std::string> ages;
  size_t longest = 0;
  for (size_t i = 0; i < count; ++i) {
    ages.push_back(age(now_s - event.samples[first + i].time_s));
    longest = std::max(longest, ages.back().size());
  }
  text.append(count, ' ').append("\n");
  for (size_t line = 0; line < longest; ++line) {
    for (const std::string& each : ages) text += line < each.size() ? each[line] : ' ';
    text += '\n';
  }
  return text;
}

// --- The diagnosis ------------------------------------------------------------------------------

std::string one_decimal(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", value);
  return text;
}

std::string describe(std::string_view name, const LatencyEvent& event) {
  const auto count = static_cast<double>(event.samples.size());
  double sum = 0;
  for (const LatencySample& sample : event.samples) sum += static_cast<double>(sample.latency_ms);
  const double mean = sum / count;
  double deviations = 0;
  for (const LatencySample& sample : event.samples)
    deviations += std::abs(static_cast<double>(sample.latency_ms) - mean);
  const auto span = static_cast<double>(event.samples.back().time_s - event.samples.front().time_s);
  std::string text(name);
  text += ": " + std::to_string(event.samples.size()) + " spikes, " + one_decimal(mean) +
          " ms on average (mean deviation " + one_decimal(deviations / count) + " ms)";
  if (event.samples.size() > 1) text += ", one in " + one_decimal(span / (count - 1)) + " s";
  return text + "; the worst ever took " + std::to_string(event.worst_ms) + " ms.\n";
}

bool is_any_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Advice {
 public:
  // Adds `line`, unless it was added before.
  void add(const std::string& line) {
    if (std::find(lines_.begin(), lines_.end(), line) == lines_.end()) lines_.push_back(line);
  }
  std::string text() const {
    std::string text;
    for (const std::string& line : lines_) text += "- " + line + "\n";
    return text;
  }

 private:
  std::vector<std::string> lines_;
};

void advise_on_commands(const server::LatencyMonitor& monitor, const server::ConfigValues& settings,
                        Advice* advice) {
  const int64_t threshold_us = monitor.threshold_ms() * base::kUsPerMs;
  if (monitor.is_on() &&
      (settings.slowlog_log_slower_than < 0 || settings.slowlog_log_slower_than > threshold_us)) {
    advice->add("The slow log leaves out some of these calls; CONFIG SET slowlog-log-slower-than " +
                std::to_string(threshold_us) + " has it show them.");
  }
  advice->add("SLOWLOG GET names the requests that took long.");
}

void advise(std::string_view name, const server::LatencyMonitor& monitor,
            const server::ConfigValues& settings, Advice* advice) {
  if (is_any_of(name, {"command", "fast-command"})) advise_on_commands(monitor, settings, advice);
  if (is_any_of(name, {"command", "eviction-del", "expire-cycle"}) &&
      !(settings.lazyfree_lazy_user_del && settings.lazyfree_lazy_eviction &&
        settings.lazyfree_lazy_expire)) {
    advice->add(
        "Values of very many elements take long to free. UNLINK leaves that to a background "
        "thread, and so do, for DEL, eviction and expiry: CONFIG SET lazyfree-lazy-user-del yes "
        "lazyfree-lazy-eviction yes lazyfree-lazy-expire yes");
  }
  if (name == "expire-cycle")
    advice->add(
        "Many keys end at the same time; spread their deadlines. INFO stats counts them "
        "(expired_keys). CONFIG SET hz " +
        std::to_string(std::min(settings.hz * 5, 500)) +
        " looks for them more often, in smaller portions; it is " + std::to_string(settings.hz) +
        " now.");
  if (is_any_of(name, {"eviction-cycle", "eviction-del"}))
    advice->add("Memory is at maxmemory, " + std::to_string(settings.maxmemory) +
                " bytes, so that writes wait for keys to be evicted. CONFIG SET maxmemory raises "
                "it; CONFIG SET maxmemory-eviction-tenacity, " +
                std::to_string(settings.maxmemory_eviction_tenacity) +
                " now, makes each wait shorter with a lower number.");
  if (name == "fork") {
    advice->add(
        "A fork copies the page tables, which takes longer the more memory the server uses; it is "
        "slower still on some virtual machines.");
  }
  if (name.starts_with("aof-")) {
    advice->add(
        "Writing or syncing the append-only file waited for the disk; look at what else uses it.");
    if (settings.appendfsync == server::AppendFsync::kAlways)
      advice->add(
          "appendfsync is always: each request waits for the disk. CONFIG SET appendfsync everysec "
          "makes none wait, and may lose a second of them when the machine fails.");
    else if (!settings.no_appendfsync_on_rewrite)
      advice->add(
          "CONFIG SET no-appendfsync-on-rewrite yes leaves the disk to a rewrite while there is "
          "one.");
  }
}

}  // namespace

std::string draw_latency(std::string_view name, const LatencyEvent& event, int64_t now_s) {
  const Range range = range_of(event);
  std::string text(name);
  text += " - high " + std::to_string(range.high) + " ms, low " + std::to_string(range.low) +
          " ms (all time high " + std::to_string(event.worst_ms) + " ms)\n" +
          std::string(kColumns, '-') + "\n";
  for (size_t first = 0; first < event.samples.size(); first += kColumns)
    text += columns(event, first, range, now_s);
  return text;
}

std::string diagnose_latency(const server::LatencyMonitor& monitor,
                             const server::ConfigValues& settings) {
  if (monitor.events().empty()) {
    if (!monitor.is_on()) {
      return "Latency is not being monitored. CONFIG SET latency-monitor-threshold <milliseconds> "
             "begins with it.\n";
    }
    return "Nothing took " + std::to_string(monitor.threshold_ms()) +
           " ms or more since latency has been monitored or reset.\n";
  }
  std::string text = "What took long:\n\n";
  Advice advice;
  size_t number = 0;
  for (const auto& [name, event] : monitor.events()) {
    text += std::to_string(++number) + ". " + describe(name, event);
    advise(name, monitor, settings, &advice);
  }
  return text + "\nWhat can be done:\n\n" + advice.text();
}

}  // namespace latchkey::commands
