// Counters that INFO shows and CONFIG RESETSTAT clears, and the rates sampled from them.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace latchkey::server {

// The mean rate of a growing counter over the last sixteen samples.
class RateMeter {
 public:
  void sample(int64_t now_us, uint64_t counter);
  // Per second.
  uint64_t rate() const;
  void reset();

 private:
  static constexpr size_t kSamples = 16;
  std::array<uint64_t, kSamples> rates_{};
  size_t next_ = 0;
  int64_t last_us_ = 0;
  uint64_t last_counter_ = 0;
};

// The mean of a quantity per event over the last sixteen samples.
class MeanMeter {
 public:
  void sample(uint64_t total, uint64_t events);
  uint64_t mean() const;
  void reset() { *this = MeanMeter(); }

 private:
  static constexpr size_t kSamples = 16;
  std::array<uint64_t, kSamples> means_{};
  size_t next_ = 0;
  uint64_t last_total_ = 0;
  uint64_t last_events_ = 0;
};

// Calls that came into the slow log. They stay counted when the log is emptied.
struct SlowCalls {
  uint64_t calls = 0;
  int64_t total_us = 0;
  int64_t longest_us = 0;

  void add(int64_t duration_us);
};

struct Stats {
  using ErrorCounts = std::map<std::string, uint64_t, std::less<>>;

  uint64_t commands_processed = 0;
  SlowCalls slow_calls;
  uint64_t connections_received = 0;
  uint64_t connections_rejected = 0;
  uint64_t error_replies = 0;
  // By error code ("ERR", "WRONGTYPE"), at most kMaxErrorCodes of them; or so many of those that
  // scripts made up, the others under one name, and all of the server's.
  ErrorCounts errors;
  bool bounds_script_errors = false;
  bool errors_overflowed = false;
  // Called with all codes seen when kMaxErrorCodes is exceeded, before they are cleared.
  std::function<void(ErrorCounts errors)> on_errors_overflow;
  uint64_t unexpected_error_replies = 0;
  std::array<uint64_t, 6> denied{};  // requests and logins refused, by acl::Denial::Reason
  uint64_t evicted_keys = 0;
  uint64_t evicted_clients = 0;
  uint64_t query_buffer_limit_disconnections = 0;
  uint64_t output_buffer_limit_disconnections = 0;
  // Ticks of base::CycleClock: in commands (nested ones are part of the outer), in the server's
  // cron, in active expiry.
  uint64_t command_ticks = 0;
  uint64_t cron_ticks = 0;
  uint64_t expiry_ticks = 0;
  uint64_t expiry_cap_reached = 0;  // times active expiry stopped at its time limit
  uint64_t most_commands_in_turn = 0;
  // Batches of requests whose keys were prefetched together, and the sum of these keys.
  uint64_t prefetched_batches = 0;
  uint64_t prefetched_keys = 0;
  uint64_t eviction_exceeded_us = 0;  // time over the memory limit, up to the last time within it
  uint64_t evicted_scripts = 0;
  RateMeter commands_rate;
  RateMeter input_rate;
  RateMeter output_rate;
  RateMeter replication_input_rate;
  RateMeter replication_output_rate;
  RateMeter turns_rate;
  MeanMeter turn_duration;  // microseconds of work per turn of the loop
  uint64_t peak_memory = 0;
  int64_t peak_memory_time_s = 0;  // Unix time when it was reached

  static constexpr size_t kMaxErrorCodes = 128;
  // `text`: an error reply without its dash; its first word is the code. `by_script`: a script has
  // made it up.
  void count_error(std::string_view text, bool by_script = false);
  // Takes a measurement of the memory in use, made at that Unix time.
  void note_memory(uint64_t used, int64_t now_s);
  // CONFIG RESETSTAT; peak_memory stays. Returns the error counts it cleared.
  ErrorCounts reset();
};

}  // namespace latchkey::server
