#include "cluster/slot_jobs/slot_jobs.h"

#include <algorithm>
#include <utility>

#include "cluster/cluster.h"
#include "cluster/slot_keys.h"
#include "server/client/client.h"
#include "server/client/pause.h"
#include "server/command/propagation.h"
#include "server/server.h"

namespace latchkey::cluster {

namespace {

constexpr char kFailover[] = "A failover occurred during slot import";

// The job as Redis's message to replicas describes it.
SlotTask as_task(const SlotJob& job) {
  SlotTask task;
  task.id = job.name;
  task.slots = job.slots;
  task.source = job.source;
  task.dest = job.target;
  task.import = !job.exports;
  return task;
}

}  // namespace

void JobLink::closing() {
  jobs_.client_closing(client_);
}

SlotJobs::SlotJobs(Cluster& cluster)
    : cluster_(cluster),
      server_(cluster.server()),
      runner_client_(server_.clients().add_internal()) {
  server_.hooks().role_changed.add([this] { role_changed(); });
}

SlotJobs::~SlotJobs() {
  for (const auto& sender : senders_) sender->stop();
  for (const auto& receiver : receivers_) receiver->stop();
  if (listens_) server_.events().remove(*this);
}

SlotJobs::Figures SlotJobs::figures() const {
  Figures figures{.sent = sent_, .received = received_};
  for (const auto& sender : senders_) {
    figures.output_bytes += sender->waiting_bytes();
    figures.sent += sender->sent_bytes();
  }
  for (const auto& receiver : receivers_) {
    figures.input_bytes += receiver->kept_bytes();
    figures.received += receiver->received_bytes();
  }
  return figures;
}

JobSender* SlotJobs::sender_of(const SlotJob& job) const {
  for (const auto& sender : senders_) {
    if (&sender->job() == &job) return sender.get();
  }
  return nullptr;
}

size_t SlotJobs::waiting_bytes(const SlotJob& job) const {
  const JobSender* const sender = sender_of(job);
  return sender != nullptr ? sender->waiting_bytes() : 0;
}

JobReceiver* SlotJobs::receiver_of(const SlotJob& job) const {
  for (const auto& receiver : receivers_) {
    if (&receiver->job() == &job) return receiver.get();
  }
  return nullptr;
}

// --- Sending -------------------------------------------------------------------------------------

void SlotJobs::send(const SlotSet& slots, const Node& target) {
  const int64_t now_ms = server_.machine_ms();
  SlotJob& job = jobs_.add({.name = server_.random_source().hex(kIdDigits),
                            .slots = slots,
                            .source = cluster_.myself().id,
                            .target = target.id,
                            .exports = true,
                            .created_ms = now_ms,
                            .updated_ms = now_ms,
                            .last_contact_ms = now_ms});
  server_.log().notice(job.title() + " to " + target.id + " begins");
  senders_.push_back(std::make_unique<JobSender>(
      server_, static_cast<JobSender::Host&>(*this), job, target.address.ip,
      target.address.port_for(server_.settings().tls_cluster)));
  listen();
}

size_t SlotJobs::cancel_all() {
  const size_t count = senders_.size();
  while (!senders_.empty()) end(senders_.back()->job(), JobState::kCancelled, {});
  return count;
}

void SlotJobs::end_imports() {
  while (!receivers_.empty()) end_import(receivers_.back()->job(), JobState::kFailed, kFailover);
}

bool SlotJobs::may_pause_writes() const {
  return !prevented.pause && std::ranges::none_of(senders_, [](const auto& sender) {
    return sender->has_paused_writes();
  });
}

void SlotJobs::snapshot_ended(const std::string& name, bool done, size_t copied_bytes) {
  // A flush kills the child as well, whose end may be seen before the turn's.
  end_if_flushed();
  const SlotJob* const job = jobs_.find(name);
  JobSender* const sender = job != nullptr ? sender_of(*job) : nullptr;
  if (sender != nullptr) sender->snapshot_ended(done, copied_bytes);
}

void SlotJobs::sending_failed(SlotJob& job, const std::string& message) {
  end(job, JobState::kFailed, message);
}

// --- Receiving -----------------------------------------------------------------------------------

base::Result<> SlotJobs::establish(server::Client& from, const Establishment& wanted) {
  const NodeTable& nodes = cluster_.nodes();
  if (cluster_.myself().is_replica())
    return base::fail("Slot migration can only be used on primary nodes.");
  // The replica that is about to replace this node would not get all of them.
  if (server_.pauses().pauses_for(server::PauseControl::Reason::kFailover))
    return base::fail("Target node is being replaced by its replica");
  const Node* const source = nodes.find(wanted.source);
  if (source == nullptr) return base::fail("Target node does not know the source node");
  if (source == &cluster_.myself()) return base::fail("Source node is target node itself");
  if (wanted.slots.empty() || !source->slots.has_all(wanted.slots))
    return base::fail("Target node does not agree about current slot ownership");
  if (!nodes.importing().empty()) return base::fail("Slots are being manually imported");
  if (!nodes.migrating().empty()) return base::fail("Slots are being manually migrated");
  if (cluster_.slot_migration().tasks().find_overlapping(wanted.slots) != nullptr ||
      moves_any(wanted.slots))
    return base::fail("Slot is already being imported on the target by a different migration");
  if (jobs_.find(wanted.name) != nullptr) return base::fail("Slot migration with that name exists");
  if (from.connection() == nullptr || from.node != nullptr || server_.loop() == nullptr)
    return base::fail("Slots cannot come over this connection");
  // What is left over of these slots must not get between the keys that will come.
  cluster_.slot_migration().finish_trimming(wanted.slots);
  if (keys_in_slots(server_, wanted.slots) > 0)
    return base::fail("Target node has keys of the slots");
  const int64_t now_ms = server_.machine_ms();
  SlotJob& job = jobs_.add({.name = std::string(wanted.name),
                            .slots = wanted.slots,
                            .source = source->id,
                            .target = cluster_.myself().id,
                            .state = JobState::kWaitingForAck,
                            .created_ms = now_ms,
                            .updated_ms = now_ms,
                            .last_contact_ms = now_ms});
  server_.log().notice(job.title() + " from " + source->id + " begins");
  from.node = std::make_unique<JobLink>(*this, from);
  receivers_.push_back(std::make_unique<JobReceiver>(
      server_, static_cast<JobReceiver::Host&>(*this), job, from, runner_client_));
  cluster_.slot_migration().hide(job.slots, true);
  propagate_begin(job);
  listen();
  return {};
}

void SlotJobs::client_closing(const server::Client& client) {
  for (const auto& receiver : receivers_) {
    if (&receiver->client() == &client) return receiver->closing();
  }
}

void SlotJobs::receiving_failed(SlotJob& job, const std::string& message) {
  end_import(job, JobState::kFailed, message);
}

void SlotJobs::slots_granted(SlotJob& job) {
  const Node* const source = cluster_.nodes().find(job.source);
  if (source == nullptr || !source->slots.has_all(job.slots))
    return end_import(job, JobState::kFailed, "Slots are no longer owned by source node");
  job.slots.for_each([&](int slot) { cluster_.nodes().assign(slot, cluster_.myself()); });
  // The other nodes believe the claim with the newest epoch.
  cluster_.bump_epoch();
  cluster_.changed();
  end_import(job, JobState::kSuccess, {});
  if (!cluster_.commit()) server_.log().warning("Cannot write the cluster configuration file yet");
  cluster_.gossip().broadcast_pong();
}

// --- The end of jobs -----------------------------------------------------------------------------

void SlotJobs::end_import(SlotJob& job, JobState state, const std::string& message) {
  JobReceiver* const receiver = receiver_of(job);
  if (receiver == nullptr) return end(job, state, message);
  receiver->stop();
  received_ += receiver->received_bytes();
  const auto place = std::find_if(receivers_.begin(), receivers_.end(),
                                  [receiver](const auto& each) { return each.get() == receiver; });
  stopped_receivers_.push_back(std::move(*place));
  receivers_.erase(place);
  cluster_.slot_migration().hide(job.slots, false);
  if (state != JobState::kSuccess) cluster_.slot_migration().drop_imported(job.slots);
  end(job, state, message);
}

// Of a job that imports the receiver has gone already.
void SlotJobs::end(SlotJob& job, JobState state, const std::string& message) {
  if (JobSender* const sender = sender_of(job); sender != nullptr) {
    sender->stop();
    sent_ += sender->sent_bytes();
    const auto place = std::find_if(senders_.begin(), senders_.end(),
                                    [sender](const auto& each) { return each.get() == sender; });
    stopped_senders_.push_back(std::move(*place));
    senders_.erase(place);
  }
  job.state = state;
  job.message = message;
  job.updated_ms = server_.machine_ms();
  server_.log().notice(job.title() + " has ended: " + std::string(name_of(state)) +
                       (message.empty() ? "" : ", " + message));
  if (!job.exports) propagate_end(job);
  listen();
}

void SlotJobs::end_all(const std::string& message, bool cancels) {
  const JobState state = cancels ? JobState::kCancelled : JobState::kFailed;
  while (!senders_.empty()) end(senders_.back()->job(), state, message);
  while (!receivers_.empty()) end_import(receivers_.back()->job(), state, message);
}

// Listens for flushes only while there are jobs, for a listener costs each change a call.
void SlotJobs::listen() {
  const bool wanted = !senders_.empty() || !receivers_.empty();
  if (std::exchange(listens_, wanted) == wanted) return;
  wanted ? server_.events().add(*this) : server_.events().remove(*this);
}

// --- What happens elsewhere ----------------------------------------------------------------------

void SlotJobs::check_job(SlotJob& job) {
  const NodeTable& nodes = cluster_.nodes();
  const Node* const source = nodes.find(job.source);
  if (source != nullptr && source->slots.has_all(job.slots)) return;
  if (!job.exports)
    return end_import(job, JobState::kFailed, "Slots are no longer owned by source node");
  const Node* const target = nodes.find(job.target);
  const bool with_target = target != nullptr && target->slots.has_all(job.slots);
  if (with_target && job.state == JobState::kFailoverGranted)
    return end(job, JobState::kSuccess, {});
  end(job, JobState::kFailed, "Slots are no longer owned by myself");
}

void SlotJobs::slots_changed() {
  std::vector<SlotJob*> active;
  for (const auto& sender : senders_) active.push_back(&sender->job());
  for (const auto& receiver : receivers_) active.push_back(&receiver->job());
  for (SlotJob* job : active) check_job(*job);
}

void SlotJobs::role_changed() {
  if (server_.is_replica()) {
    while (!senders_.empty())
      end(senders_.back()->job(), JobState::kFailed, "Slots are no longer owned by myself");
    return end_imports();
  }
  end_adopted(kFailover);
}

void SlotJobs::end_adopted(const std::string& why) {
  for (const auto& job : jobs_.all()) {
    if (job->state != JobState::kOnPrimary) continue;
    cluster_.slot_migration().hide(job->slots, false);
    cluster_.slot_migration().drop_imported(job->slots);
    end(*job, JobState::kFailed, why);
  }
}

bool SlotJobs::speaks_valkey() const {
  return server_.edition().is_valkey_since({9, 0});
}

void SlotJobs::propagate_begin(const SlotJob& job) {
  if (server_.is_replica()) return;
  if (!speaks_valkey()) {
    return cluster_.slot_migration().propagate_task(as_task(job), "connecting");
  }
  const std::vector<std::string> words = job.establish_request();
  const std::vector<std::string_view> views(words.begin(), words.end());
  server_.propagation().add(server::kAnyDatabase, views, server::kPropagateToReplicas);
}

void SlotJobs::propagate_end(const SlotJob& job) {
  if (server_.is_replica()) return;
  const bool success = job.state == JobState::kSuccess;
  if (!speaks_valkey()) {
    return cluster_.slot_migration().propagate_task(as_task(job), success ? "completed" : "failed");
  }
  server_.propagation().add(
      server::kAnyDatabase,
      {"CLUSTER", "SYNCSLOTS", "FINISH", "STATE", success ? "SUCCESS" : "FAILED", "NAME", job.name,
       "MESSAGE", job.message},
      server::kPropagateToReplicas);
}

void SlotJobs::master_job_began(const Establishment& told) {
  if (jobs_.find(told.name) != nullptr) return;
  cluster_.slot_migration().finish_trimming(told.slots);
  track_master_job(told.name, told.slots);
}

void SlotJobs::track_master_job(std::string_view name, const SlotSet& slots) {
  const int64_t now_ms = server_.machine_ms();
  jobs_.add({.name = std::string(name),
             .slots = slots,
             .state = JobState::kOnPrimary,
             .created_ms = now_ms,
             .updated_ms = now_ms,
             .last_contact_ms = now_ms});
  cluster_.slot_migration().hide(slots, true);
}

bool SlotJobs::master_job_ended(std::string_view name, bool success, std::string_view message) {
  SlotJob* const job = jobs_.find(name);
  if (job == nullptr || job->state != JobState::kOnPrimary) return false;
  cluster_.slot_migration().hide(job->slots, false);
  // The master deletes these keys without telling of each.
  if (!success) {
    job->slots.for_each([this](int slot) {
      delete_slot(server_, slot, [this](store::Keyspace& db, const std::string& key) {
        server_.events().moved_away(db, key);
      });
    });
  }
  end(*job, success ? JobState::kSuccess : JobState::kFailed, std::string(message));
  return true;
}

std::vector<server::SlotImport> SlotJobs::imports() const {
  std::vector<server::SlotImport> imports;
  for (const auto& job : jobs_.all()) {
    if (job->exports || job->ended()) continue;
    server::SlotImport& import = imports.emplace_back();
    import.name = job->name;
    job->slots.for_each_run([&](int first, int last) { import.ranges.emplace_back(first, last); });
  }
  return imports;
}

void SlotJobs::adopt(std::span<const server::SlotImport> imports) {
  const auto goes_on = [&](const SlotJob& job) {
    return std::ranges::any_of(imports, [&](const auto& each) { return each.name == job.name; });
  };
  for (const auto& job : jobs_.all()) {
    if (job->state != JobState::kOnPrimary || goes_on(*job)) continue;
    cluster_.slot_migration().hide(job->slots, false);
    end(*job, JobState::kFailed, "The primary does not know this job any more");
  }
  for (const server::SlotImport& import : imports) {
    SlotSet slots;
    for (const auto& [first, last] : import.ranges) {
      for (int slot = first; slot <= last; ++slot) slots.add(slot);
    }
    if (jobs_.find_overlapping(slots) == nullptr) track_master_job(import.name, slots);
  }
}

// --- Periodic work -------------------------------------------------------------------------------

void SlotJobs::end_if_flushed() {
  if (std::exchange(flushed_, false)) end_all("Data was flushed", /*cancels=*/false);
}

void SlotJobs::tick() {
  for (size_t i = 0; i < receivers_.size(); ++i) receivers_[i]->tick();
  end_turn();
  jobs_.trim(static_cast<size_t>(server_.settings().cluster_slot_migration_log_max_len));
}

void SlotJobs::end_turn() {
  end_if_flushed();
  for (size_t i = 0; i < receivers_.size(); ++i) receivers_[i]->begin();
  for (size_t i = 0; i < senders_.size(); ++i) senders_[i]->work();
  stopped_senders_.clear();
  stopped_receivers_.clear();
}

}  // namespace latchkey::cluster
