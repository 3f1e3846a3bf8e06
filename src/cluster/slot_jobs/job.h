// A slot migration as Valkey 9 has it (CLUSTER MIGRATESLOTS), as CLUSTER GETSLOTMIGRATIONS shows
// it: slots that this node sends to another one, or receives. Knows no connections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "cluster/slot_set.h"

namespace latchkey::cluster {

// How often each of the two nodes tells the other that it is there.
inline constexpr int64_t kAckIntervalMs = 1000;

enum class JobState : uint8_t {
  // Of the source.
  kConnecting,
  kSendingEstablish,
  kReadingEstablish,
  kWaitingToSnapshot,
  kSnapshotting,
  kReplicating,     // the snapshot is sent, writes follow as they happen
  kWaitingToPause,  // the target has the snapshot, and too much waits to be sent
  kFailoverPaused,  // writes are paused
  // Of the target.
  kWaitingForAck,
  kReceivingSnapshot,
  kWaitingForPaused,
  kFailoverRequested,
  // Of both.
  kFailoverGranted,
  // Of a replica of the target.
  kOnPrimary,
  // The end.
  kSuccess,
  kFailed,
  kCancelled,
};
// "waiting-to-snapshot", and so on.
std::string_view name_of(JobState state);

struct SlotJob {
  std::string name;  // 40 hexadecimal digits
  SlotSet slots;
  std::string source = {};  // ids of nodes; empty on a replica
  std::string target = {};
  bool exports = false;  // otherwise the slots come here
  JobState state = JobState::kConnecting;
  std::string message = {};  // why it has failed
  // Unix time.
  int64_t created_ms = 0;
  int64_t updated_ms = 0;       // when the state changed
  int64_t last_contact_ms = 0;  // from the other node
  size_t copied_bytes = 0;      // by copy on write, while the snapshot was made

  bool ended() const { return state >= JobState::kSuccess; }
  // "Slot migration <name> (export of 0-9 20-29)".
  std::string title() const;
  // Changes the state, and logs it. `now_ms`: Unix time.
  void enter(JobState next, int64_t now_ms, base::Logger& log);
  // CLUSTER SYNCSLOTS ESTABLISH, by which the source tells the target of the job, and the target
  // its replicas.
  std::vector<std::string> establish_request() const;
};

// The jobs that go on, and the latest that have ended.
class JobTable {
 public:
  using Jobs = std::list<std::unique_ptr<SlotJob>>;
  // The newest is the first.
  const Jobs& all() const { return jobs_; }
  SlotJob& add(SlotJob job);
  // A job that goes on; null when there is none.
  SlotJob* find(std::string_view name) const;
  SlotJob* find_overlapping(const SlotSet& slots) const;
  bool any_active() const;
  // Drops the oldest jobs that have ended beyond `most`.
  void trim(size_t most);

 private:
  Jobs jobs_;
};

}  // namespace latchkey::cluster
