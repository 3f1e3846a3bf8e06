// The target's side of a migration of slots as Valkey 9 has it (sender.h has the protocol): reads
// what the source sends over a connection that began as a client's, and runs the writes.
//
//     waiting-for-ack -> receiving-snapshot -> waiting-for-paused -> failover-requested
//         -> failover-granted -> (the slots are this node's)
//
// Requests are run in pieces between which other clients are served.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "cluster/slot_jobs/job.h"
#include "cluster/slot_migration/stream_reader.h"
#include "cluster/slot_migration/stream_runner.h"
#include "net/connection.h"
#include "net/loop.h"

namespace latchkey::server {
class Client;
class Server;
}  // namespace latchkey::server

namespace latchkey::cluster {

class JobReceiver final : public net::ConnectionHandler {
 public:
  class Host {
   public:
    virtual ~Host() = default;
    // Both are called as the receiver's last action, which must not be destroyed within them.
    virtual void receiving_failed(SlotJob& job, const std::string& message) = 0;
    // Everything is here, and the source lets this node have the slots.
    virtual void slots_granted(SlotJob& job) = 0;
    virtual bool may_take_slots() const = 0;
  };

  // `from`: the client that has sent ESTABLISH, and closes the receiver when it is closed. What it
  // sends runs as `runner`. REQUIRES: `job` outlives the receiver. Without a loop on_input() must
  // be called again for what it has left.
  JobReceiver(server::Server& server, Host& host, SlotJob& job, server::Client& from,
              server::Client& runner);

  SlotJob& job() { return job_; }
  const server::Client& client() const { return client_; }
  // Takes the connection over. To be called when the request has been answered.
  void begin();
  // The client is being closed.
  void closing();
  // Closes the connection; nothing is called any more.
  void stop();
  // To be called ten times a second.
  void tick();
  uint64_t received_bytes() const { return received_; }
  size_t kept_bytes() const;

  // net::ConnectionHandler
  size_t on_input(std::span<char> bytes) override;
  size_t wanted_input() const override { return reader_.wanted_size(); }
  void on_end_of_input() override { lost(); }
  void on_disconnect() override { lost(); }
  void on_flushed() override {}

 private:
  void enter(JobState state);
  void send_syncslots(std::string_view what);
  // Has the rest of the input offered again.
  void continue_soon(uint64_t delay_ms);
  void run(std::span<const std::string_view> words);
  // A request of the protocol. False when it is none.
  bool run_protocol(std::span<const std::string_view> words);
  void advance(JobState from, JobState to, std::string_view request, std::string_view what);
  void lost();
  void fail(const std::string& message);

  server::Server& server_;
  Host& host_;
  SlotJob& job_;
  server::Client& client_;
  StreamRunner runner_;
  StreamReader reader_;
  std::unique_ptr<net::Timer> timer_;
  bool begun_ = false;
  bool over_ = false;
  uint64_t received_ = 0;
  int64_t acknowledged_ms_ = 0;
};

}  // namespace latchkey::cluster
