#include "server/observe/large_calls.h"

#include "server/command/call_meters.h"

namespace latchkey::server {

void LargeCalls::configure(const CommandLog::Settings& requests,
                           const CommandLog::Settings& replies) {
  requests_.configure(requests);
  replies_.configure(replies);
  const bool wanted = requests_.is_on() || replies_.is_on();
  if (wanted == metering_) return;
  metering_ = wanted;
  wanted ? meters_.add(*this) : meters_.remove(*this);
}

void LargeCalls::called(const MeteredCall& call) {
  replies_.add_if_large(call.sender, call.command, call.args,
                        static_cast<int64_t>(call.reply_bytes));
  // What EXEC runs came before, as requests that were only queued; what a script calls, not at all.
  if (requests_.is_on() && !call.nested)
    requests_.add_if_large(call.sender, call.command, call.args,
                           static_cast<int64_t>(request_bytes(call.args)));
}

}  // namespace latchkey::server
