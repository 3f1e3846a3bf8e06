// A slot migration as CLUSTER MIGRATION STATUS shows it: what this node imports, or what it sends
// to another node. Only data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "cluster/slot_set.h"

namespace latchkey::cluster {

enum class TaskState : uint8_t {
  kNone,  // an import that has not begun
  // Of an import.
  kConnecting,
  kAuthReply,
  kHandshakeReply,
  kSyncslotsReply,
  kAccumulateBuffer,  // the snapshot is being received; the stream stays in the connection
  kStreamingBuffer,   // what has come of the stream meanwhile is applied
  kWaitStreamEof,
  kTakeover,
  // Of a node that sends its slots.
  kWaitRdbchannel,
  kWaitBgsaveStart,
  kSendBulkAndStream,
  kSendStream,
  kHandoffPrep,  // writes are paused
  kHandoff,      // the stream has ended
  // The end of both.
  kCompleted,
  kFailed,
  kCanceled,
};
// What happens on the connection for the snapshot.
enum class SnapshotState : uint8_t {
  kNone,
  kConnecting,
  kAuthReply,
  kRdbchannelReply,
  kRdbchannelTransfer,
  kCompleted,
};
// "accumulate-buffer", and so on.
std::string_view name_of(TaskState state);
std::string_view name_of(SnapshotState state);

struct SlotTask {
  std::string id;
  SlotSet slots;
  std::string source;  // ids of nodes
  std::string dest;
  bool import = false;  // otherwise this node is the source
  TaskState state = TaskState::kNone;
  SnapshotState snapshot = SnapshotState::kNone;
  std::string last_error;
  uint64_t retries = 0;
  // Unix time; -1: not yet.
  int64_t created_ms = -1;
  int64_t started_ms = -1;
  int64_t ended_ms = -1;
  int64_t write_pause_ms = 0;

  bool ended() const { return state >= TaskState::kCompleted; }
  // "Import task <id>" or "Migrate task <id>".
  std::string title() const;
  // Sets the error, with the states in which it happened.
  void note_error(const std::string& what);
};

// "0-100 7000-7000".
std::string ranges_text(const SlotSet& slots);

// The tasks that go on or wait, and the latest that have ended.
class TaskTable {
 public:
  using Active = std::list<std::unique_ptr<SlotTask>>;
  // In the order in which they were created.
  const Active& active() const { return active_; }
  // The newest is the first.
  const std::deque<SlotTask>& archive() const { return archive_; }

  SlotTask& add(SlotTask task);
  SlotTask* find_active(std::string_view id) const;
  // A task that goes on and has one of these slots; null when there is none.
  SlotTask* find_overlapping(const SlotSet& slots) const;
  // The latest of the archive by which this node was to send slots; null when there is none.
  SlotTask* newest_export();
  // Moves an active task to the archive, which keeps at most `most`. The reference ends.
  void archive(SlotTask& task, size_t most);

 private:
  Active active_;
  std::deque<SlotTask> archive_;
};

}  // namespace latchkey::cluster
