// HOTKEYS: the keys that cost most while it is active.
//
// It counts every call that names keys, and splits its cost among its keys: commands of a
// transaction one by one, a script as a whole. It keeps the keys with the highest sums of each
// metric and forgets others when there are too many, so that a sum may lack the cost of a key
// before it was forgotten. Memory: for each metric at most kMaxKeys keys, and kMaxNameBytes of
// their names, unless the names of the requested number of keys are longer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/digest/hash.h"
#include "server/command/call_meter.h"
#include "server/command/key_spec.h"

namespace latchkey::server {

class Server;

class HotKeys final : public CallMeter {
 public:
  static constexpr size_t kMaxKeys = 4096;
  static constexpr size_t kMaxNameBytes = 1024 * 1024;

  struct Options {
    bool cpu = false;
    bool network = false;
    size_t count = 10;
    int64_t duration_s = 0;    // 0: until stop()
    int64_t sample_ratio = 1;  // one call of so many is counted for its keys
    std::vector<bool> slots;   // empty: all
  };
  // Of calls, in ticks of base::CycleClock and bytes sent and received.
  struct Cost {
    uint64_t ticks = 0;
    uint64_t bytes = 0;
  };
  struct ProcessTimes {
    int64_t user_ms = 0;
    int64_t system_ms = 0;
  };
  // Names and sums, the highest first.
  using Ranking = std::vector<std::pair<std::string, uint64_t>>;

  explicit HotKeys(Server& server);

  // Forgets what was counted before. REQUIRES: it is not active.
  void start(Options options);
  // False when it is not active.
  bool stop();
  // REQUIRES: it is not active.
  void reset();

  // Nothing was counted since reset().
  bool is_empty() const { return !options_.has_value(); }
  // Ends the session when its time is over.
  bool is_active();
  // REQUIRES of all below: !is_empty().
  const Options& options() const { return *options_; }
  int64_t started_ms() const { return started_ms_; }  // Server::machine_ms()
  int64_t lasted_ms() const;
  ProcessTimes process_times() const;  // since start()
  const Cost& all() const { return all_; }
  const Cost& in_slots() const { return in_slots_; }
  const Cost& sampled() const { return sampled_; }
  // In microseconds.
  Ranking by_cpu() const;
  // In bytes.
  Ranking by_network() const;

  // CallMeter
  void called(const MeteredCall& call) override;

 private:
  struct Sums {
    explicit Sums(const base::HashSecret& secret) : by_name(0, base::KeyedTextHash{&secret}) {}
    void clear() {
      by_name.clear();
      name_bytes = 0;
    }
    std::unordered_map<std::string, uint64_t, base::KeyedTextHash, std::equal_to<>> by_name;
    size_t name_bytes = 0;
  };

  bool is_wanted(std::string_view key) const;
  void add(Sums& sums, std::string_view key, uint64_t cost);
  // Forgets the lower half, but keeps as many as are asked for. REQUIRES: there are more than that.
  void forget_lowest(Sums& sums) const;
  Ranking highest(const Sums& sums) const;
  void end_at(int64_t machine_ms);

  Server& server_;
  std::optional<Options> options_;
  bool active_ = false;
  int64_t started_ms_ = 0;
  int64_t ended_ms_ = 0;
  ProcessTimes times_at_start_;
  ProcessTimes times_at_end_;
  Cost all_;
  Cost in_slots_;
  Cost sampled_;
  Sums ticks_;
  Sums bytes_;
  std::vector<KeyReference> found_;
};

}  // namespace latchkey::server
