// The source's side of a migration of slots as Valkey 9 has it: connects to the target and sends
// the slots of one job.
//
//     connecting -> sending-establish-command -> reading-establish-response -> waiting-to-snapshot
//         -> snapshotting -> replicating -> waiting-to-pause -> failover-paused -> failover-granted
//
// The protocol is Valkey's, watched between nodes of 9.1. All of it goes over one connection to the
// port of the target's clients, after AUTH if `primaryauth` is set:
//     -> CLUSTER SYNCSLOTS ESTABLISH SOURCE <id> NAME <job> SLOTSRANGE <first> <last> ...
//     <- +OK; from here on nothing is a reply
//     -> the keys as requests, for each database behind a SELECT
//     -> CLUSTER SYNCSLOTS SNAPSHOT-EOF, and the writes to the slots since the snapshot was begun
//     <- CLUSTER SYNCSLOTS REQUEST-PAUSE     the target has applied the snapshot
//     -> CLUSTER SYNCSLOTS PAUSED            behind the last write: no more are made
//     <- CLUSTER SYNCSLOTS REQUEST-FAILOVER  the target has applied everything
//     -> CLUSTER SYNCSLOTS FAILOVER-GRANTED  the target takes the slots over
// Both sides say CLUSTER SYNCSLOTS ACK once a second, except this one while a forked child writes
// the snapshot: to the socket, or over TLS to a pipe, for only this process can encrypt for a
// connection that it uses later. What is written to the slots meanwhile is kept here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cluster/slot_jobs/job.h"
#include "cluster/slot_migration/node_channel.h"
#include "cluster/slot_migration/slot_stream.h"
#include "replication/child_pipe.h"
#include "resp/request_parser.h"
#include "server/client/pause.h"

namespace latchkey::server {
class Client;
class Server;
}  // namespace latchkey::server

namespace latchkey::cluster {

class JobSender final : private NodeChannel::Owner {
 public:
  class Host {
   public:
    virtual ~Host() = default;
    // Called as the sender's last action.
    virtual void sending_failed(SlotJob& job, const std::string& message) = 0;
    // Whether no other job has paused writes: they are paused for one at a time.
    virtual bool may_pause_writes() const = 0;
    // The child that wrote the snapshot of that job has ended.
    virtual void snapshot_ended(const std::string& job, bool done, size_t copied_bytes) = 0;
  };

  // REQUIRES: the server has a loop. `job` must outlive the sender, or stop() be called before.
  JobSender(server::Server& server, Host& host, SlotJob& job, const std::string& address, int port);
  ~JobSender() override { stop(); }
  // The connection was to be closed, as that of a client (CLIENT KILL).
  void killed();
  bool has_paused_writes() const { return !over_ && paused_ms_ != 0; }
  JobSender(const JobSender&) = delete;
  JobSender& operator=(const JobSender&) = delete;

  SlotJob& job() { return job_; }
  void snapshot_ended(bool done, size_t copied_bytes);
  // Ends it: writes go on, the child is killed, the connection is closed. Nothing is called any
  // more.
  void stop();
  // To be called at the end of each turn of the loop, and ten times a second.
  void work();
  // Bytes of writes that have not left this node.
  size_t waiting_bytes() const;
  uint64_t sent_bytes() const { return sent_; }

 private:
  // NodeChannel::Owner
  void channel_connected(NodeChannel& channel) override;
  size_t channel_input(NodeChannel& channel, std::span<char> bytes) override;
  void channel_lost(NodeChannel& channel, const std::string& reason) override;

  void enter(JobState state);
  void establish();
  void read_reply(std::string_view line);
  void read_request(std::span<const std::string_view> words);
  void start_snapshot();
  void forward_snapshot();
  void forward_write(int database, std::string_view request);
  void send(std::string_view bytes);
  void send_syncslots(std::string_view what);
  void pause_writes();
  void check_times();
  void fail(const std::string& message);

  server::Server& server_;
  Host& host_;
  SlotJob& job_;
  std::unique_ptr<NodeChannel> channel_;
  server::Client* shown_ = nullptr;  // in CLIENT LIST, while it is connected
  std::unique_ptr<SlotStream> stream_;
  std::unique_ptr<replication::ChildPipe> pipe_;  // null: the child writes to the socket
  resp::RequestParser parser_;
  resp::ArgumentVector words_;
  std::string kept_;  // writes, until the snapshot is sent
  int stream_database_ = -1;
  uint64_t sent_ = 0;
  bool authenticates_ = false;
  bool child_runs_ = false;
  bool pause_requested_ = false;
  bool crossed_ = false;
  bool over_ = false;
  int64_t paused_ms_ = 0;  // the machine's time; 0: not
  std::optional<server::HandoffPause> pause_;
  int64_t acknowledged_ms_ = 0;
};

}  // namespace latchkey::cluster
