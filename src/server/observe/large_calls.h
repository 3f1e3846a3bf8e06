// COMMANDLOG's logs of large requests and large replies.
//
// The dispatcher tells it of calls only while one of the two logs is on: otherwise calls cost
// nothing more. Of calls within EXEC and scripts only replies are judged, as in Valkey: their
// requests are not what the network brought.
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
