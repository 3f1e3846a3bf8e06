// Slot migrations as Valkey 9 has them (CLUSTER MIGRATESLOTS): the source drives them, and they
// move keys of all databases. CLUSTER MIGRATION, which is Redis's and driven by the target, is
// slot_migration/. A slot is moved by one of the two at a time.
//
// The keys of a failed import are deleted. Keys of slots that are being imported are not seen by
// clients (store/hidden_slots.h). Where Valkey is emulated, CLUSTER SYNCSLOTS ESTABLISH and FINISH
// in the stream tell replicas of the jobs; otherwise SlotMigration::propagate_task() does, which
// replicas of Redis understand, too.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/slot_jobs/job.h"
#include "cluster/slot_jobs/receiver.h"
#include "cluster/slot_jobs/sender.h"
#include "server/client/node_link.h"
#include "server/command/keyspace_events.h"
#include "server/command/slot_gate.h"

namespace latchkey::cluster {

class Cluster;
class SlotJobs;
struct Node;

// A source's connection to this node.
class JobLink final : public server::NodeLink {
 public:
  JobLink(SlotJobs& jobs, server::Client& client) : jobs_(jobs), client_(client) {}
  void closing() override;
  bool gets_stream() const override { return true; }
  bool is_snapshot_channel() const override { return false; }

 private:
  SlotJobs& jobs_;
  server::Client& client_;
};

class SlotJobs final : private JobSender::Host,
                       private JobReceiver::Host,
                       private server::KeyspaceEventListener {
 public:
  struct Figures {
    size_t output_bytes = 0;  // that wait to be sent, and to be applied
    size_t input_bytes = 0;
    uint64_t sent = 0;  // since the start
    uint64_t received = 0;
  };

  // DEBUG SLOTMIGRATION PREVENT-PAUSE and PREVENT-FAILOVER: what jobs do not do for now.
  struct Prevented {
    bool pause = false;     // of writes here
    bool failover = false;  // of slots to this node
  };
  Prevented prevented;

  explicit SlotJobs(Cluster& cluster);
  ~SlotJobs() override;

  const JobTable& jobs() const { return jobs_; }
  Figures figures() const;
  // Bytes of writes that a job has not sent yet.
  size_t waiting_bytes(const SlotJob& job) const;
  // Whether any job goes on by which this node sends, or receives.
  bool sends() const { return !senders_.empty(); }
  bool receives() const { return !receivers_.empty(); }
  // Whether a job that goes on has one of the slots.
  bool moves_any(const SlotSet& slots) const { return jobs_.find_overlapping(slots) != nullptr; }

  // Sends slots of this node to that one. REQUIRES: they are this node's, and nothing moves them.
  void send(const SlotSet& slots, const Node& target);
  // Ends all jobs that send. Returns how many.
  size_t cancel_all();
  // Ends all jobs that receive: a replica replaces this node.
  void end_imports();

  struct Establishment {
    std::string_view source;
    std::string_view name;  // 40 bytes
    SlotSet slots;
  };
  // Accepts a job of a source, which may send unless this fails. The error is a reply's text after
  // "ERR ".
  base::Result<> establish(server::Client& from, const Establishment& wanted);
  // On a replica, the master's stream says that a job has begun, or ended. False when no such job
  // is known.
  void master_job_began(const Establishment& job);
  bool master_job_ended(std::string_view name, bool success, std::string_view message);
  // imports(): the jobs that import slots to this node, or to its master. adopt(): on a replica,
  // replaces the known jobs of its master by those of the loaded dataset.
  std::vector<server::SlotImport> imports() const;
  void adopt(std::span<const server::SlotImport> imports);
  // Called when a replica becomes a master: fails the jobs of its former master, whose connections
  // are gone, and deletes the keys that they imported.
  void end_adopted(const std::string& why);

  // --- Events -----------------------------------------------------------------------------------
  void client_closing(const server::Client& client);
  // The owners of slots have changed.
  void slots_changed();
  // To be called ten times a second, and at the end of each turn.
  void tick();
  void end_turn();

 private:
  // JobSender::Host
  void sending_failed(SlotJob& job, const std::string& message) override;
  bool may_pause_writes() const override;
  void snapshot_ended(const std::string& job, bool done, size_t copied_bytes) override;
  // JobReceiver::Host
  void receiving_failed(SlotJob& job, const std::string& message) override;
  void slots_granted(SlotJob& job) override;
  bool may_take_slots() const override { return !prevented.failover; }
  // server::KeyspaceEventListener
  void key_changed(store::Keyspace&, std::string_view, server::EventClass,
                   std::string_view) override {}
  void keyspace_clearing(store::Keyspace&) override {}
  void keyspaces_swapping(store::Keyspace&, store::Keyspace&) override {}
  // Listeners cannot leave within a call: the jobs end at the end of the turn.
  void dataset_flushed() override { flushed_ = true; }

  void end_all(const std::string& message, bool cancels);
  void end_if_flushed();
  JobSender* sender_of(const SlotJob& job) const;
  JobReceiver* receiver_of(const SlotJob& job) const;
  void end(SlotJob& job, JobState state, const std::string& message);
  void end_import(SlotJob& job, JobState state, const std::string& message);
  void listen();
  void role_changed();
  void check_job(SlotJob& job);
  // Adds a job by which the master of this replica imports slots.
  void track_master_job(std::string_view name, const SlotSet& slots);
  void propagate_begin(const SlotJob& job);
  void propagate_end(const SlotJob& job);
  bool speaks_valkey() const;

  Cluster& cluster_;
  server::Server& server_;
  server::Client& runner_client_;
  JobTable jobs_;
  std::vector<std::unique_ptr<JobSender>> senders_;
  std::vector<std::unique_ptr<JobReceiver>> receivers_;
  // Freed at the end of the turn, when none of their functions is running.
  std::vector<std::unique_ptr<JobSender>> stopped_senders_;
  std::vector<std::unique_ptr<JobReceiver>> stopped_receivers_;
  uint64_t sent_ = 0;  // by those that have ended
  uint64_t received_ = 0;
  bool listens_ = false;
  bool flushed_ = false;
};

}  // namespace latchkey::cluster
