#include "server/observe/latency_monitor.h"

#include <algorithm>

#include "base/time_units.h"
#include "server/server.h"

namespace latchkey::server {

void LatencyMonitor::add(std::string_view event, int64_t latency_ms, int64_t now_s) {
  if (!is_on() || latency_ms < threshold_ms_) return;
  LatencyEvent& found = events_[event];
  found.worst_ms = std::max(found.worst_ms, latency_ms);
  found.sum_ms += latency_ms;
  ++found.count;
  std::deque<LatencySample>& samples = found.samples;
  if (!samples.empty() && samples.back().time_s == now_s) {
    samples.back().latency_ms = std::max(samples.back().latency_ms, latency_ms);
    return;
  }
  samples.push_back({now_s, latency_ms});
  if (samples.size() > kMaxSamples) samples.pop_front();
}

const LatencyEvent* LatencyMonitor::find(std::string_view event) const {
  const auto it = events_.find(event);
  return it == events_.end() ? nullptr : &it->second;
}

size_t LatencyMonitor::reset() {
  const size_t count = events_.size();
  events_.clear();
  return count;
}

LatencyTimer::LatencyTimer(Server& server, std::string_view event)
    : server_(server), event_(event), measures_(server.latency_monitor().is_on()) {
  if (measures_) started_ticks_ = base::CycleClock::ticks();
}

LatencyTimer::~LatencyTimer() {
  if (!measures_) return;
  const uint64_t ticks = base::CycleClock::ticks() - started_ticks_;
  server_.latency_monitor().add(event_, server_.cycle_clock().to_us(ticks) / base::kUsPerMs,
                                server_.now_ms() / base::kMsPerSecond);
}

}  // namespace latchkey::server
