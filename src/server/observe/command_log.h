// SLOWLOG and COMMANDLOG: calls that cost much, the latest first. Each log measures calls by an
// amount of its own: their duration, or the size of their request or reply.
//
// The dispatcher measures the time of each call anyway and compares it with one number; the code
// here runs for slow calls only. An entry keeps so many words of so many bytes, so that the log
// stays small whatever the requests were.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::server {

class Client;
struct Command;

class CommandLog {
 public:
  struct Settings {
    int64_t least_amount = -1;  // of the calls that are entered; negative: none
    size_t most_entries = 0;
    // Of an entry (WordLimits).
    size_t most_words = 32;
    size_t most_word_bytes = 128;
  };
  // A call without its words. Calls made by scripts have no address.
  struct Call {
    int64_t time_s = 0;  // Unix time
    int64_t amount = 0;  // microseconds or bytes
    std::string client_address;
    std::string client_name;
  };
  struct Entry {
    uint64_t id = 0;  // never used twice
    Call call;
    std::vector<std::string> words;
  };

  // Surplus entries are dropped when the next one is added.
  void configure(const Settings& settings) { settings_ = settings; }
  bool is_on() const { return settings_.least_amount >= 0 && settings_.most_entries > 0; }
  int64_t least_amount() const { return settings_.least_amount; }

  // Adds the call if the log is on and the amount reaches the threshold, except commands with
  // kSkipSlowlog. Returns whether it was added.
  bool add_if_large(Client& client, const Command& command, std::span<const std::string_view> words,
                    int64_t amount);
  // The latest first.
  const std::deque<Entry>& entries() const { return entries_; }
  void clear() { entries_.clear(); }

 private:
  Settings settings_;
  uint64_t next_id_ = 0;
  std::deque<Entry> entries_;
};

}  // namespace latchkey::server
