#include "sentinel/election.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sentinel/sentinel.h"

namespace latchkey::sentinel {

using base::LogLevel;

void Election::vote(Master& master, uint64_t epoch, const std::string& candidate) {
  sentinel_.adopt_epoch(epoch);
  if (master.leader_epoch >= epoch || sentinel_.current_epoch() > epoch) return;
  const std::string leader_before = std::exchange(master.leader, candidate);
  const uint64_t epoch_before = std::exchange(master.leader_epoch, epoch);
  if (!sentinel_.save()) {
    // A vote that a restart would forget could be given twice.
    master.leader = leader_before;
    master.leader_epoch = epoch_before;
    return;
  }
  sentinel_.event_text(LogLevel::kWarning, "+vote-for-leader", &master,
                       candidate + ' ' + std::to_string(master.leader_epoch));
  // The other one has its time to fail the master over.
  if (candidate != sentinel_.id())
    master.failover_started_ms =
        sentinel_.now_ms() +
        static_cast<int64_t>(sentinel_.host().random_below(Failover::kLongestDelayMs));
}

std::string Election::winner(Master& master, uint64_t epoch) {
  std::map<std::string, size_t> votes;
  for (const auto& [id, sentinel] : master.sentinels) {
    if (!sentinel->leader.empty() && sentinel->leader_epoch == sentinel_.current_epoch())
      ++votes[sentinel->leader];
  }
  const auto most = [&] {
    return std::max_element(votes.begin(), votes.end(), [](const auto& left, const auto& right) {
      return left.second < right.second;
    });
  };
  // If this Sentinel has not voted yet, it votes for the candidate with the most votes, or for
  // itself if there are none.
  vote(master, epoch, votes.empty() ? sentinel_.id() : most()->first);
  if (!master.leader.empty() && master.leader_epoch == epoch) ++votes[master.leader];
  if (votes.empty()) return {};
  const auto ahead = most();
  const size_t majority = (master.sentinels.size() + 1) / 2 + 1;
  const bool wins = ahead->second >= majority && ahead->second >= master.quorum;
  return wins ? ahead->first : std::string();
}

}  // namespace latchkey::sentinel
