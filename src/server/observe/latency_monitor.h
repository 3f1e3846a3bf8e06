// LATENCY: operations that blocked the server, and for how long. Each kind of operation is an event
// with a name; of each event the last samples that reached latency-monitor-threshold are kept, at
// most one a second: the worst.
//
// Events, what they measure, and the subsystem that does:
//
//     command, fast-command         calls, by their flags in COMMAND INFO       dispatcher
//     expire-cycle                  a round of active expiry                    server
//     eviction-cycle, eviction-del  an eviction cycle; freeing one of its keys  server
//     fork                          the fork of a child that writes             persistence
//     aof-write, and by circumstance: aof-write-pending-fsync,
//     aof-write-active-child, aof-write-alone                                   append-only file
//     aof-fsync-always              syncing with appendfsync always             append-only file
//
// While the threshold is 0 nothing is measured, and the check costs one comparison.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string_view>

namespace latchkey::server {

class Server;

struct LatencySample {
  int64_t time_s = 0;  // Unix time
  int64_t latency_ms = 0;
};

struct LatencyEvent {
  std::deque<LatencySample> samples;  // oldest first; never empty
  // Since the last reset, of all that were measured.
  int64_t worst_ms = 0;
  int64_t sum_ms = 0;
  int64_t count = 0;
};

class LatencyMonitor {
 public:
  static constexpr size_t kMaxSamples = 160;
  // By name.
  using Events = std::map<std::string_view, LatencyEvent>;

  // 0: off.
  void set_threshold_ms(int64_t threshold_ms) { threshold_ms_ = threshold_ms; }
  int64_t threshold_ms() const { return threshold_ms_; }
  bool is_on() const { return threshold_ms_ != 0; }

  // `event` must be of static storage. Of no effect below the threshold.
  void add(std::string_view event, int64_t latency_ms, int64_t now_s);

  const Events& events() const { return events_; }
  // Null when there are no samples.
  const LatencyEvent* find(std::string_view event) const;
  // Removes an event's samples, or all. Returns how many events had samples.
  size_t reset(std::string_view event) { return events_.erase(event); }
  size_t reset();

 private:
  int64_t threshold_ms_ = 0;
  Events events_;
};

// Measures its own lifetime as a sample of the event.
class LatencyTimer {
 public:
  LatencyTimer(Server& server, std::string_view event);
  ~LatencyTimer();
  LatencyTimer(const LatencyTimer&) = delete;
  LatencyTimer& operator=(const LatencyTimer&) = delete;

 private:
  Server& server_;
  std::string_view event_;
  uint64_t started_ticks_ = 0;
  bool measures_;
};

}  // namespace latchkey::server
