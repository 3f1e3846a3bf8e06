#include "cluster/slot_migration/slot_migration.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "cluster/cluster.h"
#include "cluster/slot_keys.h"
#include "server/client/client.h"
#include "server/client/pause.h"
#include "server/command/propagation.h"
#include "server/process/shutdown.h"
#include "server/server.h"

namespace latchkey::cluster {

using server::PauseControl;

namespace {

constexpr int64_t kRetryMs = 500;

}  // namespace

void NodeSession::closing() {
  migration_.session_closing(*this);
}

SlotMigration::SlotMigration(Cluster& cluster)
    : cluster_(cluster),
      server_(cluster.server()),
      runner_client_(server_.clients().add_internal()),
      trimmer_(server_) {
  server_.hooks().role_changed.add([this] { role_changed(); });
  server_.hooks().dataset_replacing.add([this] { dataset_replacing(); });
  server_.shutdown().on_exit([this] {
    ends_ = true;
    cancel_all("Cancelled due to server shutdown");
  });
}

SlotMigration::~SlotMigration() {
  if (importer_ != nullptr) importer_->stop();
  if (exporter_ != nullptr) exporter_->stop();
  if (listens_) server_.events().remove(*this);
}

SlotMigration::Figures SlotMigration::figures() const {
  Figures figures{.active_tasks = tasks_.active().size(), .most_input_bytes = most_input_};
  if (importer_ != nullptr) {
    figures.input_bytes = importer_->buffered();
    figures.most_input_bytes = importer_->most_buffered();
  }
  if (exporter_ != nullptr) figures.output_bytes = exporter_->output_memory();
  return figures;
}

bool SlotMigration::moves(int slot) const {
  SlotSet slots;
  slots.add(slot);
  return tasks_.find_overlapping(slots) != nullptr;
}

Node* SlotMigration::common_owner(const SlotSet& slots) const {
  Node* common = nullptr;
  bool several = false;
  slots.for_each([&](int slot) {
    Node* const owner = cluster_.nodes().owner(slot);
    several |= owner == nullptr || (common != nullptr && owner != common);
    common = owner;
  });
  return several ? nullptr : common;
}

// --- Importing -----------------------------------------------------------------------------------

std::string SlotMigration::import(const SlotSet& slots) {
  SlotTask task;
  task.id = server_.random_source().hex(kIdDigits);
  task.slots = slots;
  task.source = common_owner(slots)->id;
  task.dest = cluster_.myself().id;
  task.import = true;
  task.created_ms = server_.machine_ms();
  SlotTask& added = tasks_.add(std::move(task));
  server_.log().notice(added.title() + " created: src=" + added.source + ", dest=" + added.dest +
                       ", slots=" + ranges_text(slots));
  start_imports();
  return added.id;
}

void SlotMigration::start_imports() {
  if (ends_ || importing_ != nullptr || exporting_ != nullptr || server_.loop() == nullptr) return;
  for (const auto& task : tasks_.active()) {
    if (!task->import || !may_start(*task)) continue;
    return start(*task);
  }
}

bool SlotMigration::may_start(SlotTask& task) {
  if (const auto retry = retry_ms_.find(task.id);
      retry != retry_ms_.end() && server_.machine_ms() < retry->second)
    return false;
  if (server_.pauses().kind() != PauseControl::Kind::kNone) return false;
  if (trimmer_.covers_any(task.slots)) {
    if (!std::exchange(logged_held_, true)) {
      server_.log().notice("Can not start import task " + task.id +
                           ": trim in progress for some of the slots");
    }
    return false;
  }
  logged_held_ = false;
  // What is left over of these slots from before must not get between the keys that will come.
  drop_imported(task.slots);
  if (trimmer_.covers_any(task.slots)) return false;
  Node* const owner = common_owner(task.slots);
  return owner != nullptr && owner != &cluster_.myself() && !owner->address.ip.empty();
}

void SlotMigration::start(SlotTask& task) {
  const Node& source = *common_owner(task.slots);
  task.source = source.id;
  if (task.state == TaskState::kFailed) ++task.retries;
  task.last_error.clear();
  task.snapshot = SnapshotState::kNone;
  if (task.started_ms < 0) task.started_ms = server_.machine_ms();
  task.ended_ms = -1;
  retry_ms_.erase(task.id);
  hide(task.slots, true);
  propagate_task(task, "connecting");
  server_.log().notice(task.title() + " started for slots: " + ranges_text(task.slots));
  importing_ = &task;
  listen();
  most_input_ = 0;
  importer_ = std::make_unique<Importer>(
      server_, static_cast<Importer::Host&>(*this), runner_client_, task,
      Importer::Origin{.host = source.address.ip,
                       .port = source.address.port_for(server_.settings().tls_cluster),
                       .secret = cluster_.secret(),
                       .node_id = cluster_.myself().id});
}

// Leaves the task where it is.
void SlotMigration::end_import(TaskState state) {
  SlotTask& task = *std::exchange(importing_, nullptr);
  most_input_ = importer_->most_buffered();
  importer_->stop();
  stopped_importers_.push_back(std::move(importer_));
  task.state = state;
  task.ended_ms = server_.machine_ms();
  const bool completed = state == TaskState::kCompleted;
  propagate_task(task, completed ? "completed" : "failed");
  if (!completed) drop_imported(task.slots);
  hide(task.slots, false);
  listen();
}

void SlotMigration::drop_imported(const SlotSet& slots) {
  if (!server_.is_replica()) trim_lost(slots);
}

// Not at the same time as another node that wants slots of this one.
void SlotMigration::retry_later(const SlotTask& task) {
  const auto chance = server_.random_source().background().below(kRetryMs);
  retry_ms_[task.id] = server_.machine_ms() + kRetryMs + static_cast<int64_t>(chance);
}

void SlotMigration::import_failed(const std::string& error) {
  SlotTask& task = *importing_;
  task.note_error(error);
  server_.log().warning(task.title() + " failed: slots=" + ranges_text(task.slots) +
                        ", err=" + task.last_error);
  retry_later(task);
  end_import(TaskState::kFailed);
}

void SlotMigration::import_refused_for_now() {
  SlotTask& task = *importing_;
  task.note_error("The source node is not ready");
  retry_later(task);
  end_import(TaskState::kFailed);
}

void SlotMigration::import_ready() {
  SlotTask& task = *importing_;
  server_.log().notice(task.title() + " is ready to takeover slots: " + ranges_text(task.slots));
  const Node* const owner = common_owner(task.slots);
  if (owner == nullptr || owner->id != task.source)
    return cancel(task, "Cancelled due to slots configuration updated");
  const size_t keys = keys_in_slots(server_, task.slots);
  task.slots.for_each([&](int slot) { cluster_.nodes().assign(slot, cluster_.myself()); });
  // The other nodes believe the claim with the newest epoch.
  cluster_.bump_epoch();
  cluster_.changed();
  end_import(TaskState::kCompleted);
  server_.log().notice(task.title() + " completed for slots: " + ranges_text(task.slots) +
                       " (imported " + std::to_string(keys) + " keys)");
  archive(task);
  if (!cluster_.commit()) server_.log().warning("Cannot write the cluster configuration file yet");
  cluster_.gossip().broadcast_pong();
}

// --- Sending -------------------------------------------------------------------------------------

base::Result<> SlotMigration::begin_export(NodeSession& session, std::string_view id,
                                           const SlotSet& slots) {
  if (fails_at("migrate-main-channel", name_of(TaskState::kNone)) || ends_ ||
      server_.pauses().kind() != PauseControl::Kind::kNone || !cluster_.is_up())
    return base::fail("NOTREADY Cluster is not ready to migrate slots, please retry later");
  const NodeTable& nodes = cluster_.nodes();
  const Node* const dest = nodes.find(session.node_id);
  if (dest == nullptr || !dest->is_master() || dest->is_myself())
    return base::fail("ERR The node that asks is no other master of the cluster");
  if (nodes.any_moves())
    return base::fail("ERR all slot states must be STABLE to start a slot migration task.");
  if (cluster_.myself().is_replica()) return base::fail("ERR This node is not a master");
  if (!cluster_.myself().slots.has_all(slots))
    return base::fail("ERR This node is not the owner of the slots");
  // The connection of its former attempt may not have been closed yet.
  if (exporting_ != nullptr && exporting_->dest == dest->id)
    cancel(*exporting_, "Cancelled due to new migration requested");
  if (importing_ != nullptr || exporting_ != nullptr || cluster_.slot_jobs().moves_any(slots))
    return base::fail("NOTREADY Another slot migration task is already in progress");
  SlotTask task;
  task.id = id;
  task.slots = slots;
  task.source = cluster_.myself().id;
  task.dest = dest->id;
  task.created_ms = task.started_ms = server_.machine_ms();
  exporting_ = &tasks_.add(std::move(task));
  const size_t keys = keys_in_slots(server_, slots);
  server_.log().notice(exporting_->title() + " started for slots: " + ranges_text(slots) +
                       " (keys at start: " + std::to_string(keys) + ")");
  session.role = NodeSession::Role::kStream;
  exporter_ = std::make_unique<Exporter>(server_, static_cast<Exporter::Host&>(*this), *exporting_,
                                         session.client);
  listen();
  propagate_task(*exporting_, "wait-rdbchannel");
  return {};
}

bool SlotMigration::begin_snapshot(NodeSession& session, std::string_view id) {
  if (exporting_ == nullptr || exporting_->id != id) return false;
  session.role = NodeSession::Role::kSnapshot;
  if (!exporter_->attach(session.client)) session.role = NodeSession::Role::kNone;
  return session.role == NodeSession::Role::kSnapshot;
}

void SlotMigration::acknowledged(const NodeSession& session, std::string_view state,
                                 uint64_t offset) {
  if (exporter_ != nullptr && exporter_->main() == &session.client)
    exporter_->acknowledged(state, offset);
}

void SlotMigration::session_closing(const NodeSession& session) {
  if (exporter_ != nullptr) exporter_->closing(session.client);
}

void SlotMigration::snapshot_sent(const std::string& task_id, bool done) {
  // A flush kills the child as well, whose end may be seen before the turn's.
  end_if_flushed();
  if (exporting_ != nullptr && exporting_->id == task_id) exporter_->snapshot_ended(done);
}

void SlotMigration::export_failed(const std::string& error) {
  SlotTask& task = *std::exchange(exporting_, nullptr);
  task.note_error(error);
  server_.log().warning(task.title() + " failed: slots=" + ranges_text(task.slots) +
                        ", err=" + task.last_error);
  stopped_exporters_.push_back(std::move(exporter_));
  task.state = TaskState::kFailed;
  task.ended_ms = server_.machine_ms();
  propagate_task(task, "failed");
  archive(task);
}

void SlotMigration::export_canceled(const std::string& reason) {
  cancel(*exporting_, "Cancelled due to " + reason);
}

void SlotMigration::complete_export() {
  SlotTask& task = *std::exchange(exporting_, nullptr);
  exporter_->stop();
  stopped_exporters_.push_back(std::move(exporter_));
  task.state = TaskState::kCompleted;
  task.ended_ms = server_.machine_ms();
  propagate_task(task, "completed");
  server_.log().notice(task.title() + " completed for slots: " + ranges_text(task.slots));
  archive(task);
}

// --- The end of tasks ----------------------------------------------------------------------------

void SlotMigration::archive(SlotTask& task) {
  retry_ms_.erase(task.id);
  tasks_.archive(task,
                 static_cast<size_t>(server_.settings().cluster_slot_migration_max_archived_tasks));
  listen();
}

void SlotMigration::cancel(SlotTask& task, const std::string& reason) {
  task.note_error(reason);
  server_.log().notice(task.title() + " canceled: slots=" + ranges_text(task.slots) +
                       ", err=" + task.last_error);
  if (&task == importing_) {
    end_import(TaskState::kCanceled);
  } else if (&task == exporting_) {
    exporting_ = nullptr;
    exporter_->stop();
    stopped_exporters_.push_back(std::move(exporter_));
    propagate_task(task, "failed");
  }
  task.state = TaskState::kCanceled;
  task.ended_ms = server_.machine_ms();
  archive(task);
}

size_t SlotMigration::cancel(std::string_view id) {
  SlotTask* const task = tasks_.find_active(id);
  if (task == nullptr) return 0;
  cancel(*task, "Cancelled due to user request");
  return 1;
}

size_t SlotMigration::cancel_all(const std::string& reason) {
  size_t canceled = 0;
  for (; !tasks_.active().empty(); ++canceled) cancel(*tasks_.active().front(), reason);
  return canceled;
}

void SlotMigration::end_if_flushed() {
  if (std::exchange(flushed_, false)) cancel_all("Cancelled due to flush of the dataset");
}

// Listens for flushes only while there are tasks, for a listener costs each change a call.
void SlotMigration::listen() {
  const bool wanted = importing_ != nullptr || exporting_ != nullptr;
  if (std::exchange(listens_, wanted) == wanted) return;
  wanted ? server_.events().add(*this) : server_.events().remove(*this);
}

// --- What happens elsewhere ----------------------------------------------------------------------

void SlotMigration::check_import(SlotTask& task) {
  const NodeTable& nodes = cluster_.nodes();
  const Node* const source = nodes.find(task.source);
  bool elsewhere = false;
  bool changed = false;
  task.slots.for_each([&](int slot) {
    const Node* const owner = nodes.owner(slot);
    if (owner == nullptr || owner == source) return;
    changed = true;
    // The source's replica may have replaced it.
    elsewhere |= source == nullptr || owner->shard_id != source->shard_id;
  });
  if (elsewhere) return cancel(task, "Cancelled due to slots configuration updated");
  if (!changed || &task != importing_) return;
  importer_->stop();
  import_failed("The source node was replaced by a failover");
}

void SlotMigration::check_export(SlotTask& task) {
  if (cluster_.myself().slots.has_all(task.slots)) return;
  const Node* const dest = cluster_.nodes().find(task.dest);
  const bool gone = dest != nullptr && dest->slots.has_all(task.slots);
  if (gone && task.state == TaskState::kHandoff) return complete_export();
  cancel(task, "Cancelled due to slots configuration updated");
}

// The destination may have heard first that the slots went elsewhere, and have hung up: an export
// that had failed is over for good then, and shown so.
void SlotMigration::check_failed_export() {
  SlotTask* const task = tasks_.newest_export();
  if (task == nullptr || task->state != TaskState::kFailed) return;
  if (cluster_.myself().slots.has_all(task->slots)) return;
  task->note_error("Cancelled due to slots configuration updated");
  task->state = TaskState::kCanceled;
}

void SlotMigration::slots_changed() {
  if (id_of_master() != importing_master_) forget_imports_of_master();
  std::vector<SlotTask*> imports;
  for (const auto& task : tasks_.active()) {
    if (task->import) imports.push_back(task.get());
  }
  for (SlotTask* task : imports) check_import(*task);
  if (exporting_ != nullptr) check_export(*exporting_);
  check_failed_export();
  if (!trimmer_.any()) return;
  // What is served again must not be what was left over.
  const Node* const master = cluster_.shard_master();
  if (master == &cluster_.myself()) trimmer_.finish(master->slots);
}

void SlotMigration::node_removed(const Node& node) {
  std::vector<SlotTask*> concerned;
  for (const auto& task : tasks_.active()) {
    if (task->source == node.id || task->dest == node.id) concerned.push_back(task.get());
  }
  for (SlotTask* task : concerned) cancel(*task, "Cancelled due to node deleted");
}

void SlotMigration::role_changed() {
  const bool replica = server_.is_replica();
  if (std::exchange(was_replica_, replica) == replica) return;
  if (replica) {
    // What is being deleted is deleted at the new master, too.
    cancel_all("Cancelled due to failover");
    return;
  }
  forget_imports_of_master();
  if (is_available()) trim_unowned();
}

std::string SlotMigration::id_of_master() const {
  const Node* const master = cluster_.shard_master();
  return master != nullptr ? master->id : std::string();
}

// No message will say how these imports end: another master does not know them, and a former master
// that is a replica now sends nothing.
void SlotMigration::forget_imports_of_master() {
  for (const auto& [id, slots] : std::exchange(of_master_, {})) hide(slots, false);
}

void SlotMigration::dataset_replacing() {
  trimmer_.cancel_all();
}

bool SlotMigration::is_available() const {
  return server_.edition().has({8, 4});
}

void SlotMigration::trim_unowned() {
  if (server_.is_replica()) return;
  const NodeTable& nodes = cluster_.nodes();
  SlotSet unowned;
  for (int slot = 0; slot < store::kKeySlots; ++slot) {
    const Node* const owner = nodes.owner(slot);
    if (keys_in_slot(server_, slot) > 0 && owner != nullptr && owner != &cluster_.myself() &&
        nodes.importing_from(slot) == nullptr)
      unowned.add(slot);
  }
  if (unowned.empty()) return;
  server_.log().notice("Detected keys in slots that do not belong to this node: " +
                       ranges_text(unowned) + ". Scheduling trim.");
  trimmer_.schedule(unowned, /*propagates=*/true);
}

void SlotMigration::trim_lost(const SlotSet& slots) {
  trimmer_.schedule(slots.without(cluster_.myself().slots), /*propagates=*/true);
}

void SlotMigration::hide(const SlotSet& slots, bool on) {
  store::HiddenSlots& hidden = *server_.database(0).hidden_slots();
  slots.for_each([&](int slot) { hidden.set_importing(slot, on); });
  hidden.update();
}

void SlotMigration::propagate_task(const SlotTask& task, std::string_view state) {
  if (server_.is_replica()) return;
  // "<task>:<source>:<destination>:<operation>:<state>:<ranges>".
  const std::string_view operation = task.import ? "import" : "migrate";
  std::string text;
  for (const std::string_view field :
       std::initializer_list<std::string_view>{task.id, task.source, task.dest, operation, state})
    text.append(field).append(":");
  text += ranges_text(task.slots);
  server_.propagation().add(server::kAnyDatabase,
                            {"CLUSTER", "SYNCSLOTS", "CONF", "ASM-TASK", text},
                            server::kPropagateToReplicas);
}

bool SlotMigration::master_task_received(std::string_view text) {
  constexpr size_t kFields = 6;
  std::string_view fields[kFields];
  for (size_t i = 0; i < kFields; ++i) {
    const size_t end = i + 1 < kFields ? text.find(':') : text.size();
    if (end == std::string_view::npos) return false;
    fields[i] = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  SlotSet slots;
  for (std::string_view ranges = fields[5]; !ranges.empty();) {
    const size_t end = std::min(ranges.find(' '), ranges.size());
    if (!slots.add_run(ranges.substr(0, end))) return false;
    ranges.remove_prefix(std::min(end + 1, ranges.size()));
  }
  if (fields[3] != "import") return fields[3] == "migrate";
  const std::string id(fields[0]);
  const bool ends = fields[4] == "completed" || fields[4] == "failed" || fields[4] == "canceled";
  if (!ends) {
    // What was left over from before must be gone before new keys come.
    trimmer_.finish(slots);
    importing_master_ = id_of_master();
    of_master_[id] = slots;
    hide(slots, true);
  } else if (of_master_.erase(id) > 0) {
    hide(slots, false);
  }
  return true;
}

// --- Periodic work -------------------------------------------------------------------------------

void SlotMigration::check_pauses() {
  const PauseControl& pauses = server_.pauses();
  if (tasks_.active().empty()) return;
  if (pauses.pauses_for(PauseControl::Reason::kShutdown)) {
    cancel_all("Cancelled due to server shutdown");
  } else if (importing_ == nullptr) {
    return;
  } else if (pauses.pauses_for(PauseControl::Reason::kFailover)) {
    cancel(*importing_, "Cancelled due to failover");
  } else if (pauses.pauses_for(PauseControl::Reason::kClient)) {
    cancel(*importing_, "Cancelled due to client pause");
  }
}

void SlotMigration::tick() {
  end_if_flushed();
  check_pauses();
  if (importer_ != nullptr) importer_->tick();
  if (exporter_ != nullptr) exporter_->work();
  start_imports();
  if (server_.loop() == nullptr) trimmer_.work();
}

void SlotMigration::end_turn() {
  end_if_flushed();
  if (exporter_ != nullptr) exporter_->work();
  stopped_importers_.clear();
  stopped_exporters_.clear();
}

// --- Failures on purpose -------------------------------------------------------------------------

bool SlotMigration::set_fail_point(std::string_view channel, std::string_view state) {
  static constexpr std::string_view kChannels[] = {"", "import-main-channel", "import-rdb-channel",
                                                   "migrate-main-channel", "migrate-rdb-channel"};
  bool known = state.empty();
  for (int i = 0; i <= static_cast<int>(TaskState::kCanceled); ++i)
    known |= name_of(static_cast<TaskState>(i)) == state;
  for (int i = 0; i <= static_cast<int>(SnapshotState::kCompleted); ++i)
    known |= name_of(static_cast<SnapshotState>(i)) == state;
  if (!known ||
      std::find(std::begin(kChannels), std::end(kChannels), channel) == std::end(kChannels))
    return false;
  fail_channel_ = channel;
  fail_state_ = state;
  return true;
}

bool SlotMigration::fails_at(std::string_view channel, std::string_view state) const {
  return !fail_channel_.empty() && fail_channel_ == channel && fail_state_ == state;
}

}  // namespace latchkey::cluster
