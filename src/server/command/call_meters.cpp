#include "server/command/call_meters.h"

#include <utility>

#include "base/time_units.h"
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
  update_threshold();
}

void CallMeters::remove(CallMeter& meter) {
  std::erase(meters_, &meter);
  server_.set_state(kStateMetered, !meters_.empty());
  update_threshold();
}

void CallMeters::set_checker(std::unique_ptr<CallMeter> checker) {
  if (checker_ != nullptr) remove(*checker_);
  checker_ = std::move(checker);
  if (checker_ != nullptr) add(*checker_);
}

void CallMeters::update_threshold() {
  int64_t shortest_us = INT64_MAX;
  if (server_.slow_log().is_on()) shortest_us = server_.slow_log().least_amount();
  if (server_.latency_monitor().is_on() &&
      server_.latency_monitor().threshold_ms() < shortest_us / base::kUsPerMs)
    shortest_us = server_.latency_monitor().threshold_ms() * base::kUsPerMs;
  recorded_ticks_ = meters_.empty() ? server_.cycle_clock().to_ticks(shortest_us) : 0;
}

void CallMeters::notify(const MeteredCall& call) {
  // From the end, so that none is skipped when one removes itself.
  for (size_t i = meters_.size(); i-- > 0;) meters_[i]->called(call);
}

void CallMeters::record(Client& client, Command& command, Arguments args, uint64_t ticks) {
  const int64_t duration_us = server_.cycle_clock().to_us(ticks);
  if (server_.slow_log().add_if_large(client, command, args, duration_us)) {
    command.stats.slow_calls.add(duration_us);
    server_.stats().slow_calls.add(duration_us);
  }
  server_.latency_monitor().add(command.has(kFast) ? "fast-command" : "command",
                                duration_us / base::kUsPerMs,
                                server_.now_ms() / base::kMsPerSecond);
}

}  // namespace latchkey::server
