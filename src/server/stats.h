// Counters that INFO shows and CONFIG RESETSTAT clears, and the rates sampled from them.
#pragma once

#include <array>
#include <cstdint>
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

struct Stats {
  uint64_t commands_processed = 0;
  uint64_t connections_received = 0;
  uint64_t connections_rejected = 0;
  uint64_t error_replies = 0;
  // By error code ("ERR", "WRONGTYPE"), at most kMostErrorCodes of them.
  std::map<std::string, uint64_t, std::less<>> errors;
  bool errors_overflowed = false;
  uint64_t query_buffer_limit_disconnections = 0;
  uint64_t output_buffer_limit_disconnections = 0;
  // Counted by the net loop; offsets let RESETSTAT start them at zero.
  uint64_t bytes_read_base = 0;
  uint64_t bytes_written_base = 0;
  uint64_t reads_base = 0;
  uint64_t writes_base = 0;
  RateMeter commands_rate;
  RateMeter input_rate;
  RateMeter output_rate;
  uint64_t peak_memory = 0;

  static constexpr size_t kMostErrorCodes = 128;
  // `text`: an error reply without its dash; its first word is the code.
  void count_error(std::string_view text);
};

}  // namespace latchkey::server
