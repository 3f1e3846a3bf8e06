#include "cluster/slot_migration/task.h"

#include <utility>

namespace latchkey::cluster {

std::string_view name_of(TaskState state) {
  switch (state) {
    case TaskState::kNone:
      return "none";
    case TaskState::kConnecting:
      return "connecting";
    case TaskState::kAuthReply:
      return "auth-reply";
    case TaskState::kHandshakeReply:
      return "handshake-reply";
    case TaskState::kSyncslotsReply:
      return "syncslots-reply";
    case TaskState::kAccumulateBuffer:
      return "accumulate-buffer";
    case TaskState::kStreamingBuffer:
      return "streaming-buffer";
    case TaskState::kWaitStreamEof:
      return "wait-stream-eof";
    case TaskState::kTakeover:
      return "takeover";
    case TaskState::kWaitRdbchannel:
      return "wait-rdbchannel";
    case TaskState::kWaitBgsaveStart:
      return "wait-bgsave-start";
    case TaskState::kSendBulkAndStream:
      return "send-bulk-and-stream";
    case TaskState::kSendStream:
      return "send-stream";
    case TaskState::kHandoffPrep:
      return "handoff-prep";
    case TaskState::kHandoff:
      return "handoff";
    case TaskState::kCompleted:
      return "completed";
    case TaskState::kFailed:
      return "failed";
    case TaskState::kCanceled:
      return "canceled";
  }
  return {};
}

std::string_view name_of(SnapshotState state) {
  switch (state) {
    case SnapshotState::kNone:
      return "none";
    case SnapshotState::kConnecting:
      return "connecting";
    case SnapshotState::kAuthReply:
      return "auth-reply";
    case SnapshotState::kRdbchannelReply:
      return "rdbchannel-reply";
    case SnapshotState::kRdbchannelTransfer:
      return "rdbchannel-transfer";
    case SnapshotState::kCompleted:
      return "completed";
  }
  return {};
}

std::string ranges_text(const SlotSet& slots) {
  std::string text;
  slots.for_each_run([&](int first, int last) {
    if (!text.empty()) text += ' ';
    text += std::to_string(first) + "-" + std::to_string(last);
  });
  return text;
}

std::string SlotTask::title() const {
  return (import ? "Import task " : "Migrate task ") + id;
}

void SlotTask::note_error(const std::string& what) {
  last_error = what + " (state: " + std::string(name_of(state)) +
               ", rdb_channel_state: " + std::string(name_of(snapshot)) + ")";
}

SlotTask& TaskTable::add(SlotTask task) {
  return *active_.emplace_back(std::make_unique<SlotTask>(std::move(task)));
}

SlotTask* TaskTable::find_active(std::string_view id) const {
  for (const auto& task : active_) {
    if (task->id == id) return task.get();
  }
  return nullptr;
}

SlotTask* TaskTable::find_overlapping(const SlotSet& slots) const {
  for (const auto& task : active_) {
    if (task->slots.has_any(slots)) return task.get();
  }
  return nullptr;
}

SlotTask* TaskTable::newest_export() {
  for (SlotTask& task : archive_) {
    if (!task.import) return &task;
  }
  return nullptr;
}

void TaskTable::archive(SlotTask& task, size_t most) {
  // A source hears of an import that is tried again as of a new task with the same id.
  std::erase_if(archive_, [&](const SlotTask& old) { return old.id == task.id; });
  archive_.push_front(task);
  while (archive_.size() > most) archive_.pop_back();
  active_.remove_if([&](const auto& each) { return each.get() == &task; });
}

}  // namespace latchkey::cluster
