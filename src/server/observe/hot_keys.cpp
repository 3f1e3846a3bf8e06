#include "server/observe/hot_keys.h"

#include <sys/resource.h>

#include <algorithm>

#include "base/assert.h"
#include "base/time_units.h"
#include "server/command/command_table.h"
#include "server/command/dispatcher.h"
#include "server/command/slot_gate.h"
#include "server/server.h"
#include "store/key_slot.h"

namespace latchkey::server {

namespace {

int64_t milliseconds(const timeval& time) {
  return static_cast<int64_t>(time.tv_sec) * base::kMsPerSecond + time.tv_usec / base::kUsPerMs;
}

HotKeys::ProcessTimes times_now() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {milliseconds(usage.ru_utime), milliseconds(usage.ru_stime)};
}

}  // namespace

HotKeys::HotKeys(Server& server)
    : server_(server), ticks_(server.environment().secret), bytes_(server.environment().secret) {}

void HotKeys::start(Options options) {
  reset();
  options_ = std::move(options);
  active_ = true;
  started_ms_ = server_.machine_ms();
  times_at_start_ = times_now();
  server_.dispatcher().meters().add(*this);
}

bool HotKeys::stop() {
  if (!is_active()) return false;
  end_at(server_.machine_ms());
  return true;
}

void HotKeys::end_at(int64_t machine_ms) {
  active_ = false;
  ended_ms_ = machine_ms;
  times_at_end_ = times_now();
  server_.dispatcher().meters().remove(*this);
}

void HotKeys::reset() {
  LK_ASSERT(!active_);
  options_.reset();
  all_ = in_slots_ = sampled_ = {};
  ticks_.clear();
  bytes_.clear();
}

bool HotKeys::is_active() {
  if (!active_ || options_->duration_s == 0) return active_;
  const int64_t end_ms = started_ms_ + options_->duration_s * base::kMsPerSecond;
  if (server_.machine_ms() >= end_ms) end_at(end_ms);
  return active_;
}

int64_t HotKeys::lasted_ms() const {
  return (active_ ? server_.machine_ms() : ended_ms_) - started_ms_;
}

HotKeys::ProcessTimes HotKeys::process_times() const {
  const ProcessTimes end = active_ ? times_now() : times_at_end_;
  return {end.user_ms - times_at_start_.user_ms, end.system_ms - times_at_start_.system_ms};
}

bool HotKeys::is_wanted(std::string_view key) const {
  return options_->slots.empty() || options_->slots[static_cast<size_t>(store::key_slot(key))];
}

void HotKeys::called(const MeteredCall& call) {
  // A script is counted when it has ended.
  if (call.in_script || !is_active()) return;
  found_.clear();
  find_slotted_words({call.command, call.args}, &found_);
  if (found_.empty()) return;
  const Cost cost{call.ticks, request_bytes(call.args) + call.reply_bytes};
  const auto add_to = [&](Cost& sum) {
    sum.ticks += cost.ticks;
    sum.bytes += cost.bytes;
  };
  add_to(all_);
  if (!is_wanted(call.args[found_.front().position])) return;
  add_to(in_slots_);
  const auto ratio = static_cast<uint64_t>(options_->sample_ratio);
  if (ratio > 1 && server_.random_source().background().below(ratio) != 0) return;
  add_to(sampled_);
  for (const KeyReference& word : found_) {
    const std::string_view key = call.args[word.position];
    if (options_->cpu) add(ticks_, key, cost.ticks / found_.size());
    if (options_->network) add(bytes_, key, cost.bytes / found_.size());
  }
}

void HotKeys::add(Sums& sums, std::string_view key, uint64_t cost) {
  if (const auto known = sums.by_name.find(key); known != sums.by_name.end()) {
    known->second += cost;
    return;
  }
  sums.by_name.emplace(key, cost);
  sums.name_bytes += key.size();
  while (sums.by_name.size() >= kMaxKeys ||
         (sums.name_bytes > kMaxNameBytes && sums.by_name.size() > options_->count))
    forget_lowest(sums);
}

void HotKeys::forget_lowest(Sums& sums) const {
  std::vector<uint64_t> values;
  values.reserve(sums.by_name.size());
  for (const auto& [name, value] : sums.by_name) values.push_back(value);
  size_t left = values.size() - std::max(values.size() / 2, options_->count);
  const auto last_to_go = values.begin() + static_cast<std::ptrdiff_t>(left - 1);
  std::nth_element(values.begin(), last_to_go, values.end());
  std::erase_if(sums.by_name, [&, most = *last_to_go](const auto& each) {
    if (each.second > most || left == 0) return false;
    --left;
    sums.name_bytes -= each.first.size();
    return true;
  });
}

HotKeys::Ranking HotKeys::highest(const Sums& sums) const {
  Ranking ranking(options_->count);
  const auto end = std::partial_sort_copy(
      sums.by_name.begin(), sums.by_name.end(), ranking.begin(), ranking.end(),
      [](const auto& a, const auto& b) { return a.second > b.second; });
  ranking.erase(end, ranking.end());
  return ranking;
}

HotKeys::Ranking HotKeys::by_cpu() const {
  Ranking ranking = highest(ticks_);
  // What took less than a microsecond has been used all the same.
  for (auto& [key, sum] : ranking)
    sum = std::max<uint64_t>(static_cast<uint64_t>(server_.cycle_clock().to_us(sum)), 1);
  return ranking;
}

HotKeys::Ranking HotKeys::by_network() const {
  return highest(bytes_);
}

}  // namespace latchkey::server
