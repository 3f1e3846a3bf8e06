// The source's side of a slot migration: sends the slots of one task to the node that asked for
// them (importer.h has the protocol).
//
//     wait-rdbchannel -> wait-bgsave-start -> send-bulk-and-stream -> send-stream
//         -> handoff-prep -> handoff -> (the other node owns the slots)
//
// A forked child writes the snapshot to the second connection. From the fork on all writes to the
// slots go to the first one. When the snapshot is sent and the other node has nearly caught up,
// writes are paused, and once everything is sent the stream is ended. The other node then takes the
// slots over; this node hears of that by the bus. When it does not in time, writes go on here and
// the task has failed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cluster/slot_migration/slot_stream.h"
#include "cluster/slot_migration/task.h"
#include "server/client/pause.h"

namespace latchkey::server {
class Client;
class Server;
}  // namespace latchkey::server

namespace latchkey::cluster {

class Exporter final {
 public:
  class Host {
   public:
    virtual ~Host() = default;
    // Called as the exporter's last action.
    virtual void export_failed(const std::string& error) = 0;
    virtual void export_canceled(const std::string& reason) = 0;
    // The child that wrote the snapshot of that task has ended.
    virtual void snapshot_sent(const std::string& task_id, bool done) = 0;
    virtual bool fails_at(std::string_view channel, std::string_view state) const = 0;
  };

  // `main`: the client that has sent SYNC.
  Exporter(server::Server& server, Host& host, SlotTask& task, server::Client& main);
  ~Exporter();
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  // The other connection has come. False when it is not expected.
  bool attach(server::Client& snapshot);
  // CLUSTER SYNCSLOTS ACK: what the other node has applied.
  void acknowledged(std::string_view state, uint64_t offset);
  void snapshot_ended(bool done);
  // One of the connections is being closed.
  void closing(const server::Client& client);
  // Ends it: writes go on, the child is killed, the connections are closed. Nothing is called any
  // more.
  void stop();
  // To be called at the end of each turn of the loop, and ten times a second.
  void work();

  const server::Client* main() const { return main_; }
  size_t output_memory() const;

 private:
  void enter(TaskState state);
  void start_snapshot();
  void send_stream(int database, std::string_view request);
  void prepare_handoff();
  void end_stream();
  void check_times();
  bool is_stuck();
  void fail(const std::string& error);

  server::Server& server_;
  Host& host_;
  SlotTask& task_;
  server::Client* main_;
  server::Client* snapshot_ = nullptr;
  std::unique_ptr<SlotStream> stream_;
  bool child_runs_ = false;
  bool over_ = false;
  bool crossed_ = false;
  bool caught_up_ = false;  // the other node applies the stream as it comes
  uint64_t sent_ = 0;       // bytes of the stream
  int stream_database_ = 0;
  uint64_t applied_ = 0;
  int64_t entered_ms_;       // when the state began (machine's time)
  int64_t last_contact_ms_;  // from the other node
  int64_t paused_ms_ = 0;
  std::optional<server::HandoffPause> pause_;
  uint64_t taken_ = 0;  // bytes that the socket had taken at the last look, and when they changed
  int64_t taken_ms_;
};

}  // namespace latchkey::cluster
