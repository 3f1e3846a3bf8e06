// What is noted of calls when they have ended: the slow log, the latency monitor, and whoever asked
// to be told of every call.
//
// A call that nobody wants to know of costs a comparison of its duration.
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

  // From here on the meter is told of calls, or no longer; it may leave while it is told of one.
  void add(CallMeter& meter);
  void remove(CallMeter& meter);
  bool empty() const { return meters_.empty(); }

  HotKeys& hot_keys() { return *hot_keys_; }
  LargeCalls& large_calls() { return *large_calls_; }
  // Has the meter, or none, in place of the one that was given here before.
  void set_checker(std::unique_ptr<CallMeter> checker);

  // Takes from the settings how long a call must last to be noted (server/observe/command_log.h,
  // server/observe/latency_monitor.h).
  void choose_noted_calls();
  // Whether a call of that duration (base::CycleClock) is to be noted.
  bool wants(uint64_t ticks) const { return ticks >= noted_ticks_; }
  // Tells the meters of a call.
  void tell(const MeteredCall& call);
  // Enters a call that lasted long in the slow log and with the latency monitor.
  void note(Client& client, Command& command, Arguments args, uint64_t ticks);

 private:
  Server& server_;
  uint64_t noted_ticks_ = UINT64_MAX;  // from how long on a call is noted; 0 while there are meters
  std::vector<CallMeter*> meters_;
  std::unique_ptr<HotKeys> hot_keys_;
  std::unique_ptr<LargeCalls> large_calls_;
  std::unique_ptr<CallMeter> checker_;
};

}  // namespace latchkey::server
