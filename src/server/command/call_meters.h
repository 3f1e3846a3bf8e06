// Accounting of calls that have ended: slow calls go to the slow log and the latency monitor, and
// every call to the registered meters.
//
// A call that none of them needs costs a comparison of its duration.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "server/command/call_meter.h"

namespace latchkey::server {

class HotKeys;
class LargeCalls;
class Server;

class CallMeters {
 public:
  explicit CallMeters(Server& server);
  ~CallMeters();
  CallMeters(const CallMeters&) = delete;
  CallMeters& operator=(const CallMeters&) = delete;

  // Registers a meter, or removes it. A meter may remove itself in called().
  void add(CallMeter& meter);
  void remove(CallMeter& meter);
  bool empty() const { return meters_.empty(); }

  HotKeys& hot_keys() { return *hot_keys_; }
  LargeCalls& large_calls() { return *large_calls_; }
  // Replaces the meter that was given here before; null removes it.
  void set_checker(std::unique_ptr<CallMeter> checker);

  // Computes anew how long a call must last to be recorded, from the thresholds of the slow log and
  // of the latency monitor.
  void update_threshold();
  // Whether a call of that duration (base::CycleClock) is to be recorded.
  bool wants(uint64_t ticks) const { return ticks >= recorded_ticks_; }
  // Notifies the meters of a call.
  void notify(const MeteredCall& call);
  // Records a call in the slow log and the latency monitor, which apply their own thresholds.
  void record(Client& client, Command& command, Arguments args, uint64_t ticks);

 private:
  Server& server_;
  uint64_t recorded_ticks_ = UINT64_MAX;  // the shortest call that wants() accepts; 0: with meters
  std::vector<CallMeter*> meters_;
  std::unique_ptr<HotKeys> hot_keys_;
  std::unique_ptr<LargeCalls> large_calls_;
  std::unique_ptr<CallMeter> checker_;
};

}  // namespace latchkey::server
