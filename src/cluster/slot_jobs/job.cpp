#include "cluster/slot_jobs/job.h"

#include <algorithm>
#include <utility>

#include "cluster/slot_migration/task.h"

namespace latchkey::cluster {

std::string_view name_of(JobState state) {
  static constexpr std::string_view kNames[] = {"connecting",
                                                "sending-establish-command",
                                                "reading-establish-response",
                                                "waiting-to-snapshot",
                                                "snapshotting",
                                                "replicating",
                                                "waiting-to-pause",
                                                "failover-paused",
                                                "waiting-for-ack",
                                                "receiving-snapshot",
                                                "waiting-for-paused",
                                                "failover-requested",
                                                "failover-granted",
                                                "occurring-on-primary",
                                                "success",
                                                "failed",
                                                "cancelled"};
  return kNames[static_cast<size_t>(state)];
}

std::string SlotJob::title() const {
  return "Slot migration " + name + " (" + (exports ? "export" : "import") + " of " +
         ranges_text(slots) + ")";
}

void SlotJob::enter(JobState next, int64_t now_ms, base::Logger& log) {
  log.debug(title() + ": " + std::string(name_of(state)) + " -> " + std::string(name_of(next)));
  state = next;
  updated_ms = now_ms;
}

std::vector<std::string> SlotJob::establish_request() const {
  std::vector<std::string> words = {"CLUSTER", "SYNCSLOTS", "ESTABLISH", "SOURCE",
                                    source,    "NAME",      name,        "SLOTSRANGE"};
  slots.for_each_run([&](int first, int last) {
    words.push_back(std::to_string(first));
    words.push_back(std::to_string(last));
  });
  return words;
}

SlotJob& JobTable::add(SlotJob job) {
  return *jobs_.emplace_front(std::make_unique<SlotJob>(std::move(job)));
}

SlotJob* JobTable::find(std::string_view name) const {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(), [name](const auto& job) {
    return !job->ended() && job->name == name;
  });
  return found == jobs_.end() ? nullptr : found->get();
}

SlotJob* JobTable::find_overlapping(const SlotSet& slots) const {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(), [&slots](const auto& job) {
    return !job->ended() && job->slots.has_any(slots);
  });
  return found == jobs_.end() ? nullptr : found->get();
}

bool JobTable::any_active() const {
  return std::any_of(jobs_.begin(), jobs_.end(), [](const auto& job) { return !job->ended(); });
}

void JobTable::trim(size_t most) {
  size_t ended = 0;
  std::erase_if(jobs_, [&](const auto& job) { return job->ended() && ++ended > most; });
}

}  // namespace latchkey::cluster
