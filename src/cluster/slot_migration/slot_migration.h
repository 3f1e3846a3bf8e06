// Atomic slot migration (CLUSTER MIGRATION, Redis 8.4): the tasks by which whole slots move between
// this node and others, and what they leave to be deleted.
//
// One task is at work at a time, the other imports wait. An import that fails is tried again until
// it succeeds or is canceled; before each further attempt, and after the last one, the keys that it
// had imported are deleted. Keys of slots that are being imported are hidden from clients
// (store/hidden_slots.h). CLUSTER SYNCSLOTS CONF ASM-TASK in the stream names these slots to the
// replicas of this node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/slot_migration/exporter.h"
#include "cluster/slot_migration/importer.h"
#include "cluster/slot_migration/task.h"
#include "cluster/slot_migration/trimmer.h"
#include "server/client/node_link.h"
#include "server/command/keyspace_events.h"

namespace latchkey::server {
class Client;
class Server;
}  // namespace latchkey::server

namespace latchkey::cluster {

class Cluster;
class SlotMigration;
struct Node;

// Another node's connection to this one.
class NodeSession final : public server::NodeLink {
 public:
  enum class Role : uint8_t { kNone, kStream, kSnapshot };

  NodeSession(SlotMigration& migration, server::Client& of) : client(of), migration_(migration) {}

  server::Client& client;
  std::string node_id;  // as it says; empty: it has not
  Role role = Role::kNone;

  // server::NodeLink
  void closing() override;
  bool gets_stream() const override { return role != Role::kNone; }
  bool is_snapshot_channel() const override { return role == Role::kSnapshot; }

 private:
  SlotMigration& migration_;
};

class SlotMigration final : private Importer::Host,
                            private Exporter::Host,
                            private server::KeyspaceEventListener {
 public:
  struct Figures {
    size_t active_tasks = 0;
    size_t output_bytes = 0;
    size_t input_bytes = 0;
    size_t most_input_bytes = 0;  // of the current or last import
  };

  explicit SlotMigration(Cluster& cluster);
  ~SlotMigration() override;

  // Whether the emulated release has atomic slot migration. In earlier releases a node keeps the
  // keys of slots that other nodes own, as if it were still importing them.
  bool is_available() const;

  // --- Commands ---------------------------------------------------------------------------------
  // REQUIRES: all slots have the same owner, another node, and no task has any of them. Returns the
  // task's id.
  std::string import(const SlotSet& slots);
  // Cancels the task, or all that have not ended. Returns how many it were.
  size_t cancel(std::string_view id);
  size_t cancel_all(const std::string& reason);
  const TaskTable& tasks() const { return tasks_; }
  Trimmer& trimmer() { return trimmer_; }
  Figures figures() const;
  // Whether an import is running.
  bool imports() const { return importing_ != nullptr; }
  // Whether a task has the slot.
  bool moves(int slot) const;

  // Accepts a destination's request for slots, which are sent unless this fails. The error is a
  // reply, from its code on.
  base::Result<> begin_export(NodeSession& session, std::string_view id, const SlotSet& slots);
  bool begin_snapshot(NodeSession& session, std::string_view id);
  void acknowledged(const NodeSession& session, std::string_view state, uint64_t offset);
  // On a replica, the master's stream names a task. False when the text is malformed.
  bool master_task_received(std::string_view text);
  // DEBUG ASM-FAILPOINT. False when there is no such channel or state; empty texts: none.
  bool set_fail_point(std::string_view channel, std::string_view state);

  // --- Events -----------------------------------------------------------------------------------
  void session_closing(const NodeSession& session);
  // The owners of slots, or the role, have changed.
  void slots_changed();
  void node_removed(const Node& node);
  // Deletes the keys of slots that another node has, and logs it; but not of those that are
  // imported key by key. Does nothing on a replica.
  void trim_unowned();
  // Deletes the keys of those of the slots that are not this node's: it has lost them.
  void trim_lost(const SlotSet& slots);

  // --- For both kinds of migrations -------------------------------------------------------------
  // Whether the slots' keys are hidden as imported ones.
  void hide(const SlotSet& slots, bool on);
  // Deletes the imported keys of those of the slots that are not this node's. Does nothing on a
  // replica, whose master propagates the deletion.
  void drop_imported(const SlotSet& slots);
  // Deletes at once what is to be deleted of these slots.
  void finish_trimming(const SlotSet& slots) { trimmer_.finish(slots); }
  // Writes the task to the replication stream, in Redis's form. Does nothing on a replica. `state`:
  // "completed" and "failed" end it.
  void propagate_task(const SlotTask& task, std::string_view state);

  // To be called ten times a second, and at the end of each turn.
  void tick();
  void end_turn();

 private:
  // Importer::Host
  void import_failed(const std::string& error) override;
  void import_refused_for_now() override;
  void import_ready() override;
  // Exporter::Host
  void export_failed(const std::string& error) override;
  void export_canceled(const std::string& reason) override;
  void snapshot_sent(const std::string& task_id, bool done) override;
  bool fails_at(std::string_view channel, std::string_view state) const override;
  // server::KeyspaceEventListener
  void key_changed(store::Keyspace&, std::string_view, server::EventClass,
                   std::string_view) override {}
  void keyspace_clearing(store::Keyspace&) override {}
  void keyspaces_swapping(store::Keyspace&, store::Keyspace&) override {}
  // Listeners cannot leave within a call: the tasks end at the end of the turn.
  void dataset_flushed() override { flushed_ = true; }

  void start_imports();
  void end_if_flushed();
  bool may_start(SlotTask& task);
  void start(SlotTask& task);
  // The owner of all slots; null when there is none, or several.
  Node* common_owner(const SlotSet& slots) const;
  void retry_later(const SlotTask& task);
  void end_import(TaskState state);
  void complete_export();
  void cancel(SlotTask& task, const std::string& reason);
  void archive(SlotTask& task);
  void check_import(SlotTask& task);
  void check_export(SlotTask& task);
  void check_failed_export();
  void check_pauses();
  void listen();
  void role_changed();
  std::string id_of_master() const;
  void forget_imports_of_master();
  void dataset_replacing();

  Cluster& cluster_;
  server::Server& server_;
  server::Client& runner_client_;
  Trimmer trimmer_;
  TaskTable tasks_;
  std::unique_ptr<Importer> importer_;  // of importing_
  SlotTask* importing_ = nullptr;
  std::unique_ptr<Exporter> exporter_;  // of exporting_
  SlotTask* exporting_ = nullptr;
  // Freed at the end of the turn, when none of their functions is running.
  std::vector<std::unique_ptr<Importer>> stopped_importers_;
  std::vector<std::unique_ptr<Exporter>> stopped_exporters_;
  std::map<std::string, int64_t, std::less<>> retry_ms_;  // when a failed import begins again
  // On a replica: what its master imports, by the task's id; and that master.
  std::map<std::string, SlotSet, std::less<>> of_master_;
  std::string importing_master_;
  std::string fail_channel_;
  std::string fail_state_;
  size_t most_input_ = 0;
  bool listens_ = false;
  bool flushed_ = false;
  bool was_replica_ = false;
  bool logged_held_ = false;  // whether it was logged that an import waits for trimming
  bool ends_ = false;         // the server shuts down
};

}  // namespace latchkey::cluster
