#include "server/command/call_meters.h"

#include <algorithm>
#include <utility>

#include "server/observe/hot_keys.h"
#include "server/observe/large_calls.h"
#include "server/server.h"

namespace latchkey::server {

CallMeters::CallMeters(Server& server)
    : server_(server),
      hot_keys_(std::make_unique<HotKeys>(server)),
      large_calls_(std::make_unique<LargeCalls>(*this)) {}

CallMeters::~CallMeters() = default;

void CallMeters::add(CallMeter& meter) {
  meters_.push_back(&meter);
  server_.set_state(kStateMetered, true);
  choose_noted_calls();
}

void CallMeters::remove(CallMeter& meter) {
  std::erase(meters_, &meter);
  server_.set_state(kStateMetered, !meters_.empty());
  choose_noted_calls();
}

void CallMeters::set_checker(std::unique_ptr<CallMeter> checker) {
  if (checker_ != nullptr) remove(*checker_);
  checker_ = std::move(checker);
  if (checker_ != nullptr) add(*checker_);
}

void CallMeters::choose_noted_calls() {
  constexpr int64_t kUsPerMs = 1000;
  int64_t shortest_us = INT64_MAX;
  if (server_.slow_log().is_on()) shortest_us = server_.slow_log().least_amount();
  if (server_.latency_monitor().is_on() &&
      server_.latency_monitor().threshold_ms() < shortest_us / kUsPerMs)
    shortest_us = server_.latency_monitor().threshold_ms() * kUsPerMs;
  noted_ticks_ = meters_.empty() ? server_.cycle_clock().to_ticks(shortest_us) : 0;
}

void CallMeters::tell(const MeteredCall& call) {
  // From the end, so that none is left out when one leaves.
  for (size_t i = meters_.size(); i-- > 0;) meters_[i]->called(call);
}

void CallMeters::note(Client& client, Command& command, Arguments args, uint64_t ticks) {
  constexpr int64_t kUsPerMs = 1000;
  const int64_t duration_us = server_.cycle_clock().to_us(ticks);
  if (server_.slow_log().judge(client, command, args, duration_us)) {
    command.stats.slow_calls.add(duration_us);
    server_.stats().slow_calls.add(duration_us);
  }
  server_.latency_monitor().add(command.has(kFast) ? "fast-command" : "command",
                                duration_us / kUsPerMs, server_.now_ms() / kUsPerMs);
}

}  // namespace latchkey::server
