// COMMANDLOG's logs of large requests and large replies.
//
// The dispatcher notifies it of calls only while one of the two logs is on: otherwise calls cost
// nothing more. Of calls within EXEC and scripts only the replies are measured, as in Valkey: their
// requests did not come by the network.
#pragma once

#include "server/command/call_meter.h"
#include "server/observe/command_log.h"

namespace latchkey::server {

class CallMeters;

class LargeCalls final : public CallMeter {
 public:
  explicit LargeCalls(CallMeters& meters) : meters_(meters) {}

  // Amounts are bytes as they are sent by the network.
  void configure(const CommandLog::Settings& requests, const CommandLog::Settings& replies);
  CommandLog& requests() { return requests_; }
  CommandLog& replies() { return replies_; }

  // CallMeter
  void called(const MeteredCall& call) override;

 private:
  CallMeters& meters_;
  CommandLog requests_;
  CommandLog replies_;
  bool metering_ = false;
};

}  // namespace latchkey::server
